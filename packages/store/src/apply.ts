/**
 * From a committed entry to its effect. One table says what each kind of request does; the same entries give the same bytes on every
 * member.
 *
 * A request that may take long is applied in steps (steps.ts), and its caller may do other work in between; no other entry is applied
 * meanwhile. The others are applied at once, which is cheaper.
 */
import {
  AlarmRequest,
  type AlarmResponse,
  CompactionRequest,
  type CompactionResponse,
  DeleteRangeRequest,
  type DeleteRangeResponse,
  EtcdError,
  errorOf,
  InternalRaftRequest,
  LeaseCheckpointRequest,
  type LeaseCheckpointResponse,
  LeaseGrantRequest,
  type LeaseGrantResponse,
  LeaseRevokeRequest,
  type LeaseRevokeResponse,
  membershippb,
  PutRequest,
  type PutResponse,
  RangeRequest,
  type RangeResponse,
  TxnRequest,
  type TxnResponse,
} from "@quorate/proto";
import type { Alarms } from "./alarms.ts";
import type { Lessor } from "./lease/lessor.ts";
import type { Membership } from "./membership/membership.ts";
import type { Mvcc } from "./mvcc/index.ts";
import { applyAlarm } from "./requests/alarm.ts";
import { txnCostBytes } from "./requests/cost.ts";
import {
  applyCompaction,
  applyDelete,
  applyPut,
  applyShortTxn,
  deleteInSteps,
  isShortTxn,
  isSingleDelete,
  range,
  txnInSteps,
} from "./requests/index.ts";
import { applyLeaseCheckpoint, applyLeaseGrant, applyLeaseRevoke, isShortRevoke, revokeInSteps } from "./requests/lease.ts";
import type { Steps } from "./steps.ts";

/** The kinds of request that are applied, by their field in InternalRaftRequest. */
export type RequestKind = Exclude<keyof InternalRaftRequest, "ID" | "header" | "v2">;

export type ApplyResponse =
  | PutResponse
  | DeleteRangeResponse
  | TxnResponse
  | CompactionResponse
  | RangeResponse
  | LeaseGrantResponse
  | LeaseRevokeResponse
  | LeaseCheckpointResponse
  | AlarmResponse;

/** What applying an entry came to. */
export interface Applied {
  /** The id under which the proposer waits; 0n for an entry without a request. */
  readonly requestId: bigint;
  readonly kind: RequestKind | undefined;
  /** The answer, with its revision in the header; undefined for kinds that have none, and for an error. */
  readonly response: ApplyResponse | undefined;
  readonly error: EtcdError | undefined;
}

/** The parts of the state that requests work on. */
export interface ApplyParts {
  readonly mvcc: Mvcc;
  readonly membership: Membership;
  readonly leases: Lessor;
  readonly alarms: Alarms;
  readonly isAwaited: (requestId: bigint) => boolean;
}

type Apply = (parts: ApplyParts, request: Uint8Array, answered: boolean) => ApplyResponse | Steps<ApplyResponse> | undefined;

/** What each kind does. A kind that is not here is one that this version never proposes: meeting it is an error of the request. */
const TABLE: { readonly [K in RequestKind]?: Apply } = {
  put: (parts, bytes, answered) => applyPut(parts.mvcc, parts.leases, PutRequest.decode(bytes), answered),
  deleteRange: ({ mvcc, leases }, bytes, answered) => {
    const request = DeleteRangeRequest.decode(bytes);
    return isSingleDelete(request) ? applyDelete(mvcc, leases, request, answered) : deleteInSteps(mvcc, leases, request, answered);
  },
  txn: (parts, bytes, answered) => {
    const request = TxnRequest.decode(bytes);
    if (parts.alarms.noSpace && txnCostBytes(request) > 0) throw errorOf("NoSpace");
    const { mvcc, leases } = parts;
    return isShortTxn(request, mvcc.stepKeys)
      ? applyShortTxn(mvcc, leases, request, answered)
      : txnInSteps(mvcc, leases, request, answered);
  },
  compaction: (parts, bytes) => applyCompaction(parts.mvcc, CompactionRequest.decode(bytes)),
  range: (parts, bytes) => range(parts.mvcc.view, RangeRequest.decode(bytes)),
  leaseGrant: (parts, bytes) => applyLeaseGrant(parts.mvcc, parts.leases, LeaseGrantRequest.decode(bytes)),
  leaseRevoke: ({ mvcc, leases }, bytes) => {
    const request = LeaseRevokeRequest.decode(bytes);
    return isShortRevoke(leases, request, mvcc.stepKeys) ? applyLeaseRevoke(mvcc, leases, request) : revokeInSteps(mvcc, leases, request);
  },
  leaseCheckpoint: (parts, bytes) => applyLeaseCheckpoint(parts.mvcc, parts.leases, LeaseCheckpointRequest.decode(bytes)),
  alarm: (parts, bytes) => applyAlarm(parts.mvcc, parts.alarms, AlarmRequest.decode(bytes)),
  clusterVersionSet: (parts, bytes) => {
    parts.membership.setClusterVersion(membershippb.ClusterVersionSetRequest.decode(bytes).ver);
    return undefined;
  },
  clusterMemberAttrSet: (parts, bytes) => {
    const request = membershippb.ClusterMemberAttrSetRequest.decode(bytes);
    const { name, clientUrls } = request.memberAttributes ?? membershippb.Attributes.create();
    parts.membership.setAttributes(request.member_ID, name, clientUrls);
    return undefined;
  },
};

/** Requests by how often they come, so that most are found at the first look. */
const KINDS = [
  "put",
  "txn",
  "deleteRange",
  "compaction",
  "range",
  "leaseGrant",
  "leaseRevoke",
  "leaseCheckpoint",
  "alarm",
  "clusterMemberAttrSet",
  "clusterVersionSet",
] as const satisfies readonly RequestKind[];

/** What an alarm refuses whole; a transaction is looked into (etcd: applierV3Capped, applierV3Corrupt). */
const REFUSED_WITHOUT_SPACE: ReadonlySet<RequestKind> = new Set<RequestKind>(["put", "leaseGrant"]);
const REFUSED_WHEN_CORRUPT: ReadonlySet<RequestKind> = new Set<RequestKind>([
  "put",
  "range",
  "deleteRange",
  "txn",
  "compaction",
  "leaseGrant",
  "leaseRevoke",
]);

/** @throws EtcdError Corrupt, NoSpace while an alarm refuses this kind of request */
function admit(alarms: Alarms, kind: RequestKind): void {
  if (alarms.corrupt && REFUSED_WHEN_CORRUPT.has(kind)) throw errorOf("Corrupt");
  if (alarms.noSpace && REFUSED_WITHOUT_SPACE.has(kind)) throw errorOf("NoSpace");
}

const NOTHING: Applied = { requestId: 0n, kind: undefined, response: undefined, error: undefined };

/**
 * Applies the request in an entry's data: returns what came of it, or the steps that do it, which must be run to their end before anything
 * else is applied. Throws, or the steps throw, what is no answer to a request: damage, broken invariants.
 */
export function applyRequest(parts: ApplyParts, data: Uint8Array): Applied | Steps<Applied> {
  if (data.length === 0) return NOTHING;
  const request = InternalRaftRequest.decode(data);
  const requestId = request.ID !== 0n ? request.ID : (request.header?.ID ?? 0n);
  for (const kind of KINDS) {
    const bytes = request[kind];
    if (bytes === undefined) continue;
    try {
      if (parts.alarms.any) admit(parts.alarms, kind);
      const outcome = TABLE[kind]!(parts, bytes, parts.isAwaited(requestId));
      if (isSteps(outcome)) return finish(requestId, kind, outcome);
      return { requestId, kind, response: outcome, error: undefined };
    } catch (error) {
      return failed(requestId, kind, error);
    }
  }
  throw new Error(
    `an entry carries a request that this version does not know (${data.length} bytes): a newer member wrote it; upgrade this one`,
  );
}

function* finish(requestId: bigint, kind: RequestKind, steps: Steps<ApplyResponse>): Steps<Applied> {
  try {
    return { requestId, kind, response: yield* steps, error: undefined };
  } catch (error) {
    return failed(requestId, kind, error);
  }
}

/** An error that is an answer to the request; another one is thrown on. */
function failed(requestId: bigint, kind: RequestKind, error: unknown): Applied {
  if (error instanceof EtcdError) return { requestId, kind, response: undefined, error };
  throw error;
}

/** Tells steps from a result. */
export function isSteps<T extends object>(outcome: T | Steps<T> | undefined): outcome is Steps<T> {
  return outcome !== undefined && "next" in outcome && typeof outcome.next === "function";
}
