/**
 * The kinds of request that stand in log entries: one record for each, from which all else derives
 * (the types RequestKind, RequestOf and ResponseOf, the checks before a proposal, and what alarms
 * refuse). A kind that is not here is one that this version neither proposes nor applies.
 *
 *     InternalRaftRequest { header, put: bytes }     REQUESTS.put: decode, check, cost, apply
 */
import {
  AlarmRequest,
  AlarmRequest_AlarmAction,
  type AlarmResponse,
  AlarmType,
  CompactionRequest,
  type CompactionResponse,
  DeleteRangeRequest,
  DowngradeVersionTestRequest,
  errorOf,
  type InternalRaftRequest,
  LeaseCheckpointRequest,
  LeaseGrantRequest,
  LeaseRevokeRequest,
  membershippb,
  PutRequest,
  RangeRequest,
  TxnRequest,
} from "@quorate/proto";
import { AUTH_REQUESTS } from "../auth/auth-requests.ts";
import type { Alarm, Alarms } from "../backend/alarms.ts";
import { headerAt } from "../backend/revision.ts";
import { InvalidRequestError } from "../entry/invalid-request.ts";
import { MAX_LEASE_TTL_SECONDS } from "../lease/lessor.ts";
import type { Mvcc } from "../mvcc/index.ts";
import type { ReadView } from "../mvcc/read-view.ts";
import { applyDelete, checkDeleteRange, deleteInSteps, isSingleDelete } from "./delete-range.ts";
import {
  applyLeaseCheckpoint,
  applyLeaseGrant,
  applyLeaseRevoke,
  isShortRevoke,
  LEASE_COST_BYTES,
  revokeInSteps,
} from "./lease.ts";
import { applyPut, checkPut, putCostBytes } from "./put.ts";
import { checkRange, range } from "./range.ts";
import type { RequestLimits, RequestRecord } from "./request-record.ts";
import { applyShortTxn, txnInSteps } from "./txn.ts";
import { checkTxn, decodeTxn, isShortTxn, txnCostBytes } from "./txn-check.ts";
import { copiedBytes } from "./work.ts";

/** Leases of one checkpoint entry (etcd: maxLeaseCheckpointBatchSize). */
export const MAX_CHECKPOINT_LEASES = 1000;

/** Fields of InternalRaftRequest that carry a request. */
type RequestField = Exclude<keyof InternalRaftRequest, "ID" | "header" | "v2" | "tokenRoles">;

/** Infers the types of one record. */
function record<Q, R>(fields: RequestRecord<Q, R>): RequestRecord<Q, R> {
  return fields;
}

/** By the field of InternalRaftRequest; they are looked for in this order, frequent ones first. */
export const REQUESTS = {
  put: record({
    type: PutRequest,
    check: checkPut,
    refusedWhenCorrupt: true,
    costBytes: putCostBytes,
    copiedBytes: (view, request) => (request.ignoreValue ? copiedBytes(view, request) : 0),
    apply: ({ mvcc, leases }, request, answered) => applyPut(mvcc, leases, request, answered),
  }),
  txn: record({
    type: TxnRequest,
    decodeBounded: (bytes, { maxTxnOps }) => decodeTxn(bytes, maxTxnOps),
    check: (request, { maxTxnOps }) => checkTxn(request, maxTxnOps),
    refusedWhenCorrupt: true,
    costBytes: txnCostBytes,
    copiedBytes: (view, request) => (txnCostBytes(request) > 0 ? copiedBytes(view, request) : 0),
    apply: ({ mvcc, leases }, request, answered) =>
      isShortTxn(request, mvcc.stepKeys)
        ? applyShortTxn(mvcc, leases, request, answered)
        : txnInSteps(mvcc, leases, request, answered),
  }),
  deleteRange: record({
    type: DeleteRangeRequest,
    check: checkDeleteRange,
    refusedWhenCorrupt: true,
    apply: ({ mvcc, leases }, request, answered) =>
      isSingleDelete(request)
        ? applyDelete(mvcc, leases, request, answered)
        : deleteInSteps(mvcc, leases, request, answered),
  }),
  compaction: record({
    type: CompactionRequest,
    check: () => undefined,
    refusedWhenCorrupt: true,
    apply: ({ mvcc }, request) => applyCompaction(mvcc, request),
  }),
  range: record({
    type: RangeRequest,
    check: checkRange,
    refusedWhenCorrupt: true,
    apply: ({ mvcc }, request) => range(mvcc.view, request),
  }),
  leaseGrant: record({
    type: LeaseGrantRequest,
    check: ({ TTL }) => (TTL > MAX_LEASE_TTL_SECONDS ? "LeaseTTLTooLarge" : undefined),
    refusedWhenCorrupt: true,
    costBytes: () => LEASE_COST_BYTES,
    apply: ({ mvcc, leases }, request) => applyLeaseGrant(mvcc, leases, request),
  }),
  leaseRevoke: record({
    type: LeaseRevokeRequest,
    check: () => undefined,
    refusedWhenCorrupt: true,
    apply: ({ mvcc, leases }, request) =>
      isShortRevoke(leases, request, mvcc.stepKeys)
        ? applyLeaseRevoke(mvcc, leases, request)
        : revokeInSteps(mvcc, leases, request),
  }),
  leaseCheckpoint: record({
    type: LeaseCheckpointRequest,
    check: checkCheckpoints,
    refusedWhenCorrupt: false,
    apply: ({ mvcc, leases }, request) => applyLeaseCheckpoint(mvcc, leases, request),
  }),
  alarm: record({
    type: AlarmRequest,
    check: checkAlarm,
    refusedWhenCorrupt: false,
    apply: ({ mvcc, alarms }, request) => applyAlarm(mvcc, alarms, request),
  }),
  clusterMemberAttrSet: record<membershippb.ClusterMemberAttrSetRequest, undefined>({
    type: membershippb.ClusterMemberAttrSetRequest,
    check: () => undefined,
    refusedWhenCorrupt: false,
    apply: ({ membership }, { member_ID, memberAttributes }) => {
      const { name, clientUrls } = memberAttributes ?? membershippb.Attributes.create();
      membership.setAttributes(member_ID, name, clientUrls);
      return undefined;
    },
  }),
  clusterVersionSet: record<membershippb.ClusterVersionSetRequest, undefined>({
    type: membershippb.ClusterVersionSetRequest,
    check: checkVersion,
    refusedWhenCorrupt: false,
    apply: ({ membership }, { ver }) => {
      membership.setClusterVersion(ver);
      return undefined;
    },
  }),
  downgradeInfoSet: record<membershippb.DowngradeInfoSetRequest, undefined>({
    type: membershippb.DowngradeInfoSetRequest,
    check: () => undefined,
    refusedWhenCorrupt: false,
    apply: ({ membership }, { enabled, ver }) => {
      membership.setDowngrade(enabled, ver);
      return undefined;
    },
  }),
  // Shows a member of etcd that others apply what it writes; nothing follows from it.
  downgradeVersionTest: record<DowngradeVersionTestRequest, undefined>({
    type: DowngradeVersionTestRequest,
    check: () => undefined,
    refusedWhenCorrupt: false,
    apply: () => undefined,
  }),
  ...AUTH_REQUESTS,
} as const satisfies { readonly [K in RequestField]?: unknown };

type Records = typeof REQUESTS;

/** The kinds of request that are proposed and applied, by their field in InternalRaftRequest. */
export type RequestKind = keyof Records;
/** The message of a kind. */
export type RequestOf<K extends RequestKind> = {
  [P in K]: Records[P] extends RequestRecord<infer Q, infer _R> ? Q : never;
}[K];
/** The result of applying a request of a kind; undefined for kinds without a response. */
export type ResponseOf<K extends RequestKind> = {
  [P in K]: Records[P] extends RequestRecord<infer _Q, infer R> ? R : never;
}[K];

// biome-ignore lint/suspicious/noExplicitAny: the list holds records of all types
export type AnyRequestRecord = RequestRecord<any, unknown>;
/** All records with their kinds. */
export const REQUEST_RECORDS: readonly (readonly [RequestKind, AnyRequestRecord])[] =
  Object.entries(REQUESTS) as [RequestKind, AnyRequestRecord][];

function checkCheckpoints({ checkpoints }: LeaseCheckpointRequest): undefined {
  if (checkpoints.length <= MAX_CHECKPOINT_LEASES) return undefined;
  throw new InvalidRequestError(
    `a checkpoint of ${checkpoints.length} leases; at most ${MAX_CHECKPOINT_LEASES} are taken`,
  );
}

const ALARM_ACTIONS: ReadonlySet<number> = new Set(Object.values(AlarmRequest_AlarmAction));
const ALARM_TYPES: ReadonlySet<number> = new Set(Object.values(AlarmType));

/** etcd's members end on an unknown alarm (apply/apply.go, "unimplemented alarm activation"). */
function checkAlarm({ action, alarm }: AlarmRequest): undefined {
  if (!ALARM_ACTIONS.has(action)) throw new InvalidRequestError(`unknown alarm action ${action}`);
  if (!ALARM_TYPES.has(alarm)) throw new InvalidRequestError(`unknown alarm type ${alarm}`);
}

function checkVersion(
  { ver }: membershippb.ClusterVersionSetRequest,
  { versionProblem }: RequestLimits,
): undefined {
  const problem = versionProblem(ver);
  if (problem !== undefined) throw new InvalidRequestError(problem);
}

/**
 * The message in a request's bytes, decoded within bounds.
 * @throws WireError for bytes that are no such request; EtcdError for one with too many parts
 */
export function decodeRequest<K extends RequestKind>(
  kind: K,
  bytes: Uint8Array,
  limits: RequestLimits,
): RequestOf<K> {
  const { type, decodeBounded }: AnyRequestRecord = REQUESTS[kind];
  return decodeBounded === undefined ? type.decode(bytes) : decodeBounded(bytes, limits);
}

/**
 * Checks a message before it is proposed.
 * @throws EtcdError and InvalidRequestError for a request that no state makes valid
 */
export function checkMessage<K extends RequestKind>(
  kind: K,
  message: RequestOf<K>,
  limits: RequestLimits,
): void {
  const record: AnyRequestRecord = REQUESTS[kind];
  const wrong = record.check(message, limits);
  if (wrong !== undefined) throw errorOf(wrong);
}

/**
 * An estimate of the bytes that a request adds to the store, for the space quota; 0 for none.
 * @param view the store as it is now: a request may write records of it once more
 */
export function costOfRequest<K extends RequestKind>(
  kind: K,
  message: RequestOf<K>,
  view: ReadView,
): number {
  const { costBytes, copiedBytes }: AnyRequestRecord = REQUESTS[kind];
  if (costBytes === undefined) return 0;
  return costBytes(message) + (copiedBytes === undefined ? 0 : copiedBytes(view, message));
}

/**
 * Checks a request's bytes: see decodeRequest and checkMessage.
 * @throws WireError, EtcdError, InvalidRequestError
 */
export function checkRequest(kind: RequestKind, bytes: Uint8Array, limits: RequestLimits): void {
  checkMessage(kind, decodeRequest(kind, bytes, limits), limits);
}

/**
 * Schedules compaction; compactStep() then deletes the records. A `physical` request gets its
 * response once mvcc.compactedRevision has reached its revision. @throws EtcdError Compacted,
 * FutureRev
 */
export function applyCompaction(mvcc: Mvcc, request: CompactionRequest): CompactionResponse {
  mvcc.compact(request.revision);
  return { header: headerAt(mvcc.currentRevision) };
}

/**
 * For GET: the alarms of the request's kind (NONE: all) of any member. Otherwise: the alarm that
 * was raised or ended, or none if there was nothing to end or no kind is given. Member id 0 is an
 * id like any other.
 */
export function applyAlarm(mvcc: Mvcc, alarms: Alarms, request: AlarmRequest): AlarmResponse {
  const { action, memberID, alarm } = request;
  let concerned: readonly Alarm[] = [];
  if (action === AlarmRequest_AlarmAction.GET) concerned = alarms.list(alarm);
  else if (action === AlarmRequest_AlarmAction.ACTIVATE && alarm !== AlarmType.NONE) {
    concerned = [alarms.activate(memberID, alarm, mvcc.compactRevision)];
  } else if (action === AlarmRequest_AlarmAction.DEACTIVATE) {
    const ended = alarms.deactivate(memberID, alarm);
    if (ended !== undefined) concerned = [ended];
  }
  return {
    header: headerAt(mvcc.currentRevision),
    alarms: concerned.map(({ memberId, type }) => ({ memberID: memberId, alarm: type })),
  };
}
