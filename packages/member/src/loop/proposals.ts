/**
 * Requests on their way through Raft. Each gets an id and the identity of its caller, and waits
 * under its id until the entry that carries it has been applied here, or its time is up. Once that
 * entry is being applied, its result is certain and bounded by the work that an entry may have:
 * then it is waited for.
 *
 * A leader that dies leaves requests that nobody will commit. Once an entry of a later term is
 * applied here, all entries of the earlier terms that ever will be are applied: the log's terms
 * only grow. A request that was handed to Raft in an earlier term and has no result then is in no
 * log that counts, or still on a way round, such as through a former leader that passes it on. So
 * it is waited for an election timeout more, and ends with an error that leaves its outcome open.
 * It is not proposed again: then it could be applied twice.
 *
 * Bounds: `maxWaitingProposals` requests and `maxQueuedBytes` of payload that Raft has not taken
 * yet (no leader), and `maxApplyGapEntries` that are committed and not applied. Beyond,
 * TooManyRequests.
 */
import { BriefMap, type Clock } from "@quorate/host";
import {
  type ErrorName,
  type EtcdError,
  errorOf,
  InternalRaftRequest,
  uint64Of,
} from "@quorate/proto";
import type { Raft } from "@quorate/raft";
import {
  type Applied,
  type AppliedEntry,
  checkMessage,
  decodeRequest,
  encodeEntry,
  encodeWithRoles,
  type RequestKind,
  type RequestLimits,
} from "@quorate/store";
import type { Transport } from "@quorate/transport";
import type { MemberConfig } from "../config/member-config.ts";
import { type Identity, memberIdentity } from "../identity/caller.ts";
import type { MemberMetrics } from "../metrics/member-metrics.ts";
import type { StoreRef } from "../reads/store-ref.ts";
import { type Deliveries, type Proposer, proposerOf } from "./deliveries.ts";
import type { LeaderView } from "./leader-view.ts";
import type { LoopBounds } from "./limits.ts";
import type { LoopTurns } from "./turns.ts";

/** One request that waits for its result. */
interface Waiter {
  readonly proposer: Proposer;
  readonly startedMs: number;
  /** The term in which Raft took it; undefined: it has not. */
  term: number | undefined;
}

/** From `dueMs` on, no request that was handed to Raft before `term` is waited for. */
interface Succession {
  readonly term: number;
  readonly dueMs: number;
}

export interface ProposalOptions {
  readonly bounds: LoopBounds;
  readonly maxQueuedBytes: number;
  readonly timeoutMs: number;
  /**
   * How long a request of an earlier leader is waited for once its successor's entries are applied.
   */
  readonly successionMs: number;
  readonly requestLimits: RequestLimits;
  /** Size of the largest request, in bytes (--max-request-bytes). */
  readonly maxRequestBytes: number;
  /** Revocations of leases may run further ahead (feature gate PriorityRequest). */
  readonly areRevokesPreferred: boolean;
}

export interface ProposalParts {
  readonly clock: Clock;
  readonly turns: Pick<LoopTurns, "areRunning" | "wake">;
  readonly raft: Raft;
  readonly store: StoreRef;
  readonly requestIds: RequestIds;
  readonly deliveries: Deliveries;
}

export class Proposals {
  readonly #options: ProposalOptions;
  readonly #parts: ProposalParts;
  /** In the order they began, which is the order of their deadlines: all have the same time. */
  readonly #waiting = new BriefMap<bigint, Waiter>();
  #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  /** The requests of the queue, and those that `takeQueue` took last. */
  #queuedIds: bigint[] = [];
  #takenIds: bigint[] = [];
  readonly #successions: Succession[] = [];
  /** The highest term of an applied entry. */
  #appliedTerm = 0;
  /** The request whose entry is being applied, where a caller waits for it; 0n for none. */
  #applying = 0n;
  /** Why nothing is taken any more. */
  #closed: Error | undefined;
  /** How many ended by time-out. */
  failed = 0;

  constructor(options: ProposalOptions, parts: ProposalParts) {
    this.#options = options;
    this.#parts = parts;
  }

  get waitingCount(): number {
    return this.#waiting.size;
  }

  get queuedCount(): number {
    return this.#queue.length;
  }

  // --- From a request to an entry ---

  /**
   * Takes a request of the member's own through Raft.
   * @returns a promise as of Member.propose
   */
  propose<K extends RequestKind>(kind: K, request: Uint8Array): Promise<Applied<K>> {
    const { requestLimits } = this.#options;
    try {
      checkMessage(kind, decodeRequest(kind, request, requestLimits), requestLimits);
    } catch (error) {
      return Promise.reject(error);
    }
    const result = Promise.withResolvers<Applied<K>>();
    // What is applied under its id is this very request.
    const identity = memberIdentity(this.#parts.store.current.auth);
    this.enqueue(identity, kind, request, proposerOf(result));
    return result.promise;
  }

  /** Takes a request that is checked to Raft. @param identity for the header of its entry */
  enqueue(
    identity: Identity | undefined,
    kind: RequestKind,
    request: Uint8Array,
    proposer: Proposer,
  ): void {
    const { raft, requestIds, deliveries } = this.#parts;
    if (raft.commitIndex - raft.appliedIndex > this.#maxGap(kind)) {
      deliveries.refused(proposer, errorOf("TooManyRequests"));
      return;
    }
    const id = requestIds.next();
    const payload = payloadOf(id, identity, kind, request);
    if (payload.length > this.#options.maxRequestBytes)
      deliveries.refused(proposer, errorOf("RequestTooLarge"));
    else this.queue(id, payload, proposer);
  }

  #maxGap(kind: RequestKind): number {
    const { areRevokesPreferred, bounds } = this.#options;
    const isPreferred = areRevokesPreferred && kind === "leaseRevoke";
    return isPreferred ? bounds.maxPreferredGapEntries : bounds.maxApplyGapEntries;
  }

  /**
   * Takes requests of the member's own through Raft as leader of `term`: they are in its log when
   * this returns, or their promises reject. They are never proposed in a later term, when the
   * state that they rest on may have changed.
   */
  proposeInTerm<K extends RequestKind>(
    term: number,
    kind: K,
    requests: readonly Uint8Array[],
  ): readonly Promise<Applied<K>>[] {
    const { raft, turns, store, requestIds } = this.#parts;
    const refused = (name: ErrorName) =>
      requests.map(() => Promise.reject<Applied<K>>(errorOf(name)));
    if (!turns.areRunning || raft.role !== "leader" || raft.term !== term)
      return refused("LeaderChanged");
    const identity = memberIdentity(store.current.auth);
    const ids: bigint[] = [];
    const payloads = requests.map((request) => {
      const id = requestIds.next();
      ids.push(id);
      return payloadOf(id, identity, kind, request);
    });
    const answer = raft.propose(payloads);
    turns.wake();
    if (answer !== "accepted") return refused("TooManyRequests");
    return ids.map((id) => this.wait(id, term) as Promise<Applied<K>>);
  }

  // --- Those that wait ---

  /** Queues `payload` for the next turn: the proposer gets the result of the request `id`. */
  queue(id: bigint, payload: Uint8Array, proposer: Proposer): void {
    if (this.#closed !== undefined) {
      this.#parts.deliveries.refused(proposer, this.#closed);
      return;
    }
    if (
      this.#waiting.size >= this.#options.bounds.maxWaitingProposals ||
      this.#queuedBytes + payload.length > this.#options.maxQueuedBytes
    ) {
      this.#parts.deliveries.refused(proposer, errorOf("TooManyRequests"));
      return;
    }
    this.#queue.push(payload);
    this.#queuedIds.push(id);
    this.#queuedBytes += payload.length;
    if (this.#queue.length === 1) this.#parts.turns.wake();
    this.#await(id, proposer, undefined);
  }

  /**
   * Waits for the result of a request that Raft has already; its proposer bounds how many there
   * are. Rejects with an EtcdError.
   * @param term in which Raft took it, if it is to end when that term's leader is succeeded
   */
  wait(id: bigint, term?: number): Promise<AppliedEntry> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    const result = Promise.withResolvers<AppliedEntry>();
    this.#await(id, proposerOf(result), term);
    return result.promise;
  }

  #await(id: bigint, proposer: Proposer, term: number | undefined): void {
    this.#waiting.set(id, { proposer, startedMs: this.#parts.clock.monotonicMs(), term });
  }

  /**
   * Hands the queued payloads to Raft. What it does not take stays queued: there may be a leader,
   * or capacity, in a later turn. Returns true if more is left than fits into this turn.
   */
  handIn(): boolean {
    const { raft } = this.#parts;
    if (this.#queue.length === 0 || raft.leader === 0n) return false;
    const { maxBatchBytes, maxTurnBytes } = this.#options.bounds;
    const queue = this.takeQueue(raft.term);
    let start = 0;
    let takenBytes = 0;
    while (start < queue.length) {
      if (takenBytes >= maxTurnBytes) {
        this.putBack(queue.slice(start));
        return true;
      }
      let end = start;
      let bytes = 0;
      for (; end < queue.length; end++) {
        const size = queue[end]?.length ?? 0;
        if (end > start && bytes + size > maxBatchBytes) break;
        bytes += size;
      }
      const batch = start === 0 && end === queue.length ? queue : queue.slice(start, end);
      if (raft.propose(batch) !== "accepted") {
        this.putBack(queue.slice(start));
        return false;
      }
      start = end;
      takenBytes += bytes;
    }
    return false;
  }

  /**
   * Takes all queued payloads, in order; `putBack` returns what Raft did not take.
   * @param term Raft's present one
   */
  takeQueue(term: number): Uint8Array[] {
    const taken = this.#queue;
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#takenIds = this.#queuedIds;
    this.#queuedIds = [];
    this.#handedIn(term, this.#takenIds);
    return taken;
  }

  /**
   * Puts the last payloads of those taken back in front of the queue, to be tried again when Raft's
   * state has changed.
   */
  putBack(payloads: readonly Uint8Array[]): void {
    this.#queue = payloads.concat(this.#queue);
    for (const payload of payloads) this.#queuedBytes += payload.length;
    const ids = this.#takenIds.slice(this.#takenIds.length - payloads.length);
    this.#handedIn(undefined, ids);
    this.#queuedIds = ids.concat(this.#queuedIds);
  }

  #handedIn(term: number | undefined, ids: readonly bigint[]): void {
    for (const id of ids) {
      const waiter = this.#waiting.get(id);
      if (waiter !== undefined) waiter.term = term;
    }
  }

  /** An entry of `term` has been applied: the results of all entries of earlier terms are known. */
  succeeded(term: number): void {
    if (term <= this.#appliedTerm) return;
    this.#appliedTerm = term;
    const { maxSuccessions } = this.#options.bounds;
    if (this.#waiting.size === 0 || this.#successions.length === maxSuccessions) return;
    const dueMs = this.#parts.clock.monotonicMs() + this.#options.successionMs;
    this.#successions.push({ term, dueMs });
  }

  /**
   * Hands the result of a request to the caller that waits for it here; there is none on the
   * members that did not propose it. Returns when the wait began, or undefined where no caller
   * waited.
   */
  settle(id: bigint, result: AppliedEntry): number | undefined {
    const waiter = this.#waiting.get(id);
    if (waiter === undefined) return undefined;
    this.#waiting.delete(id);
    this.#applying = 0n;
    this.#parts.deliveries.applied(waiter.proposer, result);
    return waiter.startedMs;
  }

  /**
   * The entry with the request `id` begins to be applied, after the one before. Returns whether a
   * caller on this member waits for it.
   */
  applies(id: bigint): boolean {
    const isAwaited = this.#waiting.has(id);
    this.#applying = isAwaited ? id : 0n;
    return isAwaited;
  }

  /** The entry that is being applied is given up: its result will not come. */
  abandons(): void {
    this.#applying = 0n;
  }

  /**
   * Ends the waiters whose time is up, or who are gone before Raft had their request. Call it about
   * every tick.
   */
  expire(timeouts: Timeouts): void {
    const now = this.#parts.clock.monotonicMs();
    for (let next = this.#successions[0]; next !== undefined && next.dueMs <= now; ) {
      this.#successions.shift();
      this.#endBefore(next.term, timeouts);
      next = this.#successions[0];
    }
    for (const [id, waiter] of this.#waiting) {
      if (waiter.startedMs + this.#options.timeoutMs > now) break;
      if (id !== this.#applying) this.#end(id, waiter, timeouts.error(waiter.startedMs, false));
    }
    this.#dropUnwanted(timeouts);
  }

  /**
   * Takes what nobody waits for any more out of the queue: a request that found no leader must not
   * be proposed out of the blue later (etcd: raft's node.stepWait ends with its context).
   */
  #dropUnwanted(timeouts: Timeouts): void {
    if (this.#queue.length === 0) return;
    const [queue, ids] = [this.#queue, this.#queuedIds];
    this.#clearQueue();
    for (const [i, payload] of queue.entries()) {
      const id = ids[i] ?? 0n;
      const waiter = this.#waiting.get(id);
      if (waiter === undefined) continue;
      if (waiter.proposer.isGone === true) {
        this.#end(id, waiter, timeouts.error(waiter.startedMs, false));
        continue;
      }
      this.#queue.push(payload);
      this.#queuedIds.push(id);
      this.#queuedBytes += payload.length;
    }
  }

  /** Ends the waiters whose requests were handed to Raft before `term`. */
  #endBefore(term: number, timeouts: Timeouts): void {
    for (const [id, waiter] of this.#waiting) {
      if (waiter.term === undefined || waiter.term >= term || id === this.#applying) continue;
      this.#end(id, waiter, timeouts.error(waiter.startedMs, true));
    }
  }

  #end(id: bigint, waiter: Waiter, error: Error): void {
    this.#waiting.delete(id);
    this.failed++;
    this.#parts.deliveries.refused(waiter.proposer, error);
  }

  #clearQueue(): void {
    this.#queue = [];
    this.#queuedIds = [];
    this.#queuedBytes = 0;
  }

  /** Ends all waiters with `error`, and those that come later, when the member stops. */
  failAll(error: Error): void {
    this.#closed = error;
    const waiters = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#clearQueue();
    for (const { proposer } of waiters) this.#parts.deliveries.refused(proposer, error);
  }
}

function payloadOf(
  id: bigint,
  identity: Identity | undefined,
  kind: RequestKind,
  request: Uint8Array,
): Uint8Array {
  const header = {
    ID: id,
    username: identity?.user ?? "",
    authRevision: identity?.authRevision ?? 0,
  };
  const roles = identity?.roles;
  if (roles === undefined) return encodeEntry(header, kind, request);
  return encodeWithRoles(header, roles, InternalRaftRequest.encode({ [kind]: request }));
}

/** Lease ids that a server chooses are positive int64. */
const MAX_LEASE_ID = 2n ** 63n - 1n;

/**
 * Ids for proposals, unique in the cluster while they matter: 2 bytes of the member's id, 5 bytes
 * of its start time in milliseconds, 1 byte and carry of count (the layout of etcd's pkg/idutil).
 */
export class RequestIds {
  /** The id given last: its upper 16 bits, which stay, the 16 below them, and the lower 32. */
  readonly #prefix: number;
  #upper: number;
  #lower: number;

  /**
   * @param startWallMs wall time at which this run of the member began, so that a restarted member
   * does not repeat its ids.
   */
  constructor(memberId: bigint, startWallMs: number) {
    this.#prefix = Number(memberId & 0xffffn);
    const suffix = (BigInt(Math.trunc(startWallMs)) & 0xff_ffff_ffffn) << 8n;
    this.#upper = Number(suffix >> 32n);
    this.#lower = Number(suffix & 0xffff_ffffn);
  }

  /**
   * An id for a lease whose client has none in mind: a positive int64 (etcd:
   * EtcdServer.LeaseGrant).
   */
  nextLeaseId(): bigint {
    return this.next() & MAX_LEASE_ID;
  }

  next(): bigint {
    this.#lower = (this.#lower + 1) >>> 0;
    if (this.#lower === 0) this.#upper = (this.#upper + 1) & 0xffff;
    return uint64Of(((this.#prefix << 16) | this.#upper) >>> 0, this.#lower);
  }
}

export interface TimeoutParts {
  readonly metrics: Pick<MemberMetrics, "proposalsFailed">;
  readonly config: Pick<MemberConfig, "electionTimeoutMs">;
  readonly leader: LeaderView;
  readonly store: StoreRef;
  readonly transport: Pick<Transport, "peers">;
}

/**
 * The errors of proposals that nobody has answered, by what is known of the cluster (etcd:
 * parseProposeCtxErr).
 */
export class Timeouts {
  readonly #parts: TimeoutParts;

  constructor(parts: TimeoutParts) {
    this.#parts = parts;
  }

  /**
   * The error that a proposal ends with; it is counted.
   * @param startedMs when it was made, in monotonic milliseconds
   * @param isSucceeded its leader has been succeeded, and the successor's entries are applied
   */
  error(startedMs: number, isSucceeded: boolean): EtcdError {
    this.#parts.metrics.proposalsFailed.add();
    return errorOf(isSucceeded ? "TimeoutDueToLeaderFail" : this.#reason(startedMs));
  }

  #reason(startedMs: number): ErrorName {
    const { config, store, transport } = this.#parts;
    const { memberId, leader, electedMs } = this.#parts.leader;
    const leaderLostMs = electedMs - 2 * config.electionTimeoutMs;
    if (startedMs > leaderLostMs && startedMs < electedMs) return "TimeoutDueToLeaderFail";
    if (leader === 0n) return "Timeout";
    const connected = transport
      .peers()
      .filter((peer) => peer.activeSinceMs !== undefined && peer.activeSinceMs <= startedMs);
    const isReachable =
      leader === memberId
        ? connected.length + 1 > store.current.membership.members().length / 2
        : connected.some((peer) => peer.id === leader);
    return isReachable ? "Timeout" : "TimeoutDueToConnectionLost";
  }
}
