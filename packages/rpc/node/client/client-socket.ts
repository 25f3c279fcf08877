/**
 * A client's socket and its HTTP/2 connection: moves bytes between them, with one gathering write
 * per turn and backpressure in both directions.
 */
import type { Socket } from "node:net";
import type { Clock } from "@quorate/host";
import { ClientConnection } from "../../src/client/client-connection.ts";
import type { ClientLimits } from "../../src/client/client-limits.ts";
import type { ClientConnectionOwner } from "../../src/client/client-state.ts";
import { type Flushable, Flusher, writeTogether } from "../engine/flusher.ts";

/** Why a connection ended whose server broke a rule. */
export const PROTOCOL_ERROR = "protocol error";

/** Time between two sweeps for pings. */
const SWEEP_PERIOD_MS = 1000;

export interface ClientSocketListener {
  /** The server takes calls. Called once. */
  settled(): void;
  /** The connection is gone; its calls have ended. Called once. */
  closed(reason: string): void;
}

const flusher = new Flusher();

export class ClientSocket implements ClientConnectionOwner, Flushable {
  readonly connection: ClientConnection;
  readonly #socket: Socket;
  readonly #limits: ClientLimits;
  readonly #listener: ClientSocketListener;
  #isBlocked = false;
  #isDestroyed = false;
  #reason = "error reading from server: EOF";

  /** @param socket connected, its TLS handshake done */
  constructor(
    socket: Socket,
    limits: ClientLimits,
    server: { readonly authority: string; readonly isSecure: boolean },
    clock: Clock,
    listener: ClientSocketListener,
  ) {
    this.#socket = socket;
    this.#limits = limits;
    this.#listener = listener;
    this.connection = new ClientConnection(limits, this, server, clock.monotonicMs());
    const sweeper = clock.every(SWEEP_PERIOD_MS, () => this.connection.sweep(clock.monotonicMs()));
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => this.connection.receive(chunk, clock.monotonicMs()));
    socket.on("drain", () => this.#drained());
    socket.on("end", () => socket.end());
    socket.on("error", (error: Error & { code?: string }) => {
      const text = error.code === "ECONNRESET" ? "read: connection reset by peer" : error.message;
      this.#reason = `error reading from server: ${text}`;
    });
    socket.on("close", () => {
      sweeper.cancel();
      // Nothing but a broken rule of the protocol ends a connection from within.
      if (this.connection.ending && !this.#isDestroyed) this.#reason = PROTOCOL_ERROR;
      this.connection.lost(this.#reason);
      listener.closed(this.#reason);
    });
    this.connection.touched();
  }

  wake(): void {
    flusher.add(this);
  }

  settled(): void {
    this.#listener.settled();
  }

  flush(): void {
    do {
      this.connection.refill();
      if (!this.#write()) return;
    } while (this.connection.hasMore);
  }

  /** Whether the socket keeps the process alive. */
  setReferenced(isReferenced: boolean): void {
    if (isReferenced) this.#socket.ref();
    else this.#socket.unref();
  }

  /** Ends the connection at once; open calls end with this reason. */
  destroy(reason: string): void {
    this.#reason = reason;
    this.#isDestroyed = true;
    this.connection.lost(reason);
    this.#socket.destroy();
  }

  /** Writes the output to the socket; false if nothing more should be written now. */
  #write(): boolean {
    const socket = this.#socket;
    const { connection } = this;
    const chunks = connection.takeOutput();
    if (socket.destroyed) return false;
    writeTogether(socket, chunks);
    if (connection.ending) {
      socket.destroySoon();
      return false;
    }
    if (socket.writableLength === 0) connection.recycle();
    if (!socket.writableNeedDrain || socket.writableLength < this.#limits.outputTargetBytes)
      return true;
    this.#isBlocked = true;
    connection.setBlocked(true);
    return false;
  }

  #drained(): void {
    if (this.#socket.writableLength === 0) this.connection.recycle();
    if (!this.#isBlocked) return;
    this.#isBlocked = false;
    this.connection.setBlocked(false);
  }
}
