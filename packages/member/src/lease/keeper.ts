/**
 * The leader counts the time of the leases (etcd: the primary lessor, server/lease/lessor.go).
 *
 *     leads(term)     confirm leadership ---> promote: every lease gets its remaining time and the
 *                     election timeout on top
 *     renew(id)       a quorum has confirmed the leadership just now ---> the lease's whole time
 *                     from now on; not through the log
 *     every 100 ms    leases that are due ---> LeaseRevoke through the log, 1000 a second, and more
 *                     while that leaves some waiting
 *     every 5 min     what is left of a long lease ---> LeaseCheckpoint through the log, for the
 *                     next leader and for restarts
 *     steppedDown()   the time is forgotten
 *
 * No lease ends early:
 * - A new leader promotes only when all that earlier leaders had in the log is applied: what was
 *   left of a lease is not older than its last renewal.
 * - A renewal is answered only if a quorum took this member for its leader within the last election
 *   timeout, which is what a successor adds. Mostly it was within `confirmedForMs`.
 * - Revocations and checkpoints go into the log in the term whose time they are about, or not at
 *   all.
 * - What a checkpoint has noted is taken back through the log before a renewal is answered.
 */
import type { Clock, Logger, Timer } from "@quorate/host";
import { CodedError, idToHex, LeaseCheckpointRequest, LeaseRevokeRequest } from "@quorate/proto";
import { type Lease, type LeaseObserver, mergeSort, STEP_KEYS, type Steps } from "@quorate/store";
import type { MemberDeps } from "../deps.ts";
import type { Proposals } from "../loop/proposals.ts";
import type { Reads } from "../loop/reads.ts";
import { SharedTurns } from "../reads/shared-turns.ts";
import { MEMBER_SHARE } from "../reads/slice-task.ts";
import type { StoreRef } from "../reads/store-ref.ts";
import type { LeaseBounds } from "./bounds.ts";
import { Deadlines } from "./deadlines.ts";
import type { CountedLease, Epoch, LeaseTime } from "./epoch.ts";

/** How often what is left of long leases is noted (etcd: defaultLeaseCheckpointInterval). */
export const LEASE_CHECKPOINT_INTERVAL_MS: number = 5 * 60_000;
/** How often the leader looks for leases that are due. */
const LOOK_PERIOD_MS = 100;
/** A revocation that failed is tried again after this long. */
const REVOKE_RETRY_MS = 500;
/**
 * One that was applied and refused, as all are while members differ, is tried again after this long
 * (etcd: expiredLeaseRetryInterval).
 */
const REFUSED_RETRY_MS = 3000;
/**
 * Of the revocations of a second, this share is spread over by a new leader; the rest is left for
 * others (etcd: 3/4).
 */
const SPREAD_SHARE = 3 / 4;

/** This member does not count the leases' time: it does not lead, or has not taken over yet. */
export class NotPrimaryError extends CodedError<"NotPrimary"> {
  constructor() {
    super("NotPrimaryError", "NotPrimary", "not a primary lessor");
  }
}

export interface KeeperOptions {
  /** The least time to live in seconds; a lease from a time with a lower minimum has it too. */
  readonly minTtlSeconds: number;
  /** What a new leader adds: the election timeout. */
  readonly extendMs: number;
  /** For so long a confirmation of the leadership serves renewals; less than `extendMs`. */
  readonly confirmedForMs: number;
  /** How often what is left of a lease is noted in the log; undefined for never. */
  readonly checkpointIntervalMs: number | undefined;
  readonly bounds: LeaseBounds;
}

export interface KeeperCounters {
  readonly renewed: { add(): void };
  readonly expired: { add(): void };
}

export interface KeeperDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly counters: KeeperCounters;
  readonly store: StoreRef;
  readonly reads: Pick<Reads, "wait">;
  readonly proposals: Pick<Proposals, "proposeInTerm">;
  /**
   * The transaction that must be applied before a lease is revoked: what ends with its keys, and is
   * not attached to it. Undefined for most leases.
   */
  readonly beforeRevoke?: MemberDeps["beforeRevoke"];
}

export class LeaseKeeper implements LeaseObserver {
  readonly #options: KeeperOptions;
  readonly #deps: KeeperDeps;
  readonly #turns: SharedTurns;
  #epoch: Epoch | undefined;
  #timer: Timer | undefined;
  #lookedMs = 0;
  /** Revocations that may begin now, and how many more in a second. */
  #allowance = 0;
  #revokesPerSecond = 0;
  #inflightRevokes = 0;
  #inflightCheckpoints = 0;

  constructor(options: KeeperOptions, deps: KeeperDeps) {
    if (options.confirmedForMs >= options.extendMs)
      throw new RangeError("confirmedForMs must be less than extendMs");
    this.#options = options;
    this.#deps = deps;
    this.#turns = new SharedTurns(deps.clock);
  }

  /** True once this member counts the leases' time. */
  get isPrimary(): boolean {
    return this.#epoch?.promoted === true;
  }

  /** This member leads from now on, in `term`. */
  leads(term: number): void {
    this.steppedDown();
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const epoch: Epoch = {
      term,
      leases: new Map(),
      expiries: new Deadlines(),
      checkpoints: new Deadlines(),
      ended,
      end,
      counting: false,
      promoted: false,
      confirmedMs: Number.NEGATIVE_INFINITY,
      confirming: undefined,
    };
    this.#epoch = epoch;
    this.#takeOver(epoch);
  }

  /** This member does not lead (any more). */
  steppedDown(): void {
    const epoch = this.#epoch;
    if (epoch === undefined) return;
    this.#epoch = undefined;
    this.#timer?.cancel();
    epoch.end();
    for (const lease of epoch.leases.values()) wake(lease);
  }

  #takeOver(epoch: Epoch): void {
    this.#confirmed(epoch)
      .then(() => this.#promote(epoch))
      .catch(() => {
        if (this.#epoch !== epoch) return;
        this.#timer = this.#deps.clock.after(LOOK_PERIOD_MS, () => this.#takeOver(epoch));
      });
  }

  /**
   * Counts all leases, over several turns of the event loop where they are many. Renewals wait
   * until that is done.
   */
  async #promote(epoch: Epoch): Promise<void> {
    const { clock, logger } = this.#deps;
    epoch.counting = true;
    await this.#turns.run(MEMBER_SHARE, this.#countAll(epoch));
    if (this.#epoch !== epoch) return;
    epoch.promoted = true;
    this.#timer = clock.every(LOOK_PERIOD_MS, () => this.#look(epoch));
    logger.info("counting the time of leases", { term: epoch.term, leases: epoch.leases.size });
  }

  /**
   * Leases come and go between two steps: `granted` counts those that come, and the iterator passes
   * over those that are gone.
   */
  *#countAll(epoch: Epoch): Steps<void> {
    const { clock, store } = this.#deps;
    let looks = 0;
    for (const lease of store.current.lessor.all()) {
      if (++looks % STEP_KEYS === 0) yield;
      if (this.#epoch !== epoch) return;
      if (epoch.leases.has(lease.id)) continue;
      const remaining = lease.remainingSeconds > 0 ? lease.remainingSeconds : this.ttlOf(lease);
      this.#count(epoch, lease, clock.monotonicMs() + this.#options.extendMs + remaining * 1000);
    }
    const { maxRevokesPerSecond } = this.#options.bounds;
    if (epoch.leases.size >= maxRevokesPerSecond)
      yield* spread(epoch.leases.values(), SPREAD_SHARE * maxRevokesPerSecond);
  }

  /** A lease's time to live in seconds. */
  ttlOf(lease: Lease): number {
    return Math.max(lease.ttlSeconds, this.#options.minTtlSeconds);
  }

  #count(epoch: Epoch, lease: Lease, expiryMs: number): void {
    const counted: LeaseTime = {
      id: lease.id,
      ttlSeconds: this.ttlOf(lease),
      expiryMs,
      dueMs: expiryMs,
      place: -1,
      checkpoint: undefined,
      checkpoints: lease.remainingSeconds > 0 ? 1 : 0,
      waiters: undefined,
    };
    epoch.leases.set(lease.id, counted);
    epoch.expiries.add(counted);
    this.#scheduleCheckpoint(epoch, counted);
  }

  // --- Notifications of the store ---

  granted(lease: Lease): void {
    const epoch = this.#epoch;
    if (epoch?.counting === true)
      this.#count(epoch, lease, this.#deps.clock.monotonicMs() + this.ttlOf(lease) * 1000);
  }

  revoked(id: bigint): void {
    const epoch = this.#epoch;
    const counted = epoch?.leases.get(id);
    if (epoch === undefined || counted === undefined) return;
    epoch.leases.delete(id);
    epoch.expiries.remove(counted);
    if (counted.checkpoint !== undefined) epoch.checkpoints.remove(counted.checkpoint);
    wake(counted);
  }

  checkpointed(lease: Lease): void {
    const counted = this.#epoch?.leases.get(lease.id);
    if (counted !== undefined && lease.remainingSeconds > 0) counted.checkpoints++;
  }

  // --- Renewals ---

  /**
   * Sets a lease's time to its whole TTL: at once where it can, else as a promise. The time in
   * seconds; 0 if there is no such lease. Throws or rejects with NotPrimaryError, or with the
   * EtcdError of a confirmation or checkpoint that failed. An expired lease is waited for until it
   * is revoked.
   */
  renew(id: bigint): number | Promise<number> {
    const epoch = this.#epoch;
    if (epoch?.promoted !== true) throw new NotPrimaryError();
    const now = this.#deps.clock.monotonicMs();
    const lease = epoch.leases.get(id);
    if (lease !== undefined && this.#isRenewable(epoch, lease, now))
      return this.#refresh(epoch, lease, now);
    return this.#renewSlowly(epoch, id, this.#isConfirmed(epoch, now));
  }

  /** A lease whose time is counted here now, for `renewAgain`; undefined for any other. */
  counted(id: bigint): CountedLease | undefined {
    const epoch = this.#epoch;
    const lease = epoch?.leases.get(id);
    return epoch?.promoted === true && lease !== undefined ? { epoch, lease } : undefined;
  }

  /**
   * Renews a lease without looking it up, if that can be done at once. False, with nothing done,
   * where it cannot: it takes `renew`.
   */
  renewAgain({ epoch, lease }: CountedLease): boolean {
    const now = this.#deps.clock.monotonicMs();
    // A revoked lease has left the heap.
    if (epoch !== this.#epoch || lease.place < 0 || !this.#isRenewable(epoch, lease, now))
      return false;
    this.#refresh(epoch, lease, now);
    return true;
  }

  #isConfirmed(epoch: Epoch, now: number): boolean {
    return now - epoch.confirmedMs < this.#options.confirmedForMs;
  }

  #isRenewable(epoch: Epoch, lease: LeaseTime, now: number): boolean {
    if (!this.#isConfirmed(epoch, now) || lease.checkpoints > 0 || lease.expiryMs <= now)
      return false;
    // The next confirmation is asked for before it is needed, so that renewals do not wait for it.
    // One that fails is asked for again by a renewal that waits.
    if (now - epoch.confirmedMs >= this.#options.confirmedForMs / 2)
      this.#confirmed(epoch).catch(() => {});
    return true;
  }

  /** True while a lease has expired and is not revoked yet. */
  isExpiring(id: bigint): boolean {
    const lease = this.#epoch?.leases.get(id);
    return lease !== undefined && lease.expiryMs <= this.#deps.clock.monotonicMs();
  }

  async #renewSlowly(epoch: Epoch, id: bigint, isConfirmed: boolean): Promise<number> {
    const { clock } = this.#deps;
    if (!isConfirmed) await this.#confirmed(epoch);
    let mayBeGranted = true;
    for (;;) {
      const now = clock.monotonicMs();
      const lease = epoch.leases.get(id);
      if (lease === undefined) {
        // Its grant may be committed and not applied here yet, but not beyond a confirmation that
        // was asked for after it.
        if (!mayBeGranted) return 0;
        mayBeGranted = false;
        await Promise.race([this.#deps.reads.wait(), epoch.ended]);
      } else if (lease.expiryMs <= now) {
        await new Promise<void>((resolve) => {
          lease.waiters ??= [];
          lease.waiters.push(resolve);
        });
      } else if (now - epoch.confirmedMs >= this.#options.extendMs) await this.#confirmed(epoch);
      else if (lease.checkpoints > 0) await this.#takeCheckpointBack(epoch, lease);
      else return this.#refresh(epoch, lease, now);
      if (this.#epoch !== epoch) throw new NotPrimaryError();
    }
  }

  #refresh(epoch: Epoch, lease: LeaseTime, now: number): number {
    lease.expiryMs = now + lease.ttlSeconds * 1000;
    // Mostly it is due later than the heap thinks, which is put right when its time comes.
    if (lease.expiryMs < lease.dueMs) epoch.expiries.move(lease, lease.expiryMs);
    if (lease.checkpoint === undefined) this.#scheduleCheckpoint(epoch, lease);
    this.#deps.counters.renewed.add();
    return lease.ttlSeconds;
  }

  /**
   * Resolves when a quorum has confirmed this epoch; concurrent callers share one round.
   */
  #confirmed(epoch: Epoch): Promise<void> {
    if (epoch.confirming !== undefined) return epoch.confirming;
    const askedMs = this.#deps.clock.monotonicMs();
    const confirm = async () => {
      try {
        await Promise.race([this.#deps.reads.wait(), epoch.ended]);
        if (this.#epoch !== epoch) throw new NotPrimaryError();
        epoch.confirmedMs = askedMs;
      } finally {
        epoch.confirming = undefined;
      }
    };
    epoch.confirming = confirm();
    return epoch.confirming;
  }

  async #takeCheckpointBack(epoch: Epoch, lease: LeaseTime): Promise<void> {
    const { checkpoints } = lease;
    const request = LeaseCheckpointRequest.encode({
      checkpoints: [{ ID: lease.id, remaining_TTL: 0 }],
    });
    const [result] = this.#deps.proposals.proposeInTerm(epoch.term, "leaseCheckpoint", [request]);
    await Promise.race([result, epoch.ended]);
    if (lease.checkpoints === checkpoints) lease.checkpoints = 0;
  }

  // --- What is left ---

  /**
   * Milliseconds until a lease expires, less than 0 if it has expired; undefined if it does not
   * exist. Throws NotPrimaryError.
   */
  remainingMs(id: bigint): number | undefined {
    const epoch = this.#epoch;
    if (epoch?.promoted !== true) throw new NotPrimaryError();
    const lease = epoch.leases.get(id);
    return lease === undefined ? undefined : lease.expiryMs - this.#deps.clock.monotonicMs();
  }

  /**
   * When a lease expires by the monotonic clock, for putting leases in order; undefined where that
   * is not counted.
   */
  expiryMs(id: bigint): number | undefined {
    return this.#epoch?.leases.get(id)?.expiryMs;
  }

  // --- Expiry and checkpoints ---

  #look(epoch: Epoch): void {
    const now = this.#deps.clock.monotonicMs();
    const earned = ((now - this.#lookedMs) * this.#revokesPerSecond) / 1000;
    this.#allowance = Math.min(this.#revokesPerSecond / 2, this.#allowance + earned);
    this.#lookedMs = now;
    this.#revokeExpired(epoch, now);
    this.#noteRemaining(epoch, now);
  }

  #revokeExpired(epoch: Epoch, now: number): void {
    if (this.#epoch !== epoch) return;
    const { maxInflightRevokes, maxLooksPerTurn, maxRevokesPerTurn } = this.#options.bounds;
    const due: LeaseTime[] = [];
    const most = Math.min(Math.floor(this.#allowance), maxInflightRevokes - this.#inflightRevokes);
    let looks = 0;
    let isCut = false;
    for (
      let first = epoch.expiries.first();
      first !== undefined && first.dueMs <= now && due.length < most;
      first = epoch.expiries.first()
    ) {
      isCut = ++looks > maxLooksPerTurn || due.length >= maxRevokesPerTurn;
      if (isCut) break;
      if (first.expiryMs > now) {
        epoch.expiries.move(first, first.expiryMs);
        continue;
      }
      epoch.expiries.remove(first);
      due.push(first);
    }
    this.#allowance -= due.length;
    this.#inflightRevokes += due.length;
    this.#revoke(epoch, due);
    if (isCut) this.#deps.clock.endOfTurn(() => this.#revokeExpired(epoch, now));
    else this.#setRate((epoch.expiries.first()?.dueMs ?? Number.POSITIVE_INFINITY) <= now);
  }

  /** @param isBehind leases that are due are left for the next look */
  #setRate(isBehind: boolean): void {
    const { maxHurriedRevokesPerSecond, maxInflightRevokes, maxRevokesPerSecond } =
      this.#options.bounds;
    if (!isBehind)
      this.#revokesPerSecond = Math.max(this.#revokesPerSecond / 2, maxRevokesPerSecond);
    else if (this.#inflightRevokes < maxInflightRevokes) {
      // Where leases are due at a keeper's first look, there is no rate yet.
      const doubled = Math.max(this.#revokesPerSecond * 2, maxRevokesPerSecond);
      this.#revokesPerSecond = Math.min(doubled, maxHurriedRevokesPerSecond);
    }
  }

  #revoke(epoch: Epoch, due: readonly LeaseTime[]): void {
    const ready: LeaseTime[] = [];
    for (const lease of due) {
      const before = this.#deps.beforeRevoke?.(this.#deps.store.current, lease.id);
      if (before === undefined) ready.push(lease);
      else this.#revokeAfter(epoch, lease, before);
    }
    if (ready.length > 0) this.#revokeNow(epoch, ready);
  }

  /** Revokes a lease when a transaction is applied. */
  #revokeAfter(epoch: Epoch, lease: LeaseTime, before: Uint8Array): void {
    const [result] = this.#deps.proposals.proposeInTerm(epoch.term, "txn", [before]);
    result?.then(
      ({ error }) => {
        if (error === undefined) this.#revokeNow(epoch, [lease]);
        else {
          this.#inflightRevokes--;
          this.#revokeAgain(epoch, lease, REFUSED_RETRY_MS);
        }
      },
      () => {
        this.#inflightRevokes--;
        this.#revokeAgain(epoch, lease, REVOKE_RETRY_MS);
      },
    );
  }

  #revokeNow(epoch: Epoch, due: readonly LeaseTime[]): void {
    const requests = due.map(({ id }) => LeaseRevokeRequest.encode({ ID: id }));
    const results = this.#deps.proposals.proposeInTerm(epoch.term, "leaseRevoke", requests);
    due.forEach((lease, i) => {
      results[i]?.then(
        ({ error }) => {
          this.#inflightRevokes--;
          if (error === undefined) this.#deps.counters.expired.add();
          else if (error.code !== "LeaseNotFound")
            this.#revokeAgain(epoch, lease, REFUSED_RETRY_MS);
        },
        (error: Error) => {
          this.#inflightRevokes--;
          if (!this.#revokeAgain(epoch, lease, REVOKE_RETRY_MS)) return;
          this.#deps.logger.warn("failed to revoke lease", {
            "lease-id": idToHex(lease.id),
            error: error.message,
          });
        },
      );
    });
  }

  /** False where there is nothing left to revoke, or to this member. */
  #revokeAgain(epoch: Epoch, lease: LeaseTime, afterMs: number): boolean {
    if (this.#epoch !== epoch || !epoch.leases.has(lease.id)) return false;
    lease.dueMs = this.#deps.clock.monotonicMs() + afterMs;
    epoch.expiries.add(lease);
    return true;
  }

  #scheduleCheckpoint(epoch: Epoch, lease: LeaseTime): void {
    const { checkpointIntervalMs } = this.#options;
    const now = this.#deps.clock.monotonicMs();
    if (checkpointIntervalMs === undefined || lease.expiryMs - now <= checkpointIntervalMs) return;
    lease.checkpoint = { lease, dueMs: now + checkpointIntervalMs, place: -1 };
    epoch.checkpoints.add(lease.checkpoint);
  }

  #noteRemaining(epoch: Epoch, now: number): void {
    const { maxCheckpointLeases, maxInflightCheckpoints, maxLooksPerTurn } = this.#options.bounds;
    if (this.#inflightCheckpoints >= maxInflightCheckpoints) return;
    const checkpoints: { ID: bigint; remaining_TTL: number }[] = [];
    let looks = 0;
    for (
      let first = epoch.checkpoints.first();
      first !== undefined &&
      first.dueMs <= now &&
      checkpoints.length < maxCheckpointLeases &&
      looks < maxLooksPerTurn;
      first = epoch.checkpoints.first()
    ) {
      looks++;
      const { lease } = first;
      epoch.checkpoints.remove(first);
      lease.checkpoint = undefined;
      this.#scheduleCheckpoint(epoch, lease);
      const remaining = Math.ceil((lease.expiryMs - now) / 1000);
      if (remaining <= 0 || remaining >= lease.ttlSeconds) continue;
      lease.checkpoints++;
      checkpoints.push({ ID: lease.id, remaining_TTL: remaining });
    }
    if (checkpoints.length === 0) return;
    this.#inflightCheckpoints++;
    const done = () => {
      this.#inflightCheckpoints--;
    };
    for (const result of this.#deps.proposals.proposeInTerm(epoch.term, "leaseCheckpoint", [
      LeaseCheckpointRequest.encode({ checkpoints }),
    ])) {
      // A lost one costs only the remaining times that it would have recorded.
      result.then(done, done);
    }
  }
}

function wake(lease: LeaseTime): void {
  for (const waiter of lease.waiters ?? []) waiter();
}

/**
 * Puts expiries off, in steps: leases that were all extended at one moment would all expire at one,
 * so those beyond what a second's revocations allow get later, each by a little more than the one
 * before (etcd: lessor.Promote). Those that come meanwhile stay where they are.
 * @param perSecond leases that may expire in one second
 */
function* spread(leases: Iterable<LeaseTime>, perSecond: number): Steps<void> {
  const sorted = yield* mergeSort([...leases], (a, b) => a.expiryMs - b.expiryMs);
  let baseMs = 0;
  let nextMs = Number.NEGATIVE_INFINITY;
  let expires = 0;
  let looks = 0;
  for (const lease of sorted) {
    if (++looks % STEP_KEYS === 0) yield;
    const { expiryMs } = lease;
    if (expiryMs > nextMs) {
      baseMs = expiryMs;
      nextMs = baseMs + 1000;
      expires = 1;
      continue;
    }
    expires++;
    if (expires <= perSecond) continue;
    const delayMs = (1000 * expires) / perSecond - (expiryMs - baseMs);
    nextMs = baseMs + delayMs;
    lease.expiryMs = expiryMs + delayMs;
  }
}
