/**
 * The common part of unary calls and streams by HTTP: the context for the service, the body's
 * memory, and the ways in which a call ends.
 */
import type { HttpExchange, HttpExchangeListener } from "@quorate/host";
import { type HttpRoute, JsonError, JsonLimitError } from "@quorate/proto";
import { GrpcCode } from "../codes.ts";
import type { Expiring } from "../deadlines.ts";
import { type CallContext, type Status, StatusError } from "../service.ts";
import { metadataOf } from "./metadata.ts";
import type { GatewayShared } from "./settings.ts";

export const OK: Status = { code: GrpcCode.OK, message: "" };
const CANCELLED: Status = { code: GrpcCode.Canceled, message: "context canceled" };
const EXPIRED: Status = { code: GrpcCode.DeadlineExceeded, message: "context deadline exceeded" };
const HELD_TOO_MUCH: Status = {
  code: GrpcCode.ResourceExhausted,
  message: "grpc: requests being received hold too much memory",
};
const TOO_MANY_CALLS: Status = {
  code: GrpcCode.ResourceExhausted,
  message: "grpc: too many calls wait for others to end",
};

/** The status for an error that a service threw. */
export function statusOf(error: unknown): Status {
  if (error instanceof StatusError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return { code: GrpcCode.Unknown, message };
}

export abstract class GatewayCall implements CallContext, Expiring, HttpExchangeListener {
  readonly path: string;
  readonly deadlineMs: number | undefined;
  readonly startedMs: number;
  readonly trace: undefined;
  cancelled = false;
  protected readonly shared: GatewayShared;
  protected readonly exchange: HttpExchange;
  protected readonly route: HttpRoute;
  /** True once the call's end is decided; results of the service are then ignored. */
  protected isEnded = false;
  /** The observer knows the call: it does from the moment its service is called. */
  #isObserved = false;
  #slot: "none" | "waiting" | "taken" = "none";
  #run: (() => void) | undefined;
  #onCancel: (() => void) | undefined;
  #heldBytes = 0;

  /** @param timeoutMs the time that the client allows, from now; undefined for any */
  constructor(
    shared: GatewayShared,
    exchange: HttpExchange,
    route: HttpRoute,
    timeoutMs: number | undefined,
  ) {
    this.shared = shared;
    this.exchange = exchange;
    this.route = route;
    this.path = route.rpc.path;
    this.startedMs = shared.clock.monotonicMs();
    this.deadlineMs = timeoutMs === undefined ? undefined : this.startedMs + timeoutMs;
    if (timeoutMs !== undefined) shared.deadlines.add(this);
  }

  metadata(key: string): string | undefined {
    return metadataOf(this.exchange.head.headers, key);
  }

  get peerAddress(): string {
    return this.exchange.head.peerAddress;
  }

  get peerCommonName(): string | undefined {
    return this.exchange.head.peerCommonName;
  }

  onCancel(listener: () => void): void {
    if (this.cancelled) listener();
    else if (!this.isEnded) this.#onCancel = listener;
  }

  abstract data(bytes: Uint8Array): void;
  abstract ended(): void;
  abstract drained(): void;

  aborted(): void {
    if (!this.isEnded) this.cancel(CANCELLED);
  }

  expired(): void {
    if (!this.isEnded) this.cancel(EXPIRED);
  }

  /** Sends the end of the call; the call is settled already. */
  protected abstract sendEnd(status: Status): void;
  /** Called when the call ended without the service's involvement. */
  protected abstract abandoned(): void;

  /**
   * Calls `run` with the call's slot taken and the observer notified, unless its time is over: a
   * body that is wrong has been refused before, as by etcd.
   */
  protected begin(run: () => void): void {
    if (this.deadlineMs !== undefined && this.deadlineMs <= this.shared.clock.monotonicMs()) {
      this.cancel(EXPIRED);
      return;
    }
    if (this.shared.slots.takeFree()) {
      this.#begun();
      run();
      return;
    }
    this.#run = () => {
      this.#begun();
      run();
    };
    this.#slot = "waiting";
    if (!this.shared.slots.wait(this.#run)) this.cancel(TOO_MANY_CALLS);
  }

  #begun(): void {
    this.#slot = "taken";
    this.#isObserved = true;
    this.shared.observer?.started(this.path);
  }

  /** Ends the call with a status. Only the first end counts. */
  protected finish(status: Status): void {
    if (this.settle(status.code)) this.sendEnd(status);
  }

  /** Marks the call as ended with `code`; false if it had ended before. */
  protected settle(code: number): boolean {
    if (this.isEnded) return false;
    this.isEnded = true;
    this.#onCancel = undefined;
    const { deadlines, observer, slots } = this.shared;
    if (this.deadlineMs !== undefined) deadlines.remove(this);
    if (this.#isObserved) observer?.handled(this.path, code, this.startedMs);
    const slot = this.#slot;
    this.#slot = "none";
    if (slot === "taken") slots.release();
    else if (slot === "waiting" && this.#run !== undefined) slots.leave(this.#run);
    return true;
  }

  /** Ends the call without the service's involvement. */
  protected cancel(status: Status): void {
    this.cancelled = true;
    const listener = this.#onCancel;
    this.finish(status);
    listener?.();
    this.abandoned();
  }

  /** Ends the call for a body that is not what it should be. */
  protected refuseBody(error: unknown): void {
    const { counters } = this.shared;
    if (error instanceof JsonLimitError) {
      counters.tooLarge++;
      this.cancel({ code: GrpcCode.ResourceExhausted, message: error.message });
    } else if (error instanceof JsonError) {
      counters.malformed++;
      this.cancel({ code: GrpcCode.InvalidArgument, message: error.message });
    } else this.cancel(statusOf(error));
  }

  /** Ends the call for a message of the body that is too long. False if it is not. */
  protected refuseSize(sizeBytes: number, maxBytes: number): boolean {
    if (sizeBytes <= maxBytes) return false;
    this.shared.counters.tooLarge++;
    this.cancel({
      code: GrpcCode.ResourceExhausted,
      message: `grpc: received message larger than max (${sizeBytes} vs. ${maxBytes})`,
    });
    return true;
  }

  /** Counts bytes of the body as held; false if over the budget, and then the call has ended. */
  protected hold(sizeBytes: number): boolean {
    if (this.exchange.hold(sizeBytes)) {
      this.#heldBytes += sizeBytes;
      return true;
    }
    this.shared.counters.heldBytesRefusals++;
    this.cancel(HELD_TOO_MUCH);
    return false;
  }

  /** Releases all held bytes but the last `keepBytes`. */
  protected releaseTo(keepBytes: number): void {
    const sizeBytes = this.#heldBytes - keepBytes;
    if (sizeBytes <= 0) return;
    this.#heldBytes = keepBytes;
    this.exchange.release(sizeBytes);
  }

  protected get heldBytes(): number {
    return this.#heldBytes;
  }

  protected received(sizeBytes: number): void {
    this.shared.observer?.messageReceived(this.path, sizeBytes);
  }

  protected sent(sizeBytes: number): void {
    this.shared.observer?.messageSent(this.path, sizeBytes);
  }
}
