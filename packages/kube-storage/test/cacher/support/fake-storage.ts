/**
 * A storage over a History, with the delays and failures of a network. Each connection has its own
 * delays; two of them may share a History.
 */
import type { Clock, Random } from "@quorate/host";
import type { KubeObject } from "../../../src/meta/object.ts";
import { type ApiError, expired, internalError } from "../../../src/meta/status.ts";
import { bookmarkEvent } from "../../../src/storage/bookmark.ts";
import { decodeContinue, encodeContinue } from "../../../src/storage/continue-token.ts";
import { keyExists, keyNotFound, tooOld, unreachable } from "../../../src/storage/errors.ts";
import { objectVersioner } from "../../../src/storage/etcd-values.ts";
import type {
  DeleteOptions,
  GetOptions,
  ListOptions,
  ListResult,
  StorageInterface,
  StorageStats,
  UpdateFunction,
  UpdateOptions,
  Versioner,
  Watch,
  WatchEvent,
  WatchListener,
} from "../../../src/storage/interface.ts";
import type { StoredObject } from "../../../src/storage/stored-object.ts";
import type { Delays, Faults } from "./faults.ts";
import type { Change, History, Seen } from "./history.ts";
import { stored, WIDGET } from "./object.ts";

const EVERYTHING_BELOW = { color: "", node: "" };

export class FakeStorage implements StorageInterface, Faults {
  readonly versioner: Versioner = objectVersioner;
  readonly history: History;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #watches = new Set<FakeWatch>();
  delays: Delays;
  isDown = false;
  /** Watches send nothing, and do not end. */
  isSilent = false;
  hasWatchList = true;
  /** Watches omit events of this key, as a store with a bug might. */
  omittedKey = "";
  /** The object of this key cannot be decoded. */
  corruptKey = "";
  /** Calls by their name. */
  readonly calls = new Map<string, number>();

  constructor(history: History, clock: Clock, random: Random, delays: Delays) {
    this.history = history;
    this.#clock = clock;
    this.#random = random;
    this.delays = delays;
  }

  async create(key: string, object: KubeObject): Promise<StoredObject> {
    return this.#call("create", key, () => {
      if (this.history.present.has(key)) throw keyExists(key);
      return stored(key, this.history.write(key, object), object);
    });
  }

  async delete(key: string, options: DeleteOptions = {}): Promise<StoredObject> {
    let cached = options.cached;
    for (;;) {
      const object = cached ?? (await this.get(key))!;
      const done = await this.#call("delete", key, () => {
        const present = this.history.present.get(key);
        if (present === undefined) throw keyNotFound(key);
        if (present.revision !== object.resourceVersion) return undefined;
        return stored(key, this.history.write(key, undefined), present.object);
      });
      if (done !== undefined) return done;
      cached = undefined;
    }
  }

  async get(key: string, options: GetOptions = {}): Promise<StoredObject | undefined> {
    return this.#call("get", key, () => {
      const present = this.history.present.get(key);
      if (present !== undefined) return stored(key, present.revision, present.object);
      if (options.ignoreNotFound === true) return undefined;
      throw keyNotFound(key);
    });
  }

  async revisionOf(key: string): Promise<number> {
    return this.#call("revisionOf", key, () => this.history.present.get(key)?.revision ?? 0);
  }

  async getList(key: string, options: ListOptions): Promise<ListResult> {
    return this.#call("getList", key, () => {
      const { predicate, resourceVersion, resourceVersionMatch, recursive } = options;
      const point =
        predicate.continueToken === "" ? undefined : decodeContinue(predicate.continueToken, key);
      const wanted = Number(resourceVersion);
      const isExact =
        resourceVersionMatch === "Exact" ||
        (resourceVersionMatch === "" && predicate.limit > 0 && wanted > 0);
      let revision = this.history.revision;
      if (point !== undefined && point.revision > 0) revision = point.revision;
      else if (isExact) revision = wanted;
      if (revision < this.history.compactRevision) throw tooOld(key, "compacted");
      const whole = recursive && !key.endsWith("/") ? `${key}/` : key;
      const all = this.history.stateAt(revision, { key: whole, ...EVERYTHING_BELOW });
      const left = all.filter((seen) => point === undefined || seen.key >= point.startKey);
      const objects = left.map((seen) => stored(seen.key, seen.revision, objectOf(seen)));
      const selected = objects.filter((one) => {
        const { labels = {} } = one.object().metadata;
        const node = (one.object()["spec"] as { node?: string }).node ?? "";
        return predicate.label.matches(labels) && predicate.field.matches({ "spec.node": node });
      });
      const limit = predicate.limit > 0 ? predicate.limit : selected.length;
      const items = selected.slice(0, limit);
      const hasMore = selected.length > limit;
      const isAll = predicate.label.isEmpty && predicate.field.isEmpty;
      return {
        items,
        resourceVersion: revision,
        continueToken: hasMore ? encodeContinue(`${items.at(-1)!.key}\0`, whole, revision) : "",
        remainingItemCount: hasMore && isAll ? selected.length - limit : undefined,
      };
    });
  }

  async watch(key: string, options: ListOptions): Promise<Watch> {
    return this.#call("watch", key, () => {
      const revision = this.versioner.parse(options.resourceVersion);
      const closed = () => this.#watches.delete(watch);
      const watch = new FakeWatch(key, revision, this, this.#clock, this.#random, closed);
      if (options.sendInitialEvents === true && !this.hasWatchList)
        throw internalError("no watch-list here");
      if (options.sendInitialEvents === true) watch.addInitial();
      this.#watches.add(watch);
      return watch;
    });
  }

  async guaranteedUpdate(
    key: string,
    update: UpdateFunction,
    options: UpdateOptions,
  ): Promise<StoredObject> {
    let present =
      options.cached ?? (await this.get(key, { ignoreNotFound: options.ignoreNotFound }));
    for (;;) {
      const { object } = await update(present?.object(), undefined);
      const expected = present?.resourceVersion ?? 0;
      const done = await this.#call("update", key, () => {
        if ((this.history.present.get(key)?.revision ?? 0) !== expected) return undefined;
        return stored(key, this.history.write(key, withoutRevision(object)), object);
      });
      if (done !== undefined) return done;
      present = await this.get(key, { ignoreNotFound: options.ignoreNotFound });
    }
  }

  async stats(): Promise<StorageStats> {
    return { objectCount: this.history.present.size, averageObjectSizeBytes: 0 };
  }

  async requestWatchProgress(): Promise<void> {
    await this.#call("progress", "", () => {
      for (const watch of this.#watches) watch.addProgress();
    });
  }

  async currentResourceVersion(): Promise<number> {
    return this.#call("currentResourceVersion", "", () => this.history.revision);
  }

  compactRevision(): number {
    return this.history.compactRevision;
  }

  readiness(): string | undefined {
    return undefined;
  }

  async close(): Promise<void> {
    for (const watch of this.#watches) watch.stop();
  }

  get watchCount(): number {
    return this.#watches.size;
  }

  loseConnections(error: ApiError | undefined): void {
    for (const watch of this.#watches) watch.end(error);
  }

  compacted(revision: number): void {
    for (const watch of this.#watches)
      if (watch.sentRevision < revision && this.#random.below(2) === 0)
        watch.end(expired("The resourceVersion for the provided watch is too old."));
  }

  async #call<T>(name: string, key: string, run: () => T): Promise<T> {
    this.calls.set(name, (this.calls.get(name) ?? 0) + 1);
    await this.#pause(this.delays.callMs);
    if (this.isDown) throw unreachable(key, internalError("down"));
    const result = run();
    await this.#pause(this.delays.callMs);
    return result;
  }

  #pause(maxMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.after(this.#random.below(maxMs + 1), resolve);
    });
  }
}

function objectOf(seen: Seen): KubeObject {
  return withoutRevision(JSON.parse(seen.text) as KubeObject);
}

function withoutRevision(object: KubeObject): KubeObject {
  return objectVersioner.withResourceVersion(object, 0);
}

/** What a watch has still to send. */
type Queued = { readonly event: WatchEvent } | { readonly error: ApiError };

class FakeWatch implements Watch {
  readonly #key: string;
  readonly #storage: FakeStorage;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #closed: () => void;
  readonly #queue: Queued[] = [];
  readonly #unsubscribe: () => void;
  #listener: WatchListener | undefined;
  #isPaused = false;
  #isPlanned = false;
  #isOver = false;
  sentRevision: number;

  constructor(
    key: string,
    revision: number,
    storage: FakeStorage,
    clock: Clock,
    random: Random,
    closed: () => void,
  ) {
    this.#key = key;
    this.#storage = storage;
    this.#clock = clock;
    this.#random = random;
    this.#closed = closed;
    this.sentRevision = revision;
    const { history } = storage;
    if (revision > 0 && revision < history.compactRevision)
      this.#queue.push({ error: expired("compacted") });
    if (revision > 0)
      for (const change of history.changes) if (change.revision > revision) this.#add(change);
    this.#unsubscribe = history.onChange((change) => this.#add(change));
  }

  start(listener: WatchListener): void {
    this.#listener = listener;
    this.#plan();
  }

  resume(): void {
    this.#isPaused = false;
    this.#plan();
  }

  stop(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#unsubscribe();
    this.#closed();
  }

  end(error: ApiError | undefined): void {
    if (this.#isOver) return;
    this.stop();
    this.#listener?.ended(error);
  }

  addInitial(): void {
    const { history } = this.#storage;
    const interest = { key: `${this.#key.replace(/\/$/, "")}/`, ...EVERYTHING_BELOW };
    for (const seen of history.stateAt(history.revision, interest))
      this.#queue.push({
        event: { type: "ADDED", object: stored(seen.key, seen.revision, objectOf(seen)) },
      });
    this.#queue.push({ event: bookmarkEvent(WIDGET, history.revision, true) });
  }

  addProgress(): void {
    this.#queue.push({ event: bookmarkEvent(WIDGET, this.#storage.history.revision, false) });
    this.#plan();
  }

  #add({ key, revision, before, after }: Change): void {
    if (!key.startsWith(this.#key) || key === this.#storage.omittedKey) return;
    const type = after === undefined ? "DELETED" : before === undefined ? "ADDED" : "MODIFIED";
    const object = stored(key, revision, (after ?? before)!);
    const isCorrupt = key === this.#storage.corruptKey;
    const corrupt = {
      ...object,
      object: () => {
        throw new TypeError("no such object");
      },
    };
    this.#queue.push({ event: { type, object: isCorrupt ? corrupt : object } });
    this.#plan();
  }

  #plan(): void {
    if (this.#storage.isSilent) return;
    if (this.#isPlanned || this.#isPaused || this.#isOver || this.#listener === undefined) return;
    if (this.#queue.length === 0) return;
    this.#isPlanned = true;
    this.#clock.after(this.#random.below(this.#storage.delays.eventMs + 1), () => {
      this.#isPlanned = false;
      this.#send();
      this.#plan();
    });
  }

  #send(): void {
    while (this.#queue.length > 0 && !this.#isPaused && !this.#isOver) {
      const next = this.#queue.shift()!;
      if ("error" in next) {
        this.end(next.error);
        return;
      }
      this.sentRevision = next.event.object.resourceVersion;
      this.#isPaused = !this.#listener!.event(next.event);
      if (this.#random.below(3) === 0) return;
    }
  }
}
