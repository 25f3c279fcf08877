/**
 * Which endpoint is asked, and what is done when it does not answer. The rules are those of etcd's
 * Go client: what only reads is repeated elsewhere while the answer is UNAVAILABLE; what writes is
 * repeated only if the request never left, since a write must not be done twice.
 *
 * A client stays with one endpoint until that fails, then goes on to the next. After a whole round
 * without success it pauses, longer each time, until the call's time is up.
 */
import { GrpcStatus } from "@quorate/proto";
import { ClientError } from "./errors.ts";
import {
  type CallMetadata,
  type ClientClock,
  type Link,
  LinkError,
  type LinkStream,
} from "./link.ts";

/** The first pause after a round through all endpoints; it doubles up to the longest. */
const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 1000;

/** The Go client gives up after this many tries as well. */
const MAX_ATTEMPTS = 100;

/** How a call is to be made. */
export interface CallPlan {
  readonly path: string;
  readonly request: Uint8Array;
  /** True if doing it twice is as good as once. */
  readonly repeatable: boolean;
  readonly metadata: CallMetadata;
}

export interface FailoverOptions {
  /** For a call with all its repetitions. */
  readonly timeoutMs: number;
  /** For connecting to one endpoint before the next is tried. */
  readonly dialTimeoutMs: number;
  /** More calls than this at once are refused. */
  readonly maxPendingCalls: number;
}

export class Failover {
  readonly #links: readonly Link[];
  readonly #options: FailoverOptions;
  readonly #clock: ClientClock;
  #current: number;
  #pending = 0;
  #closed = false;

  /** @param first the index of the link to begin with */
  constructor(links: readonly Link[], options: FailoverOptions, clock: ClientClock, first: number) {
    if (links.length === 0) throw new RangeError("no endpoints");
    this.#links = links;
    this.#options = options;
    this.#clock = clock;
    this.#current = first % links.length;
  }

  /** How long a call may take with all its repetitions. */
  get timeoutMs(): number {
    return this.#options.timeoutMs;
  }

  /** Makes a call; rejects with ClientError. With `only`, that link alone is asked. */
  async call(plan: CallPlan, only?: Link): Promise<Uint8Array> {
    if (this.#closed) throw new ClientError(GrpcStatus.CANCELLED, "the client is closed");
    if (this.#pending >= this.#options.maxPendingCalls) {
      throw new ClientError(
        GrpcStatus.RESOURCE_EXHAUSTED,
        `more than ${this.#options.maxPendingCalls} calls are pending`,
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
    const endMs = this.#clock.nowMs() + this.#options.timeoutMs;
    const round = only === undefined ? this.#links.length : 1;
    let before: { readonly error: LinkError; readonly link: Link } | undefined;
    for (let attempt = 1; ; attempt++) {
      const index = this.#current;
      const link = only ?? this.#links[index];
      const leftMs = endMs - this.#clock.nowMs();
      try {
        return await link.call(
          plan.path,
          plan.request,
          plan.metadata,
          Math.min(this.#options.dialTimeoutMs, leftMs),
          leftMs,
        );
      } catch (error) {
        if (!(error instanceof LinkError)) throw error;
        // The link's own clock may be a little ahead.
        const isOver =
          this.#clock.nowMs() >= endMs || error.grpcCode === GrpcStatus.DEADLINE_EXCEEDED;
        if (
          isOver ||
          !mayRepeat(error, plan.repeatable) ||
          attempt >= MAX_ATTEMPTS ||
          this.#closed
        ) {
          // An attempt that the call's end cut short says less than the one before it.
          const told =
            isOver && leftMs < this.#options.dialTimeoutMs
              ? (before ?? { error, link })
              : { error, link };
          throw this.#failure(told.error, told.link, isOver);
        }
        before = { error, link };
        // Another call may have moved on meanwhile.
        if (only === undefined && this.#current === index) this.#current = (index + 1) % round;
        if (attempt % round === 0) {
          const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (attempt / round - 1), LONGEST_PAUSE_MS);
          if (this.#clock.nowMs() + pauseMs >= endMs) throw this.#failure(error, link, true);
          await this.#clock.sleep(pauseMs);
          if (this.#closed) throw this.#failure(error, link, false);
        }
      }
    }
  }

  #failure(error: LinkError, link: Link, isOver: boolean): ClientError {
    if (!isOver || error.grpcCode === GrpcStatus.OK)
      return new ClientError(error.grpcCode, error.message, link.endpoint);
    // Go's text; what really happened last is the cause.
    return new ClientError(
      GrpcStatus.DEADLINE_EXCEEDED,
      "context deadline exceeded",
      link.endpoint,
      { cause: error },
    );
  }

  /**
   * Opens a stream at `only`, or at the endpoint in use, which is left for the next one if it
   * cannot be reached: once round all of them. Rejects with ClientError. What happens to the stream
   * later is the caller's to deal with; `leave` takes the next call elsewhere.
   */
  async stream(
    path: string,
    metadata: CallMetadata,
    only?: Link,
  ): Promise<{ stream: LinkStream; link: Link }> {
    for (let attempt = 1; ; attempt++) {
      if (this.#closed) throw new ClientError(GrpcStatus.CANCELLED, "the client is closed");
      const link = only ?? this.#links[this.#current];
      try {
        return { stream: await link.stream(path, metadata, this.#options.dialTimeoutMs), link };
      } catch (error) {
        if (!(error instanceof LinkError)) throw error;
        this.leave(link);
        if (only !== undefined || attempt >= this.#links.length)
          throw this.#failure(error, link, false);
      }
    }
  }

  /** Goes on at the next endpoint if `link` is the one in use. */
  leave(link: Link): void {
    if (this.#links[this.#current] === link)
      this.#current = (this.#current + 1) % this.#links.length;
  }

  /** Closes all links; pending calls fail. */
  close(): void {
    this.#closed = true;
    for (const link of this.#links) link.close();
  }

  /** The link to an endpoint of the client's own, or undefined. */
  linkTo(endpoint: string): Link | undefined {
    return this.#links.find((link) => link.endpoint === endpoint);
  }
}

function mayRepeat(error: LinkError, repeatable: boolean): boolean {
  if (error.grpcCode !== GrpcStatus.UNAVAILABLE) return false;
  return repeatable || !error.sent;
}
