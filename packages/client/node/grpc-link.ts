/** A link over @grpc/grpc-js: one channel to one endpoint, messages passed through as bytes. */
import {
  type ChannelCredentials,
  type ChannelOptions,
  Client,
  type ClientDuplexStream,
  connectivityState,
  Metadata,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import type { Endpoint } from "../src/endpoint.ts";
import { type CallMetadata, type Link, LinkError, type LinkStream } from "../src/link.ts";
import { neverLeft, reasonOf } from "./grpc-words.ts";
import { TlsCredentials } from "./tls-credentials.ts";

const passBuffer = (bytes: Buffer): Buffer => bytes;

function headersOf(metadata: CallMetadata): Metadata {
  const headers = new Metadata();
  if (metadata.token !== undefined && metadata.token !== "") headers.set("token", metadata.token);
  if (metadata.requireLeader === true) headers.set("hasleader", "true");
  return headers;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** grpc-js's own stream, read by pulling. */
class GrpcStream implements LinkStream {
  readonly #call: ClientDuplexStream<Buffer, Buffer>;
  #isCancelled = false;

  constructor(call: ClientDuplexStream<Buffer, Buffer>) {
    this.#call = call;
    // An error is thrown to whoever reads; without a reader it must not end the process.
    call.on("error", () => {});
  }

  send(message: Uint8Array): void {
    this.#call.write(asBuffer(message));
  }

  finish(): void {
    this.#call.end();
  }

  cancel(): void {
    this.#isCancelled = true;
    this.#call.cancel();
  }

  async *answers(): AsyncGenerator<Uint8Array> {
    try {
      for await (const answer of this.#call as AsyncIterable<Buffer>) {
        yield new Uint8Array(answer.buffer, answer.byteOffset, answer.byteLength);
      }
    } catch (error) {
      if (this.#isCancelled) return;
      const { code, details, message } = error as Partial<ServiceError>;
      throw new LinkError(
        code ?? status.UNKNOWN,
        reasonOf(details ?? message ?? String(error), 0),
        true,
      );
    }
  }
}

export class GrpcLink implements Link {
  readonly endpoint: string;
  readonly #client: Client;
  readonly #credentials: ChannelCredentials;

  /** @param credentials of this link alone, which closes them */
  constructor(endpoint: Endpoint, credentials: ChannelCredentials, options: ChannelOptions) {
    this.endpoint = endpoint.text;
    this.#credentials = credentials;
    this.#client = new Client(endpoint.address, credentials, options);
  }

  async call(
    path: string,
    request: Uint8Array,
    metadata: CallMetadata,
    dialTimeoutMs: number,
    timeoutMs: number,
  ): Promise<Uint8Array> {
    const endMs = Date.now() + timeoutMs;
    await this.#connected(Date.now() + dialTimeoutMs);
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        path,
        passBuffer,
        passBuffer,
        asBuffer(request),
        headersOf(metadata),
        { deadline: endMs },
        (error: ServiceError | null, answer?: Buffer) => {
          if (error !== null)
            reject(
              new LinkError(
                error.code,
                reasonOf(error.details, request.length),
                !neverLeft(error.details),
              ),
            );
          else resolve(new Uint8Array(answer!.buffer, answer!.byteOffset, answer!.byteLength));
        },
      );
    });
  }

  async stream(path: string, metadata: CallMetadata, dialTimeoutMs: number): Promise<LinkStream> {
    await this.#connected(Date.now() + dialTimeoutMs);
    return new GrpcStream(
      this.#client.makeBidiStreamRequest(path, passBuffer, passBuffer, headersOf(metadata), {}),
    );
  }

  close(): void {
    this.#client.close();
    if (this.#credentials instanceof TlsCredentials) this.#credentials.close();
  }

  /**
   * Waits until the channel has connected or failed to. A call on a failed channel fails at once
   * and says why, so that is left to it.
   */
  async #connected(dialEndMs: number): Promise<void> {
    const channel = this.#client.getChannel();
    for (;;) {
      const state = channel.getConnectivityState(true);
      if (
        state === connectivityState.READY ||
        state === connectivityState.TRANSIENT_FAILURE ||
        state === connectivityState.SHUTDOWN
      )
        return;
      const changed = await new Promise<boolean>((resolve) => {
        channel.watchConnectivityState(state, dialEndMs, (error) => resolve(error === undefined));
      });
      if (!changed) throw new LinkError(status.UNAVAILABLE, "no connection in time", false);
    }
  }
}
