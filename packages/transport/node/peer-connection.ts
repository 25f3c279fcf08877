/** One connection to the peer port, as its slot sees it. */
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Clock, Slot, SlotConnection } from "@quorate/host";

export class PeerConnection implements SlotConnection {
  readonly peerAddress: string;
  /** Its place; set right after it was made. */
  slot!: Slot;
  /** The TLS layer above the socket, once its handshake is over. */
  secured: TLSSocket | undefined;
  /** The fingerprint of a certificate that was verified. */
  certificate: string | undefined;
  /** It carries a member's stream: never idle, however little is said. */
  isMember = false;
  readonly #socket: Socket;
  readonly #clock: Clock;
  #requests = 0;
  #idleSinceMs: number;
  #seenBytes = 0;
  #silentChecks = 0;

  constructor(socket: Socket, clock: Clock, peerAddress: string) {
    this.#socket = socket;
    this.#clock = clock;
    this.peerAddress = peerAddress;
    this.#idleSinceMs = clock.monotonicMs();
  }

  /** A request has begun, or with -1 ended. */
  request(count: 1 | -1): void {
    this.#requests += count;
    if (this.#requests === 0) this.#idleSinceMs = this.#clock.monotonicMs();
  }

  /** How many times in a row this was asked without a byte coming in between. */
  silentChecks(): number {
    const bytes = this.#socket.bytesRead;
    this.#silentChecks = bytes === this.#seenBytes ? this.#silentChecks + 1 : 0;
    this.#seenBytes = bytes;
    return this.#silentChecks;
  }

  idleSinceMs(): number | undefined {
    return this.isMember || this.#requests > 0 ? undefined : this.#idleSinceMs;
  }

  drain(): void {
    this.destroy();
  }

  leave(): void {
    this.destroy();
  }

  destroy(): void {
    this.secured?.destroy();
    this.#socket.destroy();
  }
}
