/**
 * Refuses requests whose decoding would take long, before they are decoded: two bytes are enough
 * for a field or an empty message, so a request of 2 MB can have a million of them, and decoding
 * those takes up to a second.
 *
 * The fields of a larger request are counted: by their tags alone where its type is flat (a put) or
 * a transaction, else by decoding it once with a bound. What is malformed is left to the handler to
 * complain about.
 */
import {
  errorOf,
  GrpcCode,
  KVService,
  type MessageType,
  type MethodDescriptor,
  Reader,
  TooMuchWorkError,
  WireError,
} from "@quorate/proto";
import { StatusError } from "@quorate/rpc";

/** A request of this size is decoded in a millisecond or two, whatever it holds. */
export const SMALL_REQUEST_BYTES = 4096;
/**
 * What reading a request may cost, in fields; a message in it counts as nine. Some two to five
 * milliseconds.
 */
export const MAX_REQUEST_FIELDS = 20_000;
/** A compare with an operation of each list, with all of their fields. */
const FIELDS_FOR_A_TXN_OP = 96;

/** Throws for a request of a method that has too many parts; of use above SMALL_REQUEST_BYTES. */
export type RequestCheck = (bytes: Uint8Array) => void;

/**
 * The check of a method's requests. A transaction that is too large has etcd's error for too many
 * operations.
 * @param maxTxnOps --max-txn-ops: what it allows must pass
 */
export function requestCheck(
  { path, requestType }: MethodDescriptor,
  maxTxnOps: number,
): RequestCheck {
  const isTxn = path === KVService.methods.Txn.path;
  const maxFields = isTxn
    ? Math.max(MAX_REQUEST_FIELDS, maxTxnOps * FIELDS_FOR_A_TXN_OP)
    : MAX_REQUEST_FIELDS;
  const shape = isTxn ? TXN : isFlat(requestType) ? FLAT : undefined;
  const read = (reader: Reader): void => {
    if (shape === undefined) requestType.decodeFrom(reader);
    else countFields(reader, shape);
  };
  return (bytes) => {
    if (!isTooMuch(new Reader(bytes, maxFields), read)) return;
    if (isTxn) throw errorOf("TooManyOps");
    throw new StatusError(
      GrpcCode.InvalidArgument,
      `etcdserver: request has too many fields: more than ${maxFields}`,
    );
  };
}

/** The messages in a message, by field number. */
interface Shape {
  readonly [field: number]: Shape;
}

const LENGTH_DELIMITED = 2;
const FLAT: Shape = {};
/** TxnRequest: compare, success, failure; the latter have range, put, delete_range, txn. */
const TXN: Shape = (() => {
  const operation: Record<number, Shape> = { 1: FLAT, 2: FLAT, 3: FLAT };
  const txn: Shape = { 1: FLAT, 2: operation, 3: operation };
  operation[4] = txn;
  return txn;
})();

/** Reads all tags of a message of this shape. @throws TooMuchWorkError, WireError */
function countFields(reader: Reader, shape: Shape): void {
  while (reader.pos < reader.end) {
    const tag = reader.tag();
    const inner = (tag & 7) === LENGTH_DELIMITED ? shape[tag >>> 3] : undefined;
    if (inner === undefined) {
      reader.skip(tag, {});
      continue;
    }
    const outer = reader.enterNested();
    countFields(reader, inner);
    reader.leaveNested(outer);
  }
}

const MAX_FIELD_NUMBER = 31;
/** Not a message, not text, and not a list of numbers. */
const JUST_BYTES = 0x88;

/** True for a type of numbers and byte strings: its fields take any bytes. */
function isFlat(type: MessageType<unknown>): boolean {
  for (let field = 1; field <= MAX_FIELD_NUMBER; field++) {
    const tag = (field << 3) | LENGTH_DELIMITED;
    const bytes = [...(tag < 0x80 ? [tag] : [(tag & 0x7f) | 0x80, tag >>> 7]), 1, JUST_BYTES];
    try {
      type.decode(Uint8Array.from(bytes));
    } catch (error) {
      // A number refuses the wire type.
      if (!(error instanceof WireError) || !/wrong wire type/.test(error.message)) return false;
    }
  }
  return true;
}

function isTooMuch(reader: Reader, read: (reader: Reader) => void): boolean {
  try {
    read(reader);
  } catch (error) {
    return error instanceof TooMuchWorkError;
  }
  return false;
}
