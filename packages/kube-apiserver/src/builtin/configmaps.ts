/** ConfigMaps (kubernetes: registry/core/configmap, apis/core/validation). */

import type { FieldError, KindSource, KubeObject, ResourceSpec } from "@quorate/kube-storage";
import {
  AGE,
  builtinSpec,
  fieldForbidden,
  invalidValue,
  isConfigMapKey,
  nameColumn,
  plainStrategy,
  semanticEqual,
  tableOf,
  textColumn,
  tooLong,
} from "@quorate/kube-storage";
import { utf8Length } from "@quorate/proto";
import { base64Bytes, bytesOf, dataOf, MAX_DATA_BYTES } from "./data.ts";
import { validateCoreFinalizers } from "./finalizer-names.ts";

function validate(object: KubeObject): FieldError[] {
  const errors = validateCoreFinalizers(object);
  const data = dataOf(object, "data");
  const binaryData = bytesOf(object, "binaryData");
  let sizeBytes = 0;
  for (const [key, value] of Object.entries(data)) {
    const field = `data[${key}]`;
    for (const text of isConfigMapKey(key)) errors.push(invalidValue(field, key, text));
    if (Object.hasOwn(binaryData, key)) {
      errors.push(invalidValue(field, key, "duplicate of key present in binaryData"));
    }
    sizeBytes += utf8Length(value);
  }
  for (const [key, value] of Object.entries(binaryData)) {
    const field = `binaryData[${key}]`;
    for (const text of isConfigMapKey(key)) errors.push(invalidValue(field, key, text));
    sizeBytes += base64Bytes(value);
  }
  // Kubernetes names the whole object "[]" here.
  if (sizeBytes > MAX_DATA_BYTES) errors.push(tooLong("[]", MAX_DATA_BYTES));
  return errors;
}

/** Errors of a change to an object with `immutable: true`. */
export function validateImmutable(
  object: KubeObject,
  old: KubeObject,
  fields: readonly string[],
): FieldError[] {
  if (old["immutable"] !== true) return [];
  const text = "field is immutable when `immutable` is set";
  const errors: FieldError[] = [];
  if (object["immutable"] !== true) errors.push(fieldForbidden("immutable", text));
  for (const field of fields) {
    if (!semanticEqual(object[field], old[field])) errors.push(fieldForbidden(field, text));
  }
  return errors;
}

/** The resource "configmaps". */
export function configMaps(source: KindSource): ResourceSpec {
  return builtinSpec(source, "configmaps", {
    shortNames: ["cm"],
    strategy: plainStrategy(
      { kind: source.kind, namespaced: true },
      {
        validate: (_ctx, object) => validate(object),
        validateUpdate: (_ctx, object, old) => [
          ...validateCoreFinalizers(object),
          ...validateImmutable(object, old, ["data", "binaryData"]),
          ...validate(object),
        ],
      },
    ),
    table: tableOf(
      nameColumn(),
      textColumn("Data", "The number of entries in data and binaryData.", (object) => {
        const { length } = Object.keys(dataOf(object, "data"));
        return length + Object.keys(dataOf(object, "binaryData")).length;
      }),
      AGE,
    ),
  });
}
