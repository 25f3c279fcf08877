/**
 * Failed logins, limited: so many at once and then a few a second, for each user from an address,
 * and for an address whatever the user. Another address is not held up, so a user cannot be locked
 * out by others.
 *
 *     10 wrong passwords of "ann" from 10.0.0.7  ->  the 11th is refused before a hash is computed
 *     100 of any users from 10.0.0.7             ->  so is the next, but not one of a user that has
 *                                                    shown its password from there before
 *
 * Behind a proxy all clients have its address, unless the proxy is trusted (--trusted-proxies): it
 * says for whom it asks in the field x-forwarded-for, which counts from nobody else.
 */
import { hostOfAddress, keepNewest, setNewest } from "@quorate/host";
import { clientOf, FORWARDED_FOR, type Peer } from "@quorate/rpc";

/** A bucket of failures: `burst` at once, then one more in `refillMs`. */
interface Allowance {
  readonly burst: number;
  readonly refillMs: number;
}

/** For one user from one address. */
export const USER_FAILURES: Allowance = { burst: 10, refillMs: 3000 };
/** For one address and all users. */
export const ADDRESS_FAILURES: Allowance = { burst: 100, refillMs: 300 };
/**
 * Attempts that are refused for one user from one address while a login that is kept for that user
 * there is given out all the same. More would let a guesser find out by it which password is right.
 */
export const KEPT_GUESSES: Allowance = { burst: 100, refillMs: 3000 };
/** An address has at most so many characters; others are no addresses. */
const MAX_ADDRESS_CHARS = 64;
const ADDRESS = /^[0-9A-Fa-f:.]+$/;
/** How --trusted-proxies names a certificate. */
const BY_NAME = "CN=";
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
    setNewest(this.#counts, id, { failures, atMs: nowMs }, MAX_COUNTED_FAILURES);
  }

  succeeded(id: string): void {
    this.#counts.delete(id);
  }

  #left(count: Count | undefined, nowMs: number): number {
    if (count === undefined) return 0;
    return Math.max(0, count.failures - (nowMs - count.atMs) / this.#allowance.refillMs);
  }
}

/** Who asks for a login: the part of a caller that is looked at. */
export interface LoginCaller extends Pick<Peer, "peerAddress" | "peerCommonName"> {
  metadata(key: string): string | undefined;
}

export class LoginLimits {
  readonly #trustedProxies: ReadonlySet<string>;
  readonly #byUser = new Failures(USER_FAILURES);
  readonly #byAddress = new Failures(ADDRESS_FAILURES);
  /** Attempts that were refused, by user and address. */
  readonly #guesses = new Failures(KEPT_GUESSES);
  /** Users that have shown their password, with the address; the last one is at the end. */
  readonly #proved = new Set<string>();
  /** Logins that have failed. */
  failures = 0;
  /** Logins that were refused before a hash was computed. */
  refusals = 0;

  /** @param trustedProxies addresses, and CN=NAME for names of certificates */
  constructor(trustedProxies: ReadonlySet<string> = new Set()) {
    this.#trustedProxies = trustedProxies;
  }

  /** Counts that are kept. */
  get size(): number {
    return this.#byUser.size + this.#byAddress.size + this.#guesses.size + this.#proved.size;
  }

  /**
   * The party whose logins are counted together: the client, or for a trusted proxy the client that
   * it names. What others say in the field is not looked at.
   */
  partyOf(caller: LoginCaller): string {
    const client = clientOf(caller);
    if (this.#trustedProxies.size === 0 || !this.#isTrusted(caller)) return client;
    // A proxy adds the address that it sees at the end; what stands before it, others may have
    // made up.
    const field = caller.metadata(FORWARDED_FOR) ?? "";
    const last = field.slice(field.lastIndexOf(",") + 1).trim();
    if (last.length > MAX_ADDRESS_CHARS || !ADDRESS.test(last)) return client;
    return `${client} for ${last}`;
  }

  #isTrusted({ peerAddress, peerCommonName }: LoginCaller): boolean {
    const host = hostOfAddress(peerAddress);
    const isNamed = peerCommonName !== undefined && peerCommonName !== "";
    return (
      this.#trustedProxies.has(host) ||
      (isNamed && this.#trustedProxies.has(BY_NAME + peerCommonName))
    );
  }

  /** Whether a login may be tried. @param party as partyOf() */
  mayTry(user: string, party: string, nowMs: number): boolean {
    const id = idOf(user, party);
    if (!this.#byUser.mayTry(id, nowMs)) return false;
    return this.#proved.has(id) || this.#byAddress.mayTry(party, nowMs);
  }

  /** Whether a login that is kept may be given out to another connection of the party's. */
  mayUseKept(user: string, party: string, nowMs: number): boolean {
    return this.mayTry(user, party, nowMs) || this.#guesses.mayTry(idOf(user, party), nowMs);
  }

  /** A login was refused before its password was looked at. */
  refused(user: string, party: string, nowMs: number): void {
    this.refusals++;
    this.#guesses.failed(idOf(user, party), nowMs);
  }

  /** A password was wrong, or there is no such user. */
  failed(user: string, party: string, nowMs: number): void {
    this.failures++;
    this.#byUser.failed(idOf(user, party), nowMs);
    this.#byAddress.failed(party, nowMs);
  }

  /** A password was right: the user's failures from there are forgotten, the address's are not. */
  succeeded(user: string, party: string): void {
    const id = idOf(user, party);
    this.#byUser.succeeded(id);
    this.#proved.delete(id);
    this.#proved.add(id);
    keepNewest(this.#proved, MAX_COUNTED_FAILURES);
  }
}

function idOf(user: string, party: string): string {
  return `${party.length}:${party}${user}`;
}
