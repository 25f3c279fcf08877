/** The proxies on real sockets, and their commands. */
export { proxyProgram } from "./commands.ts";
export { TcpProxy, type TcpProxyOptions } from "./tcp-proxy.ts";
