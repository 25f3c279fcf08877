/** Counters, gauges and histograms, and tables that declare them. */
export {
  Counter,
  exponentialBuckets,
  Family,
  Gauge,
  Histogram,
  MAX_LABEL_CHARS,
  MetricRegistry,
} from "./src/registry.ts";
export {
  counter,
  counters,
  type Declared,
  declare,
  gauge,
  gauges,
  histogram,
  histograms,
  LATENCY_SECONDS,
  type Reading,
  reading,
} from "./src/table.ts";
