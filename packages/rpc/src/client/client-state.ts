/**
 * What the parts of a client's connection share: its calls, its sender, and every way in which a
 * call or the whole connection ends. Methods that return a boolean return false once the connection
 * is ending, so that a handler of frames can return their result.
 */
import { BriefMap } from "@quorate/host";
import { GrpcCode } from "@quorate/proto";
import type { HeaderField } from "../hpack/header-field.ts";
import { type ByteBudget, SharedBudget } from "../http2/byte-budget.ts";
import { ErrorCode } from "../http2/constants.ts";
import { Output, writeGoAway, writeRstStream } from "../http2/output.ts";
import { Sender } from "../http2/sender.ts";
import type { Http2Stream } from "../http2/stream.ts";
import type { Status } from "../service.ts";
import type { ClientLimits } from "./client-limits.ts";

/** The owner of the socket, as its connection sees it. */
export interface ClientConnectionOwner {
  /** There is output where there was none, or the connection began to end. */
  wake(): void;
  /** The server's first SETTINGS have arrived: calls may begin. Called once. */
  settled(): void;
}

/** A call that has not ended, as its connection sees it. */
export interface OpenCall {
  readonly stream: Http2Stream;
  readonly isEnded: boolean;
  /** A header block. */
  headers(fields: readonly HeaderField[], end: boolean): void;
  /** Body bytes. */
  data(bytes: Uint8Array): void;
  /** The body ended without trailers. */
  endedPlainly(): void;
  /** The stream was reset, or the connection is gone. */
  aborted(status: Status, wasSent: boolean): void;
}

export class ClientState {
  readonly limits: ClientLimits;
  readonly owner: ClientConnectionOwner;
  readonly out = new Output();
  readonly sender: Sender;
  readonly calls = new BriefMap<number, OpenCall>();
  /** Bytes of responses that are being received. */
  readonly held: ByteBudget;
  nextId = 1;
  /** The server's bound on open streams. */
  maxStreams = Number.POSITIVE_INFINITY;
  isSettled = false;
  /** The server takes no more calls (GOAWAY). */
  isDraining = false;
  /** Nothing more is read: the owner sends the remaining output and closes the socket. */
  ending = false;
  #isAwake = false;
  #isOver = false;

  constructor(limits: ClientLimits, owner: ClientConnectionOwner) {
    this.limits = limits;
    this.owner = owner;
    const cut = () => {};
    this.held = new SharedBudget(limits.maxHeldBytes).join(limits.maxHeldBytes, "", cut);
    const pending = new SharedBudget(limits.maxPendingBytes).join(limits.maxPendingBytes, "", cut);
    this.sender = new Sender(this.out, limits.outputTargetBytes, pending, {
      localEnded: () => {},
      progressed: () => {},
    });
  }

  /** Notifies the owner of new output, once. */
  touched(): void {
    if (this.#isAwake || (this.out.sizeBytes === 0 && !this.ending)) return;
    this.#isAwake = true;
    this.owner.wake();
  }

  takeOutput(): Uint8Array[] {
    this.#isAwake = false;
    return this.out.take();
  }

  /** Sends pieces of a message. False if too much waits already. */
  write(stream: Http2Stream, pieces: Uint8Array[], sizeBytes: number, isLast: boolean): boolean {
    const isTaken = this.sender.data(stream, pieces, sizeBytes, isLast ? "plain" : undefined);
    this.touched();
    return isTaken;
  }

  /** Ends the client's side of a stream. */
  finish(stream: Http2Stream): void {
    if (!stream.localEnded) this.sender.finish(stream, "plain");
    this.touched();
  }

  /** Resets the stream of a call that is given up. */
  cancel(call: OpenCall): void {
    if (!this.calls.delete(call.stream.id)) return;
    this.close(call.stream);
    if (!this.ending) writeRstStream(this.out, call.stream.id, ErrorCode.Cancel);
    this.touched();
  }

  /** The call has ended. A server that ended before the client needs no more of it. */
  over(call: OpenCall): void {
    if (!this.calls.delete(call.stream.id)) return;
    const isWhole = call.stream.localEnded;
    this.close(call.stream);
    if (!isWhole && !this.ending) writeRstStream(this.out, call.stream.id, ErrorCode.NoError);
  }

  /** Body bytes were consumed: the server may send as many more. */
  credit(stream: Http2Stream, sizeBytes: number): void {
    stream.credit(this.out, sizeBytes, this.limits.streamWindowBytes);
  }

  /** Drops what waits to be sent on a stream. */
  close(stream: Http2Stream): void {
    this.sender.drop(stream);
    stream.closed = true;
  }

  /** The server broke a rule: ends the connection. */
  fail(code: number, reason: string): false {
    if (this.ending) return false;
    writeGoAway(this.out, 0, code, reason);
    this.lost(reason);
    this.touched();
    return false;
  }

  /** The connection is gone: every call ends. */
  lost(reason: string): void {
    this.ending = true;
    if (this.#isOver) return;
    this.#isOver = true;
    const calls = [...this.calls.values()];
    this.calls.clear();
    const status = { code: GrpcCode.Unavailable, message: reason };
    for (const call of calls) {
      this.close(call.stream);
      call.aborted(status, this.isSettled);
    }
  }
}
