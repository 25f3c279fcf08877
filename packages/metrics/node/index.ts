/** The entry point of metrics. */
export { logMetrics, processMetrics } from "./process-metrics.ts";
export { prometheusExposition } from "./prometheus.ts";
