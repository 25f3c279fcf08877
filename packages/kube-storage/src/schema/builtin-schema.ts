/**
 * Schemas of built-in kinds from the tables: graphs of shared nodes that patches, server-side apply
 * and OpenAPI documents read. A kind's graph is made when it is first asked for.
 */
import type { GroupVersionKind } from "../meta/kinds.ts";
import type { Json } from "../meta/object.ts";
import { describeField, describeType } from "./descriptions.ts";
import {
  type CustomName,
  type Field,
  kindType,
  type MessageType,
  type Scalar,
  type ValueType,
} from "./message-type.ts";
import type { ObjectSchema, Schema } from "./schema.ts";

type MutableSchema = { -readonly [K in keyof Schema]: Schema[K] };

/** What stands beside a reference to a shared schema. */
export type Overrides = Omit<Schema, "definition" | "type" | "properties" | "items">;

interface Reference {
  readonly target: Schema;
  readonly overrides: Overrides;
}

const SCALARS: Readonly<Record<Scalar, Schema>> = {
  string: { type: "string" },
  bool: { type: "boolean" },
  int32: { type: "integer", format: "int32" },
  int64: { type: "integer", format: "int64" },
  double: { type: "number", format: "double" },
  bytes: { type: "string", format: "byte" },
  any: { "x-kubernetes-preserve-unknown-fields": true },
};

const ANYTHING: Schema = { "x-kubernetes-preserve-unknown-fields": true };

const CUSTOM: Readonly<Record<CustomName, Schema>> = {
  Time: { type: "string", format: "date-time" },
  MicroTime: { type: "string", format: "date-time" },
  Quantity: { type: "string" },
  IntOrString: { "x-kubernetes-int-or-string": true, format: "int-or-string" },
  RawExtension: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
  FieldsV1: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
  JSON: ANYTHING,
  JSONSchemaPropsOrArray: ANYTHING,
  JSONSchemaPropsOrBool: ANYTHING,
  JSONSchemaPropsOrStringArray: ANYTHING,
};

/** Zero values that OpenAPI documents name as defaults of fields without a pointer. */
const ZERO: Readonly<Record<string, Json>> = {
  string: "",
  bool: false,
  int32: 0,
  int64: 0,
  double: 0,
};

const shared = new Map<MessageType, Schema>();
const references = new WeakMap<Schema, Reference>();
const kinds = new Map<MessageType, ObjectSchema>();

/** The schema of a built-in kind; undefined where there is none. */
export function builtinSchema(kind: GroupVersionKind): ObjectSchema | undefined {
  const type = kindType(kind.group, kind.version, kind.kind);
  if (type === undefined) return undefined;
  const before = kinds.get(type);
  if (before !== undefined && before.kind.group === kind.group) return before;
  const made: ObjectSchema = { kind, schema: typeSchema(type) };
  kinds.set(type, made);
  return made;
}

/** For a node that only refines a shared schema: that schema, and what it adds. */
export function referenceOf(schema: Schema): Reference | undefined {
  return references.get(schema);
}

/** The shared schema of a type. */
export function typeSchema(type: MessageType): Schema {
  const before = shared.get(type);
  if (before !== undefined) return before;
  const pending: (() => void)[] = [];
  const made = build(type, pending);
  // Nodes that refine a shared one copy it, once all shared ones are complete.
  for (const finish of pending) finish();
  return made;
}

function build(type: MessageType, pending: (() => void)[]): Schema {
  const before = shared.get(type);
  if (before !== undefined) return before;
  const node: MutableSchema = {
    definition: type.definition,
    description: describeType(type),
  };
  shared.set(type, node);
  if (type.custom !== undefined) Object.assign(node, CUSTOM[type.custom]);
  else {
    node.type = "object";
    const properties: Record<string, Schema> = {};
    for (const field of type.fields) properties[field.name] = fieldSchema(type, field, pending);
    if (type.fields.length > 0) node.properties = properties;
    const required = type.fields.filter((field) => field.required).map((field) => field.name);
    if (required.length > 0) node.required = required;
    addMapType(node, type.facts.mapType);
  }
  return node;
}

function addMapType(node: MutableSchema, mapType: string | undefined): void {
  if (mapType !== undefined) node["x-kubernetes-map-type"] = mapType as "atomic";
}

function fieldSchema(type: MessageType, field: Field, pending: (() => void)[]): Schema {
  const { facts } = field;
  const own: MutableSchema = { description: describeField(type, field) };
  if (facts.patch !== undefined) {
    const [strategy = "", mergeKey] = facts.patch.split(":");
    own["x-kubernetes-patch-strategy"] = strategy.replace("+", ",");
    if (mergeKey !== undefined) own["x-kubernetes-patch-merge-key"] = mergeKey;
  }
  if (facts.list !== undefined) {
    const [listType, keys] = facts.list.split(":");
    own["x-kubernetes-list-type"] = listType as "map";
    if (keys !== undefined) own["x-kubernetes-list-map-keys"] = keys.split("+");
  }
  addMapType(own, facts.mapType);
  if (facts.format !== undefined) own.format = facts.format;
  const preset = field.preset ?? zeroDefault(field.type, field.omit !== "");
  if (preset !== undefined) own.default = preset;
  return valueSchema(field.type, own, pending);
}

/** The default of a value that is no pointer; also that of items and of values of maps. */
function zeroDefault(type: ValueType, omitted: boolean): Json | undefined {
  if (type.pointer) return undefined;
  if (type.shape === "scalar") return omitted ? undefined : ZERO[type.scalar];
  if (type.shape !== "message") return undefined;
  const message = type.message();
  return message.custom === undefined && message.alias === undefined ? {} : undefined;
}

function valueSchema(type: ValueType, own: MutableSchema, pending: (() => void)[]): Schema {
  if (type.shape === "scalar") return { ...SCALARS[type.scalar], ...own };
  if (type.shape !== "message") return containerSchema(type, own, pending);
  const message = type.message();
  if (message.alias !== undefined) return containerSchema(message.alias, own, pending);
  const target = build(message, pending);
  const overrides = Object.fromEntries(
    Object.entries(own).filter(([, value]) => value !== undefined),
  );
  if (Object.keys(overrides).length === 0) return target;
  const node: MutableSchema = {};
  references.set(node, { target, overrides });
  pending.push(() => Object.assign(node, target, overrides));
  return node;
}

function containerSchema(type: ValueType, own: Schema, pending: (() => void)[]): Schema {
  const of = type.of as ValueType;
  const preset = zeroDefault(of, false);
  const item = valueSchema(of, preset === undefined ? {} : { default: preset }, pending);
  return type.shape === "list"
    ? { type: "array", items: item, ...own }
    : { type: "object", additionalProperties: item, ...own };
}
