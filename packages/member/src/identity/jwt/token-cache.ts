/** Tokens that were verified, so that a signature is checked once and not with each call. */

/** The least that is known of a cached token. */
export interface ExpiringToken {
  /** Wall-clock time from which it is not accepted; undefined for never. */
  readonly endsMs: number | undefined;
}

/** Bounded by entries and by the bytes of tokens; the token that was verified first goes first. */
export class TokenCache<T extends ExpiringToken> {
  readonly #maxEntries: number;
  readonly #maxBytes: number;
  readonly #entries = new Map<string, T>();
  #bytes = 0;

  constructor(maxEntries: number, maxBytes: number) {
    this.#maxEntries = maxEntries;
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The bytes of the tokens that are kept. */
  get bytes(): number {
    return this.#bytes;
  }

  /** What is known of a token; undefined for one that is not there or has ended. */
  get(token: string, wallMs: number): T | undefined {
    const found = this.#entries.get(token);
    if (found === undefined) return undefined;
    if (found.endsMs === undefined || wallMs < found.endsMs) return found;
    this.#delete(token);
    return undefined;
  }

  set(token: string, value: T): void {
    if (token.length > this.#maxBytes) return;
    this.#delete(token);
    this.#entries.set(token, value);
    this.#bytes += token.length;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#maxEntries && this.#bytes <= this.#maxBytes) break;
      this.#delete(oldest);
    }
  }

  clear(): void {
    this.#entries.clear();
    this.#bytes = 0;
  }

  #delete(token: string): void {
    if (this.#entries.delete(token)) this.#bytes -= token.length;
  }
}
