/**
 * Single requests to other members over their peer ports, beside the streams: HTTP/1.1 with
 * connections kept, under the same TLS and its checks.
 */
import { request as requestTls, Agent as TlsAgent } from "node:https";
import type { TLSSocket } from "node:tls";
import {
  clientTlsOptions,
  Http1Agent,
  refuseCertificate,
  requestHttp1,
  type TlsOptions,
  type TlsSource,
  tlsSource,
} from "@quorate/host/node";
import type { PeerAnswer } from "../src/peer-call.ts";
import { DialError, parsePeerUrl } from "./dial.ts";

/** Connections to one peer at a time; more requests wait. */
const MAX_CONNECTIONS = 8;
/** Less than a member lets an idle connection live. */
const IDLE_TIMEOUT_MS = 10_000;
/** A longer answer is not taken (etcd: maxLeaseHTTPResponseSize). */
const MAX_ANSWER_BYTES = 100 * 1024 * 1024;

export class PeerCalls {
  readonly #tls: TlsSource | undefined;
  readonly #localAddress: string | undefined;
  readonly #plainAgent = new Http1Agent({
    keepAlive: true,
    maxSockets: MAX_CONNECTIONS,
    timeout: IDLE_TIMEOUT_MS,
  });
  readonly #tlsAgent = new TlsAgent({
    keepAlive: true,
    maxCachedSessions: 0,
    maxSockets: MAX_CONNECTIONS,
    timeout: IDLE_TIMEOUT_MS,
  });

  /**
   * @param tls for https URLs
   * @param localAddress of the connections; the system chooses by default
   */
  constructor(tls: TlsOptions | TlsSource | undefined, localAddress?: string) {
    this.#tls = tls && tlsSource(tls);
    this.#localAddress = localAddress;
  }

  /**
   * Posts `body`, or gets without one; resolves with the whole answer, whatever its status, and the
   * cluster that the header X-Etcd-Cluster-ID names. Rejects with DialError, or Node's error,
   * within `timeoutMs`.
   */
  readonly call = (
    url: string,
    path: string,
    body: Uint8Array | undefined,
    timeoutMs: number,
  ): Promise<PeerAnswer> => {
    const target = parsePeerUrl(url);
    if (target === undefined)
      return Promise.reject(new DialError("Failed", `not a peer URL: ${url}`));
    const { host, port, path: socketPath, secure } = target;
    const tls = this.#tls?.current;
    if (secure && tls === undefined)
      return Promise.reject(new DialError("Failed", `call ${url}: no TLS options`));
    const options = {
      ...(socketPath === undefined
        ? { host, port, localAddress: this.#localAddress }
        : { host, socketPath }),
      path,
      method: body === undefined ? "GET" : "POST",
      headers:
        body === undefined
          ? {}
          : { "content-type": "application/protobuf", "content-length": body.length },
      // It takes whole milliseconds only.
      signal: AbortSignal.timeout(Math.ceil(timeoutMs)),
    };
    return new Promise((resolve, reject) => {
      const request =
        secure && tls !== undefined
          ? requestTls({
              ...options,
              ...clientTlsOptions(tls, host, ["http/1.1"]),
              agent: this.#tlsAgent,
            })
          : requestHttp1({ ...options, agent: this.#plainAgent });
      request.on("error", reject);
      if (secure && tls !== undefined) {
        request.on("socket", (socket) => {
          if (!socket.connecting) return;
          socket.once("secureConnect", () => {
            const refusal = refuseCertificate(
              tls,
              (socket as TLSSocket).getPeerX509Certificate(),
              true,
            );
            if (refusal !== undefined)
              request.destroy(new DialError("Refused", `call ${url}: ${refusal}`));
          });
        });
      }
      request.on("response", (response) => {
        const chunks: Uint8Array[] = [];
        let sizeBytes = 0;
        response.on("data", (chunk: Uint8Array) => {
          sizeBytes += chunk.length;
          chunks.push(chunk);
          if (sizeBytes > MAX_ANSWER_BYTES)
            request.destroy(new DialError("Failed", `call ${url}: the answer is too long`));
        });
        response.on("error", reject);
        const clusterId = response.headers["x-etcd-cluster-id"];
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            body: Buffer.concat(chunks),
            clusterId: typeof clusterId === "string" ? clusterId : undefined,
          }),
        );
      });
      request.end(body);
    });
  };

  /** Closes the connections; calls that are under way fail. */
  close(): void {
    this.#plainAgent.destroy();
    this.#tlsAgent.destroy();
  }
}
