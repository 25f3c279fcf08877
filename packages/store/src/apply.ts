/**
 * From a committed entry to its effect. One table says what each kind of request does; the same
 * entries give the same bytes on every member.
 *
 * A request that may take long is applied in steps (steps.ts), and its caller may do other work in
 * between; no other entry is applied meanwhile. The others are applied at once, which is cheaper.
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
  WireError,
} from "@quorate/proto";
import type { Alarms } from "./alarms.ts";
import type { Lessor } from "./lease/lessor.ts";
import type { Membership } from "./membership/membership.ts";
import type { Mvcc } from "./mvcc/index.ts";
import { applyAlarm } from "./requests/alarm.ts";
import { txnCostBytes } from "./requests/cost.ts";
import {
  type InvalidRequestError,
  malformation,
  type RequestKind,
} from "./requests/entry-request.ts";
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
import {
  applyLeaseCheckpoint,
  applyLeaseGrant,
  applyLeaseRevoke,
  isShortRevoke,
  revokeInSteps,
} from "./requests/lease.ts";
import type { Steps } from "./steps.ts";

export type { RequestKind } from "./requests/entry-request.ts";

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
  /**
   * The answer, with its revision in the header; undefined for kinds that have none, and for an
   * error.
   */
  readonly response: ApplyResponse | undefined;
  /**
   * InvalidRequestError for an entry that does not decode: it has changed nothing, on any member.
   */
  readonly error: EtcdError | InvalidRequestError | undefined;
}

/** The parts of the state that requests work on. */
export interface ApplyParts {
  readonly mvcc: Mvcc;
  readonly membership: Membership;
  readonly leases: Lessor;
  readonly alarms: Alarms;
  readonly isAwaited: (requestId: bigint) => boolean;
}

type Apply = (
  parts: ApplyParts,
  request: Uint8Array,
  answered: boolean,
) => ApplyResponse | Steps<ApplyResponse> | undefined;

/**
 * What each kind does. A kind that is not here is one that this version never proposes: meeting it
 * is an error of the request.
 */
const TABLE: { readonly [K in RequestKind]?: Apply } = {
  put: (parts, bytes, answered) =>
    applyPut(parts.mvcc, parts.leases, PutRequest.decode(bytes), answered),
  deleteRange: ({ mvcc, leases }, bytes, answered) => {
    const request = DeleteRangeRequest.decode(bytes);
    return isSingleDelete(request)
      ? applyDelete(mvcc, leases, request, answered)
      : deleteInSteps(mvcc, leases, request, answered);
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
  leaseGrant: (parts, bytes) =>
    applyLeaseGrant(parts.mvcc, parts.leases, LeaseGrantRequest.decode(bytes)),
  leaseRevoke: ({ mvcc, leases }, bytes) => {
    const request = LeaseRevokeRequest.decode(bytes);
    return isShortRevoke(leases, request, mvcc.stepKeys)
      ? applyLeaseRevoke(mvcc, leases, request)
      : revokeInSteps(mvcc, leases, request);
  },
  leaseCheckpoint: (parts, bytes) =>
    applyLeaseCheckpoint(parts.mvcc, parts.leases, LeaseCheckpointRequest.decode(bytes)),
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

/**
 * What an alarm refuses whole; a transaction is looked into (etcd: applierV3Capped,
 * applierV3Corrupt).
 */
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
 * Applies the request in an entry's data: returns what came of it, or the steps that do it, which
 * must be run to their end before anything else is applied. Data that does not decode comes to an
 * error, the same on every member: nothing has been done then, for a request is decoded whole
 * before it is carried out. Throws, or the steps throw, what is no answer to a request: damage,
 * broken invariants.
 */
export function applyRequest(parts: ApplyParts, data: Uint8Array): Applied | Steps<Applied> {
  if (data.length === 0) return NOTHING;
  let request: InternalRaftRequest;
  try {
    request = InternalRaftRequest.decode(data);
  } catch (error) {
    return { ...NOTHING, error: blamed(data, error) };
  }
  const requestId = request.ID !== 0n ? request.ID : (request.header?.ID ?? 0n);
  for (const kind of KINDS) {
    const bytes = request[kind];
    if (bytes === undefined) continue;
    try {
      if (parts.alarms.any) admit(parts.alarms, kind);
      const outcome = TABLE[kind]!(parts, bytes, parts.isAwaited(requestId));
      if (isSteps(outcome)) return finish(requestId, kind, data, outcome);
      return { requestId, kind, response: outcome, error: undefined };
    } catch (error) {
      return failed(requestId, kind, data, error);
    }
  }
  const malformed = malformation(data);
  if (malformed !== undefined)
    return { requestId, kind: undefined, response: undefined, error: malformed };
  throw new Error(
    `an entry carries a request that this version does not know (${data.length} bytes): a newer member wrote it; upgrade this one`,
  );
}

function* finish(
  requestId: bigint,
  kind: RequestKind,
  data: Uint8Array,
  steps: Steps<ApplyResponse>,
): Steps<Applied> {
  try {
    return { requestId, kind, response: yield* steps, error: undefined };
  } catch (error) {
    return failed(requestId, kind, data, error);
  }
}

/** An error that is an answer to the request; another one is thrown on. */
function failed(requestId: bigint, kind: RequestKind, data: Uint8Array, error: unknown): Applied {
  return {
    requestId,
    kind,
    response: undefined,
    error: error instanceof EtcdError ? error : blamed(data, error),
  };
}

/** Tells steps from a result. */
export function isSteps<T extends object>(outcome: T | Steps<T> | undefined): outcome is Steps<T> {
  return outcome !== undefined && "next" in outcome && typeof outcome.next === "function";
}

/**
 * The error of an entry that cannot be decoded. Rethrows `error` where the entry is not what is
 * wrong: a record of the store may be.
 */
function blamed(data: Uint8Array, error: unknown): InvalidRequestError {
  const malformed = error instanceof WireError ? malformation(data) : undefined;
  if (malformed === undefined) throw error;
  return malformed;
}
