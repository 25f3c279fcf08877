/** One accepted connection, from its first byte to its last, whatever it speaks. */
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Slot, SlotConnection } from "@quorate/host";
import type { HttpPeer } from "@quorate/host/node";
import type { ByteBudget } from "../../src/http2/byte-budget.ts";
import type { EngineSocket } from "./engine-socket.ts";

/** What an accepted connection needs of its listener. */
export interface AcceptedOwner {
  nowMs(): number;
}

export class Accepted implements SlotConnection {
  readonly socket: Socket;
  /** Its place; set by the listener right after it was made. */
  slot!: Slot;
  /** What goes on: the TLS handshake, then the choice of a protocol, then its use. */
  phase: "handshake" | "deciding" | "http1" | "http2" = "deciding";
  /** Who is at the other end, once that is known. */
  peer: HttpPeer | undefined;
  /** The TLS layer above the socket, once its handshake is over. */
  secured: TLSSocket | undefined;
  engine: EngineSocket | undefined;
  /** Bytes of answers over HTTP/1.1 that wait for the client; made with the first one. */
  answers: ByteBudget | undefined;
  /** A stage did not end in time: the socket is being closed for that. */
  isLate = false;
  readonly #owner: AcceptedOwner;
  #requests = 0;
  #idleSinceMs: number;

  constructor(socket: Socket, owner: AcceptedOwner) {
    this.socket = socket;
    this.#owner = owner;
    this.#idleSinceMs = owner.nowMs();
  }

  /** An HTTP/1.1 request has begun, or with -1 been answered. */
  request(count: 1 | -1): void {
    this.#requests += count;
    if (this.#requests === 0) this.#idleSinceMs = this.#owner.nowMs();
  }

  idleSinceMs(): number | undefined {
    if (this.engine !== undefined) return this.engine.connection.idleSinceMs;
    return this.#requests === 0 ? this.#idleSinceMs : undefined;
  }

  drain(): void {
    if (this.engine !== undefined) this.engine.connection.drain(this.#owner.nowMs());
    else if (this.#requests === 0) this.destroy();
  }

  leave(): void {
    if (this.engine !== undefined) this.engine.connection.shed(this.#owner.nowMs());
    else this.destroy();
  }

  destroy(): void {
    this.secured?.destroy();
    this.socket.destroy();
  }
}
