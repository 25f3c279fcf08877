/**
 * The schema of etcd's messages, from the descriptors that the members' reflection service serves.
 * Dumps need the names and types of fields, which decoded messages lack.
 */
import { fileDescriptors, toUtf8 } from "@quorate/proto";
import { wireFields } from "./wire.ts";

/** google.protobuf.FieldDescriptorProto.Type, those that etcd uses. */
export const FieldType = {
  double: 1,
  float: 2,
  int64: 3,
  uint64: 4,
  int32: 5,
  fixed64: 6,
  fixed32: 7,
  bool: 8,
  string: 9,
  message: 11,
  bytes: 12,
  uint32: 13,
  enum: 14,
} as const;

export interface Field {
  readonly number: number;
  readonly name: string;
  readonly type: number;
  /** Of a message or enum, such as "etcdserverpb.PutRequest". */
  readonly typeName: string;
  readonly isRepeated: boolean;
  /** Whether a present zero value is printed: fields of proto2, and of a oneof. */
  readonly hasPresence: boolean;
}

export interface Schema {
  /** The fields of each message, in the order of their declaration. */
  readonly messages: ReadonlyMap<string, readonly Field[]>;
  /** The names of each enum's values. */
  readonly enums: ReadonlyMap<string, ReadonlyMap<number, string>>;
}

let loaded: Schema | undefined;

/** All messages and enums of the descriptors. */
export function schema(): Schema {
  loaded ??= read(fileDescriptors());
  return loaded;
}

const LABEL_REPEATED = 3;

function read(files: readonly Uint8Array[]): Schema {
  const messages = new Map<string, Field[]>();
  const enums = new Map<string, Map<number, string>>();
  const readEnum = (bytes: Uint8Array, scope: string): void => {
    const parts = partsOf(bytes);
    const values = parts.bytes(2).map((value): [number, string] => {
      const one = partsOf(value);
      return [one.number(2), one.text(1)];
    });
    enums.set(scope + parts.text(1), new Map(values));
  };
  const readMessage = (bytes: Uint8Array, scope: string, isProto3: boolean): void => {
    const parts = partsOf(bytes);
    const name = scope + parts.text(1);
    messages.set(
      name,
      parts.bytes(2).map((field) => readField(field, isProto3)),
    );
    for (const nested of parts.bytes(3)) readMessage(nested, `${name}.`, isProto3);
    for (const nested of parts.bytes(4)) readEnum(nested, `${name}.`);
  };
  for (const file of files) {
    const parts = partsOf(file);
    const scope = parts.text(2) === "" ? "" : `${parts.text(2)}.`;
    const isProto3 = parts.text(12) === "proto3";
    for (const message of parts.bytes(4)) readMessage(message, scope, isProto3);
    for (const one of parts.bytes(5)) readEnum(one, scope);
  }
  return { messages, enums };
}

function readField(bytes: Uint8Array, isProto3: boolean): Field {
  const parts = partsOf(bytes);
  return {
    name: parts.text(1),
    number: parts.number(3),
    type: parts.number(5),
    typeName: parts.text(6).replace(/^\./, ""),
    isRepeated: parts.number(4) === LABEL_REPEATED,
    hasPresence: !isProto3 || parts.has(9),
  };
}

/** A descriptor's fields by number. */
function partsOf(bytes: Uint8Array) {
  const all = [...wireFields(bytes)];
  const last = (number: number) => all.findLast((one) => one.number === number)?.value;
  return {
    has: (number: number): boolean => last(number) !== undefined,
    bytes: (number: number): Uint8Array[] =>
      all.filter((one) => one.number === number).map(({ value }) => value as Uint8Array),
    text: (number: number): string =>
      toUtf8((last(number) as Uint8Array | undefined) ?? new Uint8Array(0)),
    number: (number: number): number => Number((last(number) as bigint | undefined) ?? 0n),
  };
}
