/**
 * A cache of a resource's objects that follows its watch (client-go: tools/cache). It shares the
 * immutable objects of the Cacher below, so it costs one map entry an object.
 *
 *     list -> replace -> watch from the list's revision -> apply events
 *              ^---- 410 Expired or a lost watch ends here after a pause ----'
 */
import type { Clock, Logger, Random, Timer } from "@quorate/host";
import {
  ApiError,
  Canceller,
  EVERYTHING,
  type KubeObject,
  type Lister,
  type RestListOptions,
  type Selector,
  type StoredObject,
  textOf,
  type Watch,
  type WatchEvent,
  type Watcher,
} from "@quorate/kube-storage";
import { systemContext } from "./system-context.ts";

/** Pauses between attempts: doubled up to the maximum, each with up to as much again. */
export const MIN_INFORMER_PAUSE_MS = 100;
export const MAX_INFORMER_PAUSE_MS = 10_000;
const PAGE_SIZE = 2000;

/** Called in the order of changes. `old` is the object before. Objects must not be changed. */
export interface InformerHandler {
  added?(object: KubeObject): void;
  updated?(object: KubeObject, old: KubeObject): void;
  deleted?(object: KubeObject): void;
  /** Once, when the first list has been handled. */
  synced?(): void;
}

/** What an informer follows. */
export interface InformerSource {
  readonly storage: Lister & Watcher;
  /** Absent: all objects. */
  readonly field?: Selector | undefined;
}

export interface InformerDependencies {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** A key of an object in its resource: "namespace/name", or "/name". */
export function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ""}/${metadata.name ?? ""}`;
}

export class Informer {
  readonly #source: InformerSource;
  readonly #handler: InformerHandler;
  readonly #dependencies: InformerDependencies;
  readonly #objects = new Map<string, StoredObject>();
  #watch: Watch | undefined;
  #timer: Timer | undefined;
  #revision = "";
  #pauseMs = MIN_INFORMER_PAUSE_MS;
  #hasSynced = false;
  #stopped = false;
  readonly #stop = new Canceller();
  readonly #waiting: (() => void)[] = [];

  constructor(
    source: InformerSource,
    handler: InformerHandler,
    dependencies: InformerDependencies,
  ) {
    this.#source = source;
    this.#handler = handler;
    this.#dependencies = dependencies;
  }

  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  /** Resolves when the first list has been handled, or `stop` was called. */
  get synced(): Promise<void> {
    if (this.#hasSynced || this.#stopped) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  get size(): number {
    return this.#objects.size;
  }

  get(namespace: string, name: string): KubeObject | undefined {
    return this.#objects.get(`${namespace}/${name}`)?.object();
  }

  *objects(): IterableIterator<KubeObject> {
    for (const stored of this.#objects.values()) yield stored.object();
  }

  /** Begins. Called once. */
  start(): void {
    void this.#run();
  }

  /** Ends the watch. The handler is called no more. */
  stop(): void {
    this.#stopped = true;
    this.#stop.abort(STOPPED);
    this.#timer?.cancel();
    this.#watch?.stop();
    this.#release();
  }

  async #run(): Promise<void> {
    try {
      if (this.#revision === "") await this.#list();
      if (!this.#stopped) await this.#follow();
    } catch (error) {
      if (this.#stopped) return;
      if (isExpired(error)) this.#revision = "";
      else this.#warn(error);
      this.#retry();
    }
  }

  async #list(): Promise<void> {
    const items: StoredObject[] = [];
    let continueToken = "";
    let revision = "";
    do {
      const { storage, field } = this.#source;
      const options = listOptions({ continueToken, limit: PAGE_SIZE, field });
      const page = await storage.list(systemContext("", this.#stop), options);
      items.push(...page.items);
      ({ continueToken, resourceVersion: revision } = page);
    } while (continueToken !== "" && !this.#stopped);
    if (this.#stopped) return;
    this.#replace(items);
    this.#revision = revision;
    if (this.#hasSynced) return;
    this.#hasSynced = true;
    this.#handler.synced?.();
    this.#release();
  }

  #replace(items: readonly StoredObject[]): void {
    const gone = new Map(this.#objects);
    for (const item of items) {
      gone.delete(keyOf(item.object()));
      this.#store(item);
    }
    for (const [key, item] of gone) {
      this.#objects.delete(key);
      this.#handler.deleted?.(item.object());
    }
  }

  #store(item: StoredObject): void {
    const object = item.object();
    const key = keyOf(object);
    const old = this.#objects.get(key);
    if (old?.resourceVersion === item.resourceVersion) return;
    this.#objects.set(key, item);
    if (old === undefined) this.#handler.added?.(object);
    else if (old.object().metadata.uid !== object.metadata.uid) {
      this.#handler.deleted?.(old.object());
      this.#handler.added?.(object);
    } else this.#handler.updated?.(object, old.object());
  }

  async #follow(): Promise<void> {
    const { storage, field } = this.#source;
    const options = listOptions({ resourceVersion: this.#revision, field });
    const watch = await storage.watch(systemContext("", this.#stop), options);
    if (this.#stopped) {
      watch.stop();
      return;
    }
    this.#watch = watch;
    watch.start({
      event: (event) => {
        this.#pauseMs = MIN_INFORMER_PAUSE_MS;
        this.#apply(event);
        return true;
      },
      ended: (error) => {
        this.#watch = undefined;
        if (this.#stopped) return;
        if (isExpired(error)) this.#revision = "";
        else if (error !== undefined) this.#warn(error);
        this.#retry();
      },
    });
  }

  #apply({ type, object: stored }: WatchEvent): void {
    this.#revision = String(stored.resourceVersion);
    if (type === "BOOKMARK") return;
    if (type !== "DELETED") {
      this.#store(stored);
      return;
    }
    const key = keyOf(stored.object());
    const old = this.#objects.get(key);
    this.#objects.delete(key);
    if (old !== undefined) this.#handler.deleted?.(stored.object());
  }

  #retry(): void {
    const { clock, random } = this.#dependencies;
    const pauseMs = this.#pauseMs * (1 + random.unit());
    this.#pauseMs = Math.min(this.#pauseMs * 2, MAX_INFORMER_PAUSE_MS);
    this.#timer = clock.after(pauseMs, () => void this.#run());
  }

  #warn(error: unknown): void {
    this.#dependencies.logger.warn("an informer lost its watch", { error: textOf(error) });
  }

  #release(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

/** Why requests of the server itself end when it stops. */
export const STOPPED = new ApiError(499, "", "the caller has stopped");

function isExpired(error: unknown): boolean {
  return error instanceof ApiError && error.httpStatus === 410;
}

/** metav1.ListOptions of a request of the server itself. */
export function listOptions(set: {
  readonly resourceVersion?: string;
  readonly limit?: number;
  readonly continueToken?: string;
  readonly field?: Selector | undefined;
}): RestListOptions {
  const { resourceVersion = "", limit = 0, continueToken = "", field = EVERYTHING } = set;
  return {
    predicate: {
      label: EVERYTHING,
      field,
      limit,
      continueToken,
      allowWatchBookmarks: true,
    },
    resourceVersion,
    resourceVersionMatch: "",
  };
}
