/** The rules for the fields that /scale reads (registry/customresource/validator.go). */

import type { FieldError } from "@quorate/kube-storage";
import { invalidValue, isObject, type Json, jsonOf, type KubeObject } from "@quorate/kube-storage";
import type { ScaleSubresource } from "../definition/types.ts";
import { fieldOf } from "../schema/edit.ts";
import { goFloat, isInt64 } from "../validation/numbers.ts";

const MAX_INT32 = 2 ** 31 - 1;

/** @param statusOnly for changes of the status */
export function scaleErrors(
  object: KubeObject,
  scale: ScaleSubresource | undefined,
  statusOnly: boolean,
): FieldError[] {
  if (scale === undefined) return [];
  const { specReplicasPath = "", statusReplicasPath = "", labelSelectorPath } = scale;
  return [
    ...(statusOnly ? [] : replicasErrors(object, specReplicasPath)),
    ...replicasErrors(object, statusReplicasPath),
    ...(labelSelectorPath === undefined ? [] : selectorErrors(object, labelSelectorPath)),
  ];
}

/** The value at a path, and the text for one that is of another type. */
function valueAt(object: KubeObject, path: string): Json | undefined {
  let value: Json | undefined = jsonOf(object);
  for (const name of path.replace(/^\./, "").split(".")) {
    value = isObject(value) ? fieldOf(value, name) : undefined;
  }
  return value;
}

function wrongType(path: string, value: Json, wanted: string): string {
  const shown = typeof value === "object" ? "map[string]interface {}" : goType(value);
  return `${path} accessor error: ${String(value)} is of the type ${shown}, expected ${wanted}`;
}

function goType(value: Json): string {
  if (typeof value === "number") return isInt64(value) ? "int64" : "float64";
  return typeof value === "boolean" ? "bool" : typeof value;
}

function replicasErrors(object: KubeObject, path: string): FieldError[] {
  const value = valueAt(object, path);
  if (value === undefined) return [];
  if (typeof value !== "number" || !isInt64(value)) {
    return [invalidValue(path, 0, wrongType(path, value, "int64"))];
  }
  if (value < 0) return [invalidValue(path, value, "should be a non-negative integer")];
  if (value <= MAX_INT32) return [];
  return [invalidValue(path, value, `should be less than or equal to ${goFloat(MAX_INT32)}`)];
}

function selectorErrors(object: KubeObject, path: string): FieldError[] {
  const value = valueAt(object, path);
  if (value === undefined || typeof value === "string") return [];
  return [invalidValue(path, "", wrongType(path, value, "string"))];
}
