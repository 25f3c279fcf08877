/**
 * Objects as JSON, as kube-apiserver stores those of CustomResourceDefinitions: keys sorted, and a
 * line end. The text of an object is always the same, so that an update that changes nothing is
 * recognised by its bytes.
 */
import { escapeGoJson, fromUtf8, toUtf8 } from "@quorate/proto";
import type { KubeObject } from "../meta/object.ts";
import { compareUtf8, setField, sortedKeys } from "../schema/maps.ts";
import type { ObjectCodec } from "../storage/codec.ts";

/** Keys that JavaScript's objects keep in the order of their numbers, before all others. */
const ARRAY_INDEX = /^(?:0|[1-9]\d{0,9})$/;

/**
 * The value itself where its keys are sorted, else a copy with sorted keys; undefined where it has
 * keys that no object of JavaScript can sort.
 */
function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    const items = value.map(sorted);
    if (items.every((item, at) => item === value[at])) return value;
    return items.some((item, at) => item === undefined && value[at] !== undefined)
      ? undefined
      : items;
  }
  const fields = value as Readonly<Record<string, unknown>>;
  const keys = Object.keys(fields);
  const [first = ""] = keys;
  if (ARRAY_INDEX.test(first)) return undefined;
  let isSame = keys.every((key, at) => at === 0 || compareUtf8(keys[at - 1] ?? "", key) < 0);
  if (!isSame) keys.sort(compareUtf8);
  const ordered: unknown[] = [];
  for (const key of keys) {
    const field = sorted(fields[key]);
    if (field === undefined && fields[key] !== undefined) return undefined;
    if (field !== fields[key]) isSame = false;
    ordered.push(field);
  }
  if (isSame) return value;
  const result: Record<string, unknown> = {};
  for (const [at, key] of keys.entries()) {
    setField(result, key, ordered[at]);
  }
  return result;
}

/** JSON with sorted keys, written key by key; slower, and right for "10" before "9" too. */
function writtenSorted(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => writtenSorted(item) ?? "null").join()}]`;
  const fields: string[] = [];
  for (const key of sortedKeys(value)) {
    const text = writtenSorted((value as Record<string, unknown>)[key]);
    if (text !== undefined) fields.push(`${JSON.stringify(key)}:${text}`);
  }
  return `{${fields.join()}}`;
}

/** The JSON text of a value as Go writes a map: keys sorted, "<", ">" and "&" escaped. */
export function canonicalJson(value: unknown): string {
  const copy = sorted(value);
  const text = copy === undefined ? writtenSorted(value) : JSON.stringify(copy);
  return escapeGoJson(text ?? "null");
}

/** An object as it is stored: without the metadata that the store adds. */
export function withoutStoreFields(object: KubeObject): KubeObject {
  const {
    resourceVersion: _,
    selfLink: __,
    ...metadata
  } = object.metadata as Record<string, unknown>;
  return { ...object, metadata };
}

/** Parses stored JSON. Throws TypeError for bytes that are no object with metadata. */
export function decodeJsonObject(bytes: Uint8Array): KubeObject {
  let value: unknown;
  try {
    value = JSON.parse(toUtf8(bytes));
  } catch (error) {
    if (error instanceof SyntaxError)
      throw new TypeError(`the stored value is no JSON: ${error.message}`);
    throw error;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new TypeError("the stored value is no JSON object");
  const { apiVersion, kind, metadata } = value as Record<string, unknown>;
  if (typeof apiVersion !== "string" || typeof kind !== "string")
    throw new TypeError("the stored object has no apiVersion or kind");
  if (typeof metadata !== "object" || metadata === null || Array.isArray(metadata))
    throw new TypeError("the stored object has no metadata");
  return value as KubeObject;
}

/** Encodes objects of any kind. */
export const jsonCodec: ObjectCodec = {
  encode: (object) => fromUtf8(`${canonicalJson(withoutStoreFields(object))}\n`),
  decode: decodeJsonObject,
};
