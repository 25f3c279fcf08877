/** The context of a call whose trace is sampled: the call's own, and the span that takes notes. */
import type { CallContext, CallTrace } from "@quorate/rpc";
import type { Span, Tracer } from "./span.ts";

export class TracedContext implements CallContext, CallTrace {
  readonly path: string;
  readonly #context: CallContext;
  readonly #tracer: Tracer;
  readonly #span: Span;

  /** @param span the span that notes what becomes of a proposal */
  constructor(context: CallContext, tracer: Tracer, span: Span) {
    this.path = context.path;
    this.#context = context;
    this.#tracer = tracer;
    this.#span = span;
  }

  get trace(): CallTrace {
    return this;
  }

  /** Notes when a proposal of the call goes to Raft, and when its result comes or does not. */
  proposed(result: Promise<unknown>): void {
    const tracer = this.#tracer;
    const span = this.#span;
    tracer.event(span, "Send raft proposal");
    result.then(
      () => tracer.event(span, "Receive raft result"),
      (error: unknown) =>
        tracer.event(span, "exception", [
          ["exception.type", error instanceof Error ? error.name : typeof error],
          ["exception.message", error instanceof Error ? error.message : String(error)],
        ]),
    );
  }

  metadata(key: string): string | undefined {
    return this.#context.metadata(key);
  }

  get deadlineMs(): number | undefined {
    return this.#context.deadlineMs;
  }

  get peerAddress(): string {
    return this.#context.peerAddress;
  }

  get peerCommonName(): string | undefined {
    return this.#context.peerCommonName;
  }

  get peerSubject(): string | undefined {
    return this.#context.peerSubject;
  }

  get startedMs(): number | undefined {
    return this.#context.startedMs;
  }

  get cancelled(): boolean {
    return this.#context.cancelled;
  }

  onCancel(listener: () => void): void {
    this.#context.onCancel(listener);
  }
}
