/**
 * What each kind of request needs permission for, at every level of a transaction (etcd:
 * server/etcdserver/apply/auth.go). The table has every kind of the table of requests, or it
 * does not compile.
 */
import {
  type AlarmRequest,
  AlarmRequest_AlarmAction,
  type AuthRoleGetRequest,
  type AuthUserGetRequest,
  type DeleteRangeRequest,
  type ErrorName,
  type LeaseRevokeRequest,
  type PutRequest,
  type RangeRequest,
  type RequestOp,
  type TxnRequest,
} from "@quorate/proto";
import type { Steps } from "../backend/steps.ts";
import { MAX_FORGOTTEN_KEYS } from "../lease/lease-coverage.ts";
import type { Lessor } from "../lease/lessor.ts";
import type { RequestKind } from "../requests/request-table.ts";
import {
  type AttachedKeys,
  type AuthIdentity,
  type Authorities,
  authorize,
  keysOperation,
  leaseVerdict,
  type Operation,
} from "./authorize.ts";
import type { KeyAccess } from "./permission-set.ts";

/** The operations of a request, in etcd's order; each must be permitted. */
export type Operations = Iterable<Operation>;

/** The leases, as far as permission depends on them. */
export type LeaseKeys = Pick<Lessor, "mostKeysOf" | "coversKeysOf" | "stepKeys">;

type OperationsOf = (request: never, leases: LeaseKeys) => Operations;

const NEEDS_NOTHING: OperationsOf = () => [{ kind: "open" }];
const NEEDS_USER: OperationsOf = () => [{ kind: "authenticated" }];
const NEEDS_ROOT: OperationsOf = () => [{ kind: "root" }];

const TABLE: { readonly [K in RequestKind]: OperationsOf } = {
  range: (request: RangeRequest) => [keysOperation("read", request)],
  put: putOperations,
  deleteRange: deleteOperations,
  txn: txnOperations,
  compaction: NEEDS_ROOT,
  leaseGrant: NEEDS_USER,
  *leaseRevoke({ ID }: LeaseRevokeRequest, leases) {
    yield { kind: "authenticated" };
    yield* leaseOperations("write", ID, leases);
  },
  // Made by members alone: no RPC leads here.
  leaseCheckpoint: NEEDS_NOTHING,
  clusterVersionSet: NEEDS_NOTHING,
  clusterMemberAttrSet: NEEDS_NOTHING,
  downgradeInfoSet: NEEDS_NOTHING,
  downgradeVersionTest: NEEDS_NOTHING,
  alarm: ({ action }: AlarmRequest) => [
    { kind: action === AlarmRequest_AlarmAction.GET ? "authenticated" : "root" },
  ],
  // Made by members alone, as the others above.
  authUserCreations: NEEDS_NOTHING,
  // The password was checked before the request was proposed.
  authenticate: NEEDS_NOTHING,
  authStatus: NEEDS_NOTHING,
  authEnable: NEEDS_ROOT,
  authDisable: NEEDS_ROOT,
  authUserAdd: NEEDS_ROOT,
  authUserDelete: NEEDS_ROOT,
  authUserGet: ({ name }: AuthUserGetRequest) => [{ kind: "user", name }],
  authUserChangePassword: NEEDS_ROOT,
  authUserGrantRole: NEEDS_ROOT,
  authUserRevokeRole: NEEDS_ROOT,
  authUserList: NEEDS_ROOT,
  authRoleAdd: NEEDS_ROOT,
  authRoleDelete: NEEDS_ROOT,
  authRoleGet: ({ role }: AuthRoleGetRequest) => [{ kind: "role", name: role }],
  authRoleGrantPermission: NEEDS_ROOT,
  authRoleRevokePermission: NEEDS_ROOT,
  authRoleList: NEEDS_ROOT,
};

/**
 * The kinds that etcd lets everybody have applied, whose caller it does not look at, or only where
 * the call comes in.
 */
const OPEN_IN_ETCD: { readonly [K in RequestKind]?: OperationsOf } = {
  compaction: NEEDS_NOTHING,
  leaseGrant: NEEDS_NOTHING,
  leaseRevoke: ({ ID }: LeaseRevokeRequest, leases) => leaseOperations("write", ID, leases),
  alarm: NEEDS_NOTHING,
};

function* putOperations(request: PutRequest, leases: LeaseKeys): Operations {
  const { key, lease, prevKv } = request;
  yield keysOperation("write", { key });
  // A user that attaches a key to a lease must be able to revoke the lease.
  if (lease !== 0n) yield* leaseOperations("write", lease, leases);
  if (prevKv) yield keysOperation("read", { key });
}

function* deleteOperations(request: DeleteRangeRequest): Operations {
  yield keysOperation("write", request);
  if (request.prevKv) yield keysOperation("read", request);
}

/**
 * Both branches, whichever will run: the verdict must not depend on values. One that has nothing to
 * do needs a user, as all others do; etcd asks for none, so anybody has its revision told.
 */
export function* txnOperations(request: TxnRequest, leases: LeaseKeys): Operations {
  if (!hasWork(request)) yield { kind: "authenticated" };
  for (const compare of request.compare) yield keysOperation("read", compare);
  for (const ops of [request.success, request.failure]) {
    for (const { request: op } of ops) {
      if (op?.case === "requestRange") yield keysOperation("read", op.value);
      else if (op?.case === "requestPut") yield* putOperations(op.value, leases);
      else if (op?.case === "requestDeleteRange") yield* deleteOperations(op.value);
      else if (op?.case === "requestTxn") yield* txnOperations(op.value, leases);
    }
  }
}

function hasWork({ compare, success, failure }: TxnRequest): boolean {
  const isOp = ({ request }: RequestOp) => request !== undefined;
  return compare.length > 0 || success.some(isOp) || failure.some(isOp);
}

/** What the keys attached to a lease need; nothing for no such lease. */
export function* leaseOperations(access: KeyAccess, id: bigint, leases: LeaseKeys): Operations {
  if (leases.mostKeysOf(id) === 0) return;
  yield { kind: "lease", access, keys: attachedKeys(id, leases) };
}

function attachedKeys(id: bigint, leases: LeaseKeys): AttachedKeys {
  return {
    isEmpty: false,
    areCovered: (permissions, access) =>
      leases.coversKeysOf(id, permissions, access, (key) => permissions.coversKey(access, key)),
  };
}

/**
 * The operations of a request.
 * @param request the decoded message of that kind
 */
export function operationsOf(kind: RequestKind, request: unknown, leases: LeaseKeys): Operations {
  return TABLE[kind](request as never, leases);
}

/** The same where requests are applied by etcd's rules. */
export function operationsInEtcd(
  kind: RequestKind,
  request: unknown,
  leases: LeaseKeys,
): Operations {
  return (OPEN_IN_ETCD[kind] ?? TABLE[kind])(request as never, leases);
}

/**
 * Why a request is refused before it is proposed, where it would not be when it is applied by
 * etcd's rules; undefined if it is not.
 * @param request the decoded message of that kind
 */
export function verdictBeforeEtcd(
  state: Authorities,
  identity: AuthIdentity,
  kind: RequestKind,
  request: unknown,
  leases: LeaseKeys,
): ErrorName | undefined {
  if (OPEN_IN_ETCD[kind] === undefined) return undefined;
  for (const operation of operationsOf(kind, request, leases)) {
    if (operation.kind === "lease") continue;
    const refused = authorize(state, identity, operation);
    if (refused !== undefined) return refused;
  }
  return undefined;
}

/** The first error that an operation is refused with, in one go. */
export function verdictNow(
  state: Authorities,
  identity: AuthIdentity,
  operations: Operations,
): ErrorName | undefined {
  if (!state.isEnabled) return undefined;
  for (const operation of operations) {
    const refused = authorize(state, identity, operation);
    if (refused !== undefined) return refused;
  }
  return undefined;
}

/**
 * As verdictNow, with a pause after each `stepKeys` keys of a lease, and as many operations.
 * @param stepKeys that of the leases that the operations look at
 */
export function* verdictInSteps(
  state: Authorities,
  identity: AuthIdentity,
  operations: Operations,
  stepKeys: number,
): Steps<ErrorName | undefined> {
  if (!state.isEnabled) return undefined;
  let count = 0;
  for (const operation of operations) {
    const refused =
      operation.kind === "lease"
        ? yield* leaseVerdict(state, identity, operation)
        : authorize(state, identity, operation);
    if (refused !== undefined) return refused;
    count += operation.kind === "lease" ? MAX_FORGOTTEN_KEYS : 1;
    if (count < stepKeys) continue;
    count = 0;
    yield;
  }
  return undefined;
}

/** True if the verdict on a request takes so little that it needs no steps. */
export function isShortVerdict(kind: RequestKind, request: unknown, leases: LeaseKeys): boolean {
  if (kind === "put") return isShortLease((request as PutRequest).lease, leases);
  if (kind === "leaseRevoke") return isShortLease((request as LeaseRevokeRequest).ID, leases);
  if (kind === "txn") return isShortTxnVerdict(request as TxnRequest, leases);
  return true;
}

function isShortLease(id: bigint, leases: LeaseKeys): boolean {
  return id === 0n || leases.mostKeysOf(id) <= leases.stepKeys;
}

function isShortTxnVerdict(request: TxnRequest, leases: LeaseKeys): boolean {
  const { compare, success, failure } = request;
  if (compare.length + success.length + failure.length > leases.stepKeys) return false;
  for (const ops of [success, failure]) {
    for (const { request: op } of ops) {
      if (op?.case === "requestTxn") return false;
      // Many puts with one lease would look at its keys many times.
      if (op?.case === "requestPut" && op.value.lease !== 0n) {
        if (leases.mostKeysOf(op.value.lease) * ops.length > leases.stepKeys) return false;
      }
    }
  }
  return true;
}
