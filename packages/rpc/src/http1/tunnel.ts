/** A connection that another protocol has taken over (RFC 9110 section 7.8). */
import type { HttpTunnel } from "@quorate/host";
import type { Http1Connection } from "./connection.ts";

export class Http1Tunnel implements HttpTunnel {
  isPaused = false;
  readonly #connection: Http1Connection;
  readonly #sendBudgetBytes: number;
  #onData: ((bytes: Uint8Array) => void) | undefined;
  #onClose: () => void = () => {};
  #onDrain: () => void = () => {};
  #isClosed = false;

  constructor(connection: Http1Connection, sendBudgetBytes: number) {
    this.#connection = connection;
    this.#sendBudgetBytes = sendBudgetBytes;
  }

  /** Whether bytes can be delivered now. */
  get isOpen(): boolean {
    return !this.isPaused && this.#onData !== undefined;
  }

  get bufferedBytes(): number {
    return this.#connection.unsentBytes;
  }

  onData(listener: (bytes: Uint8Array) => void): void {
    this.#onData = listener;
    this.#connection.pump();
  }

  onClose(listener: () => void): void {
    this.#onClose = listener;
    if (this.#isClosed) listener();
  }

  onDrain(listener: () => void): void {
    this.#onDrain = listener;
  }

  send(bytes: Uint8Array): boolean {
    const connection = this.#connection;
    if (this.#isClosed || !connection.take(bytes.length)) return false;
    connection.out.append(bytes, 0, bytes.length);
    connection.touched();
    if (connection.unsentBytes <= this.#sendBudgetBytes) return true;
    connection.awaitDrain(this.#sendBudgetBytes >>> 1);
    return false;
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    this.#connection.pump();
  }

  end(): void {
    if (!this.#isClosed) this.#connection.finish();
  }

  destroy(): void {
    if (!this.#isClosed) this.#connection.destroy();
  }

  /** @internal Called by the connection. */
  data(bytes: Uint8Array): void {
    this.#onData?.(bytes);
  }

  /** @internal Called by the connection. */
  drained(): void {
    this.#onDrain();
  }

  /** @internal Called by the connection. */
  closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#onClose();
  }
}
