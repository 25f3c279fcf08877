/**
 * The open TLS connections of a port, looked at again when its options change: one whose
 * certificate has been revoked, or is no longer among the allowed names, is ended. (etcd leaves
 * such connections open for as long as their clients like.) What the authority's withdrawal would
 * refuse stays until it connects again: authorities change in rotations, with both in force for a
 * while.
 */
import type { TLSSocket } from "node:tls";
import { demandsClientCertificate, refuseCertificate } from "./tls.ts";
import type { TlsSource } from "./tls-source.ts";

/** So many connections are looked at in one turn of the event loop; some 20 microseconds each. */
const SOCKETS_PER_TURN = 100;

export class OpenTlsSockets {
  readonly #source: TlsSource;
  readonly #refused: (socket: TLSSocket, reason: string) => void;
  readonly #sockets = new Set<TLSSocket>();
  readonly #forget: () => void;
  #round = 0;

  /** @param refused called with a connection that is to be ended, and why; it ends it */
  constructor(source: TlsSource, refused: (socket: TLSSocket, reason: string) => void) {
    this.#source = source;
    this.#refused = refused;
    this.#forget = source.onChange(() => void this.#lookAgain());
  }

  /** A connection whose handshake is over and whose certificate was taken. */
  add(socket: TLSSocket): void {
    if (socket.destroyed) return;
    // The options may have changed since the certificate was looked at: a name was being looked up.
    if (this.#refuse(socket)) return;
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
  }

  /** Ends the looking; the connections stay as they are. */
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
        // The options have changed once more, or the port is closed.
        if (round !== this.#round) return;
        left = SOCKETS_PER_TURN;
      }
      if (!socket.destroyed) this.#refuse(socket);
    }
  }

  /** True if the connection is not to go on under the options of now. */
  #refuse(socket: TLSSocket): boolean {
    const { current } = this.#source;
    if (!demandsClientCertificate(current)) return false;
    const reason = refuseCertificate(current, socket.getPeerX509Certificate(), true);
    if (reason !== undefined) this.#refused(socket, reason);
    return reason !== undefined;
  }
}
