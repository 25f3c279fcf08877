/**
 * The proxies of `quorate grpc-proxy` and `quorate gateway`, without sockets: node/ has those, the
 * commands and the programs.
 */
export { callerOf } from "./src/caller.ts";
export { type Balance, type GatewayEndpoint, Picker } from "./src/gateway/picker.ts";
export { MAX_CACHED_RESPONSES, RangeCache } from "./src/kv/range-cache.ts";
export type { MemberChannel } from "./src/member-channel.ts";
export { ProxyMetrics } from "./src/metrics.ts";
export { Namespace } from "./src/namespace/namespace.ts";
export { GrpcProxy, type ProxyOptions } from "./src/service-table.ts";
export { Upstream } from "./src/upstream.ts";
