/**
 * A watch of one resource over the cluster (apiserver: pkg/storage/etcd3/watcher.go).
 *
 *     present objects (ADDED)   only where they are wanted
 *     BOOKMARK                  ends them, where bookmarks are allowed
 *     changes                   each with the object before it, which decides what a selector sees
 *     BOOKMARK                  for each report of progress, with `progressNotify`
 *
 * A change is fetched when the listener has taken the one before, so a slow listener holds the
 * cluster back and nothing collects here.
 */

import { type Clock, Pauses } from "@quorate/host";
import { defined, fromUtf8 } from "@quorate/proto";
import type { GroupVersionKind } from "../meta/kinds.ts";
import { type AttributesOf, objectMatches, selectsAll } from "../meta/selectors.ts";
import { ApiError, expired, internalError } from "../meta/status.ts";
import { bookmarkEvent } from "./bookmark.ts";
import {
  type ClusterClient,
  ClusterError,
  type ClusterEvent,
  type ClusterWatch,
} from "./cluster-client.ts";
import { StorageError, textOf, tooLarge } from "./errors.ts";
import { listPages } from "./etcd-list.ts";
import { type EtcdValues, objectVersioner } from "./etcd-values.ts";
import type { ListOptions, Watch, WatchEvent, WatchListener } from "./interface.ts";
import { interpretStorageError } from "./interpret-error.ts";
import { endOfPrefix } from "./keys.ts";

/** Present objects are read in pages of this size. */
const INITIAL_PAGE = 1000;

const TOO_OLD = "The resourceVersion for the provided watch is too old.";

export interface EtcdWatchDeps {
  readonly kind: GroupVersionKind;
  readonly client: ClusterClient;
  readonly values: EtcdValues;
  readonly attributesOf: AttributesOf;
  readonly clock: Pick<Clock, "turns">;
  currentRevision(): Promise<number>;
  /** Called once, when the watch has ended. */
  closed(): void;
}

export class EtcdWatch implements Watch {
  readonly #key: string;
  readonly #options: ListOptions;
  readonly #deps: EtcdWatchDeps;
  /** Changes after this revision are delivered. */
  #revision: number;
  #listener: WatchListener | undefined;
  #isStopped = false;
  #source: ClusterWatch | undefined;
  /** Resolves the pause after the listener asked for one. */
  #goOn: (() => void) | undefined;
  /** The listener has called resume since its latest event. */
  #isResumed = false;
  readonly #abandon = (): void => this.#end(undefined);

  /**
   * @param key as in the store
   * @param revision 0: begin with the present objects
   */
  constructor(key: string, revision: number, options: ListOptions, deps: EtcdWatchDeps) {
    this.#key = key;
    this.#revision = revision;
    this.#options = options;
    this.#deps = deps;
    options.signal?.addEventListener("abort", this.#abandon);
  }

  start(listener: WatchListener): void {
    this.#listener = listener;
    if (this.#options.signal?.aborted === true) {
      this.#end(undefined);
      return;
    }
    // The run catches all errors.
    void this.#run();
  }

  resume(): void {
    this.#isResumed = true;
    const goOn = this.#goOn;
    this.#goOn = undefined;
    goOn?.();
  }

  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#options.signal?.removeEventListener("abort", this.#abandon);
    this.#source?.cancel();
    this.resume();
    this.#deps.closed();
  }

  /** Asks the cluster for a report of progress, where the watch wants those. */
  requestProgress(): void {
    if (this.#options.progressNotify === true) this.#source?.requestProgress();
  }

  async #run(): Promise<void> {
    try {
      if (this.#wantsInitialEvents()) await this.#sendInitialEvents();
      await this.#sendChanges();
      this.#end(undefined);
    } catch (error) {
      this.#end(watchError(error));
    }
  }

  #end(error: ApiError | undefined): void {
    if (this.#isStopped) return;
    this.stop();
    this.#listener?.ended(error);
  }

  #wantsInitialEvents(): boolean {
    const { sendInitialEvents, resourceVersion } = this.#options;
    if (sendInitialEvents !== undefined) return sendInitialEvents;
    return resourceVersion === "" || resourceVersion === "0";
  }

  async #sendInitialEvents(): Promise<void> {
    if (this.#revision > 0) {
      const current = await this.#deps.currentRevision();
      if (this.#revision > current) throw tooLarge(this.#key, this.#revision, current);
    }
    const { predicate, recursive, sendInitialEvents } = this.#options;
    let continueToken = "";
    do {
      const page = await listPages(
        this.#key,
        {
          recursive,
          resourceVersion: "",
          resourceVersionMatch: "",
          predicate: { ...predicate, limit: INITIAL_PAGE, continueToken },
        },
        {
          values: this.#deps.values,
          versioner: objectVersioner,
          attributesOf: this.#deps.attributesOf,
          slices: new Pauses(this.#deps.clock.turns),
          range: (start, range) => this.#deps.client.range(start, range),
          rangeParts: (start, range) => this.#deps.client.rangeParts(start, range, undefined),
          currentRevision: this.#deps.currentRevision,
        },
      );
      this.#revision = page.resourceVersion;
      for (const object of page.items) await this.#send({ type: "ADDED", object });
      ({ continueToken } = page);
    } while (continueToken !== "" && !this.#isStopped);
    if (sendInitialEvents === true && predicate.allowWatchBookmarks)
      await this.#send(bookmarkEvent(this.#deps.kind, this.#revision, true));
  }

  async #sendChanges(): Promise<void> {
    if (this.#isStopped) return;
    const { recursive, progressNotify = false } = this.#options;
    this.#source = this.#deps.client.watch(fromUtf8(this.#key), {
      end: recursive ? fromUtf8(endOfPrefix(this.#key)) : undefined,
      revision: this.#revision + 1,
      progressNotify,
    });
    const slices = new Pauses(this.#deps.clock.turns);
    for await (const { events, revision } of this.#source) {
      for (const change of events) {
        const event = await this.#eventOf(change);
        if (event !== undefined) await this.#send(event);
        await slices.next();
        if (this.#isStopped) return;
      }
      if (events.length === 0 && progressNotify)
        await this.#send(bookmarkEvent(this.#deps.kind, revision, false));
      if (this.#isStopped) return;
    }
  }

  /** Resolves when the listener takes more. */
  #send(event: WatchEvent): Promise<void> | undefined {
    this.#isResumed = false;
    if (this.#isStopped || defined(this.#listener, "the listener").event(event)) return undefined;
    // The listener may have called stop or resume meanwhile.
    if (this.#isStopped || this.#isResumed) return undefined;
    return new Promise((resolve) => {
      this.#goOn = resolve;
    });
  }

  /** What the watcher sees of a change; undefined for nothing. */
  async #eventOf({ type, record, previous }: ClusterEvent): Promise<WatchEvent | undefined> {
    const { values } = this.#deps;
    const { predicate } = this.#options;
    const isCreated = type === "put" && record.createRevision === record.modRevision;
    if (!isCreated && previous === undefined) {
      const key = JSON.stringify(values.storeKey(values.keyOf(record)));
      const details = `key=${key}, modRevision=${record.modRevision}, type=${type.toUpperCase()}`;
      throw new Error(`etcd event received with PrevKv=nil (${details})`);
    }
    const old =
      previous !== undefined && (type === "delete" || !selectsAll(predicate))
        ? (await values.readEvent(previous, record.modRevision)).stored
        : undefined;
    const { attributesOf } = this.#deps;
    const oldMatches = old !== undefined && objectMatches(predicate, attributesOf, old.object());
    if (type === "delete") return oldMatches ? { type: "DELETED", object: old } : undefined;
    const { stored } = await values.readEvent(record, record.modRevision);
    const matches = objectMatches(predicate, attributesOf, stored.object());
    if (matches) {
      const isNew = isCreated || (!oldMatches && !selectsAll(predicate));
      return { type: isNew ? "ADDED" : "MODIFIED", object: stored };
    }
    return oldMatches && !isCreated ? { type: "DELETED", object: old } : undefined;
  }
}

/** The error event that a watcher receives. */
function watchError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof ClusterError && error.code === "Compacted") return expired(TOO_OLD);
  if (error instanceof StorageError) {
    const interpreted = interpretStorageError(error, "watch", { group: "", resource: "" }, "");
    if (interpreted instanceof ApiError) return interpreted;
  }
  return internalError(textOf(error));
}
