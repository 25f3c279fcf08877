/**
 * The proxies of `quorate grpc-proxy` and `quorate gateway`, without sockets: node/ has those, the
 * commands and the programs.
 */
export { type GatewayEndpoint, Picker } from "./src/gateway/picker.ts";
export { MAX_CACHED_RESPONSES, RangeCache } from "./src/kv/range-cache.ts";
export { Namespace } from "./src/namespace/namespace.ts";
export { GrpcProxy, type ProxyOptions } from "./src/service-table.ts";
export type { MemberChannel } from "./src/upstream/member-channel.ts";
export { ProxyMetrics } from "./src/upstream/metrics.ts";
export { Upstream } from "./src/upstream/upstream.ts";
