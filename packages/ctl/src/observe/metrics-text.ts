/**
 * Parses a member's /metrics, in the text format of Prometheus: values by name, summed over labels,
 * and quantiles of histograms.
 */

/** A histogram: how many observations were at most each bound. */
export interface HistogramValues {
  /** Ascending; the last is infinite. */
  readonly bounds: readonly number[];
  /** One per bound; never decreasing. */
  readonly cumulative: readonly number[];
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \d+)?$/;

export class MetricsText {
  readonly #samples = new Map<string, { readonly labels: string; readonly value: number }[]>();

  /** Lines that are no samples are skipped. */
  constructor(text: string) {
    for (const line of text.split("\n")) {
      const match = line.startsWith("#") ? null : LINE.exec(line);
      if (match === null) continue;
      const [, name = "", labels = "", number] = match;
      const value = number === "+Inf" ? Number.POSITIVE_INFINITY : Number(number);
      if (Number.isNaN(value)) continue;
      const samples = this.#samples.get(name);
      if (samples === undefined) this.#samples.set(name, [{ labels, value }]);
      else samples.push({ labels, value });
    }
  }

  /**
   * The sum of a metric's samples whose labels contain all of `labels` (such as `op="put"`);
   * undefined without samples.
   */
  value(name: string, ...labels: readonly string[]): number | undefined {
    const samples = this.#samples
      .get(name)
      ?.filter((one) => labels.every((label) => one.labels.includes(label)));
    if (samples === undefined || samples.length === 0) return undefined;
    return samples.reduce((sum, one) => sum + one.value, 0);
  }

  /** A metric's samples, with their labels as text. */
  series(name: string): readonly { readonly labels: string; readonly value: number }[] {
    return this.#samples.get(name) ?? [];
  }

  /**
   * A histogram, summed over the samples whose labels contain all of `labels`; undefined without
   * samples.
   */
  histogram(name: string, ...labels: readonly string[]): HistogramValues | undefined {
    const byBound = new Map<number, number>();
    for (const sample of this.#samples.get(`${name}_bucket`) ?? []) {
      const le = /(?:^|,)le="([^"]*)"/.exec(sample.labels)?.[1];
      if (le === undefined || !labels.every((label) => sample.labels.includes(label))) continue;
      const bound = le === "+Inf" ? Number.POSITIVE_INFINITY : Number(le);
      byBound.set(bound, (byBound.get(bound) ?? 0) + sample.value);
    }
    if (byBound.size === 0) return undefined;
    const sorted = [...byBound].sort(([a], [b]) => a - b);
    return {
      bounds: sorted.map(([bound]) => bound),
      cumulative: sorted.map(([, count]) => count),
    };
  }
}

/** The number of observations. */
export function countOf({ cumulative }: HistogramValues): number {
  return cumulative.at(-1) ?? 0;
}

/**
 * The number of observations certainly above a value: those beyond the first bound at or above it.
 */
export function countAbove({ bounds, cumulative }: HistogramValues, value: number): number {
  const at = bounds.findIndex((bound) => bound >= value);
  return (cumulative.at(-1) ?? 0) - (cumulative[at] ?? 0);
}

/**
 * The observations between two scrapes; all of `later` if the member restarted in between, or
 * without `earlier`.
 */
export function histogramSince(
  later: HistogramValues,
  earlier: HistogramValues | undefined,
): HistogramValues {
  if (
    earlier === undefined ||
    earlier.bounds.length !== later.bounds.length ||
    countOf(earlier) > countOf(later)
  )
    return later;
  return {
    bounds: later.bounds,
    cumulative: later.cumulative.map((count, i) => count - (earlier.cumulative[i] ?? 0)),
  };
}

/**
 * The `q`-quantile (0 to 1) as Prometheus estimates it: linear within a bucket; the last finite
 * bound for the infinite bucket. Undefined for an empty histogram.
 */
export function quantile(histogram: HistogramValues, q: number): number | undefined {
  const { bounds, cumulative } = histogram;
  const total = countOf(histogram);
  if (total <= 0) return undefined;
  const rank = q * total;
  const at = cumulative.findIndex((count) => count >= rank);
  const lower = bounds[at - 1];
  const upper = bounds[at] ?? Number.POSITIVE_INFINITY;
  if (!Number.isFinite(upper)) return lower;
  const below = cumulative[at - 1] ?? 0;
  const within = (cumulative[at] ?? 0) - below;
  const start = lower ?? 0;
  return within === 0 ? upper : start + (upper - start) * ((rank - below) / within);
}
