/**
 * The common part of a unary call and a stream: the context for the service, and the ways in which
 * a call ends.
 */
import { toLatin1 } from "@quorate/proto";
import { GrpcCode } from "../codes.ts";
import type { Expiring } from "../deadlines.ts";
import type { Http2Connection } from "../http2/connection.ts";
import type { FieldList } from "../http2/field-encoder.ts";
import type { Http2Stream, StreamConsumer } from "../http2/stream.ts";
import { PREFIX_BYTES } from "../messages.ts";
import { type CallContext, type MessageBytes, type Status, StatusError } from "../service.ts";
import { decodeBase64 } from "./base64.ts";
import { framedPieces, trailers, trailersOnly } from "./responses.ts";
import type { GrpcShared } from "./shared.ts";

/** The status for an error that a service threw. */
export function statusOf(error: unknown): Status {
  if (error instanceof StatusError) return error;
  return {
    code: GrpcCode.Unknown,
    message: error instanceof Error ? error.message : String(error),
  };
}

const CANCELLED: Status = { code: GrpcCode.Canceled, message: "context canceled" };
const EXPIRED: Status = { code: GrpcCode.DeadlineExceeded, message: "context deadline exceeded" };
const HELD_TOO_MUCH: Status = {
  code: GrpcCode.ResourceExhausted,
  message: "grpc: requests being received hold too much memory",
};
const PENDING_TOO_MUCH: Status = {
  code: GrpcCode.ResourceExhausted,
  message: "grpc: responses waiting to be sent hold too much memory",
};

export abstract class Call implements CallContext, Expiring, StreamConsumer {
  readonly path: string;
  readonly deadlineMs: number | undefined;
  readonly startedMs: number;
  cancelled = false;
  readonly trace: undefined;
  protected readonly shared: GrpcShared;
  protected readonly connection: Http2Connection;
  protected readonly stream: Http2Stream;
  /** True once the call's end is decided; results of the service are then ignored. */
  protected isEnded = false;
  #onCancel: (() => void) | undefined = undefined;
  /** Bytes taken from connection.held. */
  #heldBytes = 0;

  constructor(
    shared: GrpcShared,
    connection: Http2Connection,
    stream: Http2Stream,
    deadlineMs: number | undefined,
  ) {
    this.shared = shared;
    this.connection = connection;
    this.stream = stream;
    this.path = stream.head.path.value;
    this.deadlineMs = deadlineMs;
    this.startedMs = connection.nowMs;
    stream.consumer = this;
    if (deadlineMs !== undefined) shared.deadlines.add(this);
    shared.observer?.started(this.path);
  }

  metadata(key: string): string | undefined {
    const fields = this.stream.head.fields;
    for (let i = 0; i < fields.length; i++) {
      if (fields[i].name !== key) continue;
      const value = fields[i].value;
      if (!key.endsWith("-bin")) return value;
      // Several binary values may be in one field, separated by commas.
      const comma = value.indexOf(",");
      return toLatin1(decodeBase64(comma === -1 ? value : value.slice(0, comma)));
    }
    return undefined;
  }

  get peerAddress(): string {
    return this.connection.peer.peerAddress;
  }

  get peerCommonName(): string | undefined {
    return this.connection.peer.peerCommonName;
  }

  onCancel(listener: () => void): void {
    if (this.cancelled) listener();
    else if (!this.isEnded) this.#onCancel = listener;
  }

  abstract data(bytes: Uint8Array, start: number, end: number): void;
  abstract ended(): void;
  abstract drained(): void;

  aborted(): void {
    if (!this.isEnded) this.cancel(CANCELLED);
  }

  expired(): void {
    if (this.isEnded) return;
    this.cancel(EXPIRED);
    this.connection.touched();
  }

  /** Ends the call with a status, after the messages already sent. Only the first end counts. */
  protected finish(status: Status): void {
    if (!this.settle(status.code)) return;
    const { stream, connection } = this;
    if (stream.headersSent) connection.sender.finish(stream, trailers(status));
    else connection.sender.headers(stream, trailersOnly(status), true);
    connection.touched();
  }

  /** Marks the call as ended with `code`; false if it had ended before. */
  protected settle(code: number): boolean {
    if (this.isEnded) return false;
    this.isEnded = true;
    this.#onCancel = undefined;
    if (this.deadlineMs !== undefined) this.shared.deadlines.remove(this);
    const observer = this.shared.observer;
    if (observer !== undefined) observer.handled(this.path, code, this.startedMs);
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

  /** Called when the call ended without the service's involvement. */
  protected abstract abandoned(): void;

  /** Counts request bytes as held; false if over the limit, and then the call has ended. */
  protected hold(sizeBytes: number): boolean {
    if (this.connection.held.take(sizeBytes)) {
      this.#heldBytes += sizeBytes;
      return true;
    }
    this.connection.counters.heldBytesRefusals++;
    this.cancel(HELD_TOO_MUCH);
    return false;
  }

  protected get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Releases bytes, by default all that are held. */
  protected release(sizeBytes = this.#heldBytes): void {
    this.#heldBytes -= sizeBytes;
    this.connection.held.give(sizeBytes);
  }

  /**
   * Sends a message in pieces, now or later. False if too much is waiting already; the call has
   * then ended, for the service as cancelled.
   */
  protected sendPieces(
    message: MessageBytes,
    sizeBytes: number,
    compressed: boolean,
    ending?: FieldList,
  ): boolean {
    const pieces = framedPieces(message, sizeBytes, compressed);
    if (this.connection.sender.data(this.stream, pieces, PREFIX_BYTES + sizeBytes, ending))
      return true;
    this.connection.counters.pendingBytesRefusals++;
    this.cancel(PENDING_TOO_MUCH);
    return false;
  }

  protected sent(sizeBytes: number): void {
    this.shared.sentMessageBytes += sizeBytes;
    this.shared.observer?.messageSent(this.path, sizeBytes);
  }

  protected received(sizeBytes: number): void {
    this.shared.receivedMessageBytes += sizeBytes;
    this.shared.observer?.messageReceived(this.path, sizeBytes);
  }
}
