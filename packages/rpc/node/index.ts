/** The RPC engine on sockets. */
export type { EngineServerOptions, ServerLimits } from "./engine/options.ts";
export {
  EngineServer,
  type EngineServerDependencies,
  type ServerCounters,
} from "./engine/server.ts";
export type { BoundAddress, ListenAddress, RpcServerOptions } from "./options.ts";
export { SocketGateway, type SocketGatewayOptions } from "./websocket/gateway.ts";
export {
  ABNORMAL_CLOSURE,
  asksForWebSocket,
  type ServerWebSocket,
  serveWebSocket,
  type WebSocketOptions,
} from "./websocket/index.ts";
