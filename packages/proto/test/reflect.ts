/**
 * protobufjs' reading of proto/, our message types by name, and arbitrary messages of any type in
 * both forms.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import protobuf from "protobufjs";
import {
  authpb,
  etcdserverpb,
  leasepb,
  membershippb,
  mvccpb,
  raftpb,
  snappb,
  v3electionpb,
  v3lockpb,
  walpb,
} from "../index.ts";
import type { MessageType } from "../src/wire/message.ts";

/** The seed of every property test of this package. */
export const SEED = 20261120;

const protoDir = join(import.meta.dirname, "../../../proto");

/** proto/ loaded by protobufjs. */
export const root = new protobuf.Root();
// The options of google/api/annotations.proto are read without their declarations.
root.resolvePath = (_origin, target) =>
  target.startsWith("google/") ? null : join(protoDir, target.slice(target.lastIndexOf("/") + 1));
root.loadSync(readdirSync(protoDir).filter((name) => name.endsWith(".proto")));
root.resolveAll();

// biome-ignore lint/suspicious/noExplicitAny: tests walk messages of all types
export type AnyMessage = any;
export type AnyType = MessageType<AnyMessage>;

/** Our message types by full name. */
export const ours: ReadonlyMap<string, AnyType> = new Map(
  [
    authpb,
    etcdserverpb,
    leasepb,
    membershippb,
    mvccpb,
    raftpb,
    snappb,
    v3electionpb,
    v3lockpb,
    walpb,
  ]
    .flatMap((pkg) => Object.values(pkg) as unknown[])
    .filter(
      (value): value is AnyType =>
        typeof value === "object" && value !== null && "typeName" in value,
    )
    .map((type) => [type.typeName, type]),
);

/** protobufjs' types by full name. */
export const theirs: ReadonlyMap<string, protobuf.Type> = collectTypes(root);

function collectTypes(
  namespace: protobuf.NamespaceBase,
  into = new Map<string, protobuf.Type>(),
): Map<string, protobuf.Type> {
  for (const object of namespace.nestedArray) {
    if (object instanceof protobuf.Type) into.set(nameOf(object), object);
    if (object instanceof protobuf.Namespace) collectTypes(object, into);
  }
  return into;
}

/** Full name without the leading dot. */
export function nameOf(object: protobuf.ReflectionObject): string {
  return object.fullName.slice(1);
}

const mine = (field: protobuf.Field): AnyType => ours.get(nameOf(field.parent!))!;
const isProto2 = (field: protobuf.Field): boolean =>
  /^(raftpb|walpb|snappb)\.|^etcdserverpb\.(Request|Metadata)\./.test(nameOf(field));
const isMessage = (field: protobuf.Field): boolean => field.resolvedType instanceof protobuf.Type;

// What our codec makes of the field when it comes with the given byte after the tag: 1 as a varint,
// 0 as an empty message.
function sample(field: protobuf.Field): unknown {
  const head = protobuf.Writer.create().uint32((field.id << 3) | (isMessage(field) ? 2 : 0));
  const message = mine(field).decode(head.uint32(isMessage(field) ? 0 : 1).finish());
  const value = message[field.partOf?.name ?? field.name];
  if (field.partOf !== null) return value.value;
  return field.repeated ? value[0] : value;
}

/** Whether our form keeps the embedded message encoded. */
export const isRaw = (field: protobuf.Field): boolean =>
  isMessage(field) && sample(field) instanceof Uint8Array;

/** Whether a 64-bit field is a bigint in our form. */
export const isBigint = (field: protobuf.Field): boolean => typeof sample(field) === "bigint";

/** A message in our form and in protobufjs'. */
export interface Pair {
  ours: AnyMessage;
  theirs: AnyMessage;
}

const I64_MIN = -(2n ** 63n);
const I64_MAX = 2n ** 63n - 1n;
const U64_MAX = 2n ** 64n - 1n;

const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 8 }),
  fc.uint8Array({ minLength: 120, maxLength: 140 }),
);
const Long = protobuf.util.Long as unknown as { fromString(s: string, unsigned: boolean): unknown };
const long = (value: bigint | number, unsigned: boolean): unknown =>
  Long.fromString(String(value), unsigned);

function int64(field: protobuf.Field, unsigned: boolean): fc.Arbitrary<Pair> {
  if (isBigint(field)) {
    const range = unsigned ? { min: 0n, max: U64_MAX } : { min: I64_MIN, max: I64_MAX };
    return fc
      .oneof(fc.constant(0n), fc.bigInt(range))
      .map((value) => ({ ours: value, theirs: long(value, unsigned) }));
  }
  const numbers = unsigned ? fc.maxSafeNat() : fc.maxSafeInteger();
  const edges = fc.constantFrom(
    0,
    1,
    127,
    128,
    2 ** 31 - 1,
    2 ** 31,
    2 ** 32 - 1,
    2 ** 32,
    2 ** 35,
    2 ** 49,
    Number.MAX_SAFE_INTEGER,
  );
  return fc
    .oneof(fc.constant(0), edges, numbers)
    .map((value) => ({ ours: value, theirs: long(value, unsigned) }));
}

function value(field: protobuf.Field, depth: number): fc.Arbitrary<Pair> {
  const resolved = field.resolvedType;
  const same = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<Pair> =>
    arbitrary.map((v) => ({ ours: v, theirs: v }));
  if (resolved instanceof protobuf.Type) {
    const inner = message(resolved, Math.max(0, depth - 1));
    return isRaw(field)
      ? inner.map((pair) => ({
          ours: ours.get(nameOf(resolved))!.encode(pair.ours),
          theirs: pair.theirs,
        }))
      : inner;
  }
  if (resolved instanceof protobuf.Enum)
    return same(fc.oneof(fc.constantFrom(...Object.values(resolved.values)), fc.integer()));
  switch (field.type) {
    case "bool":
      return same(fc.boolean());
    case "string":
      return same(fc.oneof(fc.constant(""), fc.string({ unit: "grapheme", maxLength: 60 })));
    case "bytes":
      return same(bytes);
    case "uint32":
      return same(fc.oneof(fc.constant(0), fc.nat(300), fc.nat(0xffff_ffff)));
    case "int64":
      return int64(field, false);
    case "uint64":
      return int64(field, true);
    default:
      throw new Error(`no arbitrary for ${field.fullName}`);
  }
}

const isZero = (v: unknown): boolean =>
  v === 0 || v === 0n || v === "" || v === false || (v instanceof Uint8Array && v.length === 0);

interface Slot {
  name: string;
  arbitrary: fc.Arbitrary<{ ours: unknown; theirs: { [name: string]: unknown } }>;
}

function fieldSlot(field: protobuf.Field, depth: number): Slot {
  const { name } = field;
  if (field.repeated) {
    if (isMessage(field) && depth === 0)
      return { name, arbitrary: fc.constant({ ours: [], theirs: {} }) };
    const arbitrary = fc.array(value(field, depth), { maxLength: 4 }).map((list) => ({
      ours: list.map((pair) => pair.ours),
      theirs: list.length === 0 ? {} : { [name]: list.map((pair) => pair.theirs) },
    }));
    return { name, arbitrary };
  }
  const absent = fc.constant({ ours: undefined, theirs: {} });
  // Not repeated, and not undefined when missing: always written.
  const required = mine(field).create()[name] !== undefined;
  if (isMessage(field) && depth === 0 && !required) return { name, arbitrary: absent };
  const present = value(field, depth).map((pair) => ({
    ours: pair.ours as unknown,
    theirs: { [name]: pair.theirs as unknown },
  }));
  if (isMessage(field) && required) return { name, arbitrary: present };
  if (isMessage(field)) return { name, arbitrary: fc.oneof(absent, present) };
  if (!required) return { name, arbitrary: fc.oneof(absent, present) };
  const always = isProto2(field) && field.type !== "bytes";
  return {
    name,
    arbitrary: always
      ? present
      : present.map((pair) => (isZero(pair.ours) ? { ours: pair.ours, theirs: {} } : pair)),
  };
}

function oneofSlot(oneof: protobuf.OneOf, depth: number): Slot {
  const cases = oneof.fieldsArray
    .filter((field) => depth > 0 || !isMessage(field))
    .map((field) =>
      value(field, depth).map((pair) => ({
        ours: { case: field.name, value: pair.ours } as unknown,
        theirs: { [field.name]: pair.theirs as unknown },
      })),
    );
  return {
    name: oneof.name,
    arbitrary: fc.oneof(fc.constant({ ours: undefined, theirs: {} }), ...cases),
  };
}

/** Messages of a type, every field filled at random; embedded messages down to the given depth. */
export function message(type: protobuf.Type, depth = 3): fc.Arbitrary<Pair> {
  const slots = [
    ...type.fieldsArray.filter((field) => !field.partOf).map((field) => fieldSlot(field, depth)),
    ...type.oneofsArray
      .filter((oneof) => !oneof.isProto3Optional)
      .map((oneof) => oneofSlot(oneof, depth)),
  ];
  if (slots.length === 0) return fc.constant({ ours: {}, theirs: {} });
  return fc.tuple(...slots.map((slot) => slot.arbitrary)).map((values) => {
    const pair: Pair = { ours: {}, theirs: {} };
    slots.forEach((slot, i) => {
      pair.ours[slot.name] = values[i].ours;
      Object.assign(pair.theirs, values[i].theirs);
    });
    return pair;
  });
}

/** A field of an encoded message: its number and its bytes with the tag. */
export interface EncodedField {
  id: number;
  bytes: Uint8Array;
}

/** Cuts a well-formed message into its fields. */
export function splitFields(encoded: Uint8Array): EncodedField[] {
  const reader = protobuf.Reader.create(encoded);
  const fields: EncodedField[] = [];
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const tag = reader.uint32();
    reader.skipType(tag & 7);
    fields.push({ id: tag >>> 3, bytes: encoded.slice(start, reader.pos) });
  }
  return fields;
}
