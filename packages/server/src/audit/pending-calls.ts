/**
 * Calls whose response is waited for. Their objects and functions are used again: a call that takes
 * a while outlives a collection of the young generation, which copies all that it holds.
 */
import { type CallContext, LOCAL_CALL, type UnaryResponse } from "@quorate/rpc";

/** Objects that are kept for calls to come. */
export const MAX_SPARE_CALLS = 4096;

/** A call that has begun. */
export interface CallOfLine {
  readonly request: Uint8Array;
  readonly context: CallContext;
  /** The clock's monotonic time of its beginning. */
  readonly startMs: number;
}

/** What is done when a call ends. */
export interface CallEnds {
  /** @returns the response to send */
  succeeded(call: CallOfLine, response: UnaryResponse): UnaryResponse;
  failed(call: CallOfLine, error: unknown): never;
}

interface PendingCall extends CallOfLine {
  request: Uint8Array;
  context: CallContext;
  startMs: number;
  readonly succeeded: (response: UnaryResponse) => UnaryResponse;
  readonly failed: (error: unknown) => never;
}

export class PendingCalls {
  readonly #ends: CallEnds;
  readonly #spare: PendingCall[] = [];

  constructor(ends: CallEnds) {
    this.#ends = ends;
  }

  /** Objects that wait for a call. */
  get spareCount(): number {
    return this.#spare.length;
  }

  /** Runs one of the ends when the response is there. Rejects with the call's error. */
  follow(
    response: Promise<UnaryResponse>,
    request: Uint8Array,
    context: CallContext,
    startMs: number,
  ): Promise<UnaryResponse> {
    const call = this.#spare.pop() ?? this.#make(request, context);
    call.request = request;
    call.context = context;
    call.startMs = startMs;
    return response.then(call.succeeded, call.failed);
  }

  #make(request: Uint8Array, context: CallContext): PendingCall {
    const call: PendingCall = {
      request,
      context,
      startMs: 0,
      succeeded: (response) => {
        try {
          return this.#ends.succeeded(call, response);
        } finally {
          this.#release(call);
        }
      },
      failed: (error) => {
        try {
          return this.#ends.failed(call, error);
        } finally {
          this.#release(call);
        }
      },
    };
    return call;
  }

  #release(call: PendingCall): void {
    call.request = NO_BYTES;
    call.context = NO_CONTEXT;
    if (this.#spare.length < MAX_SPARE_CALLS) this.#spare.push(call);
  }
}

const NO_BYTES = new Uint8Array(0);
const NO_CONTEXT: CallContext = { ...LOCAL_CALL, path: "" };
