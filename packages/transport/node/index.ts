/** The transport over HTTP/2 and mutual TLS. */
export { Http2Transport } from "./http2-transport.ts";
export type { Http2TransportOptions, PeerListenAddress, TransportObserver } from "./options.ts";
export { PeerCalls } from "./peer-calls.ts";
export type { PeerBoundAddress } from "./peer-server.ts";
