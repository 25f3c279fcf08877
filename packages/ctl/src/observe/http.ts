/**
 * One HTTP/1.1 request to an endpoint, with the times around it, and the certificate that the
 * endpoint presents. Certificates are not verified here, so nothing secret is sent; the caller
 * judges them.
 */
import type { IncomingMessage } from "node:http";
import type { PeerCertificate } from "node:tls";
import type { ClientOptions } from "@quorate/client/node";
import { tlsContext } from "@quorate/host";

/** The client's TLS options. */
export type ClientTls = NonNullable<ClientOptions["tls"]>;

/** The address of an endpoint. */
export interface Target {
  readonly secure: boolean;
  /** "host:port", or a socket's path after "unix:". */
  readonly address: string;
}

/** Largest accepted response body; a member's metrics are some hundred KiB. */
export const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;

export interface HttpResponse {
  readonly status: number;
  readonly body: string;
  /**
   * The Date header in ms since 1970, in whole seconds; undefined if there is none.
   */
  readonly dateMs: number | undefined;
  /** This machine's clock when the request was sent, and when the response head arrived. */
  readonly sentMs: number;
  readonly receivedMs: number;
}

function tlsParts(tls: ClientTls | undefined): object {
  const buffer = (content: Uint8Array | string | undefined): Buffer | string | undefined =>
    content === undefined || typeof content === "string" ? content : Buffer.from(content);
  return {
    ...tlsContext({ trusted: buffer(tls?.ca), cert: buffer(tls?.cert), key: buffer(tls?.key) }),
    rejectUnauthorized: false,
  };
}

function hostAndPort(address: string): { host: string; port: number } {
  const url = new URL(`http://${address}`);
  return {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? 80 : Number(url.port),
  };
}

/** GETs a path. Rejects with an Error that names the reason. */
export async function httpGet(
  target: Target,
  path: string,
  tls: ClientTls | undefined,
  timeoutMs: number,
): Promise<HttpResponse> {
  const { request } = target.secure ? await import("node:https") : await import("node:http");
  const address = target.address.startsWith("unix:")
    ? { socketPath: target.address.slice("unix:".length) }
    : hostAndPort(target.address);
  const signal = AbortSignal.timeout(timeoutMs);
  const sentMs = Date.now();
  const { response, receivedMs } = await new Promise<{
    response: IncomingMessage;
    receivedMs: number;
  }>((resolve, reject) => {
    const call = request(
      { ...address, path, agent: false, signal, ...(target.secure ? tlsParts(tls) : {}) },
      (message) => resolve({ response: message, receivedMs: Date.now() }),
    );
    call.on("error", (error) =>
      reject(signal.aborted ? new Error(`no response within ${timeoutMs} ms`) : error),
    );
    call.end();
  });
  const pieces: Buffer[] = [];
  let sizeBytes = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    sizeBytes += piece.length;
    if (sizeBytes > MAX_RESPONSE_BYTES) {
      response.destroy();
      throw new Error(`the response to GET ${path} is longer than ${MAX_RESPONSE_BYTES} bytes`);
    }
    pieces.push(piece);
  }
  const dateMs = Date.parse(response.headers.date ?? "");
  return {
    status: response.statusCode ?? 0,
    body: Buffer.concat(pieces).toString(),
    dateMs: Number.isNaN(dateMs) ? undefined : dateMs,
    sentMs,
    receivedMs,
  };
}

/** A certificate that a server presented. */
export interface ShownCertificate {
  readonly subject: string;
  readonly issuer: string;
  readonly validFromMs: number;
  readonly validToMs: number;
  /**
   * OpenSSL's code if the chain does not verify, validity dates included; undefined if it does.
   */
  readonly chainProblem: string | undefined;
  /** Why it is not valid for the host; undefined if it is. */
  readonly nameProblem: string | undefined;
}

/**
 * Makes a TLS handshake and returns the server's certificate. Rejects with an Error that names the
 * reason.
 */
export async function shownCertificate(
  address: string,
  tls: ClientTls | undefined,
  timeoutMs: number,
): Promise<ShownCertificate> {
  const { connect, checkServerIdentity } = await import("node:tls");
  const { isIP } = await import("node:net");
  const { host, port } = hostAndPort(address);
  const socket = connect({
    host,
    port,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...tlsParts(tls),
  });
  let timer: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(
        () => reject(new Error(`no TLS handshake within ${timeoutMs} ms`)),
        timeoutMs,
      );
      socket.once("secureConnect", resolve);
      socket.on("error", reject);
      socket.once("close", () =>
        reject(new Error("the connection was closed during the TLS handshake")),
      );
    });
    const certificate = socket.getPeerCertificate();
    // Node's types say Error; it is a text for most reasons.
    const problem: unknown = socket.authorizationError;
    const code =
      problem instanceof Error
        ? ((problem as NodeJS.ErrnoException).code ?? problem.message)
        : (problem as string | null);
    const nameOf = (one: PeerCertificate["subject"] | undefined): string =>
      [one?.CN ?? "?"].flat().join(", ");
    return {
      subject: nameOf(certificate.subject),
      issuer: nameOf(certificate.issuer),
      validFromMs: Date.parse(certificate.valid_from),
      validToMs: Date.parse(certificate.valid_to),
      chainProblem: code === null || code === "ERR_TLS_CERT_ALTNAME_INVALID" ? undefined : code,
      nameProblem: checkServerIdentity(host, certificate)?.message,
    };
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}
