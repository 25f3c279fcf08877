/**
 * What leases promise, from the log and from what servers report of them to clients:
 *
 *   LEASE-1 not early        a lease that no client revoked lives on for its time to live after
 *                            each renewal (and its grant) that was
 *                            acknowledged, counted from when the client asked
 *   LEASE-2 once             the leader of a term revokes an expired lease once, not again before
 *                            the first try's time is up
 *   LEASE-3 gone is gone     a response to a request after the known end reports it
 *   LEASE-4 not without end  no response reports the end of a lease that stands
 *   LEASE-5 expired, revoked in a healthy cluster every lease that is not renewed ends
 *
 * Clocks drift, and a lease's time is the leader's: a clock that runs fast by a share d counts a
 * second in 1/(1+d) of it. And a leader may renew up to an election timeout of its own clock after
 * its quorum last confirmed it, which its successor makes up for by an election timeout of its:
 * where one clock is slow and the other fast, these differ. Both are what etcd's leases rest on
 * too.
 */
import {
  defined,
  type ErrorName,
  type InternalRaftRequest,
  LeaseGrantRequest,
  LeaseRevokeRequest,
} from "@quorate/proto";
import { violate } from "../base/violation.ts";

/** A member's proposal is tried again only after so long (see Member: timeoutMs). */
const PROPOSAL_TIMEOUT_MS = 5000;

/** A lease from its grant in the log on. */
export interface LeaseLife {
  readonly id: string;
  readonly ttlMs: number;
  /** It must not have ended before, unless a client asked for it. */
  promisedUntilMs: number;
  /** When a client first asked for its end. */
  askedMs: number | undefined;
  /** When its end was applied first. */
  endedMs: number | undefined;
  /** From when on a client knew that it had ended. */
  knownMs: number;
  /** The term of the last revocation in the log. */
  revokedInTerm: number;
  /** Where in the log it was granted, and where it ended. */
  readonly grantedAt: number;
  endedAt: number;
}

export interface LeaseCheckOptions {
  readonly electionMs: number;
  /** The most by which a clock runs fast or slow, as a share. */
  readonly drift: number;
  /** A lease lives at least as long, whatever its grant says; undefined for what it says. */
  readonly leastTtlSeconds?: number | undefined;
  /** From so many leases on, a new leader spreads their ends. */
  readonly maxRevokesPerSecond: number;
}

export class LeaseCheck {
  readonly #options: LeaseCheckOptions;
  readonly #now: () => number;
  readonly #lives = new Map<string, LeaseLife>();
  /** Revocations that clients asked for, by lease: also of such as are not granted yet. */
  readonly #asked = new Map<string, number>();
  /** What was looked at, for the record. */
  readonly counts = { granted: 0, renewed: 0, expired: 0, revoked: 0 };

  constructor(options: LeaseCheckOptions, now: () => number) {
    this.#options = options;
    this.#now = now;
  }

  exists(id: string): boolean {
    const life = this.#lives.get(id);
    return life !== undefined && life.endedMs === undefined;
  }

  /** Leases that exist by the log, in the order of their ids. */
  get existing(): string[] {
    return [...this.#lives.values()]
      .filter(({ endedMs }) => endedMs === undefined)
      .map(({ id }) => id)
      .sort();
  }

  /** For how long of the world's time a time to live counts at least. */
  #leastMs(ttlMs: number): number {
    const { drift, electionMs } = this.#options;
    return ttlMs / (1 + drift) - electionMs * (1 / (1 - drift) - 1 / (1 + drift));
  }

  // --- The log ---

  /**
   * An entry is applied for the first time. Returns the error that it must come to, undefined for
   * none.
   */
  applied(request: InternalRaftRequest, term: number, index: number): ErrorName | undefined {
    if (request.leaseGrant !== undefined)
      return this.#granted(LeaseGrantRequest.decode(request.leaseGrant), index);
    if (request.leaseRevoke !== undefined)
      return this.#revoked(`${LeaseRevokeRequest.decode(request.leaseRevoke).ID}`, term, index);
    return undefined;
  }

  /** The leases that a cluster begins with, and their times to live in seconds. */
  begin(leases: ReadonlyMap<string, number>): void {
    for (const [id, ttlSeconds] of leases) this.#begin(id, ttlSeconds * 1000, 0);
  }

  /** The leases that existed when the entry `index` had been applied, in the order of their ids. */
  existingAt(index: number): string[] {
    return [...this.#lives.values()]
      .filter(({ grantedAt, endedAt }) => grantedAt <= index && index < endedAt)
      .map(({ id }) => id)
      .sort();
  }

  #granted({ ID, TTL }: LeaseGrantRequest, index: number): ErrorName | undefined {
    const id = `${ID}`;
    if (this.exists(id)) return "LeaseExist";
    if (this.#lives.has(id))
      violate(
        "LEASE",
        `the lease ${id} is granted a second time: the simulator's clients never do that`,
      );
    this.#begin(id, Math.max(TTL, this.#options.leastTtlSeconds ?? 0) * 1000, index);
    this.counts.granted++;
    return undefined;
  }

  #begin(id: string, ttlMs: number, grantedAt: number): void {
    const life: LeaseLife = {
      id,
      ttlMs,
      promisedUntilMs: 0,
      askedMs: this.#asked.get(id),
      endedMs: undefined,
      knownMs: Number.POSITIVE_INFINITY,
      revokedInTerm: 0,
      grantedAt,
      endedAt: Number.POSITIVE_INFINITY,
    };
    this.#lives.set(id, life);
  }

  #revoked(id: string, term: number, index: number): ErrorName | undefined {
    const life = this.#lives.get(id);
    if (life === undefined) return "LeaseNotFound";
    const now = this.#now();
    if (life.endedMs !== undefined) {
      const isTwice = life.askedMs === undefined && life.revokedInTerm === term;
      if (isTwice && now < life.promisedUntilMs + PROPOSAL_TIMEOUT_MS / (1 + this.#options.drift)) {
        violate("LEASE-2", `the lease ${id} is revoked twice in term ${term}`);
      }
      life.revokedInTerm = term;
      return "LeaseNotFound";
    }
    life.endedMs = now;
    life.endedAt = index;
    life.revokedInTerm = term;
    if (life.askedMs === undefined) {
      this.counts.expired++;
      if (now < life.promisedUntilMs) this.#early(life);
    } else this.counts.revoked++;
    return undefined;
  }

  #early({ id, ttlMs, endedMs, promisedUntilMs }: LeaseLife): never {
    const early = (promisedUntilMs - defined(endedMs, "the ended ms")).toFixed(3);
    violate(
      "LEASE-1",
      `the lease ${id} of ${ttlMs} ms ended at ${defined(endedMs, "the ended ms").toFixed(3)} ms, ${early} ms before its time`,
    );
  }

  // --- What clients ask and what servers report; times in the world's milliseconds ---

  /** A client is about to ask for the end of a lease. */
  askedToRevoke(id: string): void {
    const now = this.#now();
    if (!this.#asked.has(id)) this.#asked.set(id, now);
    const life = this.#lives.get(id);
    if (life !== undefined) life.askedMs ??= now;
  }

  /**
   * A response, to a request sent at `askedMs`, reported that a lease lives: granted or renewed for
   * `ttlMs`.
   */
  reportedAlive(id: string, askedMs: number, ttlMs: number): void {
    const life = this.#lives.get(id);
    if (life === undefined)
      violate("LEASE", `the lease ${id} is reported to live, and no client has requested it`);
    this.counts.renewed++;
    const untilMs = askedMs + this.#leastMs(ttlMs);
    life.promisedUntilMs = Math.max(life.promisedUntilMs, untilMs);
    if (life.endedMs === undefined) return;
    if (life.askedMs === undefined && life.endedMs < untilMs) this.#early(life);
    // A leader that has lost its cluster renews for as long as its last confirmation serves.
    const staleMs = this.#options.electionMs / (1 - this.#options.drift);
    if (askedMs > life.knownMs + staleMs)
      violate(
        "LEASE-3",
        `the lease ${id} is renewed ${askedMs - life.knownMs} ms after its end was known`,
      );
  }

  /** Until when a lease must live by what was reported to clients so far. */
  promisedUntilMs(id: string): number {
    return this.#lives.get(id)?.promisedUntilMs ?? 0;
  }

  /**
   * A response reported the time that a lease has left: a linearizable answer.
   * @param asked when that was asked, and what was promised then
   */
  reportedTimeToLive(
    id: string,
    { askedMs, promisedMs }: { askedMs: number; promisedMs: number },
    remainingMs: number,
  ): void {
    const life = this.#lives.get(id);
    if (life === undefined)
      violate("LEASE", `the lease ${id} has a time to live, and no client has requested it`);
    if (askedMs > life.knownMs)
      violate(
        "LEASE-3",
        `the lease ${id} has a time to live ${askedMs - life.knownMs} ms after its end was known`,
      );
    // The response is in whole seconds.
    const leastMs = promisedMs - this.#now() - 1000 * (1 + this.#options.drift);
    if (life.askedMs === undefined && remainingMs * (1 + this.#options.drift) < leastMs) {
      violate(
        "LEASE-1",
        `the lease ${id} is said to have ${remainingMs} ms left, and is promised for ${leastMs.toFixed(3)} ms more`,
      );
    }
    const mostMs = life.ttlMs + this.#options.electionMs + 1000 + this.#spreadMs;
    if (remainingMs > mostMs)
      violate("LEASE-3", `the lease ${id} of ${life.ttlMs} ms has ${remainingMs} ms left`);
  }

  /** What a new leader may put the end of a lease off by, so that not all end at one time. */
  get #spreadMs(): number {
    const { maxRevokesPerSecond } = this.#options;
    const { size } = this.#lives;
    return size < maxRevokesPerSecond ? 0 : (1000 * size) / (0.75 * maxRevokesPerSecond);
  }

  /** A response reported that a lease, whose grant was acknowledged before, does not exist. */
  reportedGone(id: string): void {
    const life = this.#lives.get(id);
    if (life?.endedMs === undefined)
      violate("LEASE-4", `the lease ${id} is said to be gone, and has not ended`);
    life.knownMs = Math.min(life.knownMs, this.#now());
  }
}
