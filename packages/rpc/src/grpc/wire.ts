/**
 * The part of protobuf's wire format that the services of this package need for their few small
 * messages.
 */
import { GrpcCode } from "@quorate/proto";
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
  const fields: WireField[] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let scale = 1; scale <= 2 ** 63; scale *= 128) {
      if (at >= message.length) return -1;
      const byte = message[at++];
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
    return -1;
  };
  while (at < message.length) {
    if (fields.length >= maxFields) return undefined;
    const tag = varint();
    const type = tag % 8;
    const field = Math.floor(tag / 8);
    if (tag < 8) return undefined;
    if (type === 0) {
      const number = varint();
      if (number < 0) return undefined;
      fields.push({ field, number, bytes: undefined });
    } else if (type === 2) {
      const size = varint();
      if (size < 0 || at + size > message.length) return undefined;
      fields.push({ field, number: size, bytes: message.subarray(at, at + size) });
      at += size;
    } else if (type === 1 || type === 5) {
      at += type === 1 ? 8 : 4;
      if (at > message.length) return undefined;
    } else return undefined;
  }
  return fields;
}

function pushVarint(out: number[], value: number): void {
  for (; value >= 128; value = Math.floor(value / 128)) out.push((value % 128) | 0x80);
  out.push(value);
}

/**
 * The bytes of a message with these fields: a number is written as a varint, bytes with their
 * length.
 */
export function writeFields(
  fields: readonly (readonly [field: number, value: number | Uint8Array])[],
): Uint8Array {
  const parts: Uint8Array[] = [];
  let size = 0;
  const add = (part: Uint8Array): void => {
    parts.push(part);
    size += part.length;
  };
  for (const [field, value] of fields) {
    const head: number[] = [];
    pushVarint(head, field * 8 + (typeof value === "number" ? 0 : 2));
    pushVarint(head, typeof value === "number" ? value : value.length);
    add(Uint8Array.from(head));
    if (typeof value !== "number") add(value);
  }
  const message = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    message.set(part, at);
    at += part.length;
  }
  return message;
}
