/** The proxies on real sockets, and their commands. */
export { startGateway } from "./gateway.ts";
export { startGrpcProxy } from "./grpc-proxy.ts";
export { proxyFlags } from "./proxy-flags.ts";
export { TcpProxy } from "./tcp-proxy.ts";
export { checkUpstreamTls } from "./upstream-tls.ts";
