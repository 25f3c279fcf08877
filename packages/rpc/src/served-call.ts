/**
 * The life of a call of a service, however it came: the context that the service sees, and the ways
 * in which the call ends. gRPC (grpc/calls.ts) and JSON (gateway/call.ts) stand on it.
 *
 *     begun -- finish(status) ------------------------------------> ended
 *           -- cancel(status): client gone, time over, refused ---> ended, the service is notified
 */
import { GrpcCode } from "@quorate/proto";
import type { DeadlineQueue, Expiring } from "./deadlines.ts";
import type { Peer } from "./http2/peer.ts";
import { type CallContext, type RpcObserver, type Status, StatusError } from "./service.ts";

const CANCELLED: Status = { code: GrpcCode.Canceled, message: "context canceled" };
const EXPIRED: Status = { code: GrpcCode.DeadlineExceeded, message: "context deadline exceeded" };
export const HELD_TOO_MUCH: Status = {
  code: GrpcCode.ResourceExhausted,
  message: "grpc: requests being received hold too much memory",
};

/** The status for an error that a service threw. */
export function statusOf(error: unknown): Status {
  if (error instanceof StatusError) return error;
  return {
    code: GrpcCode.Unknown,
    message: error instanceof Error ? error.message : String(error),
  };
}

/** What calls of one server share. */
export interface CallShared {
  readonly deadlines: DeadlineQueue;
  readonly observer: RpcObserver | undefined;
}

export abstract class ServedCall<Shared extends CallShared> implements CallContext, Expiring {
  readonly path: string;
  readonly deadlineMs: number | undefined;
  readonly startedMs: number;
  cancelled = false;
  readonly trace: undefined;
  protected readonly shared: Shared;
  /** True once the call's end is decided; results of the service are then ignored. */
  protected isEnded = false;
  /** The observer was notified of the start, and is to be of the end. */
  #isObserved = false;
  #onCancel: (() => void) | undefined = undefined;

  constructor(shared: Shared, path: string, startedMs: number, deadlineMs: number | undefined) {
    this.shared = shared;
    this.path = path;
    this.startedMs = startedMs;
    this.deadlineMs = deadlineMs;
    if (deadlineMs !== undefined) shared.deadlines.add(this);
  }

  abstract metadata(key: string): string | undefined;
  /** The client, as its connection knows it. */
  protected abstract get peer(): Peer;

  get peerAddress(): string {
    return this.peer.peerAddress;
  }

  get peerCommonName(): string | undefined {
    return this.peer.peerCommonName;
  }

  get peerSubject(): string | undefined {
    return this.peer.peerSubject;
  }

  onCancel(listener: () => void): void {
    if (this.cancelled) listener();
    else if (!this.isEnded) this.#onCancel = listener;
  }

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

  /** The service is about to be called. */
  protected observed(): void {
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
    const { deadlines, observer } = this.shared;
    if (this.deadlineMs !== undefined) deadlines.remove(this);
    if (this.#isObserved) observer?.handled(this.path, code, this.startedMs);
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

  protected received(sizeBytes: number): void {
    this.shared.observer?.messageReceived(this.path, sizeBytes);
  }

  protected sent(sizeBytes: number): void {
    this.shared.observer?.messageSent(this.path, sizeBytes);
  }
}
