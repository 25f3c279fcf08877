/**
 * The part of protobuf's wire format that the services of this package need for their few small
 * messages.
 */
import { GrpcCode, Reader, WireError, Writer } from "@quorate/proto";
import { StatusError } from "../service.ts";

/**
 * One field of a message: its number, and its value if it is a varint (`number`) or has a length
 * (`bytes`, a view).
 */
export interface WireField {
  readonly field: number;
  readonly number: number;
  readonly bytes: Uint8Array | undefined;
}

const VARINT = 0;
const BYTES = 2;
/** Requests of these services contain a name; longer ones are refused. */
const MAX_REQUEST_BYTES = 4096;
/** More fields than any of them has. */
const MAX_REQUEST_FIELDS = 64;

/**
 * The fields of a request of this package's services. Throws StatusError if it is malformed or too
 * large.
 */
export function readRequest(message: Uint8Array, typeName: string): WireField[] {
  if (message.length > MAX_REQUEST_BYTES) {
    throw new StatusError(
      GrpcCode.ResourceExhausted,
      `grpc: received message larger than max (${message.length} vs. ${MAX_REQUEST_BYTES})`,
    );
  }
  const fields = readFields(message, MAX_REQUEST_FIELDS);
  if (fields !== undefined) return fields;
  throw new StatusError(GrpcCode.Internal, `grpc: error unmarshalling request: not a ${typeName}`);
}

/**
 * The fields of a message in order, or undefined if it is malformed or has more than `maxFields`.
 * Fixed-width fields are skipped.
 */
export function readFields(
  message: Uint8Array,
  maxFields = Number.POSITIVE_INFINITY,
): WireField[] | undefined {
  const reader = new Reader(message);
  const fields: WireField[] = [];
  try {
    while (reader.pos < reader.end) {
      if (fields.length >= maxFields) return undefined;
      const tag = reader.tag();
      const field = tag >>> 3;
      if ((tag & 7) === VARINT) {
        fields.push({ field, number: Number(reader.bigUint64()), bytes: undefined });
      } else if ((tag & 7) === BYTES) {
        const bytes = reader.view();
        fields.push({ field, number: bytes.length, bytes });
      } else reader.skip(tag, {});
    }
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    return undefined;
  }
  return fields;
}

/**
 * The bytes of a message with these fields: a number is written as a varint, bytes with their
 * length.
 */
export function writeFields(
  fields: readonly (readonly [field: number, value: number | Uint8Array])[],
): Uint8Array {
  const writer = new Writer();
  for (const [field, value] of fields) {
    writer.uint32((field << 3) | (typeof value === "number" ? VARINT : BYTES));
    if (typeof value === "number") writer.uint64(value);
    else writer.view(value);
  }
  return writer.finish();
}
