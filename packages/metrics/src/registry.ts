/**
 * Metrics as plain numbers. The hot path adds to a field; text is made only at a scrape
 * (server/node turns a registry into Prometheus' exposition format).
 */

/** Label names and values of one sample. */
export type Labels = Readonly<Record<string, string>>;

/** A number that only grows. */
export class Counter {
  value = 0;
  add(amount = 1): void {
    this.value += amount;
  }
}

/** A number that goes up and down; `read` computes it at scrape time where that is cheaper. */
export class Gauge {
  value = 0;
  readonly read: (() => number) | undefined;
  constructor(read?: () => number) {
    this.read = read;
  }
}

/**
 * Counts of observations by upper bound, in the manner of Prometheus; the counts here are per
 * bucket, not yet cumulative.
 */
export class Histogram {
  readonly bounds: readonly number[];
  /** One count for each bound, and a last one for what is above them all. */
  readonly counts: number[];
  sum = 0;
  count = 0;

  /** @param bounds upper bounds, growing. */
  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    const { bounds } = this;
    let bucket = 0;
    while (bucket < bounds.length && value > bounds[bucket]!) bucket++;
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1;
    this.sum += value;
    this.count++;
  }
}

/**
 * `count` bounds from `start`, each `factor` times the one before (as Prometheus' Go client names
 * them).
 */
export function exponentialBuckets(start: number, factor: number, count: number): number[] {
  const bounds: number[] = [];
  for (let i = 0, bound = start; i < count; i++, bound *= factor) bounds.push(bound);
  return bounds;
}

/**
 * A label value that is longer counts as "other": the exposition repeats it in each line, and in
 * each scrape.
 */
export const MAX_LABEL_CHARS = 128;

/**
 * Metrics of one name that differ in their label values, made at the first use. Bounded:
 * `maxSeries` label sets, then one "other".
 */
export class Family<M> {
  readonly labelNames: readonly string[];
  readonly series = new Map<string, { labels: Labels; metric: M }>();
  readonly #make: () => M;
  readonly #maxSeries: number;

  constructor(labelNames: readonly string[], make: () => M, maxSeries = 1000) {
    this.labelNames = labelNames;
    this.#make = make;
    this.#maxSeries = maxSeries;
  }

  /** The metric for these label values, in the order of `labelNames`. */
  with(...values: string[]): M {
    const [only] = values;
    const key = only !== undefined && values.length === 1 ? only : values.join("\u0000");
    const known = this.series.get(key);
    if (known !== undefined) return known.metric;
    const isFull =
      this.series.size >= this.#maxSeries || values.some((value) => value.length > MAX_LABEL_CHARS);
    if (isFull && values.some((value) => value !== "other")) {
      return this.with(...this.labelNames.map(() => "other"));
    }
    const labels: Record<string, string> = {};
    // By name, as in Go's library: scripts look for whole lines.
    this.labelNames.toSorted().forEach((name) => {
      labels[name] = values[this.labelNames.indexOf(name)] ?? "";
    });
    const metric = this.#make();
    this.series.set(key, { labels, metric });
    return metric;
  }

  /** Forgets these label values; what still holds their metric counts without effect. */
  remove(...values: string[]): void {
    this.series.delete(values.join("\u0000"));
  }

  /** Forgets all label sets, for a value that is carried by its label (a version, say). */
  reset(): void {
    this.series.clear();
  }
}

/** A declared metric, as an exporter reads it. */
export interface MetricEntry {
  readonly name: string;
  readonly help: string;
  readonly kind: "counter" | "gauge" | "histogram";
  readonly metric:
    | Counter
    | Gauge
    | Histogram
    | Family<Counter>
    | Family<Gauge>
    | Family<Histogram>;
}

/** The metrics of one member, each declared once with its name and help. */
export class MetricRegistry {
  readonly entries: MetricEntry[] = [];
  readonly #beforeScrape: (() => void | Promise<void>)[] = [];

  counter(name: string, help: string): Counter {
    return this.#add(name, help, "counter", new Counter());
  }

  /** A counter that another component keeps: it is read at each scrape. */
  readCounter(name: string, help: string, read: () => number): void {
    this.#add(name, help, "counter", new Gauge(read));
  }

  gauge(name: string, help: string, read?: () => number): Gauge {
    return this.#add(name, help, "gauge", new Gauge(read));
  }

  histogram(name: string, help: string, bounds: readonly number[]): Histogram {
    return this.#add(name, help, "histogram", new Histogram(bounds));
  }

  counters(
    name: string,
    help: string,
    labelNames: readonly string[],
    maxSeries?: number,
  ): Family<Counter> {
    return this.#add(name, help, "counter", new Family(labelNames, () => new Counter(), maxSeries));
  }

  gauges(name: string, help: string, labelNames: readonly string[]): Family<Gauge> {
    return this.#add(name, help, "gauge", new Family(labelNames, () => new Gauge()));
  }

  histograms(
    name: string,
    help: string,
    labelNames: readonly string[],
    bounds: readonly number[],
  ): Family<Histogram> {
    return this.#add(name, help, "histogram", new Family(labelNames, () => new Histogram(bounds)));
  }

  /**
   * Has `refresh` called before each scrape: for values that are read together, and for label sets
   * that come and go. A scrape waits for what it returns, which must not reject.
   */
  onScrape(refresh: () => void | Promise<void>): void {
    this.#beforeScrape.push(refresh);
  }

  /** Brings what is read at a scrape up to date. */
  async refresh(): Promise<void> {
    await Promise.all(this.#beforeScrape.map((refresh) => refresh()));
  }

  #add<M extends MetricEntry["metric"]>(
    name: string,
    help: string,
    kind: MetricEntry["kind"],
    metric: M,
  ): M {
    if (this.entries.some((entry) => entry.name === name))
      throw new Error(`metric ${name} is declared twice`);
    this.entries.push({ name, help, kind, metric });
    return metric;
  }
}
