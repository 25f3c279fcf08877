/**
 * The connections for messages between members. A connection is made when there is something to
 * send. It ends with either of its processes, when its link is cut while bytes are on their way,
 * when bytes are damaged, or when the receiver turns the sender away; the next message makes
 * another one. What was written on it and has not arrived is lost then.
 */
import type { Random } from "@quorate/host";
import type { raftpb } from "@quorate/proto";
import type { ChannelKind } from "@quorate/transport";
import type { SimOptions } from "../base/options.ts";
import type { Scheduler } from "../base/scheduler.ts";
import { violate } from "../base/violation.ts";
import { EtcdWire } from "../etcd/etcd-wire.ts";
import type { Link, Links } from "../links.ts";
import type { Station } from "../sim-transport.ts";
import { cutAtRandom } from "./cuts.ts";
import { type Connection, type Sent, Wire, type WireEnds } from "./wire.ts";

/** Of so many writes that are cut, one arrives in two parts, some time apart. */
const PARTED_SHARE = 8;

/** What arrives together. */
interface Piece {
  readonly bytes: Uint8Array;
  /** A byte of it changed, and TLS notices: the reader never sees it. */
  readonly isSealed: boolean;
  /** It is the last one of a write in which a byte changed that the reader has to notice. */
  readonly endsDamage: boolean;
}

export interface WiresDeps {
  readonly links: Links;
  readonly scheduler: Scheduler;
  readonly random: Random;
  /** Whether the side that was dialled takes the stream of the other one. */
  accepts(ends: WireEnds): boolean;
  /**
   * Whether the receiver drops the sender's connections: it was removed. Asked each time that bytes
   * arrive.
   */
  drops(wire: Connection): boolean;
  /** Messages have come, in order. */
  received(
    wire: Connection,
    messages: readonly raftpb.Message[],
    frames: readonly Uint8Array[],
  ): void;
  /** A byte that had changed was noticed, and the connection has ended. */
  damaged(wire: Connection): void;
}

export class Wires {
  readonly #options: SimOptions;
  readonly #deps: WiresDeps;
  /** By sender, by receiver: the processes, not the members. */
  #wires = new WeakMap<Station, WeakMap<Station, Map<ChannelKind, Connection>>>();
  /** What was sent and has not arrived. */
  readonly #onTheWay = new WeakMap<Connection, (readonly Piece[])[]>();
  /** What has arrived at a process that is stopped. */
  readonly #unread = new WeakMap<Connection, Piece[]>();
  /** Connections made, writes, pieces, and bytes that changed. */
  readonly counts = { connections: 0, writes: 0, pieces: 0, damaged: 0 };

  constructor(options: SimOptions, deps: WiresDeps) {
    this.#options = options;
    this.#deps = deps;
  }

  /** All connections are gone, and what was on its way on them. */
  dropAll(): void {
    this.#wires = new WeakMap();
  }

  /** Sends messages from one process to another, as one write. */
  write(from: Station, target: Station, kind: ChannelKind, messages: readonly Sent[]): void {
    const { links, scheduler, random } = this.#deps;
    const wire = this.#wire(from, target, kind);
    const link = links.link(from.name, target.name);
    const pieces = this.#pieces(wire, messages);
    const now = scheduler.nowMs;
    const arrivalMs = Math.max(now + links.latencyMs(link), wire.lastArrivalMs);
    wire.lastArrivalMs = arrivalMs;
    const isParted = pieces.length > 1 && random.below(PARTED_SHARE) === 0;
    const first = isParted ? 1 + random.below(pieces.length - 1) : pieces.length;
    this.#send(wire, link, pieces.slice(0, first), arrivalMs - now);
    if (!isParted) return;
    wire.lastArrivalMs = arrivalMs + links.latencyMs(link);
    this.#send(wire, link, pieces.slice(first), wire.lastArrivalMs - now);
  }

  /**
   * What was sent first arrives first: two times that are meant to be equal differ by rounding.
   */
  #send(wire: Connection, link: Link, pieces: readonly Piece[], delayMs: number): void {
    const onTheWay = this.#onTheWay.get(wire) ?? [];
    this.#onTheWay.set(wire, onTheWay);
    onTheWay.push(pieces);
    this.#deps.scheduler.after(delayMs, () => this.#arrive(wire, link, onTheWay.shift() ?? []));
  }

  #wire(from: Station, target: Station, kind: ChannelKind): Connection {
    let ofSender = this.#wires.get(from);
    if (ofSender === undefined) this.#wires.set(from, (ofSender = new WeakMap()));
    let wires = ofSender.get(target);
    if (wires === undefined) ofSender.set(target, (wires = new Map()));
    const before = wires.get(kind);
    if (before !== undefined && !before.isOver) return before;
    const isEtcd = from.isEtcd || target.isEtcd;
    const isReturn = isEtcd || !this.#deps.links.canDial(target.name);
    const ends = { from, target, kind, isReturn };
    const accepts = () => this.#deps.accepts(ends);
    const wire = isEtcd ? new EtcdWire(ends, accepts) : new Wire(ends, accepts);
    this.counts.connections++;
    wires.set(kind, wire);
    return wire;
  }

  #pieces(wire: Connection, messages: readonly Sent[]): Piece[] {
    const { random, links } = this.#deps;
    const { bytes, headAt } = wire.write(messages);
    const isDamaged = links.happens(this.#options.corruption);
    const change = isDamaged ? damage(bytes, headAt, random, wire.isSealed) : undefined;
    const pieces = cutAtRandom(bytes, random);
    this.counts.writes++;
    this.counts.pieces += pieces.length;
    if (change !== undefined) this.counts.damaged++;
    if (change === undefined)
      return pieces.map((piece) => ({ bytes: piece, isSealed: false, endsDamage: false }));
    let endsAt = 0;
    return pieces.map((piece, i) => {
      const startsAt = endsAt;
      endsAt += piece.length;
      const isSealed = change.isSealed && change.at >= startsAt && change.at < endsAt;
      return { bytes: piece, isSealed, endsDamage: !change.isSealed && i === pieces.length - 1 };
    });
  }

  #arrive(wire: Connection, link: Link, pieces: readonly Piece[]): void {
    if (wire.isOver || !wire.target.process.alive) return;
    if (link.cut) wire.isOver = true;
    else if (link.stalled !== undefined) link.stalled.push(() => this.#take(wire, pieces));
    else this.#take(wire, pieces);
  }

  /**
   * A process that is stopped does not read: its socket keeps the bytes, and yields them as one
   * when it goes on.
   */
  #take(wire: Connection, pieces: readonly Piece[]): void {
    if (
      wire.isOver ||
      !wire.target.process.alive ||
      this.#wires.get(wire.from)?.get(wire.target)?.get(wire.kind) !== wire
    )
      return;
    const { scheduler } = this.#deps;
    const unread = this.#unread.get(wire);
    if (unread !== undefined) {
      unread.push(...pieces);
      return;
    }
    if (!wire.target.process.paused) {
      this.#read(wire, pieces);
      return;
    }
    const kept = [...pieces];
    this.#unread.set(wire, kept);
    const goOn = () => {
      this.#unread.delete(wire);
      this.#read(wire, joined(kept));
    };
    scheduler.after(0, goOn, wire.target.process);
  }

  #read(wire: Connection, pieces: readonly Piece[]): void {
    if (this.#deps.drops(wire)) {
      wire.isOver = true;
      return;
    }
    for (const { bytes, isSealed, endsDamage } of pieces) {
      if (wire.isOver) break;
      if (isSealed) {
        this.#damaged(wire);
        break;
      }
      const { messages, frames, isDamaged } = wire.read(bytes);
      // What came whole before the damage is good.
      if (messages.length > 0) this.#deps.received(wire, messages, frames);
      if (isDamaged) this.#damaged(wire);
      else if (endsDamage && !wire.isOver)
        violate(
          "WIRE-2",
          `a changed byte from ${wire.from.name} to ${wire.target.name} goes unnoticed`,
        );
    }
  }

  #damaged(wire: Connection): void {
    wire.isOver = true;
    this.#deps.damaged(wire);
  }
}

/** Pieces that wait together are read together, but for those that are damaged. */
function joined(pieces: readonly Piece[]): Piece[] {
  if (pieces.length === 1 || pieces.some(({ isSealed, endsDamage }) => isSealed || endsDamage))
    return [...pieces];
  const whole = new Uint8Array(pieces.reduce((sum, { bytes }) => sum + bytes.length, 0));
  let at = 0;
  for (const { bytes } of pieces) {
    whole.set(bytes, at);
    at += bytes.length;
  }
  return [{ bytes: whole, isSealed: false, endsDamage: false }];
}

/**
 * Offset of the stream's number in the head of an HTTP/2 frame, and of the length of the first
 * message behind that head.
 */
const STREAM_AT = 5;
const LENGTH_AT = 9;

/** Which byte changed, and whether TLS finds it. */
interface Damage {
  readonly at: number;
  readonly isSealed: boolean;
}

/**
 * A byte that changes on its way. The frames between members have no checksum of their own: members
 * that use TLS rely on that of each TLS record, members without TLS on TCP's. So:
 *
 *   sealed   any byte changes, and TLS ends the connection before anything of the record is read
 *   bare     there is no TLS, TCP's checksum let the change pass, and it strikes where the frames
 *            themselves have a check: the stream of a DATA frame, or a length beyond the longest
 *            message
 *
 * A bare change anywhere else cannot be distinguished from another message, by any program;
 * docs/operate/operations.md asks for TLS between members.
 *
 * Changes a byte. @param headAt where the head of the first DATA frame is
 * @param hasNoChecks whether TLS alone can notice the change
 */
export function damage(
  bytes: Uint8Array,
  headAt: number,
  random: Random,
  hasNoChecks = false,
): Damage {
  const isSealed = hasNoChecks || random.below(2) === 0;
  if (isSealed) {
    const at = random.below(bytes.length);
    bytes[at] ^= 1 + random.below(255);
    return { at, isSealed };
  }
  if (random.below(2) === 0) {
    const at = headAt + STREAM_AT + random.below(4);
    // The first bit of the four bytes is reserved, and means nothing.
    bytes[at] ^= 1 + random.below(127);
    return { at, isSealed };
  }
  const at = headAt + LENGTH_AT;
  // More than 64 MiB.
  bytes[at] |= 0x08 << random.below(5);
  return { at, isSealed };
}
