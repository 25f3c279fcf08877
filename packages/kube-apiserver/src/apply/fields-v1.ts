/**
 * Field sets as JSON (metav1.FieldsV1):
 *
 *     {"f:spec": {".": {}, "f:replicas": {}}}
 *
 * A field with an empty object is in the set; with "." the field and what is below it are.
 */
import { type JsonObject, MAX_JSON_DEPTH } from "@quorate/kube-storage";
import { EMPTY_SET, type FieldSet, sortedChildren } from "./field-set.ts";
import { type PathElement, parsePathElement } from "./path-element.ts";

const NOTHING: JsonObject = {};

/**
 * Reads a set. Unknown kinds of steps are skipped.
 * @throws Error for malformed ones
 */
export function fieldSetFromJson(json: JsonObject): FieldSet {
  const children = readChildren(json, 0);
  return children === undefined ? EMPTY_SET : { member: false, children };
}

function readNode(json: unknown, depth: number): FieldSet {
  if (json === null) return { member: true, children: undefined };
  if (typeof json !== "object" || Array.isArray(json)) throw new Error("expected an object");
  if (depth > MAX_JSON_DEPTH) throw new Error("exceeded max depth");
  const children = readChildren(json as JsonObject, depth);
  const member = children === undefined || Object.hasOwn(json as JsonObject, ".");
  return { member, children };
}

function readChildren(json: JsonObject, depth: number): Map<PathElement, FieldSet> | undefined {
  let children: Map<PathElement, FieldSet> | undefined;
  for (const key of Object.keys(json)) {
    if (key === ".") continue;
    const element = parsePathElement(key);
    if (element === undefined) continue;
    children ??= new Map();
    children.set(element, readNode(json[key], depth + 1));
  }
  return children;
}

/** Writes a set, in Go's order of fields. */
export function fieldSetToJson(set: FieldSet): JsonObject {
  const json: Record<string, JsonObject> = {};
  if (set.member) json["."] = NOTHING;
  for (const [element, child] of sortedChildren(set)) {
    json[element] = child.children === undefined ? NOTHING : fieldSetToJson(child);
  }
  return json;
}
