/**
 * Rates and latencies of the last hour, from the member's own metrics: a sample each ten seconds,
 * in a ring.
 *
 *     metrics (totals) --every SAMPLE_MS--> difference to the last totals --> one row of the ring
 */
import type { Clock, Timer } from "@quorate/host";
import type { Member } from "@quorate/member";
import type { Histogram } from "@quorate/metrics";

export const SAMPLE_MS = 10_000;
/** One hour. */
export const MAX_SAMPLES = 360;

/** The columns of a row. Rates are a second's, sizes bytes, latencies milliseconds. */
export const COLUMNS = [
  "reads",
  "writes",
  "others",
  "errors",
  "receivedBytes",
  "sentBytes",
  "events",
  "readP50",
  "readP99",
  "writeP50",
  "writeP99",
  "syncP99",
  "commitP99",
  "pending",
  "sizeBytes",
  "inUseBytes",
  "keys",
  "watchers",
  "revision",
] as const;

/** One interval. */
export interface Sample {
  /** Its end, in milliseconds since 1970. */
  readonly wallMs: number;
  /** By COLUMNS; null where nothing was measured. */
  readonly values: readonly (number | null)[];
}

const READS: ReadonlySet<string> = new Set(["Range", "RangeStream"]);
const WRITES: ReadonlySet<string> = new Set(["Put", "DeleteRange", "Txn"]);
const Q_MEDIAN = 0.5;
const Q_TAIL = 0.99;

/** What was counted since the start. */
interface Totals {
  readonly monotonicMs: number;
  readonly counters: readonly number[];
  readonly histograms: readonly (readonly number[])[];
}

/** The counts of histograms of the same bounds together. */
function summed(histograms: readonly Histogram[]): number[] {
  const [first] = histograms;
  if (first === undefined) return [];
  return first.counts.map((_, i) => histograms.reduce((sum, { counts }) => sum + counts[i]!, 0));
}

/**
 * A quantile of observations, in the unit of the bounds, between the bounds of its bucket as if
 * they were spread evenly there; null without observations.
 * @param counts by bucket; the last one is above all bounds and counts as the last bound
 */
export function quantile(
  bounds: readonly number[],
  counts: readonly number[],
  q: number,
): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let before = 0;
  for (const [bucket, count] of counts.entries()) {
    if (before + count >= q * total && count > 0) {
      const low = bounds[bucket - 1] ?? 0;
      const high = bounds[bucket] ?? bounds.at(-1) ?? 0;
      return low + (Math.max(high, low) - low) * ((q * total - before) / count);
    }
    before += count;
  }
  return bounds.at(-1) ?? null;
}

export class Rates {
  readonly #member: Member;
  readonly #clock: Clock;
  readonly #samples: Sample[] = [];
  #last: Totals;
  readonly #timer: Timer;

  constructor(member: Member) {
    this.#member = member;
    this.#clock = member.clock;
    this.#last = this.#totals();
    this.#timer = this.#clock.every(SAMPLE_MS, () => this.#sample());
  }

  close(): void {
    this.#timer.cancel();
  }

  /** The samples of the last hour, oldest first, and one of what came since the last of them. */
  samples(): Sample[] {
    const now = this.#totals();
    return now.monotonicMs === this.#last.monotonicMs
      ? [...this.#samples]
      : [...this.#samples, this.#between(this.#last, now)];
  }

  /** The store's revision some time ago, or that of the first sample after that. */
  revisionBefore(agoMs: number): number {
    const fromMs = this.#clock.wallMs() - agoMs;
    const found = this.#samples.find(({ wallMs }) => wallMs >= fromMs);
    const revision = found?.values[COLUMNS.indexOf("revision")];
    return revision ?? this.#member.store.mvcc.currentRevision;
  }

  #sample(): void {
    const now = this.#totals();
    this.#samples.push(this.#between(this.#last, now));
    if (this.#samples.length > MAX_SAMPLES) this.#samples.shift();
    this.#last = now;
  }

  #totals(): Totals {
    const { metrics } = this.#member;
    let [reads, writes, others, errors] = [0, 0, 0, 0];
    for (const { labels, metric } of metrics.grpcHandled.series.values()) {
      const method = labels["grpc_method"] ?? "";
      if (READS.has(method)) reads += metric.value;
      else if (WRITES.has(method)) writes += metric.value;
      else others += metric.value;
      if (labels["grpc_code"] !== "OK") errors += metric.value;
    }
    const durations = [...metrics.requestDuration.series.values()];
    const ofKind = (isRead: boolean) =>
      summed(
        durations
          .filter(({ labels }) => (labels["type"] === "Range") === isRead)
          .map(({ metric }) => metric),
      );
    return {
      monotonicMs: this.#clock.monotonicMs(),
      counters: [
        reads,
        writes,
        others,
        errors,
        metrics.clientReceivedBytes.value,
        metrics.clientSentBytes.value,
        metrics.watchEvents.value,
      ],
      histograms: [
        ofKind(true),
        ofKind(false),
        [...metrics.walFsyncDuration.counts],
        [...metrics.backendCommitDuration.counts],
      ],
    };
  }

  #between(last: Totals, now: Totals): Sample {
    const { metrics, store, watches, pendingProposals } = this.#member;
    const seconds = (now.monotonicMs - last.monotonicMs) / 1000;
    const rates = now.counters.map((value, i) => (value - last.counters[i]!) / seconds);
    const [ofRequests] = metrics.requestDuration.series.values();
    const requestBounds = ofRequests?.metric.bounds ?? [];
    const latency = (which: number, bounds: readonly number[], q: number): number | null => {
      const before = last.histograms[which]!;
      const counts = now.histograms[which]!.map((count, i) => count - (before[i] ?? 0));
      const found = quantile(bounds, counts, q);
      return found === null ? null : found * 1000;
    };
    return {
      wallMs: this.#clock.wallMs(),
      values: [
        ...rates,
        latency(0, requestBounds, Q_MEDIAN),
        latency(0, requestBounds, Q_TAIL),
        latency(1, requestBounds, Q_MEDIAN),
        latency(1, requestBounds, Q_TAIL),
        latency(2, metrics.walFsyncDuration.bounds, Q_TAIL),
        latency(3, metrics.backendCommitDuration.bounds, Q_TAIL),
        pendingProposals,
        store.sizeBytes,
        store.liveBytes,
        store.mvcc.keyCount,
        watches.feed.watcherCount,
        store.mvcc.currentRevision,
      ],
    };
  }
}
