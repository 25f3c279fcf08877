/**
 * Messages that many streams of a front-end get: written into its ring once, with the list of the
 * streams and the part of each.
 *
 *     add(stream, message, part) --+--> the list of that message --> flush: a record each, in the
 *     add(stream, message, part) --+                                 order in which lists began
 *
 * Each list has a number. A stream remembers that of its last one: its next message is in that list
 * or a later one, so that its messages stay in order.
 */
import { alloc, writeU32LE } from "@quorate/proto";
import type { CommonMessage } from "@quorate/rpc";
import type { Link } from "./link.ts";
import { MAX_BEFORE_BYTES, MAX_OWN_BYTES, TARGET_BYTES, ToFront, toFront } from "./protocol.ts";

/** Messages, and bytes of the targets of one, that wait for the flush at most. */
export const MAX_MESSAGES = 64;
export const MAX_TARGETS_BYTES: number = 16 * 1024;
const FIRST_TARGETS_BYTES = 256;

/** Where one message goes. */
class Targets {
  readonly message: CommonMessage;
  readonly number: number;
  #bytes = alloc(FIRST_TARGETS_BYTES);
  #size = 0;

  constructor(message: CommonMessage, number: number) {
    this.message = message;
    this.number = number;
  }

  /** False if there are too many already. */
  add(call: number, own: Uint8Array): boolean {
    const end = this.#size + TARGET_BYTES + own.length;
    if (end > this.#bytes.length) {
      if (end > MAX_TARGETS_BYTES) return false;
      const larger = alloc(2 * this.#bytes.length);
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    const bytes = this.#bytes;
    let at = this.#size;
    writeU32LE(bytes, at, call);
    at += 4;
    bytes[at++] = own.length;
    for (const byte of own) bytes[at++] = byte;
    this.#size = end;
    return true;
  }

  get encoded(): Uint8Array {
    return this.#bytes.subarray(0, this.#size);
  }
}

export class FanOut {
  readonly #link: Link;
  readonly #waiting = new Map<CommonMessage, Targets>();
  #last: Targets | undefined;
  #lastNumber = 0;

  constructor(link: Link) {
    this.#link = link;
  }

  /** Whether a message can be sent so. */
  takes({ before }: CommonMessage, own: Uint8Array): boolean {
    return before.length <= MAX_BEFORE_BYTES && own.length <= MAX_OWN_BYTES;
  }

  /**
   * Has a message, which `takes` takes, sent to one more stream at the next flush, or before.
   * @param lastNumber what this returned for the stream's last message; 0 for the first
   */
  add(call: number, message: CommonMessage, own: Uint8Array, lastNumber: number): number {
    const targets = this.#targetsOf(message);
    if (targets.number >= lastNumber && targets.add(call, own)) return targets.number;
    this.flush();
    const next = this.#targetsOf(message);
    next.add(call, own);
    return next.number;
  }

  /** Sends what waits: at the turn's end, and before another message of a stream. */
  flush(): void {
    if (this.#last === undefined) return;
    this.#last = undefined;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { message, encoded } of waiting) {
      const { before, after } = message;
      const head = toFront(ToFront.Common, 0, before.length, encoded.length);
      this.#link.send(head, [encoded, before, ...after]);
    }
  }

  #targetsOf(message: CommonMessage): Targets {
    if (this.#last?.message === message) return this.#last;
    const known = this.#waiting.get(message);
    if (known === undefined && this.#waiting.size === MAX_MESSAGES) this.flush();
    const targets = known ?? new Targets(message, ++this.#lastNumber);
    if (known === undefined) this.#waiting.set(message, targets);
    this.#last = targets;
    this.#link.touch();
    return targets;
  }
}
