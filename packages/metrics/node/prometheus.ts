/**
 * Passes plain numbers to prom-client at each scrape.
 */
import type { Metric, MetricObjectWithValues, MetricValueWithName, Registry } from "prom-client";
import {
  type Counter,
  Family,
  Gauge,
  Histogram,
  type Labels,
  type MetricEntry,
  type MetricRegistry,
} from "../src/registry.ts";

type Value = MetricValueWithName<string>;

function histogramValues(name: string, labels: Labels, histogram: Histogram): Value[] {
  const values: Value[] = [];
  let cumulative = 0;
  histogram.counts.forEach((count, i) => {
    cumulative += count;
    const le = i < histogram.bounds.length ? String(histogram.bounds[i]) : "+Inf";
    values.push({ metricName: `${name}_bucket`, labels: { ...labels, le }, value: cumulative });
  });
  values.push({ metricName: `${name}_sum`, labels, value: histogram.sum });
  values.push({ metricName: `${name}_count`, labels, value: histogram.count });
  return values;
}

function valuesOf(name: string, labels: Labels, metric: Counter | Gauge | Histogram): Value[] {
  if (metric instanceof Histogram) return histogramValues(name, labels, metric);
  const value = metric instanceof Gauge && metric.read !== undefined ? metric.read() : metric.value;
  return [{ metricName: name, labels, value }];
}

/**
 * One declared metric in the form that prom-client's registry collects: an object with a name and a
 * `get`.
 */
class CollectedMetric {
  readonly name: string;
  readonly #entry: MetricEntry;

  constructor(entry: MetricEntry) {
    this.name = entry.name;
    this.#entry = entry;
  }

  async get(): Promise<MetricObjectWithValues<Value>> {
    const { name, help, kind, metric } = this.#entry;
    const values =
      metric instanceof Family
        ? [...metric.series.values()].flatMap((series) =>
            valuesOf(name, series.labels, series.metric),
          )
        : valuesOf(name, {}, metric);
    return {
      name,
      help,
      type: kind,
      aggregator: "sum",
      values,
    } as unknown as MetricObjectWithValues<Value>;
  }
}

/** Prometheus' text format, version 0.0.4. */
const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/**
 * The exposition of metrics: its content type, and its text made afresh at each call. The library
 * is loaded at the first one.
 */
export function prometheusExposition(metrics: MetricRegistry): {
  contentType: string;
  text: () => Promise<string>;
} {
  let loading: Promise<Registry> | undefined;
  const load = async (): Promise<Registry> => {
    const { Registry } = await import("prom-client");
    const registry = new Registry();
    for (const entry of metrics.entries)
      registry.registerMetric(new CollectedMetric(entry) as unknown as Metric);
    return registry;
  };
  return {
    contentType: CONTENT_TYPE,
    text: async () => {
      loading ??= load();
      const registry = await loading;
      await metrics.refresh();
      return registry.metrics();
    },
  };
}
