/** The engine that carries calls, on node:http2. */
export type { BoundAddress, ListenAddress, RpcServerOptions } from "./options.ts";
export { type RpcCounters, RpcServer, type RpcServerDependencies } from "./server.ts";
