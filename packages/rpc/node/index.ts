/** The RPC engine on sockets. */
export { Channel, splitAddress } from "./client/channel.ts";
export type { EngineServerOptions } from "./engine/options.ts";
export { EngineServer, type ServerCounters } from "./engine/server.ts";
export { engineMetrics } from "./engine-metrics.ts";
export type { ListenAddress } from "./options.ts";
export { SocketGateway } from "./websocket/gateway.ts";
export { ABNORMAL_CLOSURE, type ServerWebSocket, serveWebSocket } from "./websocket/index.ts";
