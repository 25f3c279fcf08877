/** A Link over @grpc/grpc-js: one channel to one endpoint; messages stay bytes. */
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
import { reasonOf, wasNeverSent } from "./grpc-errors.ts";
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

/** A stream of grpc-js as an async iterable. */
class GrpcStream implements LinkStream {
  readonly #call: ClientDuplexStream<Buffer, Buffer>;
  #isCancelled = false;

  constructor(call: ClientDuplexStream<Buffer, Buffer>) {
    this.#call = call;
    // The iterator throws the error; without an iterator it must not end the process.
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

  async *responses(): AsyncGenerator<Uint8Array> {
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

  /** @param credentials owned by this link, which closes them */
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
                !wasNeverSent(error.details),
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
   * Waits until the channel has connected or failed. A call on a failed channel rejects at once
   * with the reason.
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
