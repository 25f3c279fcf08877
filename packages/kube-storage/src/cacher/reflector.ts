/**
 * Fills the cache from the store below and keeps it up to date (client-go: tools/cache/
 * reflector.go):
 *
 *     fill --> watch --ended--> watch from the latest revision
 *      ^         |
 *      +---------+ the revision was compacted, or watches have failed for 30 s
 */
import {
  Backoff,
  type BackoffOptions,
  type Clock,
  type Logger,
  Pauses,
  type Random,
  type Timer,
} from "@quorate/host";
import { Canceller } from "../meta/cancellation.ts";
import { type AttributesOf, SELECT_ALL } from "../meta/selectors.ts";
import { ApiError } from "../meta/status.ts";
import { INITIAL_EVENTS_END } from "../storage/bookmark.ts";
import { StorageError, textOf } from "../storage/errors.ts";
import type { ListOptions, StorageInterface, Watch, WatchEvent } from "../storage/interface.ts";
import type { StoredObject } from "../storage/stored-object.ts";
import { elementOf, type ObjectSet } from "./object-set.ts";

/** Watches that fail for so long mean that the cache is filled again. */
export const MAX_WATCH_FAILURE_MS = 30_000;
/** Events are taken for so long in one turn of the event loop. */
const TURN_BUDGET_MS = 5;
/** The store is asked for progress so often, so that the resource's revision goes on when idle. */
export const IDLE_PROGRESS_MS = 30_000;
/** A watch that is silent for so long although it was asked for progress is replaced. */
export const SILENT_WATCH_MS = 95_000;
/** A watch that ends earlier without an event counts as a failure. */
const SHORT_WATCH_MS = 1000;

/** Pauses before a watch or a list is repeated (client-go: 800 ms to 30 s; the store is near). */
const RETRY: BackoffOptions = { firstMs: 50, mostMs: 5000 };

/** Without a failure for so long, pauses begin small again. */
const FORGET_FAILURES_MS = 120_000;

export interface ReflectorOptions {
  /** Such as "/configmaps/". */
  readonly prefix: string;
  readonly attributesOf: AttributesOf;
  /** How the cache is filled; "watch-list" falls back to "list". */
  readonly fill: "list" | "watch-list";
  /**
   * "list": the cache begins so many revisions ago, and follows from there. So clients of a server
   * that has been restarted go on with their watches, instead of listing all again.
   */
  readonly historyRevisions: number;
}

/** Changes that a cache takes from the store's history when it is filled. */
export const HISTORY_REVISIONS = 5_000;

export interface ReflectorDeps {
  readonly storage: StorageInterface;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** What the Reflector feeds. */
export interface ReflectorSink {
  /** A set to be filled. */
  emptySet(): ObjectSet;
  /**
   * The cache begins again with these objects.
   * @param readyAt the revision that it has to reach before it is served
   */
  replace(objects: ObjectSet, revision: number, readyAt: number): void;
  apply(event: WatchEvent): void;
  progress(revision: number): void;
  /**
   * The cache is about to be filled again.
   * @param error why
   * @param isUnreadable the store has a value that is no object, so that filling it again may fail
   */
  lost(error: string, isUnreadable: boolean): void;
}

/** How a watch ended: by itself, or why not. */
type Outcome = { readonly error: unknown } | undefined;

export class Reflector {
  readonly #options: ReflectorOptions;
  readonly #deps: ReflectorDeps;
  readonly #sink: ReflectorSink;
  readonly #backoff: Backoff;
  #lastPauseMs = 0;
  /** Aborted by stop, which ends a list. */
  readonly #stopping = new Canceller();
  /** The latest revision that the cache has. */
  #revision = 0;
  #lastHeardMs = 0;
  #idleTimer: Timer | undefined;
  /** Ends the present watch or pause. */
  #interrupt: (() => void) | undefined;
  #canWatchList: boolean;
  /** The latest revision when the cache was filled: up to it, events are history. */
  #readyAt = 0;
  /** The next list is of the present, because the history cannot be read. */
  #skipsHistory = false;
  /** The cache has been filled since it was lost. */
  #isFilled = false;
  /** Why the cache has to be filled again, if it has to. */
  #refillReason: string | undefined;

  constructor(options: ReflectorOptions, deps: ReflectorDeps, sink: ReflectorSink) {
    this.#options = options;
    this.#deps = deps;
    this.#sink = sink;
    this.#backoff = new Backoff(RETRY, deps.random);
    this.#canWatchList = options.fill === "watch-list";
  }

  get #isStopped(): boolean {
    return this.#stopping.aborted;
  }

  start(): void {
    this.#idleTimer = this.#deps.clock.every(IDLE_PROGRESS_MS, () => this.#checkIdle());
    // The run catches all errors.
    void this.#run();
  }

  stop(): void {
    this.#stopping.abort(new Error("the cache is closed"));
    this.#idleTimer?.cancel();
    this.#interrupt?.();
  }

  /** Fills the cache again. @param reason for readiness, while that takes time */
  refill(reason: string): void {
    this.#refillReason = reason;
    this.#interrupt?.();
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      try {
        await this.#fillAndFollow();
      } catch (error) {
        if (this.#isStopped) return;
        this.#deps.logger.warn("watch cache lost its store", {
          prefix: this.#options.prefix,
          error: textOf(error),
        });
        this.#sink.lost(textOf(error), isUnreadable(error));
        await this.#pause();
      }
    }
  }

  /** Returns when the cache has to be filled again; rejects if that should wait. */
  async #fillAndFollow(): Promise<void> {
    this.#refillReason = undefined;
    this.#isFilled = false;
    const filled = this.#canWatchList ? await this.#followWatchList() : false;
    if (this.#isStopped) return;
    if (!filled) await this.#list();
    let failingSinceMs: number | undefined;
    while (!this.#isStopped) {
      const startMs = this.#deps.clock.monotonicMs();
      const before = this.#revision;
      const outcome = await this.#watchOnce({
        resourceVersion: String(this.#revision),
        sendInitialEvents: undefined,
      });
      if (this.#isStopped) return;
      if (this.#refillReason !== undefined) return this.#sink.lost(this.#refillReason, false);
      if (isExpired(outcome?.error)) return this.#sink.lost(textOf(outcome?.error), false);
      if (isUnreadable(outcome?.error) && this.#revision < this.#readyAt) {
        // What is there now may be readable: a version of a kind that is gone, for example.
        this.#skipsHistory = true;
        return this.#sink.lost(textOf(outcome?.error), true);
      }
      const nowMs = this.#deps.clock.monotonicMs();
      const isShort = nowMs - startMs < SHORT_WATCH_MS && this.#revision === before;
      if (outcome === undefined && !isShort) {
        failingSinceMs = undefined;
        this.#backoff.reset();
        continue;
      }
      if (this.#revision !== before) failingSinceMs = undefined;
      failingSinceMs ??= startMs;
      if (nowMs - failingSinceMs > MAX_WATCH_FAILURE_MS)
        throw outcome?.error ?? new Error("watches end at once");
      await this.#pause();
    }
  }

  /** Fills the cache by a list as of some time ago if the store has that, else by a present one. */
  async #list(): Promise<void> {
    const { storage } = this.#deps;
    const { historyRevisions } = this.#options;
    const takesHistory = historyRevisions > 0 && !this.#skipsHistory;
    this.#skipsHistory = false;
    if (takesHistory) {
      const latest = await storage.currentResourceVersion();
      const compacted = storage.compactRevision?.() ?? 0;
      const past = Math.max(latest - historyRevisions, compacted, 1);
      try {
        if (past < latest) await this.#listAt(past, latest);
      } catch (error) {
        if (!isExpired(error) && !isUnreadable(error)) throw error;
      }
    }
    if (!this.#isStopped && !this.#isFilled) await this.#listAt(0, 0);
  }

  /** @param past the revision to list; 0 for the latest */
  async #listAt(past: number, readyAt: number): Promise<void> {
    const { storage, clock } = this.#deps;
    const objects = this.#sink.emptySet();
    const take = (stored: StoredObject): void => {
      objects.set(elementOf(stored, this.#options.attributesOf));
    };
    const { items, resourceVersion } = await storage.getList(this.#options.prefix, {
      resourceVersion: past === 0 ? "" : String(past),
      resourceVersionMatch: past === 0 ? "" : "Exact",
      recursive: true,
      predicate: SELECT_ALL,
      signal: this.#stopping,
      forEach: take,
    });
    const slices = new Pauses(clock.turns);
    for (const stored of items) {
      take(stored);
      await slices.next();
    }
    if (this.#isStopped) return;
    this.#replace(objects, resourceVersion, Math.max(readyAt, resourceVersion));
  }

  /** Whether the cache was filled by a watch, which has ended since. */
  async #followWatchList(): Promise<boolean> {
    const before = this.#revision;
    this.#revision = 0;
    const outcome = await this.#watchOnce({ resourceVersion: "", sendInitialEvents: true });
    if (this.#revision > 0 || this.#isStopped) return true;
    this.#revision = before;
    this.#canWatchList = false;
    this.#deps.logger.info("watch cache is filled by lists", {
      prefix: this.#options.prefix,
      error: textOf(outcome?.error ?? "the watch ended"),
    });
    return false;
  }

  #replace(objects: ObjectSet, revision: number, readyAt: number): void {
    this.#revision = revision;
    this.#readyAt = readyAt;
    this.#isFilled = true;
    this.#backoff.reset();
    this.#sink.replace(objects, revision, readyAt);
  }

  /** Watches until the watch ends. */
  async #watchOnce(
    from: Pick<ListOptions, "resourceVersion" | "sendInitialEvents">,
  ): Promise<Outcome> {
    let watch: Watch;
    try {
      watch = await this.#deps.storage.watch(this.#options.prefix, {
        ...from,
        resourceVersionMatch: from.sendInitialEvents === true ? "NotOlderThan" : "",
        recursive: true,
        predicate: { ...SELECT_ALL, allowWatchBookmarks: true },
        progressNotify: true,
      });
    } catch (error) {
      return { error };
    }
    if (this.#isStopped) {
      watch.stop();
      return undefined;
    }
    this.#heard();
    const session = new WatchSession(watch, this.#revision, from.sendInitialEvents === true);
    return new Promise((resolve) => {
      const end = (outcome: Outcome) => {
        this.#interrupt = undefined;
        session.isOver = true;
        watch.stop();
        resolve(outcome);
      };
      this.#interrupt = () => end(undefined);
      watch.start({
        event: (event) => {
          if (session.isOver) return false;
          try {
            this.#take(session, event);
          } catch (error) {
            end({ error });
            return false;
          }
          return this.#takesMore(session);
        },
        ended: (error) => end(error === undefined ? undefined : { error }),
      });
    });
  }

  #take(session: WatchSession, event: WatchEvent): void {
    this.#heard();
    const { object } = event;
    if (session.isFilling) {
      session.objects ??= this.#sink.emptySet();
      if (event.type === "BOOKMARK") {
        if (object.object().metadata.annotations?.[INITIAL_EVENTS_END] !== "true") return;
        session.isFilling = false;
        session.startRevision = object.resourceVersion;
        this.#replace(session.objects, object.resourceVersion, object.resourceVersion);
        session.objects = undefined;
      } else {
        session.objects.set(elementOf(object, this.#options.attributesOf));
      }
      return;
    }
    if (event.type === "BOOKMARK") {
      this.#sink.progress(object.resourceVersion);
    } else {
      // A store may repeat what it sent before the watch was resumed.
      if (object.resourceVersion <= session.startRevision) return;
      this.#sink.apply(event);
    }
    this.#revision = Math.max(this.#revision, object.resourceVersion);
  }

  /** Whether there is time left in this turn; else the watch goes on in the next one. */
  #takesMore(session: WatchSession): boolean {
    const { clock } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (session.turnStartMs === undefined) {
      session.turnStartMs = nowMs;
      clock.endOfTurn(() => {
        session.turnStartMs = undefined;
        if (!session.isHeld) return;
        session.isHeld = false;
        if (!session.isOver) session.watch.resume();
      });
    }
    session.isHeld = nowMs - session.turnStartMs >= TURN_BUDGET_MS;
    return !session.isHeld;
  }

  #heard(): void {
    this.#lastHeardMs = this.#deps.clock.monotonicMs();
  }

  #checkIdle(): void {
    const silentMs = this.#deps.clock.monotonicMs() - this.#lastHeardMs;
    if (silentMs >= SILENT_WATCH_MS) this.#interrupt?.();
    else if (silentMs >= IDLE_PROGRESS_MS / 2)
      this.#deps.storage.requestWatchProgress().catch(() => {});
  }

  async #pause(): Promise<void> {
    const nowMs = this.#deps.clock.monotonicMs();
    if (nowMs - this.#lastPauseMs > FORGET_FAILURES_MS) this.#backoff.reset();
    this.#lastPauseMs = nowMs;
    await new Promise<void>((resolve) => {
      const timer = this.#deps.clock.after(this.#backoff.nextMs(), () => {
        this.#interrupt = undefined;
        resolve();
      });
      this.#interrupt = () => {
        this.#interrupt = undefined;
        timer.cancel();
        resolve();
      };
    });
  }
}

/** The state of one watch. */
class WatchSession {
  readonly watch: Watch;
  /** Events up to this revision are in the cache already. */
  startRevision: number;
  /** The initial events have not ended. */
  isFilling: boolean;
  objects: ObjectSet | undefined;
  isOver = false;
  turnStartMs: number | undefined;
  /** The watch waits for the next turn. */
  isHeld = false;

  constructor(watch: Watch, startRevision: number, isFilling: boolean) {
    this.watch = watch;
    this.startRevision = startRevision;
    this.isFilling = isFilling;
  }
}

/** Whether the store has a value that is no object of the resource. */
function isUnreadable(error: unknown): boolean {
  if (error instanceof StorageError)
    return error.code === "CorruptObj" || error.code === "Internal";
  return (
    error instanceof TypeError || (error instanceof ApiError && error.code === "InternalError")
  );
}

/** Whether the store has compacted the revision that a watch should begin at. */
function isExpired(error: unknown): boolean {
  if (error instanceof StorageError) return error.code === "TooOldResourceVersion";
  return error instanceof ApiError && (error.code === "Expired" || error.code === "Gone");
}
