/**
 * Tells when this member's disk is too slow for it to lead.
 *
 *     syncs of the log:   . . . | X . . | X X . | X X X |          . fast   X slower than the bound, or still under way and older than it
 *     windows of 10 s:      ok    slow    slow    slow  -> leadership is handed over; then a rest of 5 min
 *
 * A leader's heartbeats go out on time even while its disk stands still, so nobody else stands for election, and writes wait. A window is
 * slow when more than one sync in a hundred was, which is what "the 99th percentile is over the bound" means. Three in a row make "for a
 * while": one long stall passes by itself.
 */
import type { Clock, Logger, Timer } from "@quorate/host";
import type { MemberMetrics } from "../metrics/member-metrics.ts";

export const SLOW_DISK_WINDOW_MS = 10_000;
export const SLOW_DISK_WINDOWS = 3;
/** After a member has handed over it does not do so again for so long, even if it is elected: the others' disks may be no better. */
export const SLOW_DISK_REST_MS = 300_000;

export interface SlowDiskParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Pick<MemberMetrics, "slowDiskHandovers">;
  /** Since when, on the monotonic clock, the sync that runs now has been running; undefined if none does. */
  syncingSinceMs(): number | undefined;
  isLeader(): boolean;
  /** Gives leadership to another member; never rejects. */
  handOver(): Promise<void>;
}

export class SlowDisk {
  readonly #boundMs: number;
  readonly #parts: SlowDiskParts;
  #timer: Timer | undefined;
  #syncs = 0;
  #slowSyncs = 0;
  #slowWindows = 0;
  #restUntilMs = Number.NEGATIVE_INFINITY;

  /** @param boundMs above this a sync is slow; 0 turns the watch off */
  constructor(boundMs: number, parts: SlowDiskParts) {
    this.#boundMs = boundMs;
    this.#parts = parts;
  }

  start(): void {
    if (this.#boundMs > 0) this.#timer = this.#parts.clock.every(SLOW_DISK_WINDOW_MS, () => this.#endWindow());
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** A sync has ended. */
  observe(durationMs: number): void {
    this.#syncs++;
    if (durationMs > this.#boundMs) this.#slowSyncs++;
  }

  #endWindow(): void {
    const { clock, handOver, isLeader, logger, metrics, syncingSinceMs } = this.#parts;
    const nowMs = clock.monotonicMs();
    const sinceMs = syncingSinceMs();
    const isStuck = sinceMs !== undefined && nowMs - sinceMs > this.#boundMs;
    const syncs = this.#syncs + (isStuck ? 1 : 0);
    const slowSyncs = this.#slowSyncs + (isStuck ? 1 : 0);
    this.#syncs = 0;
    this.#slowSyncs = 0;
    this.#slowWindows = slowSyncs * 100 > syncs ? this.#slowWindows + 1 : 0;
    if (this.#slowWindows < SLOW_DISK_WINDOWS || nowMs < this.#restUntilMs || !isLeader()) return;
    this.#slowWindows = 0;
    this.#restUntilMs = nowMs + SLOW_DISK_REST_MS;
    metrics.slowDiskHandovers.add();
    logger.warn("this leader's disk is slow; handing leadership over", {
      "slow-fsyncs": slowSyncs,
      fsyncs: syncs,
      "expected-fsync-duration": `${this.#boundMs}ms`,
      advice: "give the write-ahead log a disk of its own or a faster one; see etcd_disk_wal_fsync_duration_seconds",
    });
    void handOver();
  }
}
