/**
 * Strategic merge patches (apimachinery: util/strategicpatch): merge patches that know from the
 * schema which lists are merged by a key, with directives:
 *
 *     $patch: replace | delete               of a map or of an item of a merged list
 *     $retainKeys: [names]                   removes all other fields
 *     $deleteFromPrimitiveList/name: [...]   removes values from a merged list
 *     $setElementOrder/name: [...]           orders a merged list
 *
 * Errors have Kubernetes' texts and codes; where it answers 500, so does this.
 */

import {
  type ApiError,
  badRequest,
  type ObjectSchema,
  type Schema,
  setField,
} from "@quorate/kube-storage";
import { quoteText as goQuote } from "@quorate/proto";
import { goType } from "./go-text.ts";
import { jsonType } from "./json-patch.ts";
import { withoutNulls } from "./merge-patch.ts";
import {
  badPatchType,
  checkItems,
  checkOrder,
  DIRECTIVE,
  interleave,
  mergeItems,
  patchError,
  presentOrder,
} from "./strategic-lists.ts";
import { type Fields, isList, isMap } from "./typed-value.ts";

const RETAIN_KEYS = "$retainKeys";
const DELETE_PREFIX = "$deleteFromPrimitiveList";
const ORDER_PREFIX = "$setElementOrder";

/**
 * Applies a strategic merge patch. No argument changes; unchanged parts are shared.
 * @throws ApiError 400, 422 or 500
 */
export function applyStrategicMerge(
  document: Fields,
  patch: unknown,
  schema: ObjectSchema | undefined,
): Fields {
  if (schema === undefined) throw badRequest("strategic merge patch format is not supported");
  if (patch === null) return document;
  if (!isMap(patch)) {
    throw badRequest(
      `json: cannot unmarshal ${jsonType(patch)} into Go value of type map[string]interface {}`,
    );
  }
  return mergeMap(document, patch, schema.schema);
}

function mergeMap(original: Fields, patch: Fields, schema: Schema): Fields {
  if (Object.hasOwn(patch, DIRECTIVE)) return handleDirective(patch);
  const merged: Record<string, unknown> = { ...original };
  const rest: Record<string, unknown> = { ...patch };
  retainKeys(merged, rest);
  for (const key of Object.keys(patch)) {
    if (key.startsWith(ORDER_PREFIX)) applyOrder(merged, rest, key, schema);
  }
  for (const key of Object.keys(rest)) mergeField(merged, key, rest[key], schema);
  return merged;
}

function handleDirective(patch: Fields): Fields {
  const { [DIRECTIVE]: directive, ...rest } = patch;
  if (directive === "replace") return rest;
  if (directive === "delete") return {};
  throw badPatchType(directive, patch);
}

function retainKeys(merged: Record<string, unknown>, patch: Record<string, unknown>): void {
  if (!Object.hasOwn(patch, RETAIN_KEYS)) return;
  const list = patch[RETAIN_KEYS];
  delete patch[RETAIN_KEYS];
  if (!isList(list)) throw malformedRetainKeys();
  const keys = new Set(list);
  for (const [key, value] of Object.entries(patch)) {
    const isDirective = key.startsWith(DELETE_PREFIX) || key.startsWith(ORDER_PREFIX);
    if (value !== null && !isDirective && !keys.has(key)) throw malformedRetainKeys();
  }
  for (const key of Object.keys(merged)) if (!keys.has(key)) delete merged[key];
}

function malformedRetainKeys(): ApiError {
  return badRequest("invalid patch format of retainKeys");
}

/** The name after the slash of a directive. */
function nameOf(key: string, prefix: string): string | undefined {
  return key.startsWith(`${prefix}/`) ? key.slice(prefix.length + 1) : undefined;
}

function applyOrder(
  merged: Record<string, unknown>,
  rest: Record<string, unknown>,
  key: string,
  schema: Schema,
): void {
  const order = listOf(rest[key]);
  delete rest[key];
  const name = nameOf(key, ORDER_PREFIX);
  if (name === undefined) throw badRequest("invalid patch format of setElementOrder list");
  const original = Object.hasOwn(merged, name) ? listOf(merged[name]) : undefined;
  const patch = Object.hasOwn(rest, name) ? listOf(rest[name]) : undefined;
  const { items, mergeKey, strategy } = listMeta(schema, name);
  checkOrder(patch ?? [], order, mergeKey);
  if (original === undefined && patch === undefined) return;
  let list = original ?? (withoutDirectives(patch) as readonly unknown[]);
  let present = original ?? [];
  if (original !== undefined && patch !== undefined) {
    if (strategy === "merge") present = presentOrder(original, patch, mergeKey);
    list = mergeLists(original, patch, items, strategy, mergeKey, false);
  }
  checkItems(original ?? [], patch ?? [], mergeKey);
  setField(merged, name, interleave(list, order, present, mergeKey));
  delete rest[name];
}

function listOf(value: unknown): readonly unknown[] {
  if (isList(value)) return value;
  throw patchError(`expected a []interface {}, but received a ${goType(value)}`);
}

function mergeField(
  merged: Record<string, unknown>,
  key: string,
  value: unknown,
  schema: Schema,
): void {
  const isDeletion = key.startsWith(DELETE_PREFIX);
  const name = isDeletion ? nameOf(key, DELETE_PREFIX) : key;
  if (name === undefined) throw badRequest("invalid patch format of primitive list");
  if (value === null) {
    delete merged[name];
    return;
  }
  const old = Object.hasOwn(merged, name) ? merged[name] : undefined;
  if (isMap(old) && isMap(value)) {
    const { schema: below, strategy } = fieldMeta(schema, name);
    setField(merged, name, strategy === "replace" ? value : mergeMap(old, value, below));
  } else if (isList(old) && isList(value)) {
    const { items, mergeKey, strategy } = listMeta(schema, name);
    setField(merged, name, mergeLists(old, value, items, strategy, mergeKey, isDeletion));
  } else if (!isDeletion) {
    const kept = withoutDirectives(withoutNulls(value));
    if (kept === undefined) delete merged[name];
    else setField(merged, name, kept);
  }
}

function mergeLists(
  original: readonly unknown[],
  patch: readonly unknown[],
  items: Schema,
  strategy: string,
  mergeKey: string,
  isDeletion: boolean,
): readonly unknown[] {
  if (strategy !== "merge" && !isDeletion) return patch;
  return mergeItems(original, patch, mergeKey, isDeletion, (present, item) =>
    mergeMap(present, item, items),
  );
}

/** The strategy besides retainKeys, and the key, of a field. */
function fieldMeta(schema: Schema, name: string): { schema: Schema; strategy: string } {
  const field = findField(schema, name);
  const strategies = field["x-kubernetes-patch-strategy"]?.split(",") ?? [];
  return { schema: field, strategy: strategies.find((each) => each !== "retainKeys") ?? "" };
}

function listMeta(
  schema: Schema,
  name: string,
): { items: Schema; mergeKey: string; strategy: string } {
  const { schema: field, strategy } = fieldMeta(schema, name);
  if (field.items === undefined) {
    throw patchError("expected slice or array type, but got: struct");
  }
  const mergeKey = field["x-kubernetes-patch-merge-key"] ?? "";
  return { items: field.items, mergeKey, strategy };
}

function findField(schema: Schema, name: string): Schema {
  const { properties } = schema;
  if (properties === undefined) {
    throw patchError("merging an object in json but data type is not struct, instead is: map");
  }
  const folded = name.toLowerCase();
  const known = Object.hasOwn(properties, name)
    ? name
    : Object.keys(properties).find((each) => each.toLowerCase() === folded);
  const field = known === undefined ? undefined : properties[known];
  if (field !== undefined) return field;
  const type = schema.definition?.split(".").at(-1) ?? "";
  throw patchError(
    `unable to find api field in struct ${type} for the json field ${goQuote(name)}`,
  );
}

/** Values with directives vanish: there is nothing that they could change. */
function withoutDirectives(value: unknown): unknown {
  if (isList(value)) return value.map(withoutDirectives).filter((item) => item !== undefined);
  if (!isMap(value)) return value;
  if (Object.hasOwn(value, DIRECTIVE)) return undefined;
  const kept: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    const item = withoutDirectives(value[name]);
    if (item !== undefined) setField(kept, name, item);
  }
  return kept;
}
