/**
 * Keeps one lease alive: renews it after a third of its time to live, at another member when one
 * does not respond, and detects when the lease must have expired. The owner of the lease must give
 * up what it holds by it when `ended` resolves.
 */
import { Backoff } from "@quorate/host";
import {
  CodedError,
  type LeaseKeepAliveRequest,
  type LeaseKeepAliveResponse,
  LeaseService,
} from "@quorate/proto";
import type { WaitOptions } from "./call-options.ts";
import { type Caller, pause } from "./caller.ts";
import { ClientError, deadlineError } from "./errors.ts";
import { isStaleToken, mayResume, REOPEN } from "./resume.ts";
import type { ClientStream } from "./stream.ts";

/**
 * Why renewals ended: stop() was called; the lease expired at the server; no member responded
 * before the lease must have expired.
 */
export type LeaseEnd =
  | { readonly kind: "stopped" }
  | { readonly kind: "expired" }
  | { readonly kind: "unreachable"; readonly cause: ClientError | undefined };

/** The reason of signals that a lease's end aborts. */
export class LeaseEndedError extends CodedError<"LeaseEnded"> {
  readonly end: LeaseEnd;

  constructor(end: LeaseEnd) {
    super("LeaseEndedError", "LeaseEnded", `the lease is not kept alive any more: ${end.kind}`);
    this.end = end;
  }
}

/** What keepAlive() takes. `timeoutMs` is the time for the first response, by default a call's. */
export interface KeepAliveOptions extends WaitOptions {
  /** Called when no renewal came over a stream any more, before another one is opened. */
  readonly onBreak?: (error: ClientError) => void;
}

/** The shortest time a member has to respond before another one is tried. */
const MIN_RESPONSE_MS = 1000;

/** A lease that is renewed until `stop`. */
export class LeaseKeepAlive implements AsyncDisposable {
  /** Resolves when renewals have ended. */
  readonly ended: Promise<LeaseEnd>;
  /**
   * For work that depends on the lease: aborted when renewals have ended, with LeaseEndedError.
   */
  readonly signal: AbortSignal;
  readonly #caller: Caller;
  readonly #id: bigint;
  readonly #onRenewed: (response: LeaseKeepAliveResponse) => void;
  readonly #onBreak: (error: ClientError) => void;
  readonly #stop = new AbortController();
  /** Aborted when the lease must have expired. */
  readonly #late = new AbortController();
  readonly #over: AbortSignal;
  #cancelDeadline: () => void = () => {};

  /** Made by Leases.keepAlive(). */
  constructor(
    caller: Caller,
    id: bigint,
    onRenewed: (response: LeaseKeepAliveResponse) => void,
    { signal, timeoutMs, onBreak = () => {} }: KeepAliveOptions = {},
  ) {
    this.#caller = caller;
    this.#id = id;
    this.#onRenewed = onRenewed;
    this.#onBreak = onBreak;
    this.#over = AbortSignal.any([this.#stop.signal, this.#late.signal]);
    // The time to live is unknown until the first response, so a call's timeout applies.
    this.#setDeadline(timeoutMs ?? caller.timeoutMs);
    const stop = (): void => this.stop();
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop);
    const lost = new AbortController();
    this.signal = lost.signal;
    this.ended = this.#run()
      .then((end) => {
        lost.abort(new LeaseEndedError(end));
        return end;
      })
      .finally(() => {
        this.#cancelDeadline();
        signal?.removeEventListener("abort", stop);
      });
  }

  /** Ends the renewals; the lease expires at the end of its time to live. */
  stop(): void {
    this.#stop.abort();
  }

  /** Ends the renewals, as stop(). */
  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    await this.ended;
  }

  async #run(): Promise<LeaseEnd> {
    const backoff = new Backoff(REOPEN);
    let cause: ClientError | undefined;
    while (!this.#over.aborted) {
      try {
        const renewToken = cause !== undefined && isStaleToken(cause.message);
        const stream = await this.#caller.stream(LeaseService.methods.LeaseKeepAlive, undefined, {
          requireLeader: true,
          renewToken,
        });
        if (await this.#renew(stream, backoff)) return { kind: "expired" };
        if (this.#over.aborted) break;
        this.#onBreak(deadlineError({ method: LeaseService.methods.LeaseKeepAlive.path }));
      } catch (error) {
        if (!(error instanceof ClientError)) throw error;
        cause = error;
        if (!mayResume(error)) return { kind: "unreachable", cause };
        this.#onBreak(error);
      }
      await pause(this.#caller.timer, backoff.nextMs(), this.#over);
    }
    return this.#stop.signal.aborted ? { kind: "stopped" } : { kind: "unreachable", cause };
  }

  /** Renews over one stream until it ends. Returns true if the lease has expired. */
  async #renew(
    stream: ClientStream<LeaseKeepAliveRequest, LeaseKeepAliveResponse>,
    backoff: Backoff,
  ): Promise<boolean> {
    const { timer } = this.#caller;
    const cancel = (): void => stream.cancel();
    this.#over.addEventListener("abort", cancel);
    let timeoutMs = MIN_RESPONSE_MS;
    let cancelTimeout = (): void => {};
    const renew = (): void => {
      stream.send({ ID: this.#id });
      cancelTimeout = timer.after(timeoutMs, () => stream.abandon());
    };
    try {
      if (this.#over.aborted) return false;
      renew();
      for await (const response of stream) {
        cancelTimeout();
        if (response.TTL <= 0) return true;
        backoff.reset();
        this.#setDeadline(response.TTL * 1000);
        this.#onRenewed(response);
        timeoutMs = Math.max(MIN_RESPONSE_MS, (response.TTL * 1000) / 3);
        await pause(timer, (response.TTL * 1000) / 3, this.#over);
        if (this.#over.aborted) return false;
        renew();
      }
      return false;
    } finally {
      cancelTimeout();
      this.#over.removeEventListener("abort", cancel);
      stream.cancel();
    }
  }

  #setDeadline(delayMs: number): void {
    this.#cancelDeadline();
    this.#cancelDeadline = this.#caller.timer.after(delayMs, () => this.#late.abort());
  }
}
