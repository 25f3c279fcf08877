/**
 * One stream of etcd's peer protocol, from a process of a member to a process of another one that
 * reads it: etcd's frames on both sides (transport/src/etcd-frames.ts), and bytes between them.
 *
 * Its frames have no checks of their own: a byte that changes on the way is noticed by TLS alone.
 */
import { concat, equals, raftpb } from "@quorate/proto";
import {
  type ChannelKind,
  etcdDecoder,
  etcdEncoder,
  FrameError,
  type MessageDecoder,
  type MessageEncoder,
} from "@quorate/transport";
import { violate } from "../base/violation.ts";
import type { Station } from "../sim-transport.ts";
import type { Connection, Sent, WireEnds, Written } from "../wire/wire.ts";

/** As in the real transport's options. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

/** The stream of a message: appends have one of their own. */
export function etcdKindOf({ type }: raftpb.Message): ChannelKind {
  return type === raftpb.MessageType.MsgApp ? "bulk" : "urgent";
}

export class EtcdWire implements Connection {
  readonly from: Station;
  readonly target: Station;
  readonly kind: ChannelKind;
  /** Who reads dials. */
  readonly isReturn = true;
  readonly isSealed = true;
  lastArrivalMs = 0;
  isOver: boolean;
  readonly #encoder: MessageEncoder;
  readonly #decoder: MessageDecoder;
  /** The link is said to be alive, before anything else. */
  #hasBegun = false;
  readonly #sent: Uint8Array[] = [];

  /** @param accepts whether the side that was dialled gives the other one its stream */
  constructor({ from, target, kind }: WireEnds, accepts: () => boolean) {
    this.from = from;
    this.target = target;
    this.kind = kind;
    this.isOver = !accepts();
    const stream = kind === "bulk" ? "msgapp" : "message";
    const ids = { from: from.request.memberId, to: target.request.memberId };
    this.#encoder = etcdEncoder(stream);
    this.#decoder = etcdDecoder(stream, ids, MAX_MESSAGE_BYTES);
  }

  write(messages: readonly Sent[]): Written {
    const parts = this.#hasBegun ? [] : [this.#encoder.alive()];
    this.#hasBegun = true;
    for (const { message, encoded } of messages) {
      parts.push(this.#encoder.encode(message));
      this.#sent.push(encoded);
    }
    return { bytes: concat(parts), headAt: 0 };
  }

  read(bytes: Uint8Array): ReturnType<Connection["read"]> {
    const messages: raftpb.Message[] = [];
    const frames: Uint8Array[] = [];
    try {
      this.#decoder.take(bytes, (message) => {
        const frame = raftpb.Message.encode(message);
        const encoded = this.#sent.shift();
        if (encoded === undefined || !equals(frame, encoded))
          violate(
            "WIRE-1",
            `a stream of etcd's from ${this.from.name} to ${this.target.name} delivers what was not sent`,
          );
        messages.push(message);
        frames.push(frame);
      });
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      violate("WIRE-1", `a stream of etcd's is malformed: ${error.message}`);
    }
    return { messages, frames, isDamaged: false };
  }
}
