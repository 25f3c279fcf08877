/**
 * Two locks as a program may write them, and a shared account to which only a holder may write.
 *
 *     naiveLock    a key with a lease: whoever makes it holds the lock. A holder that is paused
 *                  until its lease has ended still takes itself for the holder.
 *     fencedLock   the same lock, and the account refuses a writer whose token is older than one
 *                  that it has seen
 */
import { type Client, compareCreateRevision, opPut } from "@quorate/client";

const KEY = "locks/account";
const TTL_SECONDS = 3;

/** A lock that is held. */
interface Held {
  /** Larger than that of every earlier holder. */
  readonly token: number;
  release(): Promise<void>;
}

/** Tries to take the lock; undefined while another client holds it. */
async function take(client: Client): Promise<Held | undefined> {
  const { ID: lease } = await client.leases.grant(TTL_SECONDS);
  const { succeeded, header } = await client.txn({
    compare: [compareCreateRevision(KEY, "=", 0)],
    success: [opPut(KEY, "held", { lease })],
  });
  if (succeeded) {
    const renewals = client.leases.keepAlive(lease, () => {});
    const release = async (): Promise<void> => {
      renewals.stop();
      await client.leases.revoke(lease);
    };
    return { token: header.revision, release };
  }
  await client.leases.revoke(lease);
  return undefined;
}

/** Money, outside the cluster. */
export class Account {
  /** Who is in the middle of a change. */
  readonly #inside = new Set<string>();
  #newestToken = 0;
  balance = 0;
  readonly isFenced: boolean;

  constructor(isFenced: boolean) {
    this.isFenced = isFenced;
  }

  /** Begins a change. Throws if another one is in the middle of one that the account would take. */
  read(who: string, token: number): number {
    this.#fence(token);
    this.#inside.add(who);
    if (!this.isFenced && this.#inside.size > 1)
      throw new Error(`two holders: ${[...this.#inside].join(" and ")}`);
    return this.balance;
  }

  /** Ends it. Throws Stale where a later holder has begun. */
  write(who: string, token: number, balance: number): void {
    this.#inside.delete(who);
    this.#fence(token);
    this.balance = balance;
  }

  #fence(token: number): void {
    if (!this.isFenced) return;
    if (token < this.#newestToken) throw new Stale();
    this.#newestToken = token;
  }
}

/** The writer is not the holder any more. */
export class Stale extends Error {}

/** A client with a clock; in a simulation that is the simulated one. */
export interface Worker extends Client {
  readonly name: string;
  readonly clock: { sleep(ms: number): Promise<void> };
}

/**
 * Adds 1 to the account as often as it says, each time with the lock; calls may fail, and are tried
 * again. Resolves with how often the account has taken it.
 */
export async function work(worker: Worker, account: Account, times: number): Promise<number> {
  let done = 0;
  for (let i = 0; i < times; i++) {
    try {
      const held = await take(worker);
      if (held !== undefined) {
        const balance = account.read(worker.name, held.token);
        await worker.clock.sleep(1000);
        account.write(worker.name, held.token, balance + 1);
        done++;
        await held.release();
      }
    } catch (error) {
      if (error instanceof Error && error.message.startsWith("two holders")) throw error;
    }
    await worker.clock.sleep(300);
  }
  return done;
}
