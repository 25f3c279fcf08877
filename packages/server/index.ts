/**
 * One member of a cluster: configuration, bootstrap, the Raft loop, services, HTTP endpoints,
 * metrics. It knows no sockets.
 */
export { RPC_RULES } from "./src/auth/rpc-rules.ts";
export * from "./src/config/index.ts";
export { nodeCiphers } from "./src/config/tls.ts";
export { httpRouter, versionEndpoint } from "./src/http/endpoints.ts";
export {
  checkEndpoints,
  type HealthSource,
  healthEndpoint,
} from "./src/http/health.ts";
export { peerEndpoints, versionOf } from "./src/http/peer-endpoints.ts";
export { type HttpKvParts, httpKv } from "./src/http-kv/index.ts";
export { BootstrapError } from "./src/member/bootstrap.ts";
export type { MemberDeps, MemberTransport, TransportRequest } from "./src/member/deps.ts";
export {
  FAULT_POINTS,
  type FaultHook,
  type FaultPoint,
  noFaults,
} from "./src/member/fault-points.ts";
export { Member } from "./src/member/member.ts";
export type { MemberMetrics } from "./src/metrics/member-metrics.ts";
export { Counter, Gauge, MetricRegistry } from "./src/metrics/registry.ts";
export { SLICE_LIMITS } from "./src/reads/slices.ts";
export { pageTable, serviceTable } from "./src/services/table.ts";
export { directoryExpiry } from "./src/v2/expiry.ts";
export * from "./src/version.ts";
export { ClientBudget } from "./src/watch/client-budget.ts";
export { WATCH_BYTES, WATCH_KEY_FACTOR, WATCH_LIMITS } from "./src/watch/limits.ts";
export {
  fragments,
  headerField,
  idField,
  responsePieces,
} from "./src/watch/responses.ts";
