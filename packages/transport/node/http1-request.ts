/** Requests over HTTP/1.1 to a peer URL, under TLS and its checks. */
import type { ClientRequest, OutgoingHttpHeaders } from "node:http";
import { request as requestTls } from "node:https";
import type { TLSSocket } from "node:tls";
import {
  clientTlsOptions,
  refuseCertificate,
  requestHttp1,
  type TlsOptions,
} from "@quorate/host/node";
import { DialError, parsePeerUrl } from "./dial.ts";
import type { KeptConnections } from "./kept-connections.ts";

/** From where a peer is asked. */
export interface Asker {
  /** For https URLs. */
  readonly tls: TlsOptions | undefined;
  /** Of the connection; the system chooses if undefined. */
  readonly localAddress: string | undefined;
  /** Undefined: each request has a connection of its own. */
  readonly kept: KeptConnections | undefined;
}

/** What is asked. */
export interface Http1Request {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Begins a request, whose body is the caller's to write and end. A certificate that is refused
 * destroys it with a DialError.
 * @throws DialError for an URL that is none, or needs TLS options
 */
export function requestPeer(asker: Asker, url: string, request: Http1Request): ClientRequest {
  const target = parsePeerUrl(url);
  if (target === undefined) throw new DialError("Failed", `not a peer URL: ${url}`);
  const { host, port, path: socketPath, secure } = target;
  const { tls, localAddress, kept } = asker;
  const where = socketPath === undefined ? { host, port, localAddress } : { host, socketPath };
  const options = { ...where, ...request };
  if (!secure) return requestHttp1({ ...options, agent: kept?.plain ?? false });
  if (tls === undefined) throw new DialError("Failed", `call ${url}: no TLS options`);
  const secured = clientTlsOptions(tls, host, ["http/1.1"]);
  const made = requestTls({ ...options, ...secured, agent: kept?.tls ?? false });
  made.on("socket", (socket) => {
    if (!socket.connecting) return;
    socket.once("secureConnect", () => {
      const certificate = (socket as TLSSocket).getPeerX509Certificate();
      const refusal = refuseCertificate(tls, certificate, true);
      if (refusal !== undefined) made.destroy(new DialError("Refused", `call ${url}: ${refusal}`));
    });
  });
  return made;
}
