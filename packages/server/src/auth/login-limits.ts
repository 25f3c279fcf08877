/**
 * Failed logins, limited: so many at once and then a few a second, for each user from an address,
 * and for an address whatever the user. Another address is not held up, so a user cannot be locked
 * out by others.
 *
 *     10 wrong passwords of "ann" from 10.0.0.7  ->  the 11th is refused before a hash is computed
 */

/** A bucket of failures: `burst` at once, then one more in `refillMs`. */
interface Allowance {
  readonly burst: number;
  readonly refillMs: number;
}

/** For one user from one address. */
export const USER_FAILURES: Allowance = { burst: 10, refillMs: 3000 };
/** For one address and all users. */
export const ADDRESS_FAILURES: Allowance = { burst: 100, refillMs: 300 };
/** Users and addresses whose failures are counted; the one that failed longest ago is forgotten. */
export const MAX_COUNTED_FAILURES = 10_000;

interface Count {
  failures: number;
  atMs: number;
}

class Failures {
  readonly #allowance: Allowance;
  /** The one that failed last is at the end. */
  readonly #counts = new Map<string, Count>();

  constructor(allowance: Allowance) {
    this.#allowance = allowance;
  }

  get size(): number {
    return this.#counts.size;
  }

  mayTry(id: string, nowMs: number): boolean {
    return this.#left(this.#counts.get(id), nowMs) <= this.#allowance.burst - 1;
  }

  failed(id: string, nowMs: number): void {
    const failures = this.#left(this.#counts.get(id), nowMs) + 1;
    this.#counts.delete(id);
    this.#counts.set(id, { failures, atMs: nowMs });
    if (this.#counts.size <= MAX_COUNTED_FAILURES) return;
    for (const oldest of this.#counts.keys()) {
      this.#counts.delete(oldest);
      break;
    }
  }

  succeeded(id: string): void {
    this.#counts.delete(id);
  }

  #left(count: Count | undefined, nowMs: number): number {
    if (count === undefined) return 0;
    return Math.max(0, count.failures - (nowMs - count.atMs) / this.#allowance.refillMs);
  }
}

export class LoginLimits {
  readonly #byUser = new Failures(USER_FAILURES);
  readonly #byAddress = new Failures(ADDRESS_FAILURES);
  /** Logins that have failed. */
  failures = 0;
  /** Logins that were refused before a hash was computed. */
  refusals = 0;

  /** Counts that are kept. */
  get size(): number {
    return this.#byUser.size + this.#byAddress.size;
  }

  /** Whether a login may be tried. @param client the address, or the certificate's name */
  mayTry(user: string, client: string, nowMs: number): boolean {
    const may =
      this.#byUser.mayTry(idOf(user, client), nowMs) && this.#byAddress.mayTry(client, nowMs);
    if (!may) this.refusals++;
    return may;
  }

  /** A password was wrong, or there is no such user. */
  failed(user: string, client: string, nowMs: number): void {
    this.failures++;
    this.#byUser.failed(idOf(user, client), nowMs);
    this.#byAddress.failed(client, nowMs);
  }

  /** A password was right: the user's failures from there are forgotten, the address's are not. */
  succeeded(user: string, client: string): void {
    this.#byUser.succeeded(idOf(user, client));
  }
}

function idOf(user: string, client: string): string {
  return `${client.length}:${client}${user}`;
}
