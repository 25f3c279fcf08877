/**
 * What a range holds, and then every change of it, in one loop: a snapshot, a watch from the next
 * revision on, and after a compaction that the watch did not survive a new snapshot, of which only
 * the differences are yielded. So the loop has every key's last state, whatever happens between.
 *
 *   for await (const change of client.follow("config/", { prefix: true })) apply(change);
 */
import { Backoff, checkOptions, FLAG, INTEGER, oneOf, type Shape } from "@quorate/host";
import { CodedError, defined, fromLatin1, KeyValue, toLatin1 } from "@quorate/proto";
import { type Caller, pause } from "./caller.ts";
import { type Change, changesIn } from "./changes.ts";
import { ClientError } from "./errors.ts";
import { getStream } from "./range-stream.ts";
import type { Bytes, RangeOptions } from "./requests.ts";
import { withJson } from "./responses.ts";
import { mayResume, REOPEN } from "./resume.ts";
import { Wait } from "./wait.ts";
import { WATCH_SHAPE, type WatchOptions } from "./watch.ts";

/** The range that follow() follows, and from where. */
export interface FollowOptions
  extends Omit<WatchOptions, "revision" | "progressNotify" | "only" | "onCreated"> {
  /** Whether to begin with what the range holds; default true. */
  readonly snapshot?: boolean;
  /**
   * After a compaction that the watch did not survive: yield what changed since, which is the
   * default, or throw ClientError with code Compacted.
   */
  readonly onCompacted?: "resync" | "throw";
  /** The most keys of the range, which the loop holds to know what was deleted; default 100,000. */
  readonly maxKeys?: number;
  /**
   * The time to read what the range holds, and then for a member to confirm the watch, at first and
   * after each break; default no limit. The loop throws ClientError DeadlineExceeded then.
   */
  readonly timeoutMs?: number | undefined;
}

/**
 * A change; or "synced" when all changes up to `revision` were yielded: after the first snapshot,
 * and after each one that repairs a compaction.
 */
export type Followed = Change | { readonly kind: "synced"; readonly revision: number };

/** The range has more keys than the loop may hold. */
export class TooManyKeysError extends CodedError<"TooManyKeys"> {
  constructor(maxKeys: number) {
    super("TooManyKeysError", "TooManyKeys", `the range has more than ${maxKeys} keys`);
  }
}

const MAX_KEYS = 100_000;

const {
  revision: _revision,
  progressNotify: _progressNotify,
  only: _only,
  onCreated: _onCreated,
  ...WATCHED
} = WATCH_SHAPE;

const FOLLOW_SHAPE: Shape<FollowOptions> = {
  ...WATCHED,
  snapshot: FLAG,
  onCompacted: oneOf(["resync", "throw"]),
  maxKeys: INTEGER,
};

/**
 * The changes of a range. Ends when the signal is aborted. Throws ClientError for a failure that a
 * retry cannot fix, and TooManyKeysError. In a repaired compaction, several changes of one key come
 * as one, a key that was created and deleted since comes not at all, and a delete has the revision
 * of the snapshot.
 */
export async function* follow(
  caller: Caller,
  key: Bytes,
  options: FollowOptions = {},
): AsyncGenerator<Followed, undefined> {
  let isFirst = true;
  let { snapshot = true } = options;
  for await (const change of followResponses(caller, key, options)) {
    if (change.kind !== "synced") {
      if (snapshot) yield change;
    } else if (isFirst || change.isRead) {
      yield { kind: "synced", revision: change.revision };
      isFirst = false;
      snapshot = true;
    }
  }
}

/** "synced" after each response of the watch too; `isRead` after a snapshot. */
type Step =
  | Change
  | { readonly kind: "synced"; readonly revision: number; readonly isRead: boolean };

/** The same with a "synced" wherever all changes up to a revision were yielded. */
export async function* followResponses(
  caller: Caller,
  key: Bytes,
  options: FollowOptions = {},
): AsyncGenerator<Step, undefined> {
  checkOptions("follow", options, FOLLOW_SHAPE);
  const { snapshot: _, onCompacted = "resync", maxKeys = MAX_KEYS, ...watched } = options;
  const range = new FollowedRange(caller, key, watched, maxKeys);
  const { signal } = watched;
  while (!signal?.aborted) {
    try {
      yield* range.differences();
      yield { kind: "synced", revision: range.revision, isRead: true };
      for await (const response of caller.watch(key, {
        ...watched,
        revision: range.revision + 1,
      })) {
        for (const change of changesIn(response)) {
          range.hold(change);
          yield change;
        }
        const { revision } = defined(response.header, "the header");
        // The rest of a response that was cut comes in the next one.
        if (!response.fragment) yield { kind: "synced", revision, isRead: false };
      }
      return;
    } catch (error) {
      if (signal?.aborted) return;
      const isCompacted = error instanceof ClientError && error.code === "Compacted";
      if (!isCompacted || onCompacted === "throw") throw error;
    }
  }
}

/** What the loop knows of the range. */
class FollowedRange {
  /** The revision of the last snapshot. */
  revision = 0;
  readonly #caller: Caller;
  readonly #key: Bytes;
  readonly #range: RangeOptions;
  readonly #options: WatchOptions;
  readonly #maxKeys: number;
  /** The keys, in latin1, with the revisions of their last changes. */
  #known = new Map<string, number>();

  constructor(caller: Caller, key: Bytes, options: WatchOptions, maxKeys: number) {
    const { prefix = false, fromKey = false, rangeEnd } = options;
    this.#caller = caller;
    this.#key = key;
    this.#range = { prefix, fromKey, rangeEnd };
    this.#options = options;
    this.#maxKeys = maxKeys;
  }

  hold({ kind, kv }: Change): void {
    const name = toLatin1(kv.key);
    if (kind === "delete") this.#known.delete(name);
    else this.#known.set(name, kv.modRevision);
    if (this.#known.size > this.#maxKeys) throw new TooManyKeysError(this.#maxKeys);
  }

  /** What changed between what is known and a new snapshot. */
  async *differences(): AsyncGenerator<Change, undefined> {
    const { signal, timeoutMs, onBreak } = this.#options;
    using wait = new Wait(this.#caller.timer, { signal, timeoutMs });
    const backoff = new Backoff(REOPEN);
    for (;;) {
      try {
        return yield* this.#attempt(wait.signal);
      } catch (error) {
        if (!(error instanceof ClientError) || !mayResume(error)) throw error;
        onBreak?.(error);
        await pause(this.#caller.timer, backoff.nextMs(), wait.signal);
      }
    }
  }

  /** The same; what it yields is known when it fails, and not yielded by the next attempt. */
  async *#attempt(signal: AbortSignal): AsyncGenerator<Change, undefined> {
    const missing = new Set(this.#known.keys());
    for await (const { kvs, end } of getStream(this.#caller, this.#key, {
      ...this.#range,
      signal,
    })) {
      for (const kv of kvs) {
        const name = toLatin1(kv.key);
        missing.delete(name);
        if (this.#known.get(name) === kv.modRevision) continue;
        const change: Change = { kind: "put", kv, prevKv: undefined };
        this.hold(change);
        yield withJson(change);
      }
      if (end !== undefined) this.revision = end.header.revision;
    }
    for (const name of missing) {
      const kv = KeyValue.create({ key: fromLatin1(name), modRevision: this.revision });
      const change: Change = { kind: "delete", kv, prevKv: undefined };
      this.hold(change);
      yield withJson(change);
    }
  }
}
