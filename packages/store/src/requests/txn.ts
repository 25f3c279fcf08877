/**
 * Txn: comparisons, then one of two lists of operations, all at one revision.
 *
 *     1. every comparison, those of nested transactions too, is evaluated on the state before the
 *        transaction
 *     2. the operations that will run are checked for errors: revisions of ranges, leases,
 *        keys that must exist
 *     3. the operations run in order and see the changes of those before them
 *
 * A transaction of few operations on single keys is applied at once. Any other runs in steps, and
 * its changes become visible with the last.
 *
 * An error therefore changes nothing. (etcd checks a key that ignore_value needs only on the state
 * before; if an earlier operation deletes it, etcd's members crash. Here that is KeyNotFound.)
 */
import {
  defined,
  errorOf,
  type RangeRequest,
  type RangeResponse,
  type RequestOp,
  type ResponseOp,
  type TxnRequest,
  type TxnResponse,
  toLatin1,
} from "@quorate/proto";
import { headerAt } from "../backend/revision.ts";
import { runSteps, type Steps } from "../backend/steps.ts";
import {
  inRange,
  type KeyRange,
  keyRange,
  type LeaseBook,
  type Mvcc,
  type ReadView,
  type WriteTxn,
} from "../mvcc/index.ts";
import { isReadOnlyTxn, isShortTxn } from "./check.ts";
import { compareAll, compareAllNow } from "./compare.ts";
import { deleteKey, deleteRange } from "./delete-range.ts";
import { checkLease, put } from "./put.ts";
import { range, rangeNow } from "./range.ts";

/**
 * The evaluated comparisons of a transaction: which list runs, and the same for its nested
 * transactions, in order.
 */
interface Plan {
  readonly succeeded: boolean;
  readonly ops: readonly RequestOp[];
  readonly nested: readonly Plan[];
}

/**
 * Runs a transaction without a pause. @param answered false if no caller waits for the response:
 * ranges are not run and prev_kv is not read @throws EtcdError FutureRev, Compacted, LeaseNotFound,
 * KeyNotFound; nothing has changed then
 */
export function applyTxn(
  mvcc: Mvcc,
  leases: LeaseBook,
  request: TxnRequest,
  answered = true,
): TxnResponse {
  return isShortTxn(request, mvcc.stepKeys)
    ? applyShortTxn(mvcc, leases, request, answered)
    : runSteps(txnInSteps(mvcc, leases, request, answered));
}

/** As applyTxn, for a transaction that is short (isShortTxn). */
export function applyShortTxn(
  mvcc: Mvcc,
  leases: LeaseBook,
  request: TxnRequest,
  answered: boolean,
): TxnResponse {
  const succeeded = compareAllNow(mvcc.view, request.compare);
  const ops = succeeded ? request.success : request.failure;
  // What one operation changes concerns no other.
  const effects: Effects | undefined = ops.length > 1 ? [] : undefined;
  for (const op of ops) checkOp(mvcc.view, leases, op, effects);
  if (ops.length > 1) mvcc.counts.txns++;
  if (isReadOnlyTxn(request)) {
    const responses: ResponseOp[] = [];
    for (const { request: op } of ops)
      if (op?.case === "requestRange") responses.push(rangeOpNow(mvcc.view, op.value, answered));
    return { header: headerAt(mvcc.currentRevision), succeeded, responses };
  }
  const txn = mvcc.begin(leases);
  const responses = ops.map((op) => runShortOp(txn, op, answered));
  return { header: headerAt(txn.commit()), succeeded, responses };
}

/**
 * Like applyTxn, in steps, for any transaction. No other entry may be applied between the steps.
 */
export function* txnInSteps(
  mvcc: Mvcc,
  leases: LeaseBook,
  request: TxnRequest,
  answered = true,
): Steps<TxnResponse> {
  const plan = yield* decide(mvcc.view, request);
  yield* check(mvcc.view, leases, plan, []);
  if (operationsOf(plan) > 1) mvcc.counts.txns++;
  if (isReadOnlyTxn(request)) return yield* readOnly(mvcc.view, plan, answered);
  const txn = mvcc.beginLong(leases);
  const response = yield* run(txn, plan, answered);
  response.header = headerAt(txn.commit());
  return response;
}

function* decide(view: ReadView, request: TxnRequest): Steps<Plan> {
  const succeeded = yield* compareAll(view, request.compare);
  const ops = succeeded ? request.success : request.failure;
  const nested: Plan[] = [];
  for (const { request: op } of ops) {
    if (op?.case !== "requestTxn") continue;
    nested.push(yield* decide(view, op.value));
    yield;
  }
  return { succeeded, ops, nested };
}

/** The number of ranges, puts and deletions that will run. */
function operationsOf({ ops, nested }: Plan): number {
  return nested.reduce((sum, plan) => sum + operationsOf(plan), ops.length - nested.length);
}

/** The keys that earlier operations would put or delete, in order. */
type Effects = { readonly keys: KeyRange; readonly puts: boolean }[];

function* check(view: ReadView, leases: LeaseBook, plan: Plan, effects: Effects): Steps<void> {
  const nested = plan.nested.values();
  for (const op of plan.ops) {
    yield;
    if (op.request?.case === "requestTxn")
      yield* check(view, leases, defined(nested.next().value, "the plan of a txn"), effects);
    else checkOp(view, leases, op, effects);
  }
}

/**
 * Checks an operation other than a transaction, and adds its changes to `effects`, which are
 * undefined where no other operation precedes or follows.
 */
function checkOp(
  view: ReadView,
  leases: LeaseBook,
  { request: op }: RequestOp,
  effects: Effects | undefined,
): void {
  switch (op?.case) {
    case "requestRange":
      checkRevision(view, op.value.revision);
      break;
    case "requestPut": {
      checkLease(leases, op.value);
      const isOfExisting = op.value.ignoreValue || op.value.ignoreLease;
      if (effects === undefined && !isOfExisting) break;
      const key = toLatin1(op.value.key);
      if (isOfExisting && !willExist(view, key, effects)) throw errorOf("KeyNotFound");
      effects?.push({ keys: { single: true, key }, puts: true });
      break;
    }
    case "requestDeleteRange":
      effects?.push({ keys: keyRange(op.value.key, op.value.rangeEnd), puts: false });
      break;
  }
}

/**
 * Unlike a range alone, a range in a transaction accepts only 0 as "the newest": a negative
 * revision counts as compacted. @throws EtcdError FutureRev, Compacted
 */
export function checkRevision(view: ReadView, revision: number): void {
  if (revision === 0) return;
  if (revision > view.revision) throw errorOf("FutureRev");
  if (revision < view.compactRevision) throw errorOf("Compacted");
}

function willExist(view: ReadView, key: string, effects: Effects | undefined): boolean {
  const last = effects?.findLast(({ keys }) => inRange(keys, key));
  return last === undefined ? view.get(key) !== undefined : last.puts;
}

function* readOnly(view: ReadView, plan: Plan, answered: boolean): Steps<TxnResponse> {
  const responses: ResponseOp[] = [];
  for (const { request: op } of plan.ops) {
    if (op?.case === "requestRange") responses.push(yield* rangeOp(view, op.value, answered));
    yield;
  }
  return { header: headerAt(view.revision), succeeded: plan.succeeded, responses };
}

/** Runs the operations. The response of a nested transaction has an empty header, as in etcd. */
function* run(txn: WriteTxn, plan: Plan, answered: boolean): Steps<TxnResponse> {
  const responses: ResponseOp[] = [];
  const nested = plan.nested.values();
  for (const op of plan.ops) {
    yield;
    const { request } = op;
    if (request?.case === "requestRange")
      responses.push(yield* rangeOp(txn, request.value, answered));
    else if (request?.case === "requestDeleteRange") {
      responses.push({
        response: {
          case: "responseDeleteRange",
          value: yield* deleteRange(txn, request.value, answered),
        },
      });
    } else if (request?.case === "requestTxn") {
      const inner = defined(nested.next().value, "the plan of a txn");
      responses.push({
        response: { case: "responseTxn", value: yield* run(txn, inner, answered) },
      });
    } else responses.push(runShortOp(txn, op, answered));
  }
  return { header: headerAt(0), succeeded: plan.succeeded, responses };
}

/** Runs an operation on a single key. */
function runShortOp(txn: WriteTxn, { request: op }: RequestOp, answered: boolean): ResponseOp {
  switch (op?.case) {
    case "requestRange":
      return rangeOpNow(txn, op.value, answered);
    case "requestPut":
      return { response: { case: "responsePut", value: put(txn, op.value, answered) } };
    case "requestDeleteRange":
      return {
        response: { case: "responseDeleteRange", value: deleteKey(txn, op.value, answered) },
      };
    default:
      return { response: undefined };
  }
}

function rangeOpNow(view: ReadView, request: RangeRequest, answered: boolean): ResponseOp {
  return {
    response: { case: "responseRange", value: answered ? rangeNow(view, request) : unread(view) },
  };
}

function* rangeOp(view: ReadView, request: RangeRequest, answered: boolean): Steps<ResponseOp> {
  return {
    response: {
      case: "responseRange",
      value: answered ? yield* range(view, request) : unread(view),
    },
  };
}

/** The placeholder for a range that no caller waits for. */
function unread(view: ReadView): RangeResponse {
  view.counts.ranges++;
  return { header: headerAt(view.revision), kvs: [], more: false, count: 0 };
}
