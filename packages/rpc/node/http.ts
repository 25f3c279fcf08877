/** Plain HTTP requests on a port that also speaks gRPC: the host's adapters. */
export { type HttpContext, type HttpPeer, serveHttp1, serveHttp2 } from "@quorate/host/node";
