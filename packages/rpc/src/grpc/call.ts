/**
 * The common part of a unary call and a stream by gRPC: metadata, the request's memory, and how
 * messages and the end are sent.
 */
import { GrpcCode, toLatin1 } from "@quorate/proto";
import type { Http2Connection } from "../http2/connection.ts";
import type { FieldList } from "../http2/field-encoder.ts";
import { FORWARDED_FOR } from "../http2/peer.ts";
import type { Http2Stream, StreamConsumer } from "../http2/stream.ts";
import { PREFIX_BYTES } from "../messages.ts";
import { HELD_TOO_MUCH, ServedCall } from "../served-call.ts";
import type { Status, UnaryResponse } from "../service.ts";
import { decodeBase64 } from "./base64.ts";
import { framedPieces, trailers, trailersOnly } from "./responses.ts";
import type { GrpcShared } from "./shared.ts";

const PENDING_TOO_MUCH: Status = {
  code: GrpcCode.ResourceExhausted,
  message: "grpc: responses waiting to be sent hold too much memory",
};

export abstract class Call extends ServedCall<GrpcShared> implements StreamConsumer {
  protected readonly connection: Http2Connection;
  protected readonly stream: Http2Stream;
  /** Bytes taken from connection.held. */
  #heldBytes = 0;

  constructor(
    shared: GrpcShared,
    connection: Http2Connection,
    stream: Http2Stream,
    deadlineMs: number | undefined,
  ) {
    super(shared, stream.head.path.value, connection.nowMs, deadlineMs);
    this.connection = connection;
    this.stream = stream;
    stream.consumer = this;
    this.observed();
  }

  metadata(key: string): string | undefined {
    const fields = this.stream.head.fields;
    if (key === FORWARDED_FOR) return fields.findLast(({ name }) => name === key)?.value;
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

  get peerSubject(): string | undefined {
    return this.connection.peer.peerSubject;
  }

  abstract data(bytes: Uint8Array, start: number, end: number): void;
  abstract ended(): void;
  abstract drained(): void;

  override expired(): void {
    if (this.isEnded) return;
    super.expired();
    this.connection.touched();
  }

  /** Behind the messages already sent. */
  protected sendEnd(status: Status): void {
    const { stream, connection } = this;
    if (stream.headersSent) connection.sender.finish(stream, trailers(status));
    else connection.sender.headers(stream, trailersOnly(status), true);
    connection.touched();
  }

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
    message: UnaryResponse,
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

  protected override sent(sizeBytes: number): void {
    this.shared.sentMessageBytes += sizeBytes;
    super.sent(sizeBytes);
  }

  protected override received(sizeBytes: number): void {
    this.shared.receivedMessageBytes += sizeBytes;
    super.received(sizeBytes);
  }
}
