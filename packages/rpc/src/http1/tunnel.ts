/** A connection that another protocol has taken over (RFC 9110 section 7.8). */
import type { HttpTunnel } from "@quorate/host";
import type { CarriedTunnel, Carrier } from "./carrier.ts";

export class Http1Tunnel implements HttpTunnel, CarriedTunnel {
  isPaused = false;
  readonly #connection: Carrier;
  readonly #sendBudgetBytes: number;
  #onData: ((bytes: Uint8Array) => void) | undefined;
  #onClose: () => void = () => {};
  #onDrain: () => void = () => {};
  #heldBytes = 0;
  #isClosed = false;

  constructor(connection: Carrier, sendBudgetBytes: number) {
    this.#connection = connection;
    this.#sendBudgetBytes = sendBudgetBytes;
  }

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

  hold(sizeBytes: number): boolean {
    if (this.#isClosed) return false;
    if (!this.#connection.held.take(sizeBytes)) {
      this.#connection.shared.budgetCounters.heldBytesRefusals++;
      return false;
    }
    this.#heldBytes += sizeBytes;
    return true;
  }

  release(sizeBytes: number): void {
    const size = Math.min(sizeBytes, this.#heldBytes);
    this.#heldBytes -= size;
    this.#connection.held.give(size);
  }

  end(): void {
    if (!this.#isClosed) this.#connection.finish();
  }

  destroy(): void {
    if (!this.#isClosed) this.#connection.destroy();
  }

  data(bytes: Uint8Array): void {
    this.#onData?.(bytes);
  }

  drained(): void {
    this.#onDrain();
  }

  closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.release(this.#heldBytes);
    this.#onClose();
  }
}
