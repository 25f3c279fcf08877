/**
 * A socket and its HTTP/1.1 connection: moves bytes between them, with one gathering write per turn
 * and backpressure in both directions.
 */
import type { Socket } from "node:net";
import { Http1Connection, type Http1Owner } from "../../src/http1/connection.ts";
import type { Http1Shared } from "../../src/http1/shared.ts";
import type { Peer } from "../../src/http2/peer.ts";
import type { ServedSocket } from "./accepted.ts";
import { LINGER_MS, type SocketContext } from "./engine-socket.ts";
import { type Flushable, writeTogether } from "./flusher.ts";
import { setReading } from "./reading.ts";

const NOTHING = new Uint8Array(0);
/** With more connections whole responses are written at the end of the turn. */
const MANY_CONNECTIONS = 8;

/** A read of fewer bytes that completes no request is a piece. */
const PIECE_BYTES = 64;
/** After so many pieces in a row a connection rests behind each. */
const MANY_PIECES = 64;
/**
 * How long it rests: its bytes gather in the kernel, and are read together. So hundreds of
 * connections that send a byte at a time do not fill each turn with reads of one byte.
 */
export const REST_MS = 20;

export class Http1Socket implements Http1Owner, Flushable, ServedSocket {
  readonly connection: Http1Connection;
  readonly #context: SocketContext;
  readonly #socket: Socket;
  readonly #identified: () => boolean;
  #endedMs: number | undefined;
  /** In a row. */
  #pieces = 0;
  readonly #written = () => this.#drained();

  /** @param identified called when the first head is complete; returns whether there is a slot */
  constructor(
    context: SocketContext,
    shared: Http1Shared,
    socket: Socket,
    peer: Peer,
    identified: () => boolean,
  ) {
    const { clock } = context;
    this.#context = context;
    this.#socket = socket;
    this.#identified = identified;
    const connection = new Http1Connection(shared, this, peer, clock.monotonicMs());
    this.connection = connection;
    socket.on("data", (chunk: Buffer) => {
      connection.receive(chunk, clock.monotonicMs());
      if (chunk.length >= PIECE_BYTES || !connection.isInRequest) this.#pieces = 0;
      else if (++this.#pieces > MANY_PIECES) {
        setReading(socket, false);
        clock.after(REST_MS, () => setReading(socket, true));
      }
    });
    socket.on("drain", this.#written);
    // A client that closes its side is taken to be gone, as by Go's server.
    socket.on("end", () => connection.lost());
    socket.on("close", () => connection.lost());
  }

  get idleSinceMs(): number | undefined {
    return this.connection.idleSinceMs;
  }

  drain(): void {
    this.connection.drain();
  }

  leave(): void {
    this.#socket.destroy();
  }

  wake(): void {
    const { flusher } = this.#context;
    const { isStreaming, shared } = this.connection;
    // Events of streams have been collected over a turn already.
    if (isStreaming || shared.counters.openConnections <= MANY_CONNECTIONS) flusher.add(this);
    else flusher.addToTurn(this);
  }

  read(on: boolean): void {
    if (on) this.#socket.resume();
    else this.#socket.pause();
  }

  identified(): boolean {
    return this.#identified();
  }

  destroy(): void {
    this.#socket.destroy();
    this.connection.lost();
  }

  flush(): void {
    const socket = this.#socket;
    const { connection } = this;
    const chunks = connection.takeOutput();
    if (socket.destroyed || this.#endedMs !== undefined) return;
    writeTogether(socket, chunks);
    if (connection.ending) {
      this.#endedMs = this.#context.clock.monotonicMs();
      socket.end();
      socket.resume();
    }
    this.#drained();
  }

  /** Enforces timeouts; called about once a second. */
  sweep(nowMs: number): void {
    const endedMs = this.#endedMs;
    if (endedMs === undefined) this.connection.sweep(nowMs);
    else if (nowMs - endedMs >= LINGER_MS && this.#socket.writableLength === 0)
      this.#socket.destroy();
    else if (nowMs - endedMs >= this.connection.shared.limits.sendStallTimeoutMs) {
      this.#context.stalledConnections++;
      this.#socket.destroy();
    }
  }

  #drained(): void {
    const socket = this.#socket;
    const { connection } = this;
    const waitingBytes = socket.writableLength;
    connection.flushed(waitingBytes);
    // Few bytes cause no `drain` event, so behind them an empty write asks for one.
    if (connection.awaitsDrain && waitingBytes > 0 && !socket.writableNeedDrain)
      socket.write(NOTHING, this.#written);
  }
}
