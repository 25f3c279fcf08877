/**
 * Keeps one lease alive: renews it after a third of its time, at another member when one does not
 * answer, and knows when it is too late. Whoever holds something by a lease has to let it go when
 * the keeper ends.
 */
import {
  type LeaseKeepAliveRequest,
  type LeaseKeepAliveResponse,
  LeaseService,
} from "@quorate/proto";
import { type Caller, pause } from "./caller.ts";
import { ClientError } from "./errors.ts";
import { Backoff, isStaleToken, mayResume } from "./resume.ts";
import type { ClientStream } from "./stream.ts";

/**
 * Why a lease is kept no more: somebody called stop(); the server knows it no longer; nobody
 * answered while it must have lived.
 */
export type LeaseEnd =
  | { readonly kind: "stopped" }
  | { readonly kind: "expired" }
  | { readonly kind: "unreachable"; readonly cause: ClientError | undefined };

/** The least time that a member has for an answer before another is asked. */
const ANSWER_MS = 1000;

export class LeaseKeeper {
  /** Resolves when the lease is kept no more. */
  readonly ended: Promise<LeaseEnd>;
  readonly #caller: Caller;
  readonly #id: bigint;
  readonly #onRenewed: (response: LeaseKeepAliveResponse) => void;
  readonly #stop = new AbortController();
  /** Aborted when the lease must have expired. */
  readonly #late = new AbortController();
  readonly #over: AbortSignal;
  #forgetDeadline: () => void = () => {};

  /** Made by Leases.keepAlive(). */
  constructor(caller: Caller, id: bigint, onRenewed: (response: LeaseKeepAliveResponse) => void) {
    this.#caller = caller;
    this.#id = id;
    this.#onRenewed = onRenewed;
    this.#over = AbortSignal.any([this.#stop.signal, this.#late.signal]);
    // Until the first answer tells the lease's time, a call's time must do.
    this.#setDeadline(caller.timeoutMs);
    this.ended = this.#run().finally(() => this.#forgetDeadline());
  }

  /** Ends the renewals; the lease lives on until its time is over. */
  stop(): void {
    this.#stop.abort();
  }

  async #run(): Promise<LeaseEnd> {
    const backoff = new Backoff();
    let cause: ClientError | undefined;
    while (!this.#over.aborted) {
      try {
        const renewToken = cause !== undefined && isStaleToken(cause.message);
        const stream = await this.#caller.stream(LeaseService.methods.LeaseKeepAlive, undefined, {
          requireLeader: true,
          renewToken,
        });
        if (await this.#renew(stream, backoff)) return { kind: "expired" };
      } catch (error) {
        if (!(error instanceof ClientError)) throw error;
        cause = error;
        if (!mayResume(error)) return { kind: "unreachable", cause };
      }
      await pause(this.#caller.timer, backoff.next(), this.#over);
    }
    return this.#stop.signal.aborted ? { kind: "stopped" } : { kind: "unreachable", cause };
  }

  /** Renews over one stream until that ends. Gives true if the lease is gone. */
  async #renew(
    stream: ClientStream<LeaseKeepAliveRequest, LeaseKeepAliveResponse>,
    backoff: Backoff,
  ): Promise<boolean> {
    const { timer } = this.#caller;
    const cancel = (): void => stream.cancel();
    this.#over.addEventListener("abort", cancel);
    let answerMs = ANSWER_MS;
    let forgetAnswer = (): void => {};
    const ask = (): void => {
      stream.send({ ID: this.#id });
      forgetAnswer = timer.after(answerMs, () => stream.abandon());
    };
    try {
      if (this.#over.aborted) return false;
      ask();
      for await (const response of stream) {
        forgetAnswer();
        if (response.TTL <= 0) return true;
        backoff.reset();
        this.#setDeadline(response.TTL * 1000);
        this.#onRenewed(response);
        answerMs = Math.max(ANSWER_MS, (response.TTL * 1000) / 3);
        await pause(timer, (response.TTL * 1000) / 3, this.#over);
        if (this.#over.aborted) return false;
        ask();
      }
      return false;
    } finally {
      forgetAnswer();
      this.#over.removeEventListener("abort", cancel);
      stream.cancel();
    }
  }

  #setDeadline(delayMs: number): void {
    this.#forgetDeadline();
    this.#forgetDeadline = this.#caller.timer.after(delayMs, () => this.#late.abort());
  }
}
