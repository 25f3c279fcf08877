/**
 * Decodes a transaction after counting its operations. A request of the largest size may contain a
 * million empty operations or comparisons; creating objects for them, only to refuse them, would
 * block the event loop for a tenth of a second and more.
 *
 *     TxnRequest { compare = 1, success = 2, failure = 3 }     RequestOp { request_txn = 4 }
 */
import { EtcdError, errorOf, Reader, TxnRequest, WireError } from "@quorate/proto";

/**
 * Maximum number of operations and comparisons of one transaction, with those of nested ones;
 * --max-txn-ops if that is higher. etcd has no such bound.
 */
export const MAX_TXN_OPS_IN_ALL = 10_000;
/** Smaller requests cannot contain so many that counting them first would pay. */
const COUNT_FROM_BYTES = 16 * 1024;

const COMPARE = 1;
const FAILURE = 3;
const REQUEST_TXN = 4;
const LENGTH_DELIMITED = 2;

/** @throws WireError for malformed bytes; EtcdError TooManyOps */
export function decodeTxn(bytes: Uint8Array, maxTxnOps: number): TxnRequest {
  if (bytes.length >= COUNT_FROM_BYTES) count(bytes, maxTxnOps);
  return TxnRequest.decode(bytes);
}

function count(bytes: Uint8Array, maxTxnOps: number): void {
  try {
    countList(new Reader(bytes), { maxTxnOps, left: Math.max(MAX_TXN_OPS_IN_ALL, maxTxnOps) });
  } catch (error) {
    // The decoder reports the problem and its position.
    if (!(error instanceof WireError)) throw error;
  }
}

/** The remaining allowance. */
interface Budget {
  readonly maxTxnOps: number;
  left: number;
}

function countList(reader: Reader, budget: Budget): void {
  const counts = new Map<number, number>();
  while (reader.pos < reader.end) {
    const tag = reader.tag();
    const field = tag >>> 3;
    if ((tag & 7) !== LENGTH_DELIMITED || field < COMPARE || field > FAILURE) {
      reader.skip(tag, {});
      continue;
    }
    const count = (counts.get(field) ?? 0) + 1;
    counts.set(field, count);
    if (count > budget.maxTxnOps) throw errorOf("TooManyOps");
    if (--budget.left < 0) {
      const most = Math.max(MAX_TXN_OPS_IN_ALL, budget.maxTxnOps);
      throw new EtcdError(
        "TooManyOps",
        `${errorOf("TooManyOps").message}: more than ${most}, those of nested transactions counted too`,
      );
    }
    if (field === COMPARE) reader.skip(tag, {});
    else countOperation(reader, budget);
  }
}

function countOperation(reader: Reader, budget: Budget): void {
  const end = reader.enterNested();
  while (reader.pos < reader.end) {
    const tag = reader.tag();
    if (tag >>> 3 !== REQUEST_TXN || (tag & 7) !== LENGTH_DELIMITED) {
      reader.skip(tag, {});
      continue;
    }
    const outer = reader.enterNested();
    countList(reader, budget);
    reader.leaveNested(outer);
  }
  reader.leaveNested(end);
}
