/** Protobuf's wire format without a schema: numbered fields with raw values. */
import { Reader, WireError } from "@quorate/proto";

/**
 * One field: a varint or fixed number as an unsigned bigint, or bytes.
 */
export interface WireField {
  readonly number: number;
  readonly value: bigint | Uint8Array;
}

/** The fields of a message in their order. Throws WireError if the bytes are malformed. */
export function* wireFields(bytes: Uint8Array): Generator<WireField> {
  const reader = new Reader(bytes);
  while (reader.pos < reader.end) {
    const tag = reader.tag();
    yield { number: tag >>> 3, value: fieldValue(reader, tag) };
  }
}

function fieldValue(reader: Reader, tag: number): bigint | Uint8Array {
  switch (tag & 7) {
    case 0:
      return reader.bigUint64();
    case 1:
      return reader.fixed64();
    case 2:
      return reader.view();
    case 5:
      return BigInt(reader.fixed32());
    default:
      throw new WireError(`unsupported wire type ${tag & 7}`, reader.pos);
  }
}

/** The varints of a packed repeated field. Throws WireError. */
export function packedVarints(bytes: Uint8Array): bigint[] {
  const reader = new Reader(bytes);
  const values: bigint[] = [];
  while (reader.pos < reader.end) values.push(reader.bigUint64());
  return values;
}
