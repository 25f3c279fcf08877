/** JSON merge patches (RFC 7386), as the library of Kubernetes applies them. */
import { badRequest, setField } from "@quorate/kube-storage";
import { type Fields, isMap } from "./typed-value.ts";

/**
 * Applies a merge patch. Neither argument changes; unchanged parts are shared.
 * @throws ApiError 400 where the patch is neither an object nor a list
 */
export function applyMergePatch(document: Fields, patch: unknown): unknown {
  if (Array.isArray(patch)) return withoutNulls(patch);
  if (!isMap(patch)) throw badRequest("Invalid JSON Patch");
  return mergeFields(document, patch);
}

function mergeFields(present: Fields, patch: Fields): Fields {
  const merged: Record<string, unknown> = { ...present };
  for (const name of Object.keys(patch)) {
    const value = patch[name];
    const old = Object.hasOwn(merged, name) ? merged[name] : undefined;
    if (value === null) delete merged[name];
    else if (isMap(old)) setField(merged, name, isMap(value) ? mergeFields(old, value) : value);
    else setField(merged, name, withoutNulls(value));
  }
  return merged;
}

/** Null means "remove" also where there is nothing; items of lists stay. */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isMap(value)) return value;
  const kept: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    if (value[name] !== null) setField(kept, name, withoutNulls(value[name]));
  }
  return kept;
}
