/**
 * Codecs that walk the rows of a message type, for messages that are rare or whose handling costs
 * far more than their bytes. They write and refuse the same bytes as generated code does; it is
 * faster, and has a hundred lines where a row has one. scripts/proto/policy.ts says which is which.
 */
import { BaseCodec } from "../wire/base-codec.ts";
import { EMPTY } from "../wire/bytes.ts";
import type { MessageType } from "../wire/message.ts";
import type { Reader } from "../wire/reader.ts";
import type { Writer } from "../wire/writer.ts";
import { type FieldLabel, type FieldRow, fieldNames, fieldRows, isMessage } from "./fields.ts";

// biome-ignore lint/suspicious/noExplicitAny: a table holds codecs of all types
type AnyType = MessageType<any>;
/** A message of any type. */
type Values = Record<string, unknown>;

const BYTES = 2;

/** A property of a message: its default, and its form on the wire. */
interface FieldCodec {
  readonly property: string;
  /** The default; a list of its own each time. */
  zero(): unknown;
  /** Writes a property that is not undefined; nothing if it is the default. */
  write(w: Writer, value: unknown): void;
  /** Reads one occurrence behind its tag into the message. */
  read(r: Reader, message: Values, tag: number): void;
}

class ScalarField implements FieldCodec {
  readonly property: string;
  readonly #tag: number;
  readonly #scalar: Scalar;
  readonly #zero: unknown;
  readonly #always: boolean;

  constructor({ property, label }: FieldRow, tag: number, scalar: Scalar) {
    this.property = property;
    this.#tag = tag;
    this.#scalar = scalar;
    this.#zero = label === "optional" ? undefined : scalar.zero;
    this.#always = label === "always";
  }

  zero(): unknown {
    return this.#zero;
  }

  write(w: Writer, value: unknown): void {
    const isDefault =
      this.#zero === EMPTY ? (value as Uint8Array).length === 0 : value === this.#zero;
    if (isDefault && !this.#always) return;
    w.uint32(this.#tag);
    this.#scalar.write(w, value);
  }

  read(r: Reader, message: Values): void {
    message[this.property] = this.#scalar.read(r);
  }
}

class ScalarList implements FieldCodec {
  readonly property: string;
  readonly #tag: number;
  readonly #packedTag: number;
  readonly #isPacked: boolean;
  readonly #scalar: Scalar;

  constructor({ property, label, id }: FieldRow, tag: number, scalar: Scalar) {
    this.property = property;
    this.#tag = tag;
    this.#packedTag = (id << 3) | BYTES;
    this.#isPacked = label === "packed";
    this.#scalar = scalar;
  }

  zero(): unknown {
    return [];
  }

  write(w: Writer, value: unknown): void {
    const list = value as readonly unknown[];
    if (this.#isPacked && list.length > 0) {
      w.uint32(this.#packedTag);
      const start = w.open();
      for (const item of list) this.#scalar.write(w, item);
      w.close(start);
      return;
    }
    for (const item of list) {
      w.uint32(this.#tag);
      this.#scalar.write(w, item);
    }
  }

  read(r: Reader, message: Values, tag: number): void {
    const list = message[this.property] as unknown[];
    if (tag === this.#tag) {
      list.push(this.#scalar.read(r));
      return;
    }
    const outer = r.enterPacked();
    while (r.pos < r.end) list.push(this.#scalar.read(r));
    r.leave(outer);
  }
}

class MessageField implements FieldCodec {
  readonly property: string;
  readonly #tag: number;
  readonly #type: AnyType;
  readonly #label: FieldLabel;

  constructor({ property, label }: FieldRow, tag: number, type: AnyType) {
    this.property = property;
    this.#tag = tag;
    this.#type = type;
    this.#label = label;
  }

  zero(): unknown {
    if (this.#label === "always") return this.#type.create();
    return this.#label === "repeated" ? [] : undefined;
  }

  write(w: Writer, value: unknown): void {
    if (this.#label === "repeated") for (const item of value as Values[]) this.#one(w, item);
    else this.#one(w, value as Values);
  }

  #one(w: Writer, message: Values): void {
    w.uint32(this.#tag);
    const start = w.open();
    this.#type.encodeTo(w, message);
    w.close(start);
  }

  read(r: Reader, message: Values): void {
    const outer = r.enter();
    const before = message[this.property];
    if (this.#label === "repeated") (before as unknown[]).push(this.#type.decodeFrom(r));
    else message[this.property] = this.#type.decodeFrom(r, before);
    r.leave(outer);
  }
}

class TableCodec<T extends object> extends BaseCodec<T> {
  readonly typeName: string;
  readonly #embedded: readonly AnyType[];
  /** Both are made at the first use: a program uses few of the messages. */
  #fields: readonly FieldCodec[] | undefined;
  readonly #byTag = new Map<number, FieldCodec>();

  constructor(typeName: string, embedded: readonly AnyType[]) {
    super();
    this.typeName = typeName;
    this.#embedded = embedded;
  }

  zero(): T {
    const message: Values = {};
    for (const field of this.#made()) message[field.property] = field.zero();
    return message as T;
  }

  encodeTo(w: Writer, message: Partial<T>): void {
    for (const field of this.#made()) {
      const value = (message as Values)[field.property] ?? field.zero();
      if (value !== undefined) field.write(w, value);
    }
  }

  decodeFrom(r: Reader, into?: T): T {
    this.#made();
    const message = (into ?? this.zero()) as Values;
    let tag = 0;
    try {
      while (r.pos < r.end) {
        tag = 0;
        tag = r.tag();
        const field = this.#byTag.get(tag);
        if (field === undefined) r.skip(tag, fieldNames(this.typeName));
        else field.read(r, message, tag);
      }
    } catch (e) {
      throw r.failed(e, this.typeName, fieldNames(this.typeName), tag);
    }
    return message as T;
  }

  #made(): readonly FieldCodec[] {
    this.#fields ??= fieldRows(this.typeName).map((row) => this.#make(row));
    return this.#fields;
  }

  #make(row: FieldRow): FieldCodec {
    const { id, label, type } = row;
    if (isMessage(type)) {
      const codec = this.#embedded.find(({ typeName }) => typeName === type);
      if (codec === undefined) throw new TypeError(`${this.typeName}: no codec of ${type}`);
      return this.#noted(new MessageField(row, (id << 3) | BYTES, codec), (id << 3) | BYTES);
    }
    const scalar = SCALARS.get(type) ?? ENUM;
    const tag = (id << 3) | scalar.wireType;
    if (label !== "repeated" && label !== "packed")
      return this.#noted(new ScalarField(row, tag, scalar), tag);
    // Readers take a list of numbers in either form.
    const list = new ScalarList(row, tag, scalar);
    this.#byTag.set((id << 3) | BYTES, list);
    return this.#noted(list, tag);
  }

  #noted(field: FieldCodec, tag: number): FieldCodec {
    this.#byTag.set(tag, field);
    return field;
  }
}

/**
 * The codec of a message type, from its rows in the table.
 * @param embedded the codecs of the messages in it
 */
export function tableCodec<T extends object>(
  typeName: string,
  embedded: readonly AnyType[] = [],
): MessageType<T> {
  return new TableCodec<T>(typeName, embedded);
}

/** A scalar type of protobuf as a type of JavaScript: how its values are written and read. */
interface Scalar {
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
const ENUM: Scalar = varint(
  0,
  (r) => r.int32(),
  (w, value) => w.int32(value),
);

/** The scalars by kind. */
const SCALARS: ReadonlyMap<string, Scalar> = new Map<string, Scalar>([
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
