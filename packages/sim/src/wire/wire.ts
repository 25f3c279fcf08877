/**
 * One connection for messages, from a process of a member to a process of another one: the
 * transport's own frames, batches and readers on both sides, and bytes between them. It does not
 * know of time: wires.ts moves the bytes.
 *
 *   WIRE-1 integrity   what a connection delivers is what was sent on it: the same bytes, in the
 *                      same order, none left out, and it does not change afterwards
 *   WIRE-2 damage      a byte that changes on the way ends the connection, and nothing of what it
 *                      belongs to is delivered
 *
 * What the receiver says comes at once: a sender's first bytes are its request, or its consent
 * where the receiver dialled, and its first messages. Everything else is as on a socket.
 */
import { concat, equals, idToHex, type raftpb } from "@quorate/proto";
import {
  type ChannelKind,
  FRAME_HEAD_BYTES,
  FrameBatch,
  FrameError,
  FrameReader,
  openingOf,
  PREFACE,
  Tunnel,
  takeMessages,
} from "@quorate/transport";
import { violate } from "../base/violation.ts";
import type { Station } from "../sim-transport.ts";

/** As in the real transport's options. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
/**
 * Messages that are compared once more when bytes come that are put together with what the reader
 * holds.
 */
const REMEMBERED_MESSAGES = 8;

const NOTHING = new Uint8Array(0);

/** A message and its bytes. */
export interface Sent {
  readonly message: raftpb.Message;
  readonly encoded: Uint8Array;
}

/** A message that was delivered: the bytes that it is a view of, and what they have to be. */
interface Delivered {
  readonly frame: Uint8Array;
  readonly encoded: Uint8Array;
}

/** Bytes of one write, and where the head of their DATA frame is. */
export interface Written {
  readonly bytes: Uint8Array;
  readonly headAt: number;
}

/** Between which processes a connection is, and what it is for. */
export interface WireEnds {
  /** Sends messages. */
  readonly from: Station;
  /** Receives them. */
  readonly target: Station;
  readonly kind: ChannelKind;
  /** Whether the receiver dialled it, since the sender cannot. */
  readonly isReturn: boolean;
}

/** A connection for messages, and what is on it. */
export interface Connection extends WireEnds {
  /** When the last byte that was written arrives. */
  lastArrivalMs: number;
  /** Nothing more is delivered; the next message needs another connection. */
  isOver: boolean;
  /** Whether TLS alone notices a byte that changes. */
  readonly isSealed: boolean;
  /** Puts messages onto the connection. Returns the bytes to be brought to the other side. */
  write(messages: readonly Sent[]): Written;
  /**
   * The receiver reads bytes. Returns the messages that are whole now, with their bytes, and
   * whether the connection was found to be damaged: then it is over.
   */
  read(bytes: Uint8Array): {
    messages: readonly raftpb.Message[];
    frames: readonly Uint8Array[];
    isDamaged: boolean;
  };
}

export class Wire implements Connection {
  readonly from: Station;
  readonly target: Station;
  readonly kind: ChannelKind;
  readonly isReturn: boolean;
  readonly isSealed = false;
  lastArrivalMs = 0;
  isOver = false;
  readonly #batch = new FrameBatch();
  /** The frames of the side that sends messages, and of the side that receives them. */
  readonly #sender: Tunnel;
  readonly #receiver: Tunnel;
  readonly #reader = new FrameReader(MAX_MESSAGE_BYTES);
  /** Goes before the next messages: request or consent, and replies to the other side. */
  #before: Uint8Array[];
  /** What came before the request was whole; undefined once it is, or if the receiver dialled. */
  #opening: Uint8Array | undefined;
  #sent: Uint8Array[] = [];
  #remembered: Delivered[] = [];
  #messages: raftpb.Message[] = [];
  #frames: Uint8Array[] = [];

  /**
   * @param isReturn the receiver dialled, and the sender cannot
   * @param accepts whether the side that was dialled takes the stream of the other one
   */
  constructor({ from, target, kind, isReturn }: WireEnds, accepts: () => boolean) {
    this.from = from;
    this.target = target;
    this.kind = kind;
    this.isReturn = isReturn;
    const [dialler, acceptor] = isReturn ? [target, from] : [from, target];
    const path = `/raft/stream/${kind}`;
    const ids = {
      "x-quorate-from": idToHex(dialler.request.memberId),
      "x-quorate-to": idToHex(acceptor.request.memberId),
    };
    const request = Tunnel.request({
      ":method": "POST",
      ":scheme": "http",
      ":authority": "peer",
      ":path": path,
      ...ids,
    });
    const requested = (fields: Readonly<Record<string, string>>) => {
      if (fields[":path"] !== path || fields["x-quorate-from"] !== ids["x-quorate-from"])
        violate("WIRE-1", "the request is another one");
      if (!accepts()) this.isOver = true;
    };
    const agreed = (fields: Readonly<Record<string, string>>) => {
      if (fields[":status"] !== "200") violate("WIRE-1", "the consent is another one");
    };
    const ended = () => {
      throw new FrameError("the stream has ended");
    };
    const unexpected = () => violate("WIRE-1", "the sender was sent data");
    const pong = () => {};
    this.#sender = new Tunnel({
      head: isReturn ? requested : agreed,
      data: unexpected,
      pong,
      ended,
    });
    this.#receiver = new Tunnel({
      head: isReturn ? agreed : requested,
      data: (bytes) => {
        if (!this.isOver)
          takeMessages(this.#reader, bytes, (message, frame) => this.#taken(message, frame));
      },
      pong,
      ended,
    });
    const agreement = Tunnel.agreement({ ":status": "200" });
    this.#before = [isReturn ? agreement : request];
    this.#opening = isReturn ? undefined : NOTHING;
    this.#answered(isReturn ? request.subarray(PREFACE.length) : agreement);
  }

  write(messages: readonly Sent[]): Written {
    for (const { encoded } of messages) {
      this.#batch.add(encoded);
      this.#sent.push(encoded);
    }
    const sizeBytes = this.#batch.sizeBytes;
    const pieces = this.#sender.wrap(this.#batch.take(FRAME_HEAD_BYTES), sizeBytes);
    if (this.#before.length === 0)
      return { bytes: pieces.length === 1 ? pieces[0] : concat(pieces), headAt: 0 };
    const before = concat(this.#before);
    this.#before = [];
    return { bytes: concat([before, ...pieces]), headAt: before.length };
  }

  read(bytes: Uint8Array): ReturnType<Connection["read"]> {
    const held = this.#reader.bufferedBytes > 0;
    this.#messages = [];
    this.#frames = [];
    let isDamaged = false;
    try {
      this.#push(bytes);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      isDamaged = true;
      this.isOver = true;
    }
    if (held) this.#compareAgain();
    const replies = this.#receiver.takeReplies();
    if (replies !== undefined && !this.isOver) this.#answered(replies);
    return { messages: this.#messages, frames: this.#frames, isDamaged };
  }

  #push(bytes: Uint8Array): void {
    if (this.#opening === undefined) {
      this.#receiver.push(bytes);
      return;
    }
    const opening = concat([this.#opening, bytes]);
    this.#opening = opening;
    const { kind } = openingOf(opening);
    if (kind === "unclear") return;
    if (kind === "other") throw new FrameError("no member's request");
    this.#opening = undefined;
    this.#receiver.push(opening.subarray(PREFACE.length));
  }

  /** Bytes from the receiver to the sender. */
  #answered(bytes: Uint8Array): void {
    this.#sender.push(bytes);
    const replies = this.#sender.takeReplies();
    if (replies !== undefined) this.#before.push(replies);
  }

  #taken(message: raftpb.Message, frame: Uint8Array): void {
    const encoded = this.#sent.shift();
    if (encoded === undefined)
      violate(
        "WIRE-1",
        `${this.#name} delivers a message of ${frame.length} bytes that was not sent`,
      );
    if (!equals(frame, encoded))
      violate(
        "WIRE-1",
        `${this.#name} delivers a message of ${frame.length} bytes that differs from what was sent`,
      );
    this.#messages.push(message);
    this.#frames.push(frame);
    if (this.#remembered.length === REMEMBERED_MESSAGES) this.#remembered.shift();
    this.#remembered.push({ frame, encoded });
  }

  #compareAgain(): void {
    for (const { frame, encoded } of this.#remembered) {
      if (!equals(frame, encoded))
        violate(
          "WIRE-1",
          `a message of ${frame.length} bytes that ${this.#name} delivered has changed since`,
        );
    }
  }

  get #name(): string {
    return `the connection of ${this.from.name} to ${this.target.name} for ${this.kind} messages`;
  }
}
