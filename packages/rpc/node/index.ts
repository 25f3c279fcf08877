/** The engine that carries calls, on node:http2; and the one that takes its place, on sockets. */
export type { EngineServerOptions, ServerLimits } from "./engine/options.ts";
export { EngineServer, type EngineServerDependencies, type ServerCounters } from "./engine/server.ts";
export type { BoundAddress, ListenAddress, RpcServerOptions } from "./options.ts";
export { type RpcCounters, RpcServer, type RpcServerDependencies } from "./server.ts";
