/**
 * One look at an endpoint over plain HTTP/1.1: its answer with the times around it, and the
 * certificate that it shows. Certificates are not verified here, so nothing secret is sent; whoever
 * looks judges them.
 */
import type { IncomingMessage } from "node:http";
import type { PeerCertificate, TLSSocket } from "node:tls";
import type { ClientOptions } from "@quorate/client";

/** What TLS needs on this side. */
export type ClientTls = NonNullable<ClientOptions["tls"]>;

/** Where to look. */
export interface Target {
  readonly secure: boolean;
  /** "host:port", or a socket's path after "unix:". */
  readonly address: string;
}

/** Bytes of an answer that are taken at the most: a member's metrics have some hundred KiB. */
export const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
  /**
   * The Date header in milliseconds since 1970, cut to seconds by its form; undefined if there is
   * none.
   */
  readonly dateMs: number | undefined;
  /** This machine's clock when the request left, and when the answer's head had come. */
  readonly sentMs: number;
  readonly receivedMs: number;
}

function tlsParts(tls: ClientTls | undefined): object {
  const buffer = (content: Uint8Array | string | undefined): Buffer | string | undefined =>
    content === undefined || typeof content === "string" ? content : Buffer.from(content);
  return {
    ca: buffer(tls?.ca),
    cert: buffer(tls?.cert),
    key: buffer(tls?.key),
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

/** GETs a path. Rejects with an Error that says why there is no answer. */
export async function httpGet(
  target: Target,
  path: string,
  tls: ClientTls | undefined,
  timeoutMs: number,
): Promise<HttpAnswer> {
  const { request } = target.secure ? await import("node:https") : await import("node:http");
  const place = target.address.startsWith("unix:")
    ? { socketPath: target.address.slice("unix:".length) }
    : hostAndPort(target.address);
  const signal = AbortSignal.timeout(timeoutMs);
  const sentMs = Date.now();
  const { answer, receivedMs } = await new Promise<{ answer: IncomingMessage; receivedMs: number }>(
    (resolve, reject) => {
      const call = request(
        { ...place, path, agent: false, signal, ...(target.secure ? tlsParts(tls) : {}) },
        (message) => resolve({ answer: message, receivedMs: Date.now() }),
      );
      call.on("error", (error) =>
        reject(signal.aborted ? new Error(`no answer within ${timeoutMs} ms`) : error),
      );
      call.end();
    },
  );
  const pieces: Buffer[] = [];
  let sizeBytes = 0;
  for await (const piece of answer as AsyncIterable<Buffer>) {
    sizeBytes += piece.length;
    if (sizeBytes > MAX_ANSWER_BYTES) {
      answer.destroy();
      throw new Error(`the answer to GET ${path} is longer than ${MAX_ANSWER_BYTES} bytes`);
    }
    pieces.push(piece);
  }
  const dateMs = Date.parse(answer.headers.date ?? "");
  return {
    status: answer.statusCode ?? 0,
    body: Buffer.concat(pieces).toString(),
    dateMs: Number.isNaN(dateMs) ? undefined : dateMs,
    sentMs,
    receivedMs,
  };
}

/** A certificate as a server showed it. */
export interface ShownCertificate {
  readonly subject: string;
  readonly issuer: string;
  readonly validFromMs: number;
  readonly validToMs: number;
  /**
   * Why it does not come from the trusted authority, in OpenSSL's code; undefined if it does. Dates
   * count here too.
   */
  readonly chainProblem: string | undefined;
  /** Why it is not good for the host that was called; undefined if it is. */
  readonly nameProblem: string | undefined;
}

/**
 * Makes a TLS handshake and gives the certificate that the server shows. Rejects with an Error that
 * says why there was none.
 */
export async function shownCertificate(
  address: string,
  tls: ClientTls | undefined,
  timeoutMs: number,
): Promise<ShownCertificate> {
  const { connect, checkServerIdentity } = await import("node:tls");
  const { isIP } = await import("node:net");
  const { host, port } = hostAndPort(address);
  let socket: TLSSocket | undefined;
  let timer: NodeJS.Timeout | undefined;
  try {
    const certificate = await new Promise<PeerCertificate>((resolve, reject) => {
      timer = setTimeout(
        () => reject(new Error(`no TLS handshake within ${timeoutMs} ms`)),
        timeoutMs,
      );
      socket = connect(
        { host, port, ...(isIP(host) === 0 ? { servername: host } : {}), ...tlsParts(tls) },
        () => resolve(socket!.getPeerCertificate()),
      );
      socket.on("error", reject);
      socket.once("close", () =>
        reject(new Error("the connection was closed during the TLS handshake")),
      );
    });
    const problem = socket!.authorizationError as unknown as string | Error | null;
    const code =
      problem instanceof Error
        ? ((problem as NodeJS.ErrnoException).code ?? problem.message)
        : problem;
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
    socket?.destroy();
  }
}
