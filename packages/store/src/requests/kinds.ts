/** What a transaction can do, told from the request alone. */
import type { RequestOp, TxnRequest } from "@quorate/proto";

/** True if no branch has anything but ranges, so that it needs no entry of the log. A nested transaction counts as writing. */
export function isReadOnlyTxn(request: TxnRequest): boolean {
  return both(request, ({ request: op }) => op?.case === "requestRange");
}

/** True if no branch has anything but serializable ranges, so that it needs no quorum either. */
export function isSerializableTxn(request: TxnRequest): boolean {
  return both(request, ({ request: op }) => op?.case === "requestRange" && op.value.serializable);
}

function both(request: TxnRequest, test: (op: RequestOp) => boolean): boolean {
  return request.success.every(test) && request.failure.every(test);
}
