/**
 * Sends spans to an OpenTelemetry collector: gRPC in plain HTTP/2, one unary call at a time, on a
 * connection that is made when needed.
 */
import { type ClientHttp2Session, connect } from "node:http2";
import type { Delivery } from "../../src/tracing/batches.ts";

const PATH = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
/** How long the collector may take (as OTEL_EXPORTER_OTLP_TIMEOUT's default). */
const TIMEOUT_MS = 10_000;
/**
 * Statuses after which a call may be made again (opentelemetry-specification, OTLP/gRPC response).
 */
const AGAIN: ReadonlySet<number> = new Set([1, 4, 8, 10, 11, 14, 15]);

export class OtlpClient {
  readonly #url: string;
  #session: ClientHttp2Session | undefined;

  /** @param address the collector's host and port */
  constructor(address: string) {
    this.#url = `http://${address}`;
  }

  /** Makes the call with an encoded request; never rejects. */
  async export(message: Uint8Array): Promise<Delivery> {
    try {
      return await this.#call(message);
    } catch (error) {
      this.close();
      return {
        kind: "again",
        reason: `${this.#url}: ${error instanceof Error ? error.message : String(error)}`,
      };
    }
  }

  /** Closes the connection; the next call makes another. */
  close(): void {
    this.#session?.destroy();
    this.#session = undefined;
  }

  #connected(): ClientHttp2Session {
    if (this.#session !== undefined && !this.#session.closed && !this.#session.destroyed)
      return this.#session;
    const session = connect(this.#url);
    // The call that is under way gets the error from its own stream.
    session.on("error", () => {});
    // An idle connection to a collector does not keep a member up.
    session.unref();
    this.#session = session;
    return session;
  }

  #call(message: Uint8Array): Promise<Delivery> {
    return new Promise((resolve, reject) => {
      const stream = this.#connected().request({
        ":method": "POST",
        ":path": PATH,
        "content-type": "application/grpc",
        te: "trailers",
        "user-agent": "quorate",
        "grpc-timeout": `${TIMEOUT_MS}m`,
      });
      let status: string | undefined;
      let text = "";
      const note = (headers: Readonly<Record<string, unknown>>) => {
        if (typeof headers["grpc-status"] !== "string") return;
        status = headers["grpc-status"];
        text =
          typeof headers["grpc-message"] === "string"
            ? decodeURIComponent(headers["grpc-message"])
            : "";
      };
      stream.setTimeout(TIMEOUT_MS, () =>
        stream.destroy(new Error(`no answer within ${TIMEOUT_MS}ms`)),
      );
      stream.on("response", note);
      stream.on("trailers", note);
      stream.on("error", reject);
      stream.on("close", () => {
        if (status === "0") resolve({ kind: "done" });
        else if (status === undefined) reject(new Error("the answer has no status"));
        else
          resolve({
            kind: AGAIN.has(Number(status)) ? "again" : "refused",
            reason: `${this.#url}: status ${status}: ${text}`,
          });
      });
      stream.resume();
      const prefix = new Uint8Array(5);
      new DataView(prefix.buffer).setUint32(1, message.length);
      stream.write(prefix);
      stream.end(message);
    });
  }
}
