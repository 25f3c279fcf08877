/**
 * Protobuf messages of any type of proto/, made byte by byte from the .proto files: valid ones, and
 * ones that are spoilt in every way that bytes can be. What is made depends on the random source
 * alone.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import protobuf from "protobufjs";
import type { SeededRandom } from "../support/random.ts";

const protoDir = join(import.meta.dirname, "../../proto");
const root = new protobuf.Root();
/** All of proto/, with the options of its methods. */
export const protoRoot: protobuf.Root = root;
// The options of google/api/annotations.proto are read without their declarations.
root.resolvePath = (_origin, target) =>
  target.startsWith("google/") ? null : join(protoDir, target.slice(target.lastIndexOf("/") + 1));
root.loadSync(readdirSync(protoDir).filter((name) => name.endsWith(".proto")));
root.resolveAll();

/** How deep a valid message nests. */
const MAX_DEPTH = 4;
const WIRE = { varint: 0, eight: 1, bytes: 2, four: 5 } as const;

/**
 * The fields of a message type by their names. @param typeName such as "etcdserverpb.PutRequest"
 */
export function fieldsOf(typeName: string): readonly protobuf.Field[] {
  return root.lookupType(typeName).fieldsArray;
}

/** Whole numbers at the edges of what programs take them for. */
const EDGES: readonly bigint[] = [
  0n,
  1n,
  2n,
  127n,
  128n,
  1000n,
  2n ** 31n - 1n,
  2n ** 31n,
  2n ** 32n - 1n,
  2n ** 32n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 63n - 1n,
  2n ** 63n,
  2n ** 64n - 1n,
];

export function varint(value: bigint): number[] {
  const bytes: number[] = [];
  let left = BigInt.asUintN(64, value);
  while (left > 0x7fn) {
    bytes.push(Number(left & 0x7fn) | 0x80);
    left >>= 7n;
  }
  bytes.push(Number(left));
  return bytes;
}

/**
 * What makers of single values need to know of their surroundings: keys and ids that exist make
 * requests go further.
 */
export interface Choices {
  readonly keys: readonly string[];
  readonly ids: readonly bigint[];
}

export class MessageMaker {
  readonly #random: SeededRandom;
  readonly #choices: Choices;

  constructor(random: SeededRandom, choices: Choices) {
    this.#random = random;
    this.#choices = choices;
  }

  /** A valid message of a type, its fields there or not. */
  valid(typeName: string): Uint8Array {
    return Uint8Array.from(this.#message(root.lookupType(typeName), 0));
  }

  #message(type: protobuf.Type, depth: number): number[] {
    const random = this.#random;
    const bytes: number[] = [];
    for (const field of type.fieldsArray) {
      field.resolve();
      // One of a union at the most.
      if (
        field.partOf !== null &&
        field.partOf.fieldsArray[random.below(field.partOf.fieldsArray.length)] !== field
      )
        continue;
      if (random.oneIn(3)) continue;
      const count = field.repeated ? random.below(4) : 1;
      for (let i = 0; i < count; i++) bytes.push(...this.#field(field, depth));
    }
    return bytes;
  }

  #field(field: protobuf.Field, depth: number): number[] {
    const { resolvedType, id } = field;
    const delimited = (content: readonly number[]) => [
      ...varint(BigInt((id << 3) | WIRE.bytes)),
      ...varint(BigInt(content.length)),
      ...content,
    ];
    if (resolvedType instanceof protobuf.Type)
      return depth >= MAX_DEPTH ? [] : delimited(this.#message(resolvedType, depth + 1));
    if (field.type === "string") return delimited(this.#text());
    if (field.type === "bytes") return delimited(this.#key());
    return [...varint(BigInt((id << 3) | WIRE.varint)), ...varint(this.#number(field))];
  }

  #number(field: protobuf.Field): bigint {
    const random = this.#random;
    if (field.resolvedType instanceof protobuf.Enum)
      return random.oneIn(6) ? BigInt(random.below(200)) : BigInt(random.below(4));
    if (field.type === "bool") return BigInt(random.below(2));
    if (/id|lease/i.test(field.name) && !random.oneIn(4)) return random.pick(this.#choices.ids);
    return random.oneIn(3) ? random.pick(EDGES) : BigInt(random.below(40));
  }

  #key(): number[] {
    const random = this.#random;
    if (random.oneIn(8)) return [0];
    if (random.oneIn(12)) return Array.from({ length: random.below(300) }, () => random.below(256));
    return [...Buffer.from(random.pick(this.#choices.keys))];
  }

  #text(): number[] {
    const random = this.#random;
    const texts = [
      "",
      "m0",
      "http://127.0.0.1:1",
      "unix://x",
      "3.7.0",
      "3.6.0",
      "99.0.0",
      '"',
      "a b",
      "\u00e9\u{1f600}",
    ];
    return [...Buffer.from(random.pick(texts))];
  }

  /** A message of a type, spoilt, or random bytes that have nothing to do with it. */
  malformed(typeName: string): Uint8Array {
    const random = this.#random;
    const bytes = [...this.valid(typeName)];
    switch (random.below(9)) {
      case 0:
        return Uint8Array.from(bytes.slice(0, random.below(bytes.length + 1)));
      case 1:
        return Uint8Array.from({ length: random.below(64) }, () => random.below(256));
      case 2:
        return this.#wrongWireType(typeName, bytes);
      case 3:
        return this.#longVarint(typeName, bytes);
      case 4:
        return this.#hugeLength(typeName, bytes);
      case 5:
        return nested(typeName, 1 + random.below(3000));
      case 6:
        return this.#repeated(typeName, bytes);
      case 7:
        return this.#invalidUtf8(typeName, bytes);
      default:
        return this.#flipped(bytes);
    }
  }

  #anyField(typeName: string): protobuf.Field | undefined {
    const fields = fieldsOf(typeName);
    return fields.length === 0 ? undefined : this.#random.pick(fields);
  }

  #wrongWireType(typeName: string, bytes: number[]): Uint8Array {
    const field = this.#anyField(typeName);
    const wire = this.#random.pick([0, 1, 2, 3, 4, 5, 6, 7]);
    const tag = varint(BigInt(((field?.id ?? 1) << 3) | wire));
    return Uint8Array.from([
      ...bytes,
      ...tag,
      ...Array.from({ length: this.#random.below(9) }, () => 0),
    ]);
  }

  #longVarint(typeName: string, bytes: number[]): Uint8Array {
    const field = this.#anyField(typeName);
    const tag = varint(BigInt((field?.id ?? 1) << 3));
    return Uint8Array.from([
      ...bytes,
      ...tag,
      ...Array.from({ length: 9 + this.#random.below(20) }, () => 0xff),
      1,
    ]);
  }

  #hugeLength(typeName: string, bytes: number[]): Uint8Array {
    const field = this.#anyField(typeName);
    const tag = varint(BigInt(((field?.id ?? 1) << 3) | WIRE.bytes));
    return Uint8Array.from([...bytes, ...tag, ...varint(this.#random.pick(EDGES)), 1, 2, 3]);
  }

  /** Some hundred repetitions of the message. */
  #repeated(typeName: string, bytes: number[]): Uint8Array {
    const one = bytes.length === 0 ? [...this.valid(typeName)] : bytes;
    const times = 1 + this.#random.below(200);
    return Uint8Array.from(Array.from({ length: times }, () => one).flat());
  }

  #invalidUtf8(typeName: string, bytes: number[]): Uint8Array {
    const text = fieldsOf(typeName).find((field) => field.type === "string");
    const tag = varint(BigInt(((text?.id ?? 1) << 3) | WIRE.bytes));
    return Uint8Array.from([...bytes, ...tag, 3, 0xff, 0xc0, 0x80]);
  }

  #flipped(bytes: number[]): Uint8Array {
    const random = this.#random;
    for (let edits = 1 + random.below(4); edits > 0; edits--) {
      if (bytes.length === 0) break;
      const at = random.below(bytes.length);
      if (random.oneIn(3)) bytes.splice(at, random.below(4));
      else bytes[at] = random.below(256);
    }
    return Uint8Array.from(bytes);
  }
}

/**
 * A transaction in a transaction, `depth` deep; for other types their first embedded message, or a
 * length in a length.
 */
export function nested(typeName: string, depth: number): Uint8Array {
  // success (2) holds a RequestOp whose request_txn is field 4; success once more.
  const isTxn = typeName === "etcdserverpb.TxnRequest";
  const embedded = fieldsOf(typeName).find(
    ({ resolvedType }) => resolvedType instanceof protobuf.Type,
  );
  const tag = isTxn ? 0x12 : ((embedded?.id ?? 1) << 3) | WIRE.bytes;
  let bytes: number[] = [];
  const parts: number[][] = [];
  let length = 0;
  for (let i = 0; i < depth; i++) {
    const inner = isTxn ? [0x22, ...varint(BigInt(length))] : [];
    const head = [...varint(BigInt(tag)), ...varint(BigInt(length + inner.length)), ...inner];
    parts.push(head);
    length += head.length;
  }
  bytes = parts.reverse().flat();
  return Uint8Array.from(bytes);
}
