/**
 * Requests on their way into Raft: an id, the identity in the header, and the caller that waits.
 * The member's own requests begin here; those of clients come through EntryPoints.
 */
import { type ErrorName, errorOf, InternalRaftRequest } from "@quorate/proto";
import type { Raft } from "@quorate/raft";
import {
  type Applied,
  type AppliedEntry,
  checkMessage,
  decodeRequest,
  encodeWithRoles,
  type RequestKind,
  type RequestLimits,
} from "@quorate/store";
import type { Authority } from "../identity/authority.ts";
import type { Identity } from "../identity/caller.ts";
import type { Lifetime } from "./lifetime.ts";
import { MAX_APPLY_GAP_ENTRIES, MAX_PREFERRED_GAP_ENTRIES } from "./limits.ts";
import type { MemberLoop } from "./loop.ts";
import type { Proposals } from "./proposals.ts";
import type { RequestIds } from "./request-ids.ts";

export interface RaftRequestOptions {
  readonly limits: RequestLimits;
  /** Size of the largest request, in bytes (--max-request-bytes). */
  readonly maxRequestBytes: number;
  /** Revocations of leases may run further ahead (feature gate PriorityRequest). */
  readonly areRevokesPreferred: boolean;
}

export interface RaftRequestDeps {
  readonly raft: Raft;
  readonly loop: Pick<MemberLoop<AppliedEntry>, "appliedIndex" | "withRaft">;
  readonly proposals: Proposals<AppliedEntry>;
  readonly requestIds: RequestIds;
  readonly lifetime: Lifetime;
}

export class RaftRequests {
  /** Users and roles; undefined: every caller is permitted everything. */
  authority: Authority | undefined;
  readonly #options: RaftRequestOptions;
  readonly #deps: RaftRequestDeps;

  constructor(options: RaftRequestOptions, deps: RaftRequestDeps) {
    this.#options = options;
    this.#deps = deps;
  }

  /**
   * Takes a request of the member's own through Raft.
   * @returns a promise as of EntryPoints.propose
   */
  propose<K extends RequestKind>(kind: K, request: Uint8Array): Promise<Applied<K>> {
    const { limits } = this.#options;
    try {
      checkMessage(kind, decodeRequest(kind, request, limits), limits);
    } catch (error) {
      return Promise.reject(error);
    }
    return this.enqueue(this.authority?.memberIdentity(), kind, request);
  }

  /** Takes a request that is checked to Raft. @param identity for the header of its entry */
  enqueue<K extends RequestKind>(
    identity: Identity | undefined,
    kind: K,
    request: Uint8Array,
  ): Promise<Applied<K>> {
    const { raft, loop, proposals, requestIds } = this.#deps;
    if (raft.commitIndex - loop.appliedIndex > this.#maxGap(kind)) {
      return Promise.reject(errorOf("TooManyRequests"));
    }
    const id = requestIds.next();
    const payload = payloadOf(id, identity, kind, request);
    if (payload.length > this.#options.maxRequestBytes) {
      return Promise.reject(errorOf("RequestTooLarge"));
    }
    // What is applied under this id is this very request.
    return proposals.propose(id, payload) as Promise<Applied<K>>;
  }

  #maxGap(kind: RequestKind): number {
    const isPreferred = this.#options.areRevokesPreferred && kind === "leaseRevoke";
    return isPreferred ? MAX_PREFERRED_GAP_ENTRIES : MAX_APPLY_GAP_ENTRIES;
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
    const { raft, loop, proposals, requestIds, lifetime } = this.#deps;
    const refused = (name: ErrorName) =>
      requests.map(() => Promise.reject<Applied<K>>(errorOf(name)));
    if (lifetime.hasEnded || raft.role !== "leader" || raft.term !== term) {
      return refused("LeaderChanged");
    }
    const identity = this.authority?.memberIdentity();
    const ids = requests.map(() => requestIds.next());
    const payloads = requests.map((request, i) => payloadOf(ids[i], identity, kind, request));
    if (loop.withRaft((machine) => machine.propose(payloads)) !== "accepted") {
      return refused("TooManyRequests");
    }
    return ids.map((id) => proposals.wait(id, term) as Promise<Applied<K>>);
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
  if (roles === undefined) return InternalRaftRequest.encode({ header, [kind]: request });
  return encodeWithRoles(header, roles, InternalRaftRequest.encode({ [kind]: request }));
}
