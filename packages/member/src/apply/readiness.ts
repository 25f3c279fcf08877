/** Whether the store in use may be read, and shown to clients. */
import type { StoreExchange } from "./store-exchange.ts";

/** The part that may make this member replace its store by another's. */
export interface Healing {
  readonly isHealing: boolean;
  /** Resolves when it is over. */
  healed(): Promise<void>;
}

export class Readiness {
  readonly #exchange: StoreExchange;
  readonly #healing: Healing;

  constructor(exchange: StoreExchange, healing: Healing) {
    this.#exchange = exchange;
    this.#healing = healing;
  }

  /** Whether `servable` would resolve at once. */
  get isServable(): boolean {
    return !this.#exchange.isRunning && !this.#healing.isHealing;
  }

  /**
   * Resolves when the store may be read, which is at once unless a received one is being put in its
   * place; rejects with Stopped where that has failed.
   */
  async readable(): Promise<void> {
    await this.#exchange.over();
  }

  /** Resolves when, besides, this member is not about to replace its store by another's. */
  async servable(): Promise<void> {
    await this.#exchange.over();
    await this.#healing.healed();
  }
}
