/** The part of metrics that needs Node. */
export { logMetrics, processMetrics } from "./process-metrics.ts";
export { prometheusExposition } from "./prometheus.ts";
