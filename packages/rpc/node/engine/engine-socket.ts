/**
 * A socket and its HTTP/2 connection: moves bytes between them, with one gathering write per turn
 * and backpressure in both directions.
 */
import type { Socket } from "node:net";
import type { Clock } from "@quorate/host";
import {
  type ConnectionOwner,
  Http2Connection,
  type RequestAcceptor,
} from "../../src/http2/connection.ts";
import type { Http2Limits } from "../../src/http2/limits.ts";
import type { Peer } from "../../src/http2/peer.ts";
import type { Http2Shared } from "../../src/http2/shared.ts";
import type { ServedSocket } from "./accepted.ts";
import { type Flushable, Flusher, writeTogether } from "./flusher.ts";

/** How long a client may take to close its side after the server closed its own. */
export const LINGER_MS = 1000;
/**
 * Roughly the most that a connection may write in one turn of the event loop before others get
 * theirs.
 */
const MAX_FLUSH_BYTES = 1024 * 1024;

/** The state that the sockets of a server share. */
export class SocketContext {
  readonly http2: Http2Shared;
  readonly clock: Clock;
  readonly flusher = new Flusher();
  /**
   * Bytes that were written to sockets and not sent, and the threshold above which slow sockets are
   * blocked early.
   */
  unsentBytes = 0;
  readonly maxUnsentTotalBytes: number;
  /** Connections cut off because their clients did not read. */
  stalledConnections = 0;

  constructor(http2: Http2Shared, clock: Clock, maxUnsentTotalBytes: number) {
    this.http2 = http2;
    this.clock = clock;
    this.maxUnsentTotalBytes = maxUnsentTotalBytes;
  }
}

export class EngineSocket implements ConnectionOwner, Flushable, ServedSocket {
  readonly connection: Http2Connection;
  readonly #context: SocketContext;
  readonly #socket: Socket;
  readonly #limits: Http2Limits;
  /** Counted in context.unsentBytes. */
  #unsentBytes = 0;
  /** Since when the socket has not sent what was written to it. */
  #blockedMs: number | undefined;
  #endedMs: number | undefined;
  /** Output waits, and nothing more is to be read before it has left. */
  #isFull = false;
  /** What was read waits for the next turn. */
  #isHeldBack = false;
  /** The connection has written much in this turn: the others go first. */
  #yields = false;

  readonly #settled: () => void;

  /** @param settled called when the client's preface and SETTINGS are complete. */
  constructor(
    context: SocketContext,
    socket: Socket,
    acceptor: RequestAcceptor,
    peer: Peer,
    settled: () => void,
  ) {
    const { clock } = context;
    this.#context = context;
    this.#socket = socket;
    this.#settled = settled;
    this.#limits = context.http2.limits;
    this.connection = new Http2Connection(context.http2, acceptor, this, peer, clock.monotonicMs());
    socket.on("data", (chunk: Buffer) => this.connection.receive(chunk, clock.monotonicMs()));
    socket.on("drain", () => this.#drained());
    socket.on("close", () => {
      this.#count(0);
      this.connection.lost();
    });
  }

  get idleSinceMs(): number | undefined {
    return this.connection.idleSinceMs;
  }

  drain(nowMs: number): void {
    this.connection.drain(nowMs);
  }

  leave(nowMs: number): void {
    this.connection.shed(nowMs);
  }

  wake(): void {
    if (this.#yields) this.#context.flusher.addLater(this);
    else this.#context.flusher.add(this);
    this.#yields = false;
  }

  settled(): void {
    this.#settled();
  }

  heldBack(): void {
    this.#isHeldBack = true;
    this.#socket.pause();
    setImmediate(() => {
      this.#isHeldBack = false;
      if (this.#socket.destroyed || this.#endedMs !== undefined) return;
      this.connection.goOn(this.#context.clock.monotonicMs());
      this.#readOn();
    });
  }

  #readOn(): void {
    if (!this.#isFull && !this.#isHeldBack) this.#socket.resume();
  }

  flush(): void {
    const { connection } = this;
    for (let leftBytes = MAX_FLUSH_BYTES; this.#write() && connection.sender.hasMore; ) {
      connection.sender.refill();
      leftBytes -= connection.out.sizeBytes;
      if (leftBytes <= 0) {
        this.#yields = true;
        connection.touched();
        return;
      }
    }
  }

  /** Writes the output to the socket; false if nothing more should be written now. */
  #write(): boolean {
    const socket = this.#socket;
    const { connection } = this;
    const chunks = connection.takeOutput();
    if (socket.destroyed || this.#endedMs !== undefined) return false;
    writeTogether(socket, chunks);
    if (connection.ending) {
      this.#endedMs = this.#context.clock.monotonicMs();
      socket.end();
      socket.resume();
      return false;
    }
    const unsentBytes = socket.writableLength;
    this.#count(unsentBytes);
    if (unsentBytes === 0) connection.out.recycle();
    // Without backpressure there is no `drain` event to continue on; few bytes wait in that case.
    const scarce =
      socket.writableNeedDrain && this.#context.unsentBytes > this.#context.maxUnsentTotalBytes;
    if (!scarce && unsentBytes < this.#limits.outputTargetBytes) return true;
    this.#block(scarce || unsentBytes > this.#limits.maxOutputBytes);
    return false;
  }

  /** Enforces timeouts; called about once a second. */
  sweep(nowMs: number): void {
    if (this.#socket.destroyed) return;
    if (this.#endedMs !== undefined) {
      if (nowMs - this.#endedMs >= LINGER_MS) this.#socket.destroy();
    } else if (
      this.#blockedMs !== undefined &&
      nowMs - this.#blockedMs >= this.#limits.sendStallTimeoutMs
    ) {
      this.#context.stalledConnections++;
      this.#socket.destroy();
    } else this.connection.sweep(nowMs);
  }

  #block(pause: boolean): void {
    if (this.#blockedMs === undefined) {
      this.#blockedMs = this.#context.clock.monotonicMs();
      this.connection.sender.setBlocked(true);
    }
    // Otherwise a client that does not read could have responses to its pings and requests fill the
    // memory.
    if (!pause) return;
    this.#isFull = true;
    this.#socket.pause();
  }

  #drained(): void {
    this.#count(this.#socket.writableLength);
    if (this.#unsentBytes === 0) this.connection.out.recycle();
    if (this.#blockedMs === undefined || this.#endedMs !== undefined) return;
    this.#blockedMs = undefined;
    this.#isFull = false;
    this.#readOn();
    this.connection.sender.setBlocked(false);
    this.connection.touched();
  }

  #count(unsentBytes: number): void {
    this.#context.unsentBytes += unsentBytes - this.#unsentBytes;
    this.#unsentBytes = unsentBytes;
  }
}
