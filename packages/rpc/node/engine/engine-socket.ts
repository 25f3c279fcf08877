/**
 * A socket and its HTTP/2 connection: moves bytes between them, one gathering write a turn, and holds one back when the other cannot
 * follow.
 */
import type { Socket } from "node:net";
import type { Clock } from "@quorate/host";
import { type ConnectionOwner, Http2Connection, type Peer, type RequestAcceptor } from "../../src/http2/connection.ts";
import type { Http2Limits } from "../../src/http2/limits.ts";
import type { Http2Shared } from "../../src/http2/shared.ts";
import type { Flushable, Flusher } from "./flusher.ts";

/** How long a client may take to close its side after we closed ours. */
const LINGER_MS = 1000;

export class EngineSocket implements ConnectionOwner, Flushable {
  readonly connection: Http2Connection;
  readonly #socket: Socket;
  readonly #limits: Http2Limits;
  readonly #clock: Clock;
  readonly #flusher: Flusher;
  readonly #onStall: () => void;
  /** Since when the socket has not taken what it was given. */
  #blockedMs: number | undefined;
  #endedMs: number | undefined;

  /** @param onStall counts a connection that was cut off because it does not take what it is sent. */
  constructor(
    socket: Socket,
    shared: Http2Shared,
    acceptor: RequestAcceptor,
    peer: Peer,
    clock: Clock,
    flusher: Flusher,
    onStall: () => void,
  ) {
    this.#socket = socket;
    this.#limits = shared.limits;
    this.#clock = clock;
    this.#flusher = flusher;
    this.#onStall = onStall;
    this.connection = new Http2Connection(shared, acceptor, this, peer, clock.monotonicMs());
    socket.on("data", (chunk: Buffer) => this.connection.receive(chunk, clock.monotonicMs()));
    socket.on("drain", () => this.#drained());
    socket.on("close", () => this.connection.lost());
  }

  wake(): void {
    this.#flusher.add(this);
  }

  flush(): void {
    const socket = this.#socket;
    const { connection } = this;
    const chunks = connection.takeOutput();
    if (socket.destroyed || this.#endedMs !== undefined) return;
    if (chunks.length === 1) socket.write(chunks[0]);
    else if (chunks.length > 1) {
      socket.cork();
      for (const chunk of chunks) socket.write(chunk);
      socket.uncork();
    }
    if (connection.ending) {
      this.#endedMs = this.#clock.monotonicMs();
      socket.end();
      socket.resume();
      return;
    }
    const waitingBytes = socket.writableLength;
    if (waitingBytes === 0) connection.out.recycle();
    if (waitingBytes >= this.#limits.outputTargetBytes) this.#block(waitingBytes);
    else if (connection.sender.hasMore) {
      connection.sender.refill();
      connection.touched();
    }
  }

  /** Looks after timeouts; called about once a second. */
  sweep(nowMs: number): void {
    if (this.#socket.destroyed) return;
    if (this.#endedMs !== undefined) {
      if (nowMs - this.#endedMs >= LINGER_MS) this.#socket.destroy();
    } else if (this.#blockedMs !== undefined && nowMs - this.#blockedMs >= this.#limits.sendStallTimeoutMs) {
      this.#onStall();
      this.#socket.destroy();
    } else this.connection.sweep(nowMs);
  }

  #block(waitingBytes: number): void {
    if (this.#blockedMs === undefined) {
      this.#blockedMs = this.#clock.monotonicMs();
      this.connection.sender.setBlocked(true);
    }
    // A client that does not read could have us answer its pings and requests into memory without end.
    if (waitingBytes > this.#limits.maxOutputBytes) this.#socket.pause();
  }

  #drained(): void {
    if (this.#blockedMs === undefined || this.#endedMs !== undefined) return;
    this.#blockedMs = undefined;
    this.#socket.resume();
    this.connection.sender.setBlocked(false);
    this.connection.touched();
  }
}
