/**
 * Single requests to other members over their peer ports, beside the streams: HTTP/1.1 with
 * connections kept, under the same TLS and its checks.
 */
import { type TlsOptions, type TlsSource, tlsSource } from "@quorate/host/node";
import type { PeerAnswer } from "../src/peer-call.ts";
import { DialError } from "./dial.ts";
import { requestPeer } from "./http1-request.ts";
import { KeptConnections } from "./kept-connections.ts";

/** Connections to one peer at a time; more requests wait. */
const MAX_CONNECTIONS = 8;
/** Less than a member lets an idle connection live. */
const IDLE_TIMEOUT_MS = 10_000;
/** A longer answer is not taken (etcd: maxLeaseHTTPResponseSize). */
const MAX_ANSWER_BYTES = 100 * 1024 * 1024;

export class PeerCalls {
  readonly #tls: TlsSource | undefined;
  readonly #localAddress: string | undefined;
  readonly #kept = new KeptConnections(MAX_CONNECTIONS, IDLE_TIMEOUT_MS);

  /**
   * @param tls for https URLs
   * @param localAddress of the connections; the system chooses by default
   */
  constructor(tls: TlsOptions | TlsSource | undefined, localAddress?: string) {
    this.#tls = tls && tlsSource(tls);
    this.#localAddress = localAddress;
  }

  /**
   * Posts `body`, or gets without one or where that is given; resolves with the whole answer, whatever its status, and the
   * cluster that the header X-Etcd-Cluster-ID names. Rejects with DialError, or Node's error,
   * within `timeoutMs`.
   */
  readonly call = (
    url: string,
    path: string,
    body: Uint8Array | undefined,
    timeoutMs: number,
    given?: "GET",
  ): Promise<PeerAnswer> => {
    const headers =
      body === undefined
        ? {}
        : { "content-type": "application/protobuf", "content-length": body.length };
    // It takes whole milliseconds only.
    const signal = AbortSignal.timeout(Math.ceil(timeoutMs));
    const method = given ?? (body === undefined ? "GET" : "POST");
    return new Promise((resolve, reject) => {
      const asker = {
        tls: this.#tls?.current,
        localAddress: this.#localAddress,
        kept: this.#kept,
      };
      const request = requestPeer(asker, url, { method, path, headers, signal });
      request.on("error", reject);
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
    this.#kept.close();
  }
}
