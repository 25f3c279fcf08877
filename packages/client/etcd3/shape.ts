/**
 * Messages as npm's etcd3 has them, straight from the wire and to it: names of the .proto file,
 * 64-bit integers as decimal texts, enums by name (None, Nospace, NotEqual), bytes as Buffers, and
 * beside a member of a oneof the name of the member. Requests may have numbers for both.
 */
import { Buffer } from "node:buffer";
import {
  type FieldRow,
  fieldRows,
  isMessage,
  jsonEnums,
  type MessageType,
  Reader,
  Writer,
} from "@quorate/proto";

/** A message of any type. */
export type Message = Record<string, unknown>;

const NUMBER = 0;
const BYTES = 2;

/** How a value of a field is written and read. */
interface Form {
  readonly wireType: 0 | 2;
  readonly zero: unknown;
  read(r: Reader): unknown;
  write(w: Writer, value: unknown): void;
}

interface Field extends Form {
  readonly name: string;
  readonly id: number;
  readonly isList: boolean;
  readonly oneof: string | undefined;
}

const INT64: Form = {
  wireType: NUMBER,
  zero: "0",
  read: (r) => String(r.int64Wide()),
  write(w, value) {
    if (typeof value === "number") w.int64(value);
    else w.bigInt64(BigInt(value as string));
  },
};
const UINT64: Form = {
  wireType: NUMBER,
  zero: "0",
  read: (r) => String(r.bigUint64()),
  write: (w, value) => w.bigUint64(BigInt(value as string)),
};
const INT32: Form = {
  wireType: NUMBER,
  zero: 0,
  read: (r) => r.int32(),
  write: (w, value) => w.int32(value as number),
};

const SCALARS: ReadonlyMap<string, Form> = new Map<string, Form>([
  ["int64", INT64],
  ["int64Clamped", INT64],
  ["int64Wide", INT64],
  ["bigInt64", INT64],
  ["uint64", UINT64],
  ["bigUint64", UINT64],
  ["int32", INT32],
  ["uint32", { ...INT32, read: (r) => r.uint32(), write: (w, value) => w.uint32(value as number) }],
  [
    "bool",
    {
      wireType: NUMBER,
      zero: false,
      read: (r) => r.bool(),
      write: (w, value) => w.bool(value as boolean),
    },
  ],
  [
    "string",
    {
      wireType: BYTES,
      zero: "",
      read: (r) => r.string(),
      write: (w, value) => w.string(String(value)),
    },
  ],
  [
    "bytes",
    {
      wireType: BYTES,
      zero: Buffer.alloc(0),
      read(r) {
        const { buffer, byteOffset, length } = r.view();
        return Buffer.from(buffer, byteOffset, length);
      },
      write: (w, value) => w.view(value as Uint8Array),
    },
  ],
]);

/** NOT_EQUAL as NotEqual. */
function enumName(name: string): string {
  return name
    .split("_")
    .map((word) => word.slice(0, 1) + word.slice(1).toLowerCase())
    .join("");
}

function enumForm(typeName: string): Form {
  const numbers = new Map<unknown, number>();
  const names: string[] = [];
  for (const [name, number] of Object.entries(jsonEnums[typeName] ?? {})) {
    numbers.set(enumName(name), number);
    names[number] = enumName(name);
  }
  return {
    wireType: NUMBER,
    zero: names[0],
    read(r) {
      const number = r.int32();
      return names[number] ?? number;
    },
    write(w, value) {
      const number = typeof value === "number" ? value : numbers.get(value);
      if (number === undefined) throw new TypeError(`${String(value)} is not one of ${names}`);
      w.int32(number);
    },
  };
}

class ShapeCodec implements MessageType<Message> {
  readonly typeName: string;
  #fields: readonly Field[] | undefined;
  readonly #byId: (Field | undefined)[] = [];

  constructor(typeName: string) {
    this.typeName = typeName;
  }

  create(init: Message = {}): Message {
    const message: Message = {};
    for (const { name, isList, oneof, zero } of this.#made()) {
      if (isList) message[name] = [];
      else if (oneof === undefined) message[name] = zero;
    }
    return Object.assign(message, init);
  }

  encode(message: Message): Uint8Array {
    const w = new Writer();
    this.encodeTo(w, message);
    return w.finish();
  }

  encodeTo(w: Writer, message: Message): void {
    for (const field of this.#made()) {
      const value = message[field.name];
      if (value === undefined || value === null) continue;
      const tag = (field.id << 3) | field.wireType;
      for (const one of field.isList ? (value as unknown[]) : [value]) {
        w.uint32(tag);
        field.write(w, one);
      }
    }
  }

  decode(bytes: Uint8Array): Message {
    const message = this.decodeFrom(new Reader(bytes));
    // Results of the client have one of their own, with other forms of bytes and ids.
    Object.defineProperty(message, "toJSON", { value: undefined });
    return message;
  }

  decodeFrom(r: Reader, into?: Message): Message {
    const message = into ?? this.create();
    while (r.pos < r.end) {
      const tag = r.tag();
      const field = this.#byId[tag >>> 3];
      if (field === undefined) r.skip(tag, {});
      else this.#read(r, field, tag, message);
    }
    return message;
  }

  #read(r: Reader, field: Field, tag: number, message: Message): void {
    const { name, isList, oneof } = field;
    if (isList && (tag & 7) === BYTES && field.wireType === NUMBER) {
      const outer = r.enterPacked();
      while (r.pos < r.end) (message[name] as unknown[]).push(field.read(r));
      r.leave(outer);
    } else if ((tag & 7) !== field.wireType) r.skip(tag, {});
    else if (isList) (message[name] as unknown[]).push(field.read(r));
    else {
      message[name] = field.read(r);
      if (oneof !== undefined) message[oneof] = name;
    }
  }

  #made(): readonly Field[] {
    if (this.#fields === undefined) {
      this.#fields = fieldRows(this.typeName).map(fieldOf);
      for (const field of this.#fields) this.#byId[field.id] = field;
    }
    return this.#fields;
  }
}

function fieldOf({ label, type, name, id, oneof }: FieldRow): Field {
  const isList = label === "packed" || label === "repeated";
  const form = isMessage(type) ? messageForm(type) : (SCALARS.get(type) ?? enumForm(type));
  return { ...form, name, id, isList, oneof };
}

function messageForm(typeName: string): Form {
  const shape = shapeOf(typeName);
  return {
    wireType: BYTES,
    zero: null,
    read(r) {
      const outer = r.enterNested();
      const message = shape.decodeFrom(r);
      r.leaveNested(outer);
      return message;
    },
    write(w, value) {
      const start = w.open();
      shape.encodeTo(w, value as Message);
      w.close(start);
    },
  };
}

const shapes = new Map<string, ShapeCodec>();

/**
 * The codec of a message type, such as "etcdserverpb.PutRequest". Its encode() throws RangeError or
 * SyntaxError for a text that is no integer, and TypeError for a name that an enum does not have.
 */
export function shapeOf(typeName: string): MessageType<Message> {
  let found = shapes.get(typeName);
  if (found === undefined) {
    found = new ShapeCodec(typeName);
    shapes.set(typeName, found);
  }
  return found;
}
