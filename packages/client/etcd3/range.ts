/** Ranges of keys, and the prefix of a namespace, as npm's etcd3 has them. */
import { Buffer } from "node:buffer";
import { prefixEnd } from "../src/requests.ts";
import { ClientRuntimeError } from "./errors.ts";

/** As the end of a range: all keys from its start on. */
const ZERO: Buffer = Buffer.from([0]);

/** What a range can be made of: a text or bytes are one key. */
export type Rangable =
  | Range
  | string
  | Buffer
  | { readonly start: string | Buffer; readonly end: string | Buffer }
  | { readonly prefix: string | Buffer };

export function toBuffer(input: string | Uint8Array | number): Buffer {
  if (Buffer.isBuffer(input)) return input;
  return typeof input === "object" ? Buffer.from(input) : Buffer.from(String(input));
}

/** The empty key is behind all others: a range without an end. */
function compare(a: Buffer, b: Buffer): number {
  if (a.length === 0 || b.length === 0) return Number(a.length === 0) - Number(b.length === 0);
  return a.compare(b);
}

/** The keys from `start` up to, but without, `end`; without an end the key alone. */
export class Range {
  readonly start: Buffer;
  readonly end: Buffer;

  constructor(start: string | Buffer, end: string | Buffer = "") {
    this.start = toBuffer(start);
    this.end = toBuffer(end);
  }

  /** All keys with that prefix; all keys for an empty one. */
  static prefix(prefix: string | Buffer): Range {
    return prefix.length === 0
      ? new Range(ZERO, ZERO)
      : new Range(prefix, Buffer.from(prefixEnd(prefix)));
  }

  static from(from: Rangable): Range {
    if (from instanceof Range) return from;
    if (typeof from === "string" || Buffer.isBuffer(from)) return new Range(from);
    return "prefix" in from ? Range.prefix(from.prefix) : new Range(from.start, from.end);
  }

  includes(key: string | Buffer): boolean {
    const bytes = toBuffer(key);
    return compare(this.start, bytes) <= 0 && compare(this.end, bytes) > 0;
  }

  /** -1 if it is before the other range, 1 if it is behind, 0 if they have keys in common. */
  compare(other: Range): -1 | 0 | 1 {
    if (compare(this.start, other.start) < 0 && compare(this.end, other.start) <= 0) return -1;
    return compare(this.start, other.end) >= 0 ? 1 : 0;
  }
}

/** A request with a key or a range. */
interface Keyed {
  key?: Buffer;
  range_end?: Buffer;
}

/** The prefix of a namespace, before the keys of requests and no longer before those of results. */
export class KeyPrefix {
  readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  key(key: string | Buffer): Buffer {
    return Buffer.concat([this.bytes, toBuffer(key)]);
  }

  /** The request with the prefix; what has no end in the namespace ends with it. */
  request<T extends Keyed>(request: T): T {
    const { key, range_end: end } = request;
    if (this.bytes.length === 0) return request;
    const prefixed = { ...request };
    if (key !== undefined) prefixed.key = this.key(key);
    if (end !== undefined && end.length > 0)
      prefixed.range_end = end.equals(ZERO) ? Range.prefix(this.bytes).end : this.key(end);
    return prefixed;
  }

  /** Throws ClientRuntimeError for a key of elsewhere. */
  strip(key: Buffer): Buffer {
    if (!key.subarray(0, this.bytes.length).equals(this.bytes))
      throw new ClientRuntimeError(`the key ${key} is not below ${this.bytes}`);
    return key.subarray(this.bytes.length);
  }
}
