/**
 * The message types of the JSON mapping, built from the generated tables.
 */

import { jsonEnums } from "../gen/json.ts";
import { services } from "../gen/services.ts";
import { fieldRows, isMessage } from "../table/fields.ts";
import { fromLatin1 } from "../wire/bytes.ts";
import {
  hashStep,
  type JsonEnum,
  type JsonField,
  type JsonKind,
  type JsonMessage,
} from "./schema.ts";

/** Field numbers below it are found by an array. */
const MAX_DENSE_NUMBER = 128;
/** Slots of a name table for each of its names. */
const SLOTS_A_NAME = 4;

interface NameSlot {
  readonly hash: number;
  readonly bytes: Uint8Array;
  readonly field: JsonField;
  readonly next: NameSlot | undefined;
}

class MessageTable implements JsonMessage {
  readonly typeName: string;
  readonly fields: JsonField[] = [];
  readonly #numbers: (JsonField | undefined)[] = [];
  readonly #largeNumbers = new Map<number, JsonField>();
  readonly #names = new Map<string, JsonField>();
  #slots: (NameSlot | undefined)[] = [undefined];

  constructor(typeName: string) {
    this.typeName = typeName;
  }

  byNumber(id: number): JsonField | undefined {
    return id < MAX_DENSE_NUMBER ? this.#numbers[id] : this.#largeNumbers.get(id);
  }

  byName(name: string): JsonField | undefined {
    return this.#names.get(name);
  }

  byNameBytes(json: Uint8Array, start: number, end: number, hash: number): JsonField | undefined {
    const slots = this.#slots;
    let slot = slots[hash & (slots.length - 1)];
    for (; slot !== undefined; slot = slot.next) {
      const { bytes } = slot;
      if (slot.hash !== hash || bytes.length !== end - start) continue;
      let at = 0;
      while (at < bytes.length && bytes[at] === json[start + at]) at++;
      if (at === bytes.length) return slot.field;
    }
    return undefined;
  }

  /** Sets the fields, which may be of this type. */
  fill(fields: readonly JsonField[]): void {
    this.#numbers.length = Math.min(MAX_DENSE_NUMBER, 1 + Math.max(0, ...fields.map((f) => f.id)));
    this.#numbers.fill(undefined);
    for (const field of fields) {
      this.fields.push(field);
      if (field.id < MAX_DENSE_NUMBER) this.#numbers[field.id] = field;
      else this.#largeNumbers.set(field.id, field);
      // A lower camel case name wins over another field's name, as in protojson.
      if (!this.#names.has(field.name)) this.#names.set(field.name, field);
    }
    for (const field of fields) this.#names.set(field.jsonName, field);
    let size = 1;
    while (size < this.#names.size * SLOTS_A_NAME) size *= 2;
    this.#slots = new Array<NameSlot | undefined>(size).fill(undefined);
    for (const [name, field] of this.#names) {
      const bytes = fromLatin1(name).slice();
      const hash = bytes.reduce(hashStep, 0);
      const at = hash & (size - 1);
      this.#slots[at] = { hash, bytes, field, next: this.#slots[at] };
    }
  }
}

/** protobuf's lower camel case: each underscore goes and raises the letter behind it. */
function camelCase(name: string): string {
  return name.replace(/_+(.?)/g, (_, letter: string) => letter.toUpperCase());
}

const WIRE_VARINT = 0;
const WIRE_BYTES = 2;

/** The kinds of the table of messages. */
const KINDS: ReadonlyMap<string, JsonKind> = new Map<string, JsonKind>([
  ["bool", "bool"],
  ["int32", "int32"],
  ["uint32", "uint32"],
  ["int64", "int64"],
  ["int64Clamped", "int64"],
  ["int64Wide", "int64"],
  ["bigInt64", "int64"],
  ["uint64", "uint64"],
  ["bigUint64", "uint64"],
  ["string", "string"],
  ["bytes", "bytes"],
]);

function buildEnums(): ReadonlyMap<string, JsonEnum> {
  return new Map(
    Object.entries(jsonEnums).map(([typeName, values]) => [
      typeName,
      {
        typeName,
        quoted: new Map(
          Object.entries(values).map(([name, number]) => [number, fromLatin1(`"${name}"`).slice()]),
        ),
        numbers: new Map(Object.entries(values)),
      },
    ]),
  );
}

/** The types of all messages that methods use, those in other messages included. */
function usedTypes(): Set<string> {
  const found = new Set(
    services.flatMap(({ methods }) =>
      Object.values(methods).flatMap((method) => [
        method.requestType.typeName,
        method.responseType.typeName,
      ]),
    ),
  );
  // A set shows what is added while it is walked.
  for (const typeName of found)
    for (const { type } of fieldRows(typeName)) if (isMessage(type)) found.add(type);
  return found;
}

function buildTypes(): ReadonlyMap<string, JsonMessage> {
  const enums = buildEnums();
  const tables = new Map(
    [...usedTypes()].sort().map((typeName) => [typeName, new MessageTable(typeName)]),
  );
  for (const [typeName, table] of tables) table.fill(fieldsOf(typeName, tables, enums));
  return tables;
}

function fieldsOf(
  typeName: string,
  tables: ReadonlyMap<string, MessageTable>,
  enums: ReadonlyMap<string, JsonEnum>,
): JsonField[] {
  const oneofs: string[] = [];
  return fieldRows(typeName).map(({ label, type, name, id, oneof }, index): JsonField => {
    if (oneof !== undefined && !oneofs.includes(oneof)) oneofs.push(oneof);
    const message = tables.get(type);
    const kind = KINDS.get(type) ?? (message === undefined ? "enum" : "message");
    const isBytes = kind === "message" || kind === "string" || kind === "bytes";
    return {
      index,
      id,
      name,
      jsonName: camelCase(name),
      kind,
      repeated: label === "repeated" || label === "packed",
      oneof: oneof === undefined ? undefined : `${typeName}.${oneof}`,
      oneofBit: oneof === undefined ? 0 : 1 << oneofs.indexOf(oneof),
      message,
      enumType: enums.get(type),
      tag: (id << 3) | (isBytes ? WIRE_BYTES : WIRE_VARINT),
      label: fromLatin1(`"${name}":`).slice(),
    };
  });
}

let types: ReadonlyMap<string, JsonMessage> | undefined;

/**
 * The message types that services use, by full protobuf name. Built at the first call: most
 * programs that load this package have no JSON.
 */
export function jsonTypes(): ReadonlyMap<string, JsonMessage> {
  types ??= buildTypes();
  return types;
}
