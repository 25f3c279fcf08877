/** A bucket of tokens for each caller, in the cluster. */
import { type Client, json, type Namespace } from "@quorate/client";

interface Bucket {
  readonly tokens: number;
  readonly atMs: number;
}

export interface Rate {
  /** Calls at once. */
  readonly burst: number;
  /** Calls a second after that. */
  readonly perSecond: number;
}

export class RateLimiter {
  readonly #client: Client;
  readonly #buckets: Namespace<Bucket>;
  readonly #rate: Rate;
  readonly #nowMs: () => number;

  /** @param nowMs the time; the clocks of programs that share a limit must agree */
  constructor(client: Client, rate: Rate, nowMs: () => number = Date.now) {
    this.#client = client;
    this.#buckets = client.namespace("rate-limits/", json<Bucket>());
    this.#rate = rate;
    this.#nowMs = nowMs;
  }

  /** Whether a caller may call now; counts the call. */
  take(caller: string): Promise<boolean> {
    const { burst, perSecond } = this.#rate;
    return this.#client.transaction(async (transaction) => {
      const buckets = this.#buckets.within(transaction);
      const nowMs = this.#nowMs();
      const { tokens, atMs } = (await buckets.get(caller)) ?? { tokens: burst, atMs: nowMs };
      const passedMs = Math.max(0, nowMs - atMs);
      const filled = Math.min(burst, tokens + (passedMs / 1000) * perSecond);
      if (filled < 1) return false;
      await buckets.put(caller, { tokens: filled - 1, atMs: Math.max(nowMs, atMs) });
      return true;
    });
  }
}
