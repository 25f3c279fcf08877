/**
 * A stream of messages with one member, such as a snapshot or a watch: what the client gives to its
 * callers.
 */
import type { MessageType, MethodDescriptor } from "@quorate/proto";
import { ClientError } from "./errors.ts";
import { LinkError, type LinkStream } from "./link.ts";

/** A method whose types are known. */
export type StreamMethod<Q, A> = MethodDescriptor & {
  readonly requestType: MessageType<Q>;
  readonly responseType: MessageType<A>;
};

/**
 * One stream. Answers are taken by iterating; those that are not taken hold the server back.
 * Leaving the loop cancels the stream; an error of it is thrown there as a ClientError.
 */
export class ClientStream<Q, A> implements AsyncIterable<A> {
  readonly #method: StreamMethod<Q, A>;
  readonly #stream: LinkStream;
  readonly #endpoint: string;
  readonly #ended: (failed: boolean) => void;
  #isAbandoned = false;

  /** @param ended called when the stream is over, with whether it failed */
  constructor(
    method: StreamMethod<Q, A>,
    stream: LinkStream,
    endpoint: string,
    ended: (failed: boolean) => void,
  ) {
    this.#method = method;
    this.#stream = stream;
    this.#endpoint = endpoint;
    this.#ended = ended;
  }

  send(request: Partial<Q>): void {
    this.#stream.send(this.#method.requestType.encode(request));
  }

  /** Says that no request will follow. */
  finish(): void {
    this.#stream.finish();
  }

  /** Gives the stream up; the loop over its answers ends. */
  cancel(): void {
    this.#stream.cancel();
  }

  /**
   * Gives up the stream and the endpoint that it is at, which answers too little: the next call and
   * stream go to the next one.
   */
  abandon(): void {
    this.#isAbandoned = true;
    this.#stream.cancel();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<A, undefined> {
    let failed = false;
    try {
      for await (const bytes of this.#stream.answers())
        yield this.#method.responseType.decode(bytes);
    } catch (error) {
      failed = true;
      if (error instanceof LinkError)
        throw new ClientError(error.grpcCode, error.message, this.#endpoint);
      throw error;
    } finally {
      this.#stream.cancel();
      this.#ended(failed || this.#isAbandoned);
    }
  }
}
