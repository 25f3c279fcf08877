/**
 * Metrics as rows of tables: a name, a help text, and what the row is. `declare` registers a table
 * and returns the metrics under the names of its fields.
 */
import {
  type Counter,
  exponentialBuckets,
  type Family,
  type Gauge,
  type Histogram,
  type MetricRegistry,
} from "./registry.ts";

/** Bounds of most durations: 1 ms to 8 s. */
export const LATENCY_SECONDS: readonly number[] = exponentialBuckets(0.001, 2, 14);

/** One row: registers its metric, and returns it. */
export type Row<M> = (registry: MetricRegistry) => M;

/** The metrics of a table, under the names of its fields. */
export type Declared<T> = {
  readonly [Field in keyof T]: T[Field] extends Row<infer M> ? M : never;
};

/** A metric whose value is read from `S` at each scrape; a boolean counts as 1 or 0. */
export type Reading<S> = (registry: MetricRegistry, sources: S) => void;

export const counter =
  (name: string, help: string): Row<Counter> =>
  (registry) =>
    registry.counter(name, help);

export const gauge =
  (name: string, help: string): Row<Gauge> =>
  (registry) =>
    registry.gauge(name, help);

/** @param bounds upper bounds, growing. */
export const histogram =
  (name: string, help: string, bounds: readonly number[]): Row<Histogram> =>
  (registry) =>
    registry.histogram(name, help, bounds);

/** @param maxSeries bound of label sets; further ones count as "other". */
export const counters =
  (
    name: string,
    help: string,
    labelNames: readonly string[],
    maxSeries?: number,
  ): Row<Family<Counter>> =>
  (registry) =>
    registry.counters(name, help, labelNames, maxSeries);

export const gauges =
  (name: string, help: string, labelNames: readonly string[]): Row<Family<Gauge>> =>
  (registry) =>
    registry.gauges(name, help, labelNames);

/** @param bounds upper bounds, growing. */
export const histograms =
  (
    name: string,
    help: string,
    labelNames: readonly string[],
    bounds: readonly number[],
  ): Row<Family<Histogram>> =>
  (registry) =>
    registry.histograms(name, help, labelNames, bounds);

/** A row whose value another component keeps. */
export function reading<S>(
  kind: "counter" | "gauge",
  name: string,
  help: string,
  read: (sources: S) => number | boolean,
): Reading<S> {
  return (registry, sources) => {
    const value = () => Number(read(sources));
    if (kind === "counter") registry.readCounter(name, help, value);
    else registry.gauge(name, help, value);
  };
}

/** Registers the rows of `table` in its order. Throws if a name is declared twice. */
export function declare<T extends Readonly<Record<string, Row<unknown>>>>(
  registry: MetricRegistry,
  table: T,
): Declared<T> {
  const declared: Record<string, unknown> = {};
  for (const [field, row] of Object.entries(table)) declared[field] = row(registry);
  return declared as Declared<T>;
}
