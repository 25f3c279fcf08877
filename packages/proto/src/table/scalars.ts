/** The scalar kinds of the table of messages: each type of protobuf, as a type of JavaScript. */
import { EMPTY } from "../wire/bytes.ts";
import type { Reader } from "../wire/reader.ts";
import type { Writer } from "../wire/writer.ts";

/** How values of a kind are written and read. */
export interface Scalar {
  readonly zero: unknown;
  /** 0 for a varint, 2 for a length and bytes. */
  readonly wireType: 0 | 2;
  /** Throws WireError. */
  read(r: Reader): unknown;
  /** Throws RangeError for a value that does not fit. */
  write(w: Writer, value: unknown): void;
}

/** Varints are numbers or bigints; the defaults of both are zero. */
function varint<V>(zero: V, read: (r: Reader) => V, write: (w: Writer, value: V) => void): Scalar {
  return { zero, wireType: 0, read, write: write as Scalar["write"] };
}

/** The values of an enum are numbers. */
export const ENUM: Scalar = varint(
  0,
  (r) => r.int32(),
  (w, value) => w.int32(value),
);

/** The scalars by kind. */
export const SCALARS: ReadonlyMap<string, Scalar> = new Map<string, Scalar>([
  [
    "string",
    {
      zero: "",
      wireType: 2,
      read: (r) => r.string(),
      write: (w, value) => w.string(value as string),
    },
  ],
  [
    "bytes",
    {
      zero: EMPTY,
      wireType: 2,
      read: (r) => r.view(),
      write: (w, value) => w.view(value as Uint8Array),
    },
  ],
  ["int32", ENUM],
  [
    "bool",
    varint(
      false as boolean,
      (r) => r.bool(),
      (w, value) => w.bool(value),
    ),
  ],
  [
    "uint32",
    varint(
      0,
      (r) => r.uint32(),
      (w, value) => w.checkedUint32(value),
    ),
  ],
  [
    "int64",
    varint(
      0,
      (r) => r.int64(),
      (w, value) => w.int64(value),
    ),
  ],
  [
    "uint64",
    varint(
      0,
      (r) => r.uint64(),
      (w, value) => w.uint64(value),
    ),
  ],
  [
    "int64Clamped",
    varint(
      0,
      (r) => r.int64Clamped(),
      (w, value) => w.int64(value),
    ),
  ],
  [
    "bigInt64",
    varint(
      0n,
      (r) => r.bigInt64(),
      (w, value) => w.bigInt64(value),
    ),
  ],
  [
    "bigUint64",
    varint(
      0n,
      (r) => r.bigUint64(),
      (w, value) => w.bigUint64(value),
    ),
  ],
]);
