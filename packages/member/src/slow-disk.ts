/**
 * Detects that this leader's disk is slower than those of the others, and hands leadership over.
 *
 *     a sync of the leader's log   |--------------------------------------|
 *     the others have its entries       x
 *     looks, every 100 ms          . . . . B B B B B B B B B B B B B B B B
 *
 *     . too young to count   B behind: slow, and the others are done
 *
 * A leader's heartbeats go out on time even while its disk stands still, so no other member stands
 * for election, and writes wait. Whether a disk is slow is judged by the others: a look counts as
 * slow while a sync takes longer than the bound, and as behind if, meanwhile, so many other voters
 * have answered for the same entries that they could commit them without this member. What they
 * take includes the network, so the others are rather judged too slow than too fast. Where all
 * disks are slow, or another leader would wait for this disk all the same, nothing is handed over.
 */
import type { Clock, Logger, Timer } from "@quorate/host";
import type { Status } from "@quorate/raft";
import { type Leadership, quorumOf } from "./membership/index.ts";
import type { MemberMetrics } from "./metrics/member-metrics.ts";

/** How often is looked. */
export const SLOW_DISK_LOOK_MS = 100;
/** Looks count for so long. */
export const SLOW_DISK_WINDOW_MS = 60_000;
/**
 * So much time in slow syncs is enough to judge by, if it comes from SLOW_DISK_SYNCS of them; one
 * alone must take SLOW_DISK_STUCK_MS.
 */
export const SLOW_DISK_MIN_MS = 3000;
export const SLOW_DISK_SYNCS = 3;
export const SLOW_DISK_STUCK_MS = 10_000;
/**
 * Of the time in slow syncs, the others must have been done for this share: their disks are some
 * three times as fast.
 */
const BEHIND_SHARE = 0.7;
/**
 * After a member has handed over it does not do so again for so long, even if it is elected: at
 * most 12 times in an hour.
 */
export const SLOW_DISK_REST_MS = 300_000;
/** Looks are summed up in this many parts of the window. */
const BUCKETS = 60;

export interface SlowDiskParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Pick<MemberMetrics, "slowDiskHandovers">;
  /**
   * Since when, on the monotonic clock, the sync that runs now has been running; undefined if none
   * does.
   */
  syncingSinceMs(): number | undefined;
  /**
   * Whether other voters could commit the oldest entries that this member's disk does not have yet:
   * they are enough, and have them.
   */
  othersAreDone(): boolean;
  readonly leader: { readonly isLeader: boolean };
  readonly leadership: Pick<Leadership, "handOver">;
}

/**
 * Whether the other voters could commit an entry without this leader.
 * @param index undefined where this leader's disk has all entries: then there is nothing to compare
 */
export function othersHave({ id: selfId, progress }: Status, index: number | undefined): boolean {
  if (index === undefined) return false;
  const voters = progress.filter((peer) => !peer.isLearner);
  return (
    voters.filter(({ id, match }) => id !== selfId && match >= index).length >=
    quorumOf(voters.length)
  );
}

/** What was seen in one part of the window. */
interface Bucket {
  number: number;
  slowMs: number;
  behindMs: number;
  syncs: number;
}

export class SlowDisk {
  readonly #boundMs: number;
  readonly #parts: SlowDiskParts;
  #timer: Timer | undefined;
  #buckets: Bucket[] = [];
  /** When the slow sync that was counted last had begun. */
  #countedSinceMs: number | undefined;
  #restUntilMs = Number.NEGATIVE_INFINITY;

  /** @param boundMs a sync is slow from here on, in milliseconds; 0 turns the watch off */
  constructor(boundMs: number, parts: SlowDiskParts) {
    this.#boundMs = boundMs;
    this.#parts = parts;
  }

  start(): void {
    if (this.#boundMs > 0)
      this.#timer = this.#parts.clock.every(SLOW_DISK_LOOK_MS, () => this.#look());
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #look(): void {
    const { clock, leader, othersAreDone, syncingSinceMs } = this.#parts;
    if (!leader.isLeader) {
      this.#buckets = [];
      return;
    }
    const sinceMs = syncingSinceMs();
    const nowMs = clock.monotonicMs();
    if (sinceMs === undefined || nowMs - sinceMs < this.#boundMs) return;
    const bucket = this.#bucketAt(nowMs);
    bucket.slowMs += SLOW_DISK_LOOK_MS;
    if (sinceMs !== this.#countedSinceMs) bucket.syncs++;
    this.#countedSinceMs = sinceMs;
    if (othersAreDone()) bucket.behindMs += SLOW_DISK_LOOK_MS;
    this.#judge(nowMs);
  }

  /** The part of the window that `nowMs` is in; those that are too old go. */
  #bucketAt(nowMs: number): Bucket {
    const number = Math.floor(nowMs / (SLOW_DISK_WINDOW_MS / BUCKETS));
    let last = this.#buckets.at(-1);
    if (last?.number !== number) {
      last = { number, slowMs: 0, behindMs: 0, syncs: 0 };
      this.#buckets = [...this.#buckets.filter((one) => one.number > number - BUCKETS), last];
    }
    return last;
  }

  #judge(nowMs: number): void {
    const { leadership, logger, metrics } = this.#parts;
    const sum = (key: "slowMs" | "behindMs" | "syncs") =>
      this.#buckets.reduce((total, bucket) => total + bucket[key], 0);
    const [slowMs, behindMs, syncs] = [sum("slowMs"), sum("behindMs"), sum("syncs")];
    const isEnough =
      slowMs >= SLOW_DISK_STUCK_MS || (slowMs >= SLOW_DISK_MIN_MS && syncs >= SLOW_DISK_SYNCS);
    if (!isEnough || behindMs < BEHIND_SHARE * slowMs || nowMs < this.#restUntilMs) return;
    this.#buckets = [];
    this.#restUntilMs = nowMs + SLOW_DISK_REST_MS;
    metrics.slowDiskHandovers.add();
    logger.warn("this leader's disk is slower than those of the others; handing leadership over", {
      "slow-fsyncs": syncs,
      "time-in-slow-fsyncs": `${slowMs}ms`,
      "others-were-done": `${behindMs}ms`,
      "expected-fsync-duration": `${this.#boundMs}ms`,
      advice:
        "give the write-ahead log a disk of its own or a faster one; see etcd_disk_wal_fsync_duration_seconds",
    });
    void leadership.handOver();
  }
}
