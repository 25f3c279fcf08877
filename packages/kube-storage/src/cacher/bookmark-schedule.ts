/**
 * When watchers receive bookmarks: each minute, and 2 s before their time is over (apiserver:
 * watcherBookmarkTimeBuckets). Watchers of one second share a bucket.
 */
import type { Clock, Timer } from "@quorate/host";

/** Between two bookmarks of a watcher. */
export const BOOKMARK_PERIOD_MS = 60_000;
/** A bookmark comes so long before a watch times out. */
export const BOOKMARK_BEFORE_TIMEOUT_MS = 2000;
const BUCKET_MS = 1000;

export interface Bookmarked {
  /** Monotonic time at which the caller ends the watch; undefined for never. */
  readonly deadlineMs: number | undefined;
  /** Sends a bookmark, or does so when all events before it are sent. */
  offerBookmark(): void;
}

export class BookmarkSchedule {
  readonly #clock: Pick<Clock, "monotonicMs" | "every">;
  readonly #buckets = new Map<number, Set<Bookmarked>>();
  readonly #bucketOf = new Map<Bookmarked, number>();
  #timer: Timer | undefined;

  constructor(clock: Pick<Clock, "monotonicMs" | "every">) {
    this.#clock = clock;
  }

  add(watcher: Bookmarked): void {
    const nowMs = this.#clock.monotonicMs();
    let dueMs = nowMs + BOOKMARK_PERIOD_MS;
    if (watcher.deadlineMs !== undefined)
      dueMs = Math.min(dueMs, watcher.deadlineMs - BOOKMARK_BEFORE_TIMEOUT_MS);
    if (dueMs < nowMs) return;
    const bucket = Math.ceil(dueMs / BUCKET_MS);
    const watchers = this.#buckets.get(bucket);
    if (watchers === undefined) this.#buckets.set(bucket, new Set([watcher]));
    else watchers.add(watcher);
    this.#bucketOf.set(watcher, bucket);
    this.#timer ??= this.#clock.every(BUCKET_MS, () => this.#tick());
  }

  remove(watcher: Bookmarked): void {
    const bucket = this.#bucketOf.get(watcher);
    if (bucket === undefined) return;
    this.#bucketOf.delete(watcher);
    const watchers = this.#buckets.get(bucket);
    watchers?.delete(watcher);
    if (watchers?.size === 0) this.#buckets.delete(bucket);
    this.#stopIfIdle();
  }

  #tick(): void {
    const now = Math.floor(this.#clock.monotonicMs() / BUCKET_MS);
    const due: Bookmarked[] = [];
    for (const [bucket, watchers] of this.#buckets) {
      if (bucket > now) continue;
      this.#buckets.delete(bucket);
      due.push(...watchers);
    }
    for (const watcher of due) {
      this.#bucketOf.delete(watcher);
      this.add(watcher);
    }
    // The next ones are planned before these are sent: what receives one may end its watch.
    for (const watcher of due) watcher.offerBookmark();
    this.#stopIfIdle();
  }

  #stopIfIdle(): void {
    if (this.#buckets.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
