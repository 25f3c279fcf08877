/**
 * The few types of ASN.1 in DER that certificates are made of (X.690 section 8). An element is its
 * tag, its length, and its content.
 *
 *     30 03 02 01 05      SEQUENCE { INTEGER 5 }
 */

export const Tag = {
  Boolean: 0x01,
  Integer: 0x02,
  BitString: 0x03,
  OctetString: 0x04,
  ObjectId: 0x06,
  Utf8String: 0x0c,
  UtcTime: 0x17,
  GeneralizedTime: 0x18,
  Sequence: 0x30,
  Set: 0x31,
} as const;

/** A tag of the context, such as [3]; constructed where it holds elements. */
export function contextTag(number: number, isConstructed: boolean): number {
  return 0x80 | (isConstructed ? 0x20 : 0) | number;
}

/** One element of these contents. */
export function element(tag: number, ...contents: readonly Uint8Array[]): Uint8Array {
  const content = Buffer.concat(contents);
  const { length } = content;
  const lengthBytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) lengthBytes.unshift(rest % 256);
  const head = length < 0x80 ? [tag, length] : [tag, 0x80 | lengthBytes.length, ...lengthBytes];
  return Buffer.concat([Buffer.from(head), content]);
}

/** @param dotted such as "2.5.4.3" */
export function objectId(dotted: string): Uint8Array {
  const [first, second, ...others] = dotted.split(".").map(Number);
  const bytes = [40 * first + second];
  for (const arc of others) {
    const groups = [arc & 0x7f];
    for (let rest = arc >>> 7; rest > 0; rest >>>= 7) groups.unshift(0x80 | (rest & 0x7f));
    bytes.push(...groups);
  }
  return element(Tag.ObjectId, Buffer.from(bytes));
}

/** Whole bytes. */
export function bitString(bytes: Uint8Array, unusedBits = 0): Uint8Array {
  return element(Tag.BitString, Buffer.from([unusedBits]), bytes);
}

/** A time as certificates have it: with two digits of the year before 2050 (RFC 5280, 4.1.2.5). */
export function time(ms: number): Uint8Array {
  const digits = new Date(ms).toISOString().replace(/\.\d+Z$|[-:T]/g, "");
  return digits < "2050"
    ? element(Tag.UtcTime, Buffer.from(`${digits.slice(2)}Z`))
    : element(Tag.GeneralizedTime, Buffer.from(`${digits}Z`));
}

/** An element that was read. */
export interface DerElement {
  readonly tag: number;
  readonly content: Uint8Array;
  /** The content with its tag and length. */
  readonly whole: Uint8Array;
}

/** The elements that follow each other in `bytes`. Throws RangeError for bytes that are none. */
export function elementsOf(bytes: Uint8Array): DerElement[] {
  const found: DerElement[] = [];
  for (let at = 0; at < bytes.length; ) {
    const start = at;
    const tag = bytes[at];
    let length = bytes[at + 1];
    at += 2;
    if (length >= 0x80) {
      const count = length & 0x7f;
      length = 0;
      for (let i = 0; i < count && i < 4; i++) length = length * 256 + bytes[at + i];
      at += count;
    }
    if (!(at + length <= bytes.length)) throw new RangeError("the certificate is cut off");
    const end = at + length;
    found.push({ tag, content: bytes.subarray(at, end), whole: bytes.subarray(start, end) });
    at = end;
  }
  return found;
}
