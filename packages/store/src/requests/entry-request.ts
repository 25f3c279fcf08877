/**
 * One table of what may stand in a log entry: how each kind of request is decoded, and what makes
 * it invalid whatever the state is. A member checks by it what it proposes and what other members
 * forward to it, so that nothing else enters the log.
 *
 *     InternalRaftRequest { header {ID}, exactly one of put, txn, ... }      the request itself
 *     stays encoded
 */
import {
  AlarmRequest,
  AlarmRequest_AlarmAction,
  AlarmType,
  CompactionRequest,
  DeleteRangeRequest,
  type ErrorName,
  errorOf,
  InternalRaftRequest,
  LeaseCheckpointRequest,
  LeaseGrantRequest,
  LeaseRevokeRequest,
  type MessageType,
  membershippb,
  PutRequest,
  RangeRequest,
  Reader,
  TxnRequest,
  WireError,
} from "@quorate/proto";
import { MAX_LEASE_TTL_SECONDS } from "../lease/lessor.ts";
import { checkDeleteRange, checkPut, checkRange, checkTxn } from "./check.ts";
import { decodeTxn } from "./decode-txn.ts";

/** The kinds of request that are applied, by their field in InternalRaftRequest. */
export type RequestKind = Exclude<keyof InternalRaftRequest, "ID" | "header" | "v2">;

/** A request that no state makes valid, and that etcd's API has no error of its own for. */
export class InvalidRequestError extends Error {
  readonly code = "INVALID_REQUEST";
  constructor(problem: string) {
    super(`etcdserver: ${problem}`);
    this.name = "InvalidRequestError";
  }
}

/** What depends on a member's configuration. */
export interface RequestLimits {
  /** Entries of one list of a transaction (--max-txn-ops). */
  readonly maxTxnOps: number;
  /** Why the cluster's version cannot be set to a text; undefined if it can. */
  readonly versionProblem: (version: string) => string | undefined;
}

/** Leases of one checkpoint entry (etcd: maxLeaseCheckpointBatchSize). */
export const MAX_CHECKPOINT_LEASES = 1000;

interface Rule {
  // biome-ignore lint/suspicious/noExplicitAny: the table holds requests of all types
  readonly type: MessageType<any>;
  /** Another way to decode it before it is checked, where that needs to be bounded. */
  readonly decode?: (bytes: Uint8Array, limits: RequestLimits) => unknown;
  readonly check: (request: never, limits: RequestLimits) => void;
}

function rule<T>(
  type: MessageType<T>,
  check: (request: T, limits: RequestLimits) => ErrorName | undefined,
): Rule {
  return {
    type,
    check: (request: T, limits) => {
      const wrong = check(request, limits);
      if (wrong !== undefined) throw errorOf(wrong);
    },
  };
}

/** The requests that members of this version propose. */
const RULES: { readonly [K in RequestKind]?: Rule } = {
  put: rule(PutRequest, checkPut),
  deleteRange: rule(DeleteRangeRequest, checkDeleteRange),
  txn: {
    ...rule(TxnRequest, (request, { maxTxnOps }) => checkTxn(request, maxTxnOps)),
    decode: (bytes, { maxTxnOps }) => decodeTxn(bytes, maxTxnOps),
  },
  range: rule(RangeRequest, checkRange),
  compaction: rule(CompactionRequest, () => undefined),
  leaseGrant: rule(LeaseGrantRequest, ({ TTL }) =>
    TTL > MAX_LEASE_TTL_SECONDS ? "LeaseTTLTooLarge" : undefined,
  ),
  leaseRevoke: rule(LeaseRevokeRequest, () => undefined),
  leaseCheckpoint: rule(LeaseCheckpointRequest, checkCheckpoints),
  alarm: rule(AlarmRequest, checkAlarm),
  clusterVersionSet: rule(membershippb.ClusterVersionSetRequest, ({ ver }, { versionProblem }) => {
    const problem = versionProblem(ver);
    if (problem !== undefined) throw new InvalidRequestError(problem);
    return undefined;
  }),
  clusterMemberAttrSet: rule(membershippb.ClusterMemberAttrSetRequest, () => undefined),
};

function checkCheckpoints({ checkpoints }: LeaseCheckpointRequest): undefined {
  if (checkpoints.length <= MAX_CHECKPOINT_LEASES) return undefined;
  throw new InvalidRequestError(
    `a checkpoint of ${checkpoints.length} leases; at most ${MAX_CHECKPOINT_LEASES} are taken`,
  );
}

const ALARM_ACTIONS: ReadonlySet<number> = new Set(Object.values(AlarmRequest_AlarmAction));
const ALARM_TYPES: ReadonlySet<number> = new Set(Object.values(AlarmType));

/**
 * etcd's members end on an alarm of a kind that they do not know (etcd: apply/apply.go,
 * "unimplemented alarm activation").
 */
function checkAlarm({ action, alarm }: AlarmRequest): undefined {
  if (!ALARM_ACTIONS.has(action)) throw new InvalidRequestError(`unknown alarm action ${action}`);
  if (!ALARM_TYPES.has(alarm)) throw new InvalidRequestError(`unknown alarm type ${alarm}`);
}

/**
 * Checks a request before it is proposed.
 * @param decoded the request that `bytes` are, where the caller has decoded them already
 * @throws WireError for bytes that are no such request; EtcdError and InvalidRequestError for a
 * request that cannot be valid
 */
export function checkRequest(
  kind: RequestKind,
  bytes: Uint8Array,
  limits: RequestLimits,
  decoded?: unknown,
): void {
  const known = RULES[kind];
  if (known === undefined)
    throw new InvalidRequestError(`this version does not serve requests of the kind ${kind}`);
  const request =
    decoded ??
    (known.decode === undefined ? known.type.decode(bytes) : known.decode(bytes, limits));
  known.check(request as never, limits);
}

/** Numbers of InternalRaftRequest's fields that are no requests: ID and header. */
const ENVELOPE_FIELDS: ReadonlySet<number> = new Set([1, 100]);

/**
 * How many requests an entry's data carries, those of kinds that this version does not know
 * included. Throws WireError.
 */
function countRequests(data: Uint8Array): number {
  const reader = new Reader(data);
  let requests = 0;
  while (reader.pos < reader.end) {
    const tag = reader.tag();
    if (!ENVELOPE_FIELDS.has(tag >>> 3)) requests++;
    reader.skip(tag, {});
  }
  return requests;
}

/**
 * Checks the data of an entry that another member proposes: an InternalRaftRequest with one request
 * of a known kind, valid in itself. Gives its id.
 * @throws WireError, EtcdError, InvalidRequestError
 */
export function checkEntryData(data: Uint8Array, limits: RequestLimits): bigint {
  // Counted before anything is decoded: the parts of a request that is repeated are joined, at a
  // cost that grows with their square.
  const requests = countRequests(data);
  if (requests !== 1)
    throw new InvalidRequestError(`an entry with ${requests} requests instead of one`);
  const internal = InternalRaftRequest.decode(data);
  for (const kind of Object.keys(RULES) as RequestKind[]) {
    const bytes = internal[kind];
    if (bytes === undefined) continue;
    checkRequest(kind, bytes, limits);
    return internal.ID !== 0n ? internal.ID : (internal.header?.ID ?? 0n);
  }
  throw new InvalidRequestError(
    "an entry with a request of a kind that this version does not serve",
  );
}

/**
 * Why an entry's data cannot be applied by anybody: what does not decode, or carries no request at
 * all. Undefined where it decodes, also where its request is of a kind that only a newer version
 * knows. Slow: to be asked when applying has failed.
 */
export function malformation(data: Uint8Array): InvalidRequestError | undefined {
  try {
    if (countRequests(data) === 0) return new InvalidRequestError("the entry carries no request");
    const internal = InternalRaftRequest.decode(data);
    for (const [kind, { type }] of Object.entries(RULES)) {
      const bytes = internal[kind as RequestKind];
      if (bytes !== undefined) type.decode(bytes);
    }
    return undefined;
  } catch (error) {
    if (error instanceof WireError)
      return new InvalidRequestError(`the entry does not decode: ${error.message}`);
    throw error;
  }
}
