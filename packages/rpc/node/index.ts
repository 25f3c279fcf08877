/** The RPC engine on sockets. */
export { Channel, splitAddress } from "./client/channel.ts";
export type { EngineServerOptions, ServerLimits } from "./engine/options.ts";
export {
  EngineServer,
  type EngineServerDependencies,
  type ServerCounters,
} from "./engine/server.ts";
export { engineMetrics } from "./engine-metrics.ts";
export type { BoundAddress, ListenAddress, RpcServerOptions } from "./options.ts";
export { SocketGateway, type SocketGatewayOptions } from "./websocket/gateway.ts";
export { asksForWebSocket } from "./websocket/handshake.ts";
export {
  ABNORMAL_CLOSURE,
  type ServerWebSocket,
  serveWebSocket,
  type WebSocketOptions,
} from "./websocket/index.ts";
