/**
 * Rechecks the open TLS connections of a port when its options change: closes those whose
 * certificate was revoked or is no longer among the allowed names. (etcd leaves such connections
 * open.) Connections whose CA was removed stay open: CAs are rotated, with both valid for a while.
 */
import type { TLSSocket } from "node:tls";
import { demandsClientCertificate, refuseCertificate } from "./tls.ts";
import type { TlsSource } from "./tls-source.ts";

/** Connections checked per turn of the event loop; some 20 microseconds each. */
const SOCKETS_PER_TURN = 100;

export class OpenTlsSockets {
  readonly #source: TlsSource;
  readonly #refused: (socket: TLSSocket, reason: string) => void;
  readonly #sockets = new Set<TLSSocket>();
  readonly #forget: () => void;
  #round = 0;

  /** @param refused called with a connection to close, and the reason; it must close it */
  constructor(source: TlsSource, refused: (socket: TLSSocket, reason: string) => void) {
    this.#source = source;
    this.#refused = refused;
    this.#forget = source.onChange(() => void this.#lookAgain());
  }

  /** Adds a connection after its handshake and certificate check. */
  add(socket: TLSSocket): void {
    if (socket.destroyed) return;
    // The options may have changed since the certificate check, which may wait for DNS.
    if (this.#refuse(socket)) return;
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
  }

  /** Stops checking; the connections stay open. */
  close(): void {
    this.#round++;
    this.#forget();
    this.#sockets.clear();
  }

  async #lookAgain(): Promise<void> {
    if (!demandsClientCertificate(this.#source.current)) return;
    const round = ++this.#round;
    let left = SOCKETS_PER_TURN;
    for (const socket of [...this.#sockets]) {
      if (left-- === 0) {
        await new Promise((resolve) => setImmediate(resolve));
        // The options have changed again, or the port is closed.
        if (round !== this.#round) return;
        left = SOCKETS_PER_TURN;
      }
      if (!socket.destroyed) this.#refuse(socket);
    }
  }

  /** Whether the present options refuse the connection. */
  #refuse(socket: TLSSocket): boolean {
    const { current } = this.#source;
    if (!demandsClientCertificate(current)) return false;
    const reason = refuseCertificate(current, socket.getPeerX509Certificate(), true);
    if (reason !== undefined) this.#refused(socket, reason);
    return reason !== undefined;
  }
}
