/**
 * The engine for gRPC: a service's view of a call, the HTTP/2 and gRPC server, and the client's
 * side of both, without sockets, which are in ./node.
 */

export { ClientCall, type ClientCallEvents } from "./src/client/client-call.ts";
export { type CallStart, ClientConnection } from "./src/client/client-connection.ts";
export { type ClientLimits, DEFAULT_CLIENT_LIMITS } from "./src/client/client-limits.ts";
export type { ClientConnectionOwner } from "./src/client/client-state.ts";
export { DeadlineQueue } from "./src/deadlines.ts";
export { Gateway } from "./src/gateway/gateway.ts";
export { errorResponse } from "./src/gateway/responses.ts";
export type { GatewayCounters } from "./src/gateway/settings.ts";
export { Inflater } from "./src/grpc/compression.ts";
export { Dispatcher } from "./src/grpc/dispatcher.ts";
export { HealthService } from "./src/grpc/health.ts";
export { ReflectionService } from "./src/grpc/reflection.ts";
export {
  constantFields,
  type FieldList,
  HpackDecoder,
  HpackEncoder,
  Indexing,
} from "./src/hpack/hpack.ts";
export { Exchange } from "./src/http/exchange.ts";
export type { ResponseFields } from "./src/http/fields.ts";
export { type HttpContext, HttpDate } from "./src/http/fields.ts";
export { type ByteBudget, SharedBudget } from "./src/http2/byte-budget.ts";
export { Http2Connection } from "./src/http2/connection.ts";
export { DEFAULT_HTTP2_LIMITS } from "./src/http2/limits.ts";
export { clientOf, FORWARDED_FOR, type Peer } from "./src/http2/peer.ts";
export { FieldEncoder } from "./src/http2/sender.ts";
export { Http2Shared } from "./src/http2/shared.ts";
export { type CallShared, ServedCall, statusOf } from "./src/served-call.ts";
export * from "./src/service.ts";
export { wrappedCall, wrappedListener } from "./src/wrapped-stream.ts";
