/**
 * A stream of messages with one member, such as a snapshot or a watch, as the client returns it.
 */
import type { MessageType, MethodDescriptor } from "@quorate/proto";
import { abortError, ClientError } from "./errors.ts";
import { LinkError, type LinkStream } from "./link.ts";

/** A method with its request and response types. */
export type StreamMethod<Q, A> = MethodDescriptor & {
  readonly requestType: MessageType<Q>;
  readonly responseType: MessageType<A>;
};

/**
 * One stream. Iterate over it to receive responses; responses not consumed hold the server back by
 * flow control. Leaving the loop cancels the stream; a failure is thrown there as ClientError.
 */
export class ClientStream<Q, A> implements AsyncIterable<A> {
  readonly #method: StreamMethod<Q, A>;
  readonly #stream: LinkStream;
  readonly #endpoint: string;
  readonly #ended: (failed: boolean) => void;
  readonly #signal: AbortSignal | undefined;
  readonly #stop = (): void => this.#stream.cancel();
  #isAbandoned = false;

  /**
   * @param ended called once when the stream has ended, with whether it failed
   * @param signal ends it; the loop over its responses then throws
   */
  constructor(
    method: StreamMethod<Q, A>,
    stream: LinkStream,
    endpoint: string,
    ended: (failed: boolean) => void,
    signal?: AbortSignal,
  ) {
    this.#method = method;
    this.#stream = stream;
    this.#endpoint = endpoint;
    this.#ended = ended;
    this.#signal = signal;
    signal?.addEventListener("abort", this.#stop);
    if (signal?.aborted) stream.cancel();
  }

  send(request: Partial<Q>): void {
    this.#stream.send(this.#method.requestType.encode(request));
  }

  /** Half-closes the stream: no request follows. */
  finish(): void {
    this.#stream.finish();
  }

  /** Cancels the stream; the loop over its responses ends. */
  cancel(): void {
    this.#stream.cancel();
  }

  /**
   * Cancels the stream and leaves its endpoint, which does not respond as it should: the next call
   * and stream go to the next endpoint.
   */
  abandon(): void {
    this.#isAbandoned = true;
    this.#stream.cancel();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<A, undefined> {
    const facts = { method: this.#method.path, endpoint: this.#endpoint, attempts: 1 };
    let failed = false;
    try {
      for await (const bytes of this.#stream.responses())
        yield this.#method.responseType.decode(bytes);
      // A cancelled stream ends without an error.
      if (this.#signal?.aborted) throw abortError(this.#signal, facts);
    } catch (error) {
      failed = !(error instanceof ClientError);
      if (!(error instanceof LinkError)) throw error;
      throw new ClientError(error.grpcCode, error.message, facts);
    } finally {
      this.#signal?.removeEventListener("abort", this.#stop);
      this.#stream.cancel();
      this.#ended(failed || this.#isAbandoned);
    }
  }
}
