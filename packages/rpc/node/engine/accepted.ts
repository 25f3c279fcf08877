/** One accepted connection of any protocol, from its first byte to its last. */
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Slot, SlotConnection } from "@quorate/host";
import type { HttpPeer } from "@quorate/host/node";
import type { ByteBudget } from "../../src/http2/byte-budget.ts";
import type { EngineSocket } from "./engine-socket.ts";

/** The listener, as an accepted connection sees it. */
export interface AcceptedOwner {
  nowMs(): number;
}

export class Accepted implements SlotConnection {
  readonly socket: Socket;
  /** The connection's slot; set by the listener right after construction. */
  slot!: Slot;
  /** The stage: TLS handshake, choice of the protocol, then the protocol itself. */
  phase: "handshake" | "deciding" | "http1" | "http2" = "deciding";
  /** The other end, once it is known. */
  peer: HttpPeer | undefined;
  /** The TLS layer above the socket, once its handshake is complete. */
  secured: TLSSocket | undefined;
  engine: EngineSocket | undefined;
  /** Bytes of HTTP/1.1 responses that wait for the client; created with the first response. */
  responses: ByteBudget | undefined;
  /** A stage did not end in time, and the socket is being closed. */
  isLate = false;
  readonly #owner: AcceptedOwner;
  #requests = 0;
  #idleSinceMs: number;

  constructor(socket: Socket, owner: AcceptedOwner) {
    this.socket = socket;
    this.#owner = owner;
    this.#idleSinceMs = owner.nowMs();
  }

  /** An HTTP/1.1 request began, or with -1 its response is complete. */
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
