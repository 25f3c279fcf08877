/** A count of bytes with a bound, for one connection or, as the other's whole, for all of them. */
export class ByteBudget {
  readonly #limitBytes: number;
  readonly #whole: ByteBudget | undefined;
  #usedBytes = 0;

  constructor(limitBytes: number, whole?: ByteBudget) {
    this.#limitBytes = limitBytes;
    this.#whole = whole;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** More than half is used, here or of the whole: time to slow down. */
  get isHigh(): boolean {
    return this.#usedBytes * 2 > this.#limitBytes || (this.#whole !== undefined && this.#whole.isHigh);
  }

  /** Takes the bytes and gives true, or leaves everything as it is and gives false if they would go beyond a bound. */
  take(sizeBytes: number): boolean {
    if (this.#usedBytes + sizeBytes > this.#limitBytes) return false;
    if (this.#whole !== undefined && !this.#whole.take(sizeBytes)) return false;
    this.#usedBytes += sizeBytes;
    return true;
  }

  give(sizeBytes: number): void {
    this.#usedBytes -= sizeBytes;
    this.#whole?.give(sizeBytes);
  }
}
