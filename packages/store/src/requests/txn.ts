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
  type Compare,
  compare,
  defined,
  EMPTY,
  errorOf,
  KeyValue,
  type RangeRequest,
  type RangeResponse,
  type RequestOp,
  type ResponseOp,
  Compare_CompareResult as Result,
  Compare_CompareTarget as Target,
  type TxnRequest,
  type TxnResponse,
  toLatin1,
} from "@quorate/proto";
import { headerAt } from "../backend/revision.ts";
import { runSteps, type Steps } from "../backend/steps.ts";
import {
  inRange,
  isLatest,
  type KeyIndex,
  type KeyRange,
  keyRange,
  type LeaseBook,
  type Mvcc,
  type ReadView,
  type VisitKey,
  type WriteTxn,
} from "../mvcc/index.ts";
import { deleteKey, deleteRange } from "./delete-range.ts";
import { checkLease, put } from "./put.ts";
import { type RangeSummary, type RecordSink, range, rangeInto, rangeNow } from "./range.ts";
import { isReadOnlyTxn, isShortTxn } from "./txn-check.ts";

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
  if (operationCount(plan) > 1) mvcc.counts.txns++;
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
function operationCount({ ops, nested }: Plan): number {
  return nested.reduce((sum, plan) => sum + operationCount(plan), ops.length - nested.length);
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
function checkRevision(view: ReadView, revision: number): void {
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

// --- Comparisons ---

/** True if every comparison holds on the newest state; without a pause. */
function compareAllNow(view: ReadView, compares: readonly Compare[]): boolean {
  const at = view.revision;
  return compares.every((one) =>
    one.rangeEnd.length === 0 ? holdsForKey(view, one, at) : runSteps(holdsForRange(view, one, at)),
  );
}

/**
 * True if every comparison holds as of revision `at`, in steps. @param at the newest revision at
 * the start; writes during a pause do not count
 */
function* compareAll(
  view: ReadView,
  compares: readonly Compare[],
  at: number = view.revision,
): Steps<boolean> {
  for (const one of compares) {
    if (
      !(one.rangeEnd.length === 0
        ? holdsForKey(view, one, at)
        : yield* holdsForRange(view, one, at))
    )
      return false;
  }
  return true;
}

function holdsForKey(view: ReadView, one: Compare, at: number): boolean {
  const found = view.get(toLatin1(one.key), at);
  if (found === undefined) return holdsForNone(one);
  const record = needsRecord(one, found.index, at) ? view.record(found) : undefined;
  return isResult(one.result, compareFound(one, found.index, at, record));
}

/**
 * True if the comparison holds for every key of its range. Stops at the first key for which it does
 * not.
 */
function* holdsForRange(view: ReadView, one: Compare, at: number): Steps<boolean> {
  let any = false;
  let all = true;
  const visit: VisitKey = (_key, index, record) => {
    any = true;
    all = isResult(one.result, compareFound(one, index, at, record));
    return all;
  };
  yield* view.each(keyRange(one.key, one.rangeEnd), at, visit, (index) =>
    needsRecord(one, index, at),
  );
  return any ? all : holdsForNone(one);
}

/**
 * The result for a key that does not exist: a comparison of the value fails, and the others compare
 * with zero. "Created at 0" therefore requires that the key does not exist.
 */
function holdsForNone(one: Compare): boolean {
  return one.target !== Target.VALUE && isResult(one.result, compareMissing(one));
}

/** True if the compared field of the key is not in the index. */
function needsRecord(one: Compare, index: KeyIndex, at: number): boolean {
  switch (one.target) {
    case Target.VALUE:
      return true;
    case Target.VERSION:
    case Target.CREATE:
      return !isLatest(index, at);
    case Target.LEASE:
      return !isLatest(index, at) || index.leased;
    default:
      return false;
  }
}

/**
 * Compares the key's field with the request's value: negative, 0 or positive. @param record set if
 * needsRecord requires it
 */
function compareFound(
  one: Compare,
  index: KeyIndex,
  at: number,
  record: Uint8Array | undefined,
): number {
  const kv = record === undefined ? undefined : KeyValue.decode(record);
  switch (one.target) {
    case Target.VALUE:
      return compare(
        defined(kv, "the record").value,
        one.targetUnion?.case === "value" ? one.targetUnion.value : EMPTY,
      );
    case Target.VERSION:
      return (kv ?? index).version - wantedNumber(one, "version");
    case Target.CREATE:
      return (
        (kv === undefined ? index.created : kv.createRevision) - wantedNumber(one, "createRevision")
      );
    case Target.MOD:
      return index.mainAt(index.find(at)) - wantedNumber(one, "modRevision");
    case Target.LEASE:
      return compareBig(kv?.lease ?? 0n, wantedLease(one));
    default:
      return 0;
  }
}

function compareMissing(one: Compare): number {
  switch (one.target) {
    case Target.VERSION:
      return -wantedNumber(one, "version");
    case Target.CREATE:
      return -wantedNumber(one, "createRevision");
    case Target.MOD:
      return -wantedNumber(one, "modRevision");
    case Target.LEASE:
      return compareBig(0n, wantedLease(one));
    default:
      return 0;
  }
}

/** The request's number; 0 if it has none, or one for another target. */
function wantedNumber(
  { targetUnion }: Compare,
  kind: "version" | "createRevision" | "modRevision",
): number {
  return targetUnion?.case === kind ? targetUnion.value : 0;
}

function wantedLease({ targetUnion }: Compare): bigint {
  return targetUnion?.case === "lease" ? targetUnion.value : 0n;
}

function compareBig(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** An unknown comparison always holds, as in etcd. */
function isResult(result: Result, compared: number): boolean {
  switch (result) {
    case Result.EQUAL:
      return compared === 0;
    case Result.NOT_EQUAL:
      return compared !== 0;
    case Result.GREATER:
      return compared > 0;
    case Result.LESS:
      return compared < 0;
    default:
      return true;
  }
}

// --- Transactions that only read ---

/** The result of a read-only transaction. */
export interface ReadTxnAnswer<S extends RecordSink> {
  readonly revision: number;
  readonly succeeded: boolean;
  /** One for each range of the list that ran, in order. */
  readonly ranges: readonly { readonly summary: RangeSummary; readonly records: S }[];
}

/**
 * Runs a read-only transaction (isReadOnlyTxn) outside of the log, in steps: comparisons, then the
 * ranges of one of its two lists, all at one revision.
 * @param sink creates the receiver of one range's records
 * @throws EtcdError FutureRev, Compacted
 */
export function* readTxn<S extends RecordSink>(
  view: ReadView,
  request: TxnRequest,
  sink: () => S,
): Steps<ReadTxnAnswer<S>> {
  const succeeded = yield* compareAll(view, request.compare);
  const ranges = rangesOf(succeeded ? request.success : request.failure);
  for (const { revision } of ranges) checkRevision(view, revision);
  if (ranges.length > 1) view.counts.txns++;
  const answers: { summary: RangeSummary; records: S }[] = [];
  for (const one of ranges) {
    // Many small ranges are as much work as a large one.
    if (answers.length > 0) yield;
    const records = sink();
    answers.push({ summary: yield* rangeInto(view, one, records), records });
  }
  return { revision: view.revision, succeeded, ranges: answers };
}

function rangesOf(ops: TxnRequest["success"]): RangeRequest[] {
  const ranges: RangeRequest[] = [];
  for (const { request: op } of ops) if (op?.case === "requestRange") ranges.push(op.value);
  return ranges;
}
