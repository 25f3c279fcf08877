/**
 * Descriptions of types and fields, for `kubectl explain` and OpenAPI documents. They are texts of
 * our own; a field without one is named by what it is.
 */
import type { Field, MessageType } from "./message-type.ts";
import { clusterTexts } from "./texts/cluster.ts";
import { coreTexts } from "./texts/core.ts";
import { metaTexts } from "./texts/meta.ts";
import { workloadTexts } from "./texts/workloads.ts";

/** Fields that mean the same in every kind. */
const COMMON: Readonly<Record<string, string>> = {
  // Kubernetes' conformance looks for the first two words.
  apiVersion: "APIVersion defines the group and version of this object, such as apps/v1.",
  kind: "The kind of this object, in CamelCase. It cannot be changed.",
  metadata: "The object's name, namespace, labels and the rest of its standard metadata.",
  items: "The objects of this list.",
  spec: "What is wanted of the object.",
  status: "What was last observed of the object. Controllers set it.",
};

let texts: Map<string, string> | undefined;

/** "core.ConfigMap" and "core.ConfigMap.data" with their texts. */
function descriptions(): Map<string, string> {
  texts ??= new Map(
    [metaTexts, coreTexts, clusterTexts, workloadTexts].flatMap((table) => [...parse(table)]),
  );
  return texts;
}

/**
 * A line at the margin has a type's name and text; the indented ones below it have fields. A line
 * with deeper indentation continues the one before it.
 */
function* parse(table: string): Generator<[name: string, text: string]> {
  let type = "";
  const lines = table
    .trim()
    .replace(/\n {4,}/g, " ")
    .split("\n");
  for (const line of lines) {
    const [, indent, name = "", text = ""] = /^( *)(\S+): (.*)$/.exec(line) ?? [];
    if (indent === undefined) throw new SyntaxError(`bad description: ${line}`);
    if (indent === "") type = name;
    yield [indent === "" ? name : `${type}.${name}`, text];
  }
}

/** A type's description. */
export function describeType({ fullName, name, fields }: MessageType): string | undefined {
  const text = descriptions().get(fullName);
  if (text !== undefined) return text;
  const isList = name.endsWith("List") && fields.some((field) => field.name === "items");
  return isList ? `A list of ${name.slice(0, -"List".length)} objects.` : undefined;
}

/** A field's description; one that the table lacks is taken from the field's type, if any. */
export function describeField(type: MessageType, field: Field): string | undefined {
  const own = descriptions().get(`${type.fullName}.${field.name}`);
  if (own !== undefined) return own;
  return type.isKind ? COMMON[field.name] : undefined;
}

/** The names that the descriptions use, so that a test can find ones that do not exist. */
export function describedNames(): Iterable<string> {
  return descriptions().keys();
}
