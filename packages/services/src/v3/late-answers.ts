/** The responses of writes and reads that wait for the log: one object for each call. */
import { type Caller, callerOf, type Proposer, type Reader } from "@quorate/member";
import { type CallContext, Later, type UnaryResponse } from "@quorate/rpc";
import type { AppliedEntry } from "@quorate/store";
import { toStatusError } from "../calls/results.ts";

/** A response that is made when the call's turn has come. Errors become statuses. */
abstract class LateAnswer extends Later<UnaryResponse> {
  readonly #context: CallContext;

  constructor(context: CallContext) {
    super();
    this.#context = context;
  }

  get caller(): Caller {
    return callerOf(this.#context);
  }

  get isGone(): boolean {
    return this.#context.cancelled;
  }

  refused(error: unknown): void {
    this.rejected(toStatusError(error));
  }

  /** Gives a response that is there, or comes. */
  protected give(response: UnaryResponse | Promise<UnaryResponse>): void {
    if (!(response instanceof Promise)) this.resolved(response);
    else
      response.then(
        (later) => this.resolved(later),
        (error: unknown) => this.refused(error),
      );
  }
}

/** How the response of a kind of writes is made. */
export type WriteEncoder = (
  applied: AppliedEntry,
  answer: LateWrite,
) => UnaryResponse | Promise<UnaryResponse>;

/** The response of a write, made when its request is applied. */
export class LateWrite extends LateAnswer implements Proposer {
  readonly #encode: WriteEncoder;

  constructor(context: CallContext, encode: WriteEncoder) {
    super(context);
    this.#encode = encode;
  }

  applied(result: AppliedEntry): void {
    try {
      this.give(this.#encode(result, this));
    } catch (error) {
      this.refused(error);
    }
  }
}

/** How the response of a kind of reads is made, when the store may be read for it. */
export type ReadEncoder = (answer: LateRead) => UnaryResponse | Promise<UnaryResponse>;

/** The response of a linearizable read, made when its round is over. */
export class LateRead extends LateAnswer implements Reader {
  readonly request: Uint8Array;
  readonly #encode: ReadEncoder;

  constructor(request: Uint8Array, context: CallContext, encode: ReadEncoder) {
    super(context);
    this.request = request;
    this.#encode = encode;
  }

  granted(): void {
    try {
      this.give(this.#encode(this));
    } catch (error) {
      this.refused(error);
    }
  }
}
