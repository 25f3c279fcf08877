/**
 * Chooses the endpoint of each call and retries failed calls. The rules are those of etcd's Go
 * client: a read is retried at the next endpoint while the status is UNAVAILABLE; a write is
 * retried only if the request was never sent, since it must not be applied twice.
 *
 * Which endpoint an attempt goes to, endpoints.ts says. After as many attempts without success as
 * there are endpoints the call pauses, longer each time, until its timeout. Where every endpoint's
 * certificate, or the client's own, was refused in a row that is the end at once (etcd's Go client
 * retries that to its deadline).
 */
import { Backoff, type BackoffOptions } from "@quorate/host";
import { defined, errorNameOf, GrpcCode } from "@quorate/proto";
import { unlessAborted } from "./caller.ts";
import type { Endpoints, Outcome } from "./endpoints.ts";
import { abortError, ClientError, deadlineError, type FailedCall } from "./errors.ts";
import { LeaderChoice } from "./leader-choice.ts";
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
  /** Whether calls go to the leader while it is known. */
  readonly prefersLeader: boolean;
}

export class Failover {
  readonly #endpoints: Endpoints;
  readonly #options: FailoverOptions;
  readonly #clock: ClientClock;
  readonly #leader: LeaderChoice | undefined;
  #pending = 0;
  #closed = false;

  constructor(endpoints: Endpoints, options: FailoverOptions, clock: ClientClock) {
    this.#endpoints = endpoints;
    this.#options = options;
    this.#clock = clock;
    if (options.prefersLeader)
      this.#leader = new LeaderChoice(endpoints, clock, options.dialTimeoutMs);
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
      const { path, signal } = plan;
      const endMs = this.#clock.nowMs() + (plan.timeoutMs ?? this.#options.timeoutMs);
      let backoff: Backoff | undefined;
      let before: { readonly error: LinkError; readonly link: Link } | undefined;
      /** Those that refused a certificate, or had one refused, since another failure. */
      let untrusted: Set<Link> | undefined;
      let mayHaveHappened = false;
      if (only === undefined && this.#endpoints.count === 0)
        await this.#found(plan, endMs - this.#clock.nowMs());
      for (let attempt = 1; ; attempt++) {
        const place = only === undefined ? this.#endpoints.take() : undefined;
        const link = defined(only ?? place?.link, "an endpoint");
        const round = only === undefined ? this.#endpoints.count : 1;
        const beginMs = this.#clock.nowMs();
        const leftMs = endMs - beginMs;
        if (plan.trace !== undefined) noteAttempt(plan.trace, link, attempt);
        if (only === undefined) this.#leader?.look(plan.metadata, attempt > 1);
        try {
          const response = await link.call(
            path,
            plan.request,
            plan.metadata,
            Math.min(this.#options.dialTimeoutMs, leftMs),
            leftMs,
            signal,
          );
          if (place !== undefined) this.#endpoints.end(place, "answered");
          return response;
        } catch (error) {
          const outcome = this.#outcomeOf(error, this.#clock.nowMs() - beginMs);
          if (place !== undefined) this.#endpoints.end(place, outcome);
          if (!(error instanceof LinkError)) throw error;
          mayHaveHappened ||= isOpen(error);
          const facts = {
            method: path,
            endpoint: link.endpoint,
            attempts: attempt,
            mayHaveHappened,
          };
          if (signal?.aborted) throw abortError(signal, facts);
          untrusted = error.isUntrusted ? (untrusted ?? new Set()).add(link) : undefined;
          // No endpoint is left that could be another's.
          if (untrusted !== undefined && untrusted.size >= round)
            throw failure(error, facts, false);
          // The link's own clock may be a little ahead.
          const isOver =
            this.#clock.nowMs() >= endMs || error.grpcCode === GrpcCode.DeadlineExceeded;
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
          if (attempt % round !== 0) continue;
          backoff ??= new Backoff(ROUNDS);
          const pauseMs = backoff.nextMs();
          if (this.#clock.nowMs() + pauseMs >= endMs) throw failure(error, facts, true);
          if (only === undefined) this.#endpoints.lookAgain();
          await this.#clock.sleep(pauseMs, signal);
          if (signal?.aborted) throw abortError(signal, facts);
          if (this.#closed) throw failure(error, facts, false);
        }
      }
    } finally {
      this.#pending--;
    }
  }

  /** What an attempt says of its endpoint. A time that is shorter than a dial's says nothing. */
  #outcomeOf(error: unknown, tookMs: number): Outcome {
    if (!(error instanceof LinkError)) return "unknown";
    const { grpcCode } = error;
    if (grpcCode === GrpcCode.Unavailable) return "failed";
    if (grpcCode === GrpcCode.Canceled) return "unknown";
    if (grpcCode !== GrpcCode.DeadlineExceeded) return "answered";
    return tookMs >= this.#options.dialTimeoutMs ? "failed" : "unknown";
  }

  /** Resolves when there are endpoints. Rejects with ClientError. */
  async #found({ path, signal }: CallOf, timeoutMs: number): Promise<void> {
    const over = new AbortController();
    const stop = (): void => over.abort();
    signal?.addEventListener("abort", stop);
    void this.#clock.sleep(timeoutMs, over.signal).then(stop);
    try {
      await this.#endpoints.found(over.signal);
    } catch (error) {
      if (signal?.aborted) throw abortError(signal, { method: path });
      if (!(error instanceof LinkError)) throw deadlineError({ method: path });
      throw failure(error, { method: path }, false);
    } finally {
      signal?.removeEventListener("abort", stop);
      stop();
    }
  }

  /**
   * Opens a stream at `only`, or at the endpoint in use and then at each of the others once.
   * Rejects with ClientError. The caller handles later failures of the stream.
   */
  async stream(
    path: string,
    metadata: CallMetadata,
    only?: Link,
    signal?: AbortSignal,
    trace?: CallTrace,
  ): Promise<OpenedStream> {
    if (only === undefined && this.#endpoints.count === 0)
      await this.#found({ path, signal }, this.#options.timeoutMs);
    for (let attempt = 1; ; attempt++) {
      if (this.#closed)
        throw new ClientError(GrpcCode.Canceled, "the client is closed", { method: path });
      const place = only === undefined ? this.#endpoints.take() : undefined;
      const link = defined(only ?? place?.link, "an endpoint");
      const over = (outcome: Outcome): void => {
        if (place !== undefined) this.#endpoints.end(place, outcome);
        else if (outcome === "failed") this.#endpoints.leave(link);
      };
      if (trace !== undefined) noteAttempt(trace, link, attempt);
      if (only === undefined) this.#leader?.look(metadata, attempt > 1);
      const opening = link.stream(path, metadata, this.#options.dialTimeoutMs);
      try {
        const stream = await (signal === undefined ? opening : unlessAborted(opening, signal));
        place?.report("answered", this.#clock.nowMs());
        const ended = (failed: boolean): void => over(failed ? "failed" : "unknown");
        return { stream, link, ended };
      } catch (error) {
        const facts = { method: path, endpoint: link.endpoint, attempts: attempt };
        if (signal?.aborted) {
          over("unknown");
          opening.then(
            (late) => late.cancel(),
            () => {},
          );
          throw abortError(signal, facts);
        }
        if (!(error instanceof LinkError)) throw error;
        over("failed");
        if (only !== undefined) throw failure(error, facts, false);
        if (attempt < this.#endpoints.count) continue;
        this.#endpoints.lookAgain();
        throw failure(error, facts, false);
      }
    }
  }

  /** Closes all links; pending calls fail. */
  close(): void {
    this.#closed = true;
    this.#endpoints.close();
  }

  /** The link to one of the client's own endpoints, or undefined. */
  linkTo(endpoint: string): Link | undefined {
    return this.#endpoints.linkTo(endpoint);
  }
}

/** What a wait for endpoints is for. */
type CallOf = Pick<CallPlan, "path" | "signal">;

/** A stream that is open. */
export interface OpenedStream {
  readonly stream: LinkStream;
  readonly link: Link;
  /** To be called when it has ended. @param failed the next call goes to another endpoint */
  readonly ended: (failed: boolean) => void;
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
