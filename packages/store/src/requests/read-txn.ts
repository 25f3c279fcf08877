/**
 * A transaction that only reads, in steps: comparisons, then the ranges of one of its two lists,
 * all at one revision.
 */
import type { RangeRequest, TxnRequest } from "@quorate/proto";
import type { Steps } from "../backend/steps.ts";
import type { ReadView } from "../mvcc/index.ts";
import { compareAll } from "./compare.ts";
import { type RangeSummary, type RecordSink, rangeInto } from "./range.ts";
import { checkRevision } from "./txn.ts";

/** The result of a read-only transaction. */
export interface ReadTxnAnswer<S extends RecordSink> {
  readonly revision: number;
  readonly succeeded: boolean;
  /** One for each range of the list that ran, in order. */
  readonly ranges: readonly { readonly summary: RangeSummary; readonly records: S }[];
}

/**
 * Runs a read-only transaction (isReadOnlyTxn). @param sink creates the receiver of one range's
 * records @throws EtcdError FutureRev, Compacted
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
