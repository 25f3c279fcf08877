/** One accepted connection of any protocol, from its first byte to its last. */
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Slot, SlotConnection } from "@quorate/host";

import type { Peer } from "../../src/http2/peer.ts";

/** The listener, as an accepted connection sees it. */
export interface AcceptedOwner {
  nowMs(): number;
}

/** The protocol of a connection, once it is known. */
export interface ServedSocket {
  /** Start of the idle time, in monotonic milliseconds; undefined while there is a request. */
  readonly idleSinceMs: number | undefined;
  /** Takes no more requests, and ends when the open ones have. */
  drain(nowMs: number): void;
  /** Ends the connection because another client needs its slot. */
  leave(nowMs: number): void;
  /** Enforces timeouts; called about once a second. */
  sweep(nowMs: number): void;
}

export class Accepted implements SlotConnection {
  readonly socket: Socket;
  /** The connection's slot; set by the listener right after construction. */
  slot!: Slot;
  /** The stage: TLS handshake, choice of the protocol, then the protocol itself. */
  phase: "handshake" | "deciding" | "http1" | "http2" = "deciding";
  /** The other end, once it is known. */
  peer: Peer | undefined;
  /** The TLS layer above the socket, once its handshake is complete. */
  secured: TLSSocket | undefined;
  served: ServedSocket | undefined;
  /** A stage did not end in time, and the socket is being closed. */
  isLate = false;
  readonly #owner: AcceptedOwner;
  readonly #sinceMs: number;

  constructor(socket: Socket, owner: AcceptedOwner) {
    this.socket = socket;
    this.#owner = owner;
    this.#sinceMs = owner.nowMs();
  }

  idleSinceMs(): number | undefined {
    return this.served === undefined ? this.#sinceMs : this.served.idleSinceMs;
  }

  drain(): void {
    if (this.served === undefined) this.destroy();
    else this.served.drain(this.#owner.nowMs());
  }

  leave(): void {
    if (this.served === undefined) this.destroy();
    else this.served.leave(this.#owner.nowMs());
  }

  destroy(): void {
    this.secured?.destroy();
    this.socket.destroy();
  }
}
