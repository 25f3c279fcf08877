/**
 * One member of a cluster, for services and endpoints. Its parts are put together in assemble.ts,
 * begun and closed in lifecycle.ts.
 *
 *     const member = await Member.start(config, deps);   // opens or makes the data directory
 *     await member.ready;                                 // it has published itself: it can serve
 *     const applied = await member.propose(caller, "put", bytes);    // through Raft, applied here
 *     await member.read(caller, { access, linearizable: true, run });
 *     await member.stop();                                // syncs, closes
 *
 * The ways in are the same for every service, and for locks and elections:
 *
 *     propose   quota -> check -> identity into the header -> Raft -> applied here -> result
 *     read      ReadIndex round -> permitted? -> read what is applied -> still so?
 *     watch     permitted? for each watch -> its events
 *     operate   permitted? -> work that is neither, such as moving the leadership
 *
 * So identity, permission, quota and tracing have one place each. It knows no sockets: transport
 * and engines are passed in.
 */
import type { Clock, Logger } from "@quorate/host";
import { errorOf, type ResponseHeader, UserCreationsRequest } from "@quorate/proto";
import type { CallTrace, StreamCall } from "@quorate/rpc";
import {
  type Applied,
  type AppliedEntry,
  checkMessage,
  costOfRequest,
  decodeRequest,
  type RequestKind,
  type RequestOf,
  type Store,
  verdictBeforeEtcd,
} from "@quorate/store";
import { assemble, type MemberInputs, type MemberParts, storeOptionsOf } from "./assemble.ts";
import { bootstrap } from "./bootstrap.ts";
import type { MemberConfig } from "./config/member-config.ts";
import type { Corruption } from "./corruption/index.ts";
import type { MemberDeps } from "./deps.ts";
import type { AccessControl } from "./identity/access-control.ts";
import { type Access, type Admission, NEEDED_STORE } from "./identity/authority.ts";
import { type Caller, type Identity, MEMBER_CALLER } from "./identity/caller.ts";
import type { Leases } from "./lease/leases.ts";
import { Lifecycle } from "./lifecycle.ts";
import { type Proposer, proposerOf, type Reader } from "./loop/deliveries.ts";
import type { Leadership, Reconfiguration } from "./membership/index.ts";
import { metricsOf, walMeasures } from "./metric-sources.ts";
import type { MemberMetrics } from "./metrics/member-metrics.ts";
import type { Slices } from "./reads/slices.ts";
import type { Space } from "./space/index.ts";
import type { WatchHub, WatchStream } from "./watch/index.ts";

/** A read of what is applied here. */
export interface ReadRequest<T> {
  readonly access: Access;
  /** False: what is applied here now will do; true: all that was committed at the call. */
  readonly linearizable: boolean;
  /** Reads, when everything that it depends on is given; not called otherwise. */
  readonly run: () => T | Promise<T>;
}

export class Member {
  readonly id: bigint;
  readonly clusterId: bigint;
  readonly config: MemberConfig;
  readonly metrics: MemberMetrics;
  readonly clock: Clock;
  /** Logger for services. */
  readonly logger: Logger;
  readonly watches: WatchHub;
  readonly leases: Leases;
  readonly space: Space;
  readonly slices: Slices;
  readonly corruption: Corruption;
  /** Users and roles. */
  readonly auth: AccessControl;
  /** The least time to live of a lease, in seconds: 1.5 election timeouts, rounded up. */
  readonly minLeaseTtlSeconds: number;
  readonly #parts: MemberParts;
  readonly #lifecycle: Lifecycle;

  /** Opens or makes the data directory and begins to take part in the cluster. */
  static async start(config: MemberConfig, deps: MemberDeps): Promise<Member> {
    let member: Member | undefined;
    const metrics = metricsOf(config, () => member);
    const state = await bootstrap(config, {
      disk: deps.disk,
      keyspaces: deps.keyspaces,
      clock: deps.clock,
      logger: deps.logger,
      walSegmentBytes: deps.walSegmentBytes,
      storeOptions: storeOptionsOf(config, deps),
      callPeer: deps.callPeer,
      names: deps.names,
      openRegistry: deps.openRegistry,
      walMeasures: walMeasures(metrics),
    });
    member = new Member({ config, deps, metrics, state });
    await member.#lifecycle.begin(state.removal);
    return member;
  }

  private constructor(inputs: MemberInputs) {
    const parts = assemble(inputs);
    this.#parts = parts;
    this.#lifecycle = new Lifecycle(parts);
    this.id = parts.memberId;
    this.clusterId = parts.clusterId;
    this.config = parts.config;
    this.metrics = parts.metrics;
    this.clock = parts.deps.clock;
    this.logger = parts.deps.logger.child("v3rpc");
    this.watches = parts.watches;
    this.leases = parts.leases;
    this.space = parts.space;
    this.slices = parts.slices;
    this.corruption = parts.corruption;
    this.auth = parts.auth;
    this.minLeaseTtlSeconds = parts.minLeaseTtlSeconds;
  }

  // --- Its ways in ---

  /**
   * Takes a request through Raft. It is checked here, so that nothing malformed enters the log.
   * @param request the request's bytes, as the client sent them
   * @param decoded the message that these bytes hold, where the caller has decoded it already
   * @returns a promise of the result of applying it here, an EtcdError of the store included.
   *   Rejects with WireError, EtcdError or InvalidRequestError for a request that is not valid in
   *   itself, finds no space, or was not applied in time (it may still be, later)
   */
  propose<K extends RequestKind>(
    caller: Caller,
    kind: K,
    request: Uint8Array,
    decoded?: RequestOf<K>,
  ): Promise<Applied<K>> {
    const result = Promise.withResolvers<Applied<K>>();
    this.proposeFor(proposerOf(result), caller, kind, request, decoded);
    return result.promise;
  }

  /** As `propose`, for a proposer that gets what the promise would. */
  proposeFor<K extends RequestKind>(
    proposer: Proposer,
    caller: Caller,
    kind: K,
    request: Uint8Array,
    decoded?: RequestOf<K>,
  ): void {
    let message: RequestOf<K>;
    try {
      message = decoded ?? decodeRequest(kind, request, this.#parts.limits);
      const refusal = this.spaceRefusal(kind, message);
      if (refusal !== undefined) {
        refusal.catch((error: Error) => proposer.refused(error));
        return;
      }
    } catch (error) {
      this.#parts.deliveries.refused(proposer, error as Error);
      return;
    }
    this.#proposeFitting(proposer, caller, kind, request, message);
  }

  /**
   * As `propose`, for a request that `spaceRefusal` was asked about: it did much before.
   * @param message what the bytes hold
   */
  proposeFitting<K extends RequestKind>(
    caller: Caller,
    kind: K,
    request: Uint8Array,
    message: RequestOf<K>,
  ): Promise<Applied<K>> {
    const result = Promise.withResolvers<Applied<K>>();
    this.#proposeFitting(proposerOf(result), caller, kind, request, message);
    return result.promise;
  }

  #proposeFitting<K extends RequestKind>(
    proposer: Proposer,
    caller: Caller,
    kind: K,
    request: Uint8Array,
    message: RequestOf<K>,
  ): void {
    const { limits, deliveries } = this.#parts;
    try {
      checkMessage(kind, message, limits);
      // A login proves the user by its password, whatever token it carries besides.
      const isProved = !this.store.auth.isEnabled || kind === "authenticate";
      if (isProved) this.#enqueue(proposer, caller, undefined, kind, request);
      else this.#identified(proposer, caller, kind, request, message);
    } catch (error) {
      deliveries.refused(proposer, error as Error);
    }
  }

  /** Hands on the request of a caller who has to have an identity, once that is known. */
  #identified<K extends RequestKind>(
    proposer: Proposer,
    caller: Caller,
    kind: K,
    request: Uint8Array,
    message: RequestOf<K>,
  ): void {
    const identity = this.auth.authority.identify(caller);
    const enqueue = (one: Identity | undefined) => {
      if (this.store.followsEtcd) this.#checkBeforeEtcd(one, kind, message);
      this.#enqueue(proposer, caller, one, kind, request);
    };
    if (!(identity instanceof Promise)) enqueue(identity);
    else
      identity
        .then(enqueue)
        .catch((error: Error) => this.#parts.deliveries.refused(proposer, error));
  }

  /**
   * Refuses what etcd's rules would not when it is applied, by the users and roles of now.
   * @throws EtcdError PermissionDenied, UserEmpty, UserNotFound
   */
  #checkBeforeEtcd<K extends RequestKind>(
    identity: Identity | undefined,
    kind: K,
    message: RequestOf<K>,
  ): void {
    const { auth, lessor } = this.store;
    const { user = "", authRevision = 0, roles } = identity ?? {};
    const who = { username: user, authRevision, roles };
    const refused = verdictBeforeEtcd(auth, who, kind, message, lessor);
    if (refused !== undefined) throw errorOf(refused);
  }

  /**
   * Has every member note when users are made, from now on, so that nobody who was recognised as a
   * user that was deleted counts as a later one of that name. Before all members know such entries
   * users are made without: a member that is away must not stop administrators.
   */
  async noteUserCreations(): Promise<void> {
    const { userCreations } = this.#parts;
    if (userCreations.isSettled) return;
    try {
      await userCreations.ready();
    } catch {
      return;
    }
    await this.propose(MEMBER_CALLER, "authUserCreations", UserCreationsRequest.encode({}));
  }

  /**
   * The refusal of a request that finds no space: a promise that rejects with NoSpace once the
   * alarm is raised. Undefined where there is space. For services that do much before they propose.
   */
  spaceRefusal<K extends RequestKind>(kind: K, message: RequestOf<K>): Promise<never> | undefined {
    const costBytes = costOfRequest(kind, message, this.store.mvcc.view);
    const { keeper } = this.space;
    return keeper.hasSpace(costBytes) ? undefined : keeper.refuse();
  }

  #enqueue(
    proposer: Proposer,
    caller: Caller,
    identity: Identity | undefined,
    kind: RequestKind,
    request: Uint8Array,
  ): void {
    const { proposals, tokenRoles } = this.#parts;
    const { trace } = caller;
    const informed = trace === undefined ? proposer : new TracedProposer(proposer, trace);
    const waiting = identity?.roles === undefined ? undefined : tokenRoles.ready();
    if (waiting === undefined) proposals.enqueue(identity, kind, request, informed);
    else this.#enqueueAfter(waiting, informed, identity, kind, request);
  }

  #enqueueAfter(
    waiting: Promise<void>,
    proposer: Proposer,
    identity: Identity | undefined,
    kind: RequestKind,
    request: Uint8Array,
  ): void {
    waiting.then(
      () => this.#parts.proposals.enqueue(identity, kind, request, proposer),
      (error: Error) => this.#parts.deliveries.refused(proposer, error),
    );
  }

  /**
   * Reads what is applied here, for a caller that may.
   * @returns a promise of the result of `run`. Rejects with what that throws, and with EtcdError
   *   where the read is not permitted, not linearizable in time, or the member ends
   */
  read<T>(caller: Caller, request: ReadRequest<T>): Promise<T> {
    if (!request.linearizable) return this.#read(caller, request);
    // Most reads wait for their round, and then for nothing else.
    return this.#parts.reads
      .wait()
      .then(() => (this.isOpen ? request.run() : this.#read(caller, request)));
  }

  /**
   * Has the reader told when a read of what is applied here is linearizable. Where `isOpen` is true
   * then, the caller may read; otherwise it takes `read`.
   */
  awaitRound(reader: Reader): void {
    this.#parts.reads.add(reader);
  }

  /** Whether anybody may read anything of the store now. */
  get isOpen(): boolean {
    return this.isServable && !this.store.auth.isEnabled;
  }

  /** Reads when the store that the read needs is there. */
  async #read<T>(caller: Caller, { access, run }: ReadRequest<T>): Promise<T> {
    const needed = NEEDED_STORE[access.kind];
    if (!this.isServable && needed !== "none") {
      await this.#parts.exchange.over();
      if (needed === "servable") await this.corruption.healed();
    }
    // Looked at last, after all that had to be waited for.
    const admission = this.#admit(caller, access);
    const admitted = admission instanceof Promise ? await admission : admission;
    const result = run();
    const settled = result instanceof Promise ? await result : result;
    admitted?.confirm();
    return settled;
  }

  /**
   * Resolves if a caller may have an access; undefined: it may now. Users and roles may have been
   * changed by way of another member just now: a refusal is looked at once more when all of that
   * is applied here, so that a call sees the changes before it.
   */
  permit(caller: Caller, access: Access): Promise<void> | undefined {
    if (!this.store.auth.isEnabled) return undefined;
    return this.#permit(caller, access);
  }

  async #permit(caller: Caller, access: Access): Promise<void> {
    try {
      await this.#admit(caller, access);
    } catch {
      await this.#parts.reads.wait();
      await this.#admit(caller, access);
    }
  }

  /** Undefined while callers need no permission. */
  #admit(caller: Caller, access: Access): Admission | undefined | Promise<Admission> {
    return this.store.auth.isEnabled ? this.auth.authority.admit(caller, access) : undefined;
  }

  /**
   * Opens a stream of watches. What the caller may watch is decided for each watch when it is
   * created, and again at `WatchHub.recheck`.
   */
  watch(caller: Caller, call: StreamCall): WatchStream {
    const watching = this.auth.authority.watching(caller);
    return this.watches.open(call, {
      client: caller.client,
      ready: () => watching.ready(),
      forbids: (range) => watching.forbids(range),
      revoked: (range) => watching.revoked(range),
    });
  }

  /** Does work on this member that is neither a request of the log nor a read of the store. */
  operate<T>(caller: Caller, access: Access, run: () => Promise<T>): Promise<T> {
    const isPermitted = !this.store.auth.isEnabled;
    if (isPermitted && NEEDED_STORE[access.kind] === "none") return run();
    return this.read(caller, { access, linearizable: false, run });
  }

  /** Resolves when users and roles of the store are those of the cluster and may be shown. */
  async current(): Promise<void> {
    await this.#parts.reads.wait();
    await this.#parts.exchange.over();
    await this.corruption.healed();
  }

  /** An id for a lease whose client has none in mind. */
  newLeaseId(): bigint {
    return this.#parts.requestIds.nextLeaseId();
  }

  // --- Its standing ---

  /**
   * Resolves when the member has published itself and the cluster's version is known; never
   * rejects.
   */
  get ready(): Promise<void> {
    return this.#parts.publication.ready;
  }

  get reconfiguration(): Reconfiguration {
    return this.#parts.reconfiguration;
  }

  get leadership(): Leadership {
    return this.#parts.leadership;
  }

  /** The store in use; it may be replaced by another from one turn to the next. */
  get store(): Store {
    return this.#parts.store.current;
  }

  /** Whether clients may be shown what is in the store now. */
  get isServable(): boolean {
    return this.#parts.store.withheld === 0;
  }

  /** 0n where none is known. */
  get leader(): bigint {
    return this.#parts.leader.leader;
  }

  get isLeader(): boolean {
    return this.#parts.leader.isLeader;
  }

  get isLearner(): boolean {
    return this.#parts.raft.confState.learners.includes(this.id);
  }

  get term(): number {
    return this.#parts.raft.term;
  }

  get commitIndex(): number {
    return this.#parts.raft.commitIndex;
  }

  get appliedIndex(): number {
    return this.#parts.raft.appliedIndex;
  }

  /** Read index rounds that were sent more than once, and linearizable reads that failed. */
  get readIndexes(): { readonly slow: number; readonly failed: number } {
    const { slowRounds: slow, failed } = this.#parts.reads;
    return { slow, failed };
  }

  get pendingProposals(): number {
    return this.#parts.proposals.waitingCount;
  }

  /** A header with this member's ids and term, and the revision given. */
  header(revision: number): ResponseHeader {
    return {
      clusterId: this.clusterId,
      memberId: this.id,
      revision,
      raftTerm: this.#parts.raft.term,
    };
  }

  // --- The end ---

  /**
   * Hands leadership to the member that is most up to date, if this one leads; resolves when
   * another leads or the time is up.
   */
  handOver(): Promise<void> {
    return this.#parts.leadership.handOver();
  }

  /** Ends the member in order: everything applied is on disk when it resolves. */
  stop(): Promise<void> {
    return this.#lifecycle.stop();
  }
}

/** A proposer whose call is traced. */
class TracedProposer implements Proposer {
  readonly #proposer: Proposer;
  readonly #result = Promise.withResolvers<AppliedEntry>();

  constructor(proposer: Proposer, trace: CallTrace) {
    this.#proposer = proposer;
    trace.proposed(this.#result.promise);
  }

  get isGone(): boolean {
    return this.#proposer.isGone === true;
  }

  applied(result: AppliedEntry): void {
    this.#result.resolve(result);
    this.#proposer.applied(result);
  }

  refused(error: Error): void {
    this.#result.reject(error);
    this.#proposer.refused(error);
  }
}
