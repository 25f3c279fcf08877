/**
 * The ways into a member, the same for every service, and for locks and elections:
 *
 *     propose   quota -> check -> identity into the header -> Raft -> applied here -> result
 *     read      ReadIndex round -> permitted? -> read what is applied -> still so?
 *     watch     permitted? for each watch -> its events
 *     operate   permitted? -> work that is neither, such as moving the leadership
 *
 * So identity, permission, quota and tracing have one place each.
 */
import { UserCreationsRequest } from "@quorate/proto";
import type { CallTrace, StreamCall } from "@quorate/rpc";
import {
  type Applied,
  type AppliedEntry,
  checkMessage,
  costOfRequest,
  decodeRequest,
  type RequestKind,
  type RequestLimits,
  type RequestOf,
} from "@quorate/store";
import type { Readiness } from "./apply/store-exchange.ts";
import { type Access, type Admission, type Authority, NEEDED_STORE } from "./identity/authority.ts";
import { type Caller, type Identity, MEMBER_CALLER } from "./identity/caller.ts";
import { type Proposer, proposerOf, type Reader } from "./loop/deliveries.ts";
import type { Proposals } from "./loop/proposals.ts";
import type { Reads } from "./loop/reads.ts";
import type { FeatureSupport } from "./membership/features.ts";
import type { StoreRef } from "./reads/store-ref.ts";
import type { SpaceKeeper } from "./space/index.ts";
import type { WatchHub, WatchStream } from "./watch/index.ts";

export interface EntryPointDeps {
  readonly limits: RequestLimits;
  readonly proposals: Proposals;
  readonly reads: Reads;
  readonly store: StoreRef;
  readonly quota: Pick<SpaceKeeper, "hasSpace" | "refuse">;
  readonly readiness: Readiness;
  readonly watches: Pick<WatchHub, "open">;
  /** Users and roles. */
  readonly authority: Authority;
  /** Whether the log may hold roles of tokens. */
  readonly tokenRoles: Pick<FeatureSupport, "ready">;
  readonly userCreations: Pick<FeatureSupport, "ready" | "isSettled">;
}

/** A read of what is applied here. */
export interface ReadRequest<T> {
  readonly access: Access;
  /** False: what is applied here now will do; true: all that was committed at the call. */
  readonly linearizable: boolean;
  /** Reads, when everything that it depends on is given; not called otherwise. */
  readonly run: () => T | Promise<T>;
}

/** The base of Member, which adds its standing and its end. */
export class EntryPoints {
  readonly #deps: EntryPointDeps;

  constructor(deps: EntryPointDeps) {
    this.#deps = deps;
  }

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
      message = decoded ?? decodeRequest(kind, request, this.#deps.limits);
      const refusal = this.spaceRefusal(kind, message);
      if (refusal !== undefined) {
        refusal.catch((error: Error) => proposer.refused(error));
        return;
      }
    } catch (error) {
      proposer.refused(error as Error);
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
    const { authority, limits } = this.#deps;
    try {
      checkMessage(kind, message, limits);
      // A login proves the user by its password, whatever token it carries besides.
      const isProved = !authority.isEnforced || kind === "authenticate";
      const identity = isProved ? undefined : authority.identify(caller);
      if (identity instanceof Promise)
        identity.then(
          (one) => this.#enqueue(proposer, caller, one, kind, request),
          (error: Error) => proposer.refused(error),
        );
      else this.#enqueue(proposer, caller, identity, kind, request);
    } catch (error) {
      proposer.refused(error as Error);
    }
  }

  /**
   * Has every member note when users are made, from now on, so that nobody who was recognised as a
   * user that was deleted counts as a later one of that name. Before all members know such entries
   * users are made without: a member that is away must not stop administrators.
   */
  async noteUserCreations(): Promise<void> {
    const { userCreations } = this.#deps;
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
    const { store, quota } = this.#deps;
    const costBytes = costOfRequest(kind, message, store.current.mvcc.view);
    return quota.hasSpace(costBytes) ? undefined : quota.refuse();
  }

  #enqueue(
    proposer: Proposer,
    caller: Caller,
    identity: Identity | undefined,
    kind: RequestKind,
    request: Uint8Array,
  ): void {
    const { proposals, tokenRoles } = this.#deps;
    const { trace } = caller;
    const informed = trace === undefined ? proposer : new TracedProposer(proposer, trace);
    const waiting = identity?.roles === undefined ? undefined : tokenRoles.ready();
    if (waiting === undefined) proposals.enqueue(identity, kind, request, informed);
    else
      waiting.then(
        () => proposals.enqueue(identity, kind, request, informed),
        (error: Error) => informed.refused(error),
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
    return this.#deps.reads
      .wait()
      .then(() => (this.isOpen ? request.run() : this.#read(caller, request)));
  }

  /**
   * Has the reader told when a read of what is applied here is linearizable. Where `isOpen` is true
   * then, the caller may read; otherwise it takes `read`.
   */
  awaitRound(reader: Reader): void {
    this.#deps.reads.add(reader);
  }

  /** Whether anybody may read anything of the store now. */
  get isOpen(): boolean {
    const { readiness, authority } = this.#deps;
    return readiness.isServable && !authority.isEnforced;
  }

  /** Reads when the store that the read needs is there. */
  async #read<T>(caller: Caller, { access, run }: ReadRequest<T>): Promise<T> {
    const { readiness } = this.#deps;
    const needed = NEEDED_STORE[access.kind];
    if (!readiness.isServable && needed !== "none") {
      if (needed === "servable") await readiness.servable();
      else await readiness.readable();
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
    if (!this.#deps.authority.isEnforced) return undefined;
    return this.#permit(caller, access);
  }

  async #permit(caller: Caller, access: Access): Promise<void> {
    try {
      await this.#admit(caller, access);
    } catch {
      await this.#deps.reads.wait();
      await this.#admit(caller, access);
    }
  }

  /** Undefined while callers need no permission. */
  #admit(caller: Caller, access: Access): Admission | undefined | Promise<Admission> {
    const { authority } = this.#deps;
    return authority.isEnforced ? authority.admit(caller, access) : undefined;
  }

  /**
   * Opens a stream of watches. What the caller may watch is decided for each watch when it is
   * created, and again at `WatchHub.recheck`.
   */
  watch(caller: Caller, call: StreamCall): WatchStream {
    const watching = this.#deps.authority.watching(caller);
    return this.#deps.watches.open(call, {
      client: caller.client,
      ready: () => watching.ready(),
      forbids: (range) => watching.forbids(range),
      revoked: (range) => watching.revoked(range),
    });
  }

  /** Does work on this member that is neither a request of the log nor a read of the store. */
  operate<T>(caller: Caller, access: Access, run: () => Promise<T>): Promise<T> {
    const { isEnforced } = this.#deps.authority;
    if (!isEnforced && NEEDED_STORE[access.kind] === "none") return run();
    return this.read(caller, { access, linearizable: false, run });
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

  applied(result: AppliedEntry): void {
    this.#result.resolve(result);
    this.#proposer.applied(result);
  }

  refused(error: Error): void {
    this.#result.reject(error);
    this.#proposer.refused(error);
  }
}
