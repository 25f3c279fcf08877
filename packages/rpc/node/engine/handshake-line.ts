/**
 * The connections in their TLS handshakes. A step of one (the answer to a client's hello, the check
 * of its certificate) takes up to half a millisecond of the thread, and Node does a step for every
 * connection whose bytes have come before anything else has its turn: a thousand clients that come
 * back at once would hold up all others for a second. So a few may read in a turn of the event
 * loop, each in its turn; the bytes of the others are in the kernel.
 *
 *     line  a b c d e f g h | i j k l ...     the first ones may read
 *     next turn             i j k l ... a b   those that have not ended go to the end
 */
import type { Socket } from "node:net";
import { setReading } from "./reading.ts";

/** Connections that may read in one turn, some 4 ms. */
export const MAX_HANDSHAKES_A_TURN = 8;
/** The shortest time between two turns in which no connection has come further. */
const PAUSE_MS = 1;

/** A connection in its handshake. */
interface Handshake {
  readonly socket: Socket;
  readonly begin: () => void;
  hasBegun: boolean;
  /** Bytes that it had read when it was last held. */
  readBytes: number;
}

export class HandshakeLine {
  readonly #line = new Map<Socket, Handshake>();
  /** Those that may read now. */
  #first: Handshake[] = [];
  #isSet = false;

  /** Has a handshake begun, now or in a later turn. */
  add(socket: Socket, begin: () => void): void {
    if (socket.destroyed) return;
    const one: Handshake = { socket, begin, hasBegun: false, readBytes: 0 };
    this.#line.set(socket, one);
    socket.once("close", () => this.#line.delete(socket));
    if (!this.#isSet) this.#first = this.#first.filter((first) => this.#line.has(first.socket));
    if (this.#first.length < MAX_HANDSHAKES_A_TURN) this.#step(one);
    this.#set(true);
  }

  /** The handshake of the connection on `socket` has ended. */
  ended(socket: Socket): void {
    this.#line.delete(socket);
  }

  #step(one: Handshake): void {
    this.#first.push(one);
    if (one.hasBegun) setReading(one.socket, true);
    else if (!one.socket.destroyed) {
      one.hasBegun = true;
      one.begin();
    }
  }

  /** @param isMoving false: no connection has come further, and there is nothing to do at once */
  #set(isMoving: boolean): void {
    if (this.#isSet) return;
    this.#isSet = true;
    if (isMoving) setImmediate(this.#nextTurn);
    else setTimeout(this.#nextTurn, PAUSE_MS);
  }

  readonly #nextTurn = (): void => {
    this.#isSet = false;
    let isMoving = false;
    const before = this.#first;
    this.#first = [];
    const isCrowd = this.#line.size > MAX_HANDSHAKES_A_TURN;
    for (const one of before) {
      const { socket } = one;
      if (!this.#line.delete(socket)) isMoving = true;
      else {
        this.#line.set(socket, one);
        if (socket.bytesRead > one.readBytes) isMoving = true;
        one.readBytes = socket.bytesRead;
        if (isCrowd) setReading(socket, false);
      }
    }
    for (const one of this.#line.values()) {
      if (this.#first.length === MAX_HANDSHAKES_A_TURN) break;
      if (!one.hasBegun) isMoving = true;
      this.#step(one);
    }
    if (isCrowd) this.#set(isMoving);
  };
}
