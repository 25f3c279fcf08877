/**
 * What is counted of clients that come in crowds: watches, calls that wait for locks and elections,
 * snapshots.
 */
import type { Counter, Gauge, MetricRegistry } from "./registry.ts";

/** Read at a scrape. */
export interface CrowdSources {
  /**
   * Bytes that watches, and calls that wait for locks and elections, are taken to hold; and how
   * many requests were refused for it.
   */
  watchBytes(): number;
  watchesRefused(): number;
  contestantBytes(): number;
  contestantsRefused(): number;
}

export class CrowdMetrics {
  readonly snapshotsSending: Gauge;
  readonly snapshotsWaiting: Gauge;
  readonly snapshotStalls: Counter;

  constructor(registry: MetricRegistry, sources: CrowdSources) {
    this.snapshotsSending = registry.gauge(
      "quorate_server_snapshots_sending",
      "Snapshots that are being sent to clients.",
    );
    this.snapshotsWaiting = registry.gauge(
      "quorate_server_snapshots_waiting",
      "Snapshots that wait until others have been sent.",
    );
    this.snapshotStalls = registry.counter(
      "quorate_server_snapshot_stalls_total",
      "Snapshots ended because their client did not take them.",
    );
    registry.gauge(
      "quorate_watch_bytes",
      "Bytes of memory that watches and their keys take, about.",
      sources.watchBytes,
    );
    registry.readCounter(
      "quorate_watch_refused_total",
      "Watches that were not made because there were too many.",
      sources.watchesRefused,
    );
    registry.gauge(
      "quorate_contest_bytes",
      "Bytes that callers who wait for locks and elections take, about.",
      sources.contestantBytes,
    );
    registry.readCounter(
      "quorate_contest_refused_total",
      "Calls of locks and elections refused because too many waited.",
      sources.contestantsRefused,
    );
  }
}
