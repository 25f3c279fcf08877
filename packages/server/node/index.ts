/** A member among real sockets. */
export {
  AuditOutput,
  type AuditOutputDependencies,
  MAX_AUDIT_QUEUE_BYTES,
} from "./audit/audit-output.ts";
export { engineMetrics } from "./engine-metrics.ts";
export { main } from "./main.ts";
export { processMetrics } from "./process-metrics.ts";
export { prometheusExposition } from "./prometheus.ts";
export { ensureSelfCert } from "./self-cert.ts";
export { type ServeDeps, type ServingMember, serve } from "./serve.ts";
export { supervisorOf } from "./supervisor.ts";
