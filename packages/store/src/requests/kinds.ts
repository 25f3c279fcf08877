/** Classifies transactions by their request alone. */
import type { RequestOp, TxnRequest } from "@quorate/proto";

/**
 * True if all branches contain only ranges, so that it needs no log entry. A nested transaction
 * counts as writing.
 */
export function isReadOnlyTxn(request: TxnRequest): boolean {
  return both(request, ({ request: op }) => op?.case === "requestRange");
}

/** True if all branches contain only serializable ranges, so that it needs no quorum either. */
export function isSerializableTxn(request: TxnRequest): boolean {
  return both(request, ({ request: op }) => op?.case === "requestRange" && op.value.serializable);
}

function both(request: TxnRequest, test: (op: RequestOp) => boolean): boolean {
  return request.success.every(test) && request.failure.every(test);
}

/** Operations, and comparisons, of a transaction that is applied at once. */
const MAX_SHORT_OPS = 16;

/**
 * True for few operations on single keys, none of them nested: applied at once, without steps.
 * @param stepKeys maximum number of keys in one step
 */
export function isShortTxn({ compare, success, failure }: TxnRequest, stepKeys: number): boolean {
  const most = Math.min(MAX_SHORT_OPS, stepKeys);
  if (compare.length > most || success.length > most || failure.length > most) return false;
  for (const { rangeEnd } of compare) if (rangeEnd.length > 0) return false;
  return success.every(isOfOneKey) && failure.every(isOfOneKey);
}

function isOfOneKey({ request: op }: RequestOp): boolean {
  switch (op?.case) {
    case "requestRange":
    case "requestDeleteRange":
      return op.value.rangeEnd.length === 0;
    case "requestTxn":
      return false;
    default:
      return true;
  }
}
