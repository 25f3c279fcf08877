/**
 * Txn: comparisons, then one of two lists of operations, all at one revision.
 *
 *     1. every comparison, those of nested transactions too, is decided on the state before the transaction
 *     2. what could fail in the operations that will run is checked: revisions of ranges, leases, keys that must exist
 *     3. the operations run in order and see what those before them changed
 *
 * So an error leaves nothing behind. (etcd checks a key that ignore_value needs only on the state before; where an operation before the
 * put deletes it, etcd's members crash. Here that is KeyNotFound.)
 */
import { errorOf, type RequestOp, type ResponseOp, type TxnRequest, type TxnResponse, toLatin1 } from "@quorate/proto";
import { inRange, type KeyRange, keyRange, type LeaseBook, type Mvcc, type ReadView, type WriteTxn } from "../mvcc/index.ts";
import { compareAllNow } from "./compare.ts";
import { deleteRange } from "./delete-range.ts";
import { headerAt } from "./header.ts";
import { isReadOnlyTxn } from "./kinds.ts";
import { checkLease, put } from "./put.ts";
import { rangeNow } from "./range.ts";

/** What was decided of a transaction: which list runs, and the same for its nested transactions, in order. */
interface Plan {
  readonly succeeded: boolean;
  readonly ops: readonly RequestOp[];
  readonly nested: readonly Plan[];
}

/**
 * Runs a transaction.
 * @param answered false where nobody waits for the answer: ranges are not run and prev_kv not read
 * @throws EtcdError FutureRev, Compacted, LeaseNotFound, KeyNotFound; nothing has changed then
 */
export function applyTxn(mvcc: Mvcc, leases: LeaseBook, request: TxnRequest, answered = true): TxnResponse {
  const plan = decide(mvcc.view, request);
  check(mvcc.view, leases, plan, []);
  if (operationsOf(plan) > 1) mvcc.counts.txns++;
  if (isReadOnlyTxn(request)) return readOnly(mvcc.view, plan, answered);
  const txn = mvcc.begin(leases);
  const response = run(txn, plan, answered);
  response.header = headerAt(txn.commit());
  return response;
}

function decide(view: ReadView, request: TxnRequest): Plan {
  const succeeded = compareAllNow(view, request.compare);
  const ops = succeeded ? request.success : request.failure;
  const nested: Plan[] = [];
  for (const { request: op } of ops) if (op?.case === "requestTxn") nested.push(decide(view, op.value));
  return { succeeded, ops, nested };
}

/** How many ranges, puts and deletions will run. */
function operationsOf({ ops, nested }: Plan): number {
  return nested.reduce((sum, plan) => sum + operationsOf(plan), ops.length - nested.length);
}

/** Keys that the operations before would put or delete, in order. */
type Effects = { readonly keys: KeyRange; readonly puts: boolean }[];

function check(view: ReadView, leases: LeaseBook, plan: Plan, effects: Effects): void {
  let nested = 0;
  for (const { request: op } of plan.ops) {
    switch (op?.case) {
      case "requestRange":
        checkRevision(view, op.value.revision);
        break;
      case "requestPut": {
        checkLease(leases, op.value);
        const key = toLatin1(op.value.key);
        if ((op.value.ignoreValue || op.value.ignoreLease) && !willExist(view, key, effects)) throw errorOf("KeyNotFound");
        effects.push({ keys: { single: true, key }, puts: true });
        break;
      }
      case "requestDeleteRange":
        effects.push({ keys: keyRange(op.value.key, op.value.rangeEnd), puts: false });
        break;
      case "requestTxn":
        check(view, leases, plan.nested[nested++], effects);
        break;
    }
  }
}

/** Unlike a range alone, one in a transaction knows only 0 as "the newest": a revision below that is one from before compaction. */
function checkRevision(view: ReadView, revision: number): void {
  if (revision === 0) return;
  if (revision > view.revision) throw errorOf("FutureRev");
  if (revision < view.compactRevision) throw errorOf("Compacted");
}

function willExist(view: ReadView, key: string, effects: Effects): boolean {
  const last = effects.findLast(({ keys }) => inRange(keys, key));
  return last === undefined ? view.get(key) !== undefined : last.puts;
}

function readOnly(view: ReadView, plan: Plan, answered: boolean): TxnResponse {
  const responses: ResponseOp[] = [];
  for (const { request: op } of plan.ops) {
    if (op?.case === "requestRange") responses.push(rangeOp(view, op.value, answered));
  }
  return { header: headerAt(view.revision), succeeded: plan.succeeded, responses };
}

/** Runs the operations. The answer to a nested transaction has an empty header, as in etcd. */
function run(txn: WriteTxn, plan: Plan, answered: boolean): TxnResponse {
  const responses: ResponseOp[] = [];
  let nested = 0;
  for (const { request: op } of plan.ops) {
    switch (op?.case) {
      case "requestRange":
        responses.push(rangeOp(txn, op.value, answered));
        break;
      case "requestPut":
        responses.push({ response: { case: "responsePut", value: put(txn, op.value, answered) } });
        break;
      case "requestDeleteRange":
        responses.push({ response: { case: "responseDeleteRange", value: deleteRange(txn, op.value, answered) } });
        break;
      case "requestTxn":
        responses.push({ response: { case: "responseTxn", value: run(txn, plan.nested[nested++], answered) } });
        break;
      default:
        responses.push({ response: undefined });
    }
  }
  return { header: headerAt(0), succeeded: plan.succeeded, responses };
}

function rangeOp(view: ReadView, request: Parameters<typeof rangeNow>[1], answered: boolean): ResponseOp {
  if (!answered) view.counts.ranges++;
  const value = answered ? rangeNow(view, request) : { header: headerAt(view.revision), kvs: [], more: false, count: 0 };
  return { response: { case: "responseRange", value } };
}
