/**
 * Chooses the endpoint of each call and retries failed calls. The rules are those of etcd's Go
 * client: a read is retried at the next endpoint while the status is UNAVAILABLE; a write is
 * retried only if the request was never sent, since it must not be applied twice.
 *
 * A client stays with one endpoint until that fails, then moves to the next. After a whole round
 * without success it pauses, longer each time, until the call's timeout. A round in which every
 * endpoint's certificate, or the client's own, was refused is the end at once (etcd's Go client
 * retries that to its deadline).
 */
import { Backoff, type BackoffOptions } from "@quorate/host";
import { errorNameOf, GrpcCode } from "@quorate/proto";
import { unlessAborted } from "./caller.ts";
import { abortError, ClientError, deadlineError, type FailedCall } from "./errors.ts";
import {
  type CallMetadata,
  type ClientClock,
  type Link,
  LinkError,
  type LinkStream,
} from "./link.ts";
import type { CallTrace } from "./tracing.ts";

/** Pauses after each round through all endpoints. */
const ROUNDS: BackoffOptions = { firstMs: 25, mostMs: 1000 };

/** As in etcd's Go client. */
const MAX_ATTEMPTS = 100;

/** A call to make. */
export interface CallPlan {
  readonly path: string;
  readonly request: Uint8Array;
  /** Whether to send it again after a failure of unknown outcome. */
  readonly repeatable: boolean;
  readonly metadata: CallMetadata;
  /** Timeout with all retries, in place of the default. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Gets the endpoint and the number of each attempt. */
  readonly trace?: CallTrace;
}

export interface FailoverOptions {
  /** Timeout of a call with all its retries. */
  readonly timeoutMs: number;
  /** Timeout of connecting to one endpoint, before the next is tried. */
  readonly dialTimeoutMs: number;
  /** Concurrent calls beyond this are refused. */
  readonly maxPendingCalls: number;
}

export class Failover {
  readonly #links: readonly Link[];
  readonly #options: FailoverOptions;
  readonly #clock: ClientClock;
  #current: number;
  #pending = 0;
  #closed = false;

  /** @param first index of the first link to use */
  constructor(links: readonly Link[], options: FailoverOptions, clock: ClientClock, first: number) {
    if (links.length === 0) throw new RangeError("no endpoints");
    this.#links = links;
    this.#options = options;
    this.#clock = clock;
    this.#current = first % links.length;
  }

  /** Timeout of a call with all its retries. */
  get timeoutMs(): number {
    return this.#options.timeoutMs;
  }

  /** Makes a call over `only`, or with failover. Rejects with ClientError. */
  async call(plan: CallPlan, only?: Link): Promise<Uint8Array> {
    if (plan.signal?.aborted) throw abortError(plan.signal, { method: plan.path });
    if (this.#closed)
      throw new ClientError(GrpcCode.Canceled, "the client is closed", { method: plan.path });
    if (this.#pending >= this.#options.maxPendingCalls) {
      throw new ClientError(
        GrpcCode.ResourceExhausted,
        `more than ${this.#options.maxPendingCalls} calls are pending`,
        { method: plan.path },
      );
    }
    this.#pending++;
    try {
      return await this.#attempts(plan, only);
    } finally {
      this.#pending--;
    }
  }

  async #attempts(plan: CallPlan, only: Link | undefined): Promise<Uint8Array> {
    const { path, signal } = plan;
    const endMs = this.#clock.nowMs() + (plan.timeoutMs ?? this.#options.timeoutMs);
    const round = only === undefined ? this.#links.length : 1;
    const backoff = new Backoff(ROUNDS);
    let before: { readonly error: LinkError; readonly link: Link } | undefined;
    /** Attempts in a row that failed for a certificate. */
    let untrusted = 0;
    let mayHaveHappened = false;
    for (let attempt = 1; ; attempt++) {
      const index = this.#current;
      const link = only ?? this.#links[index];
      const leftMs = endMs - this.#clock.nowMs();
      if (plan.trace !== undefined) noteAttempt(plan.trace, link, attempt);
      try {
        return await link.call(
          path,
          plan.request,
          plan.metadata,
          Math.min(this.#options.dialTimeoutMs, leftMs),
          leftMs,
          signal,
        );
      } catch (error) {
        if (!(error instanceof LinkError)) throw error;
        mayHaveHappened ||= isOpen(error);
        const facts = { method: path, endpoint: link.endpoint, attempts: attempt, mayHaveHappened };
        if (signal?.aborted) throw abortError(signal, facts);
        untrusted = error.isUntrusted ? untrusted + 1 : 0;
        // No endpoint is left that could be another's.
        if (untrusted >= round) throw failure(error, facts, false);
        // The link's own clock may be a little ahead.
        const isOver = this.#clock.nowMs() >= endMs || error.grpcCode === GrpcCode.DeadlineExceeded;
        if (
          isOver ||
          !mayRepeat(error, plan.repeatable) ||
          attempt >= MAX_ATTEMPTS ||
          this.#closed
        ) {
          // If the timeout cut the last attempt short, the error of the attempt before says more.
          const reported =
            isOver && leftMs < this.#options.dialTimeoutMs
              ? (before ?? { error, link })
              : { error, link };
          throw failure(reported.error, { ...facts, endpoint: reported.link.endpoint }, isOver);
        }
        before = { error, link };
        // A concurrent call may have moved to the next endpoint already.
        if (only === undefined && this.#current === index) this.#current = (index + 1) % round;
        if (attempt % round === 0) {
          const pauseMs = backoff.nextMs();
          if (this.#clock.nowMs() + pauseMs >= endMs) throw failure(error, facts, true);
          await this.#clock.sleep(pauseMs, signal);
          if (signal?.aborted) throw abortError(signal, facts);
          if (this.#closed) throw failure(error, facts, false);
        }
      }
    }
  }

  /**
   * Opens a stream at `only`, or at the endpoint in use and then at each of the others once.
   * Rejects with ClientError. The caller handles later failures of the stream, and calls `leave` to
   * move the next call to another endpoint.
   */
  async stream(
    path: string,
    metadata: CallMetadata,
    only?: Link,
    signal?: AbortSignal,
    trace?: CallTrace,
  ): Promise<{ stream: LinkStream; link: Link }> {
    for (let attempt = 1; ; attempt++) {
      if (this.#closed)
        throw new ClientError(GrpcCode.Canceled, "the client is closed", { method: path });
      const link = only ?? this.#links[this.#current];
      if (trace !== undefined) noteAttempt(trace, link, attempt);
      const opening = link.stream(path, metadata, this.#options.dialTimeoutMs);
      try {
        const stream = signal === undefined ? opening : unlessAborted(opening, signal);
        return { stream: await stream, link };
      } catch (error) {
        const facts = { method: path, endpoint: link.endpoint, attempts: attempt };
        if (signal?.aborted) {
          opening.then(
            (late) => late.cancel(),
            () => {},
          );
          throw abortError(signal, facts);
        }
        if (!(error instanceof LinkError)) throw error;
        this.leave(link);
        if (only !== undefined || attempt >= this.#links.length) throw failure(error, facts, false);
      }
    }
  }

  /** Moves to the next endpoint if `link` is the one in use. */
  leave(link: Link): void {
    if (this.#links[this.#current] === link)
      this.#current = (this.#current + 1) % this.#links.length;
  }

  /** Closes all links; pending calls fail. */
  close(): void {
    this.#closed = true;
    for (const link of this.#links) link.close();
  }

  /** The link to one of the client's own endpoints, or undefined. */
  linkTo(endpoint: string): Link | undefined {
    return this.#links.find((link) => link.endpoint === endpoint);
  }
}

function noteAttempt(trace: CallTrace, { endpoint }: Link, attempt: number): void {
  trace.endpoint = endpoint;
  trace.attempts = attempt;
}

function failure(error: LinkError, facts: FailedCall, isOver: boolean): ClientError {
  // The last attempt's error is the cause.
  if (isOver && error.grpcCode !== GrpcCode.OK) return deadlineError({ ...facts, cause: error });
  const cause = error.isUntrusted ? error : undefined;
  return new ClientError(error.grpcCode, error.message, { ...facts, cause });
}

/** Statuses with which a server refuses a call before it does anything. */
const REFUSALS: ReadonlySet<number> = new Set([
  GrpcCode.InvalidArgument,
  GrpcCode.NotFound,
  GrpcCode.AlreadyExists,
  GrpcCode.PermissionDenied,
  GrpcCode.FailedPrecondition,
  GrpcCode.OutOfRange,
  GrpcCode.Unimplemented,
  GrpcCode.Unauthenticated,
]);

/** Whether the server may have executed what failed so. */
function isOpen({ sent, grpcCode, message }: LinkError): boolean {
  if (!sent || REFUSALS.has(grpcCode)) return false;
  // A response that was too large has another text than etcd's refusals.
  return grpcCode !== GrpcCode.ResourceExhausted || errorNameOf(message) === undefined;
}

function mayRepeat(error: LinkError, repeatable: boolean): boolean {
  if (error.grpcCode !== GrpcCode.Unavailable) return false;
  return repeatable || !error.sent;
}
