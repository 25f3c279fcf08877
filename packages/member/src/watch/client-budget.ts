/**
 * Bytes that clients have a member keep for them, with a bound for all of them and one for each
 * client, so that no client's crowd takes what others need.
 */

export interface ClientBudgetLimits {
  readonly maxTotalBytes: number;
  readonly maxClientBytes: number;
}

export class ClientBudget {
  readonly limits: ClientBudgetLimits;
  readonly #byClient = new Map<string, number>();
  #usedBytes = 0;
  /** Requests that were refused for a bound. */
  refusals = 0;

  constructor(limits: ClientBudgetLimits) {
    this.limits = limits;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  usedBy(client: string): number {
    return this.#byClient.get(client) ?? 0;
  }

  /** Takes the bytes for a client; true, or false if they would go beyond a bound. */
  take(client: string, sizeBytes: number): boolean {
    const used = this.usedBy(client) + sizeBytes;
    if (
      used > this.limits.maxClientBytes ||
      this.#usedBytes + sizeBytes > this.limits.maxTotalBytes
    ) {
      this.refusals++;
      return false;
    }
    this.#byClient.set(client, used);
    this.#usedBytes += sizeBytes;
    return true;
  }

  give(client: string, sizeBytes: number): void {
    const left = this.usedBy(client) - sizeBytes;
    if (left > 0) this.#byClient.set(client, left);
    else this.#byClient.delete(client);
    this.#usedBytes -= sizeBytes;
  }
}
