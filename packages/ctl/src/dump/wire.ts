/** Protobuf's wire format without a schema: numbered fields with raw values. */

/**
 * One field: a varint or fixed number as an unsigned bigint, or bytes.
 */
export interface WireField {
  readonly number: number;
  readonly value: bigint | Uint8Array;
}

/** The fields of a message in their order. Throws RangeError if the bytes are malformed. */
export function* wireFields(bytes: Uint8Array): Generator<WireField> {
  const reader = new WireReader(bytes);
  while (reader.hasMore) {
    const tag = reader.varint();
    const number = Number(tag >> 3n);
    if (number === 0) throw new RangeError("a field has the number 0");
    switch (Number(tag & 7n)) {
      case 0:
        yield { number, value: reader.varint() };
        break;
      case 1:
        yield { number, value: reader.fixed(8) };
        break;
      case 2:
        yield { number, value: reader.bytes(Number(reader.varint())) };
        break;
      case 5:
        yield { number, value: reader.fixed(4) };
        break;
      default:
        throw new RangeError(`field ${number} has the wire type ${tag & 7n}`);
    }
  }
}

/** The varints of a packed repeated field. Throws RangeError. */
export function packedVarints(bytes: Uint8Array): bigint[] {
  const reader = new WireReader(bytes);
  const values: bigint[] = [];
  while (reader.hasMore) values.push(reader.varint());
  return values;
}

class WireReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get hasMore(): boolean {
    return this.#at < this.#bytes.length;
  }

  varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.bytes(1)[0];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asUintN(64, value);
    }
    throw new RangeError("a number has more than 10 bytes");
  }

  fixed(size: number): bigint {
    return this.bytes(size).reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n);
  }

  bytes(size: number): Uint8Array {
    if (size > this.#bytes.length - this.#at) throw new RangeError("the message is cut short");
    this.#at += size;
    return this.#bytes.subarray(this.#at - size, this.#at);
  }
}
