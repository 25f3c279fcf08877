/**
 * Long work of which only a little may go on at once. Waiting calls take turns by client, so a
 * client with many calls delays only its own.
 */
export interface FairLimits {
  readonly maxRunning: number;
  readonly maxRunningPerClient: number;
  readonly maxWaiting: number;
  readonly maxWaitingPerClient: number;
}

interface Ticket {
  readonly client: string;
  readonly start: () => void;
}

export class FairLimiter {
  readonly #limits: FairLimits;
  readonly #running = new Map<string, number>();
  /** In the order in which clients get their turns. */
  readonly #waiting = new Map<string, Ticket[]>();
  #runningCount = 0;
  #waitingCount = 0;

  constructor(limits: FairLimits) {
    this.#limits = limits;
  }

  get running(): number {
    return this.#runningCount;
  }

  get waiting(): number {
    return this.#waitingCount;
  }

  /**
   * Calls `start` when it is the client's turn, at once if there is capacity. Undefined if too many
   * wait already; else a function to be called once, when the work has ended or is not wanted any
   * more.
   */
  join(client: string, start: () => void): (() => void) | undefined {
    const ticket: Ticket = { client, start };
    if (this.#hasSpace(client)) {
      this.#begin(ticket);
      return () => this.#leave(ticket);
    }
    const own = this.#waiting.get(client) ?? [];
    if (
      own.length >= this.#limits.maxWaitingPerClient ||
      this.#waitingCount >= this.#limits.maxWaiting
    )
      return undefined;
    own.push(ticket);
    this.#waiting.set(client, own);
    this.#waitingCount++;
    return () => this.#leave(ticket);
  }

  #hasSpace(client: string): boolean {
    return (
      this.#runningCount < this.#limits.maxRunning &&
      (this.#running.get(client) ?? 0) < this.#limits.maxRunningPerClient
    );
  }

  #begin(ticket: Ticket): void {
    this.#runningCount++;
    this.#running.set(ticket.client, (this.#running.get(ticket.client) ?? 0) + 1);
    ticket.start();
  }

  #leave(ticket: Ticket): void {
    const { client } = ticket;
    const own = this.#waiting.get(client);
    const at = own?.indexOf(ticket) ?? -1;
    if (own !== undefined && at >= 0) {
      own.splice(at, 1);
      this.#waitingCount--;
      if (own.length === 0) this.#waiting.delete(client);
      return;
    }
    this.#runningCount--;
    const left = (this.#running.get(client) ?? 0) - 1;
    if (left > 0) this.#running.set(client, left);
    else this.#running.delete(client);
    this.#next();
  }

  /** The turn of the first client below its limit. */
  #next(): void {
    for (const [client, own] of this.#waiting) {
      if (!this.#hasSpace(client)) continue;
      const ticket = own.shift();
      if (ticket === undefined) continue;
      this.#waitingCount--;
      this.#waiting.delete(client);
      // Behind the others.
      if (own.length > 0) this.#waiting.set(client, own);
      this.#begin(ticket);
      return;
    }
  }
}
