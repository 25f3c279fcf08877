/**
 * The rows of the generated table of messages, read: the one description of a message's fields,
 * for the codecs of cold messages, for the JSON mapping, and for the names in errors.
 */

import { messageFields } from "../gen/messages.ts";
import { defined } from "../invariant.ts";
import type { FieldNames } from "../wire/reader.ts";

/** Words before the type of a row. */
const LABELS = ["repeated", "packed", "always", "optional"] as const;

/**
 * How often a field stands in a message, and when it is written: once and if it is not the default
 * (""); as a list, packed or not; once and always; once and if it is not undefined.
 */
export type FieldLabel = (typeof LABELS)[number] | "";

/** One row of the table. */
export interface FieldRow {
  readonly label: FieldLabel;
  /** A scalar kind, or the full name of an enum or a message. */
  readonly type: string;
  /** Name in the .proto file. */
  readonly name: string;
  /** Name of the property in messages. */
  readonly property: string;
  readonly id: number;
  /** Name of the oneof that it belongs to. */
  readonly oneof: string | undefined;
}

/** The property of a field: member_ID stays as it is, as protobufjs has it. */
function propertyOf(name: string): string {
  return name.replace(/_([a-z])(?=[a-z]|$)/g, (_, letter: string) => letter.toUpperCase());
}

function rowOf(text: string): FieldRow {
  const words = text.split(" ");
  const label = LABELS.find((one) => one === words[0]) ?? "";
  const [type = "", name = "", number, oneof] = label === "" ? words : words.slice(1);
  return { label, type, name, property: propertyOf(name), id: Number(number), oneof };
}

/** The fields of a message type of proto/, in the order of declaration and of their numbers. */
export function fieldRows(typeName: string): FieldRow[] {
  return defined(messageFields[typeName], typeName).map(rowOf);
}

/** Whether the table has a message type of this name. */
export function isMessage(typeName: string): boolean {
  return messageFields[typeName] !== undefined;
}

const names = new Map<string, FieldNames>();

/** The names of the fields of a message type of proto/. */
export function fieldNames(typeName: string): FieldNames {
  const known = names.get(typeName);
  if (known !== undefined) return known;
  const made = Object.fromEntries(fieldRows(typeName).map(({ id, name }) => [id, name]));
  names.set(typeName, made);
  return made;
}
