/**
 * Refuses requests whose decoding would take long, before they are decoded: two bytes are enough
 * for a field or an empty message, so a request of 2 MB can have a million of them, and decoding
 * those takes up to a second.
 *
 * A request of some size is read once with a bound and thrown away; what is well formed and short,
 * or long in its values, costs nothing worth mentioning. What is malformed is left to the handler
 * to complain about.
 */
import {
  errorOf,
  KVService,
  type MessageType,
  type MethodDescriptor,
  Reader,
  TooMuchWorkError,
} from "@quorate/proto";
import { GrpcCode, StatusError } from "@quorate/rpc";

/** A request of this size is decoded in a millisecond or two, whatever it holds. */
const SMALL_REQUEST_BYTES = 4096;
/**
 * What reading a request may cost, in fields; a message in it counts as nine. Some two to five
 * milliseconds.
 */
export const MAX_REQUEST_FIELDS = 20_000;
/** A compare with an operation of each list, with all of their fields. */
const FIELDS_FOR_A_TXN_OP = 96;

/** Throws for a request of a method that has too many parts. */
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
  return (bytes) => {
    if (bytes.length <= SMALL_REQUEST_BYTES || !isTooMuch(bytes, requestType, maxFields)) return;
    if (isTxn) throw errorOf("TooManyOps");
    throw new StatusError(
      GrpcCode.InvalidArgument,
      `etcdserver: request has too many fields: more than ${maxFields}`,
    );
  };
}

function isTooMuch(bytes: Uint8Array, type: MessageType<unknown>, maxFields: number): boolean {
  try {
    type.decodeFrom(new Reader(bytes, maxFields));
  } catch (error) {
    return error instanceof TooMuchWorkError;
  }
  return false;
}
