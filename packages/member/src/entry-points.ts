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
import type { StreamCall } from "@quorate/rpc";
import {
  type Applied,
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
    let message: RequestOf<K>;
    try {
      message = decoded ?? decodeRequest(kind, request, this.#deps.limits);
      const refusal = this.spaceRefusal(kind, message);
      if (refusal !== undefined) return refusal;
    } catch (error) {
      return Promise.reject(error);
    }
    return this.proposeFitting(caller, kind, request, message);
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
    const { authority, limits } = this.#deps;
    try {
      checkMessage(kind, message, limits);
      // A login proves the user by its password, whatever token it carries besides.
      if (!authority.isEnforced || kind === "authenticate")
        return this.#enqueue(caller, undefined, kind, request);
      const identity = authority.identify(caller);
      if (!(identity instanceof Promise)) return this.#enqueue(caller, identity, kind, request);
      return identity.then((one) => this.#enqueue(caller, one, kind, request));
    } catch (error) {
      return Promise.reject(error);
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

  #enqueue<K extends RequestKind>(
    caller: Caller,
    identity: Identity | undefined,
    kind: K,
    request: Uint8Array,
  ): Promise<Applied<K>> {
    const { proposals, tokenRoles } = this.#deps;
    const waiting = identity?.roles === undefined ? undefined : tokenRoles.ready();
    const result =
      waiting === undefined
        ? proposals.enqueue(identity, kind, request)
        : waiting.then(() => proposals.enqueue(identity, kind, request));
    caller.trace?.proposed(result);
    return result;
  }

  /**
   * Reads what is applied here, for a caller that may.
   * @returns a promise of the result of `run`. Rejects with what that throws, and with EtcdError
   *   where the read is not permitted, not linearizable in time, or the member ends
   */
  read<T>(caller: Caller, request: ReadRequest<T>): Promise<T> {
    const { reads, readiness, authority } = this.#deps;
    if (!request.linearizable) return this.#read(caller, request);
    // Most reads wait for their round, and then for nothing else.
    return reads
      .wait()
      .then(() =>
        readiness.isServable && !authority.isEnforced ? request.run() : this.#read(caller, request),
      );
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
