/** ConfigMaps (kubernetes: registry/core/configmap, apis/core/validation). */
import {
  AGE,
  builtinSpec,
  type FieldError,
  fieldForbidden,
  invalidValue,
  isConfigMapKey,
  JsonSyntaxError,
  jsonKind,
  type KindSource,
  type KubeObject,
  nameColumn,
  parseJson,
  plainStrategy,
  type ResourceSpec,
  semanticEqual,
  tableOf,
  textColumn,
  tooLong,
} from "@quorate/kube-storage";
import { fromUtf8, toBase64, toUtf8, utf8Length, writeFromBase64 } from "@quorate/proto";
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

/** All values of one object together (core.MaxSecretSize). */
export const MAX_DATA_BYTES: number = 1024 * 1024;

const NOTHING = {};

/** A map of texts in the object; empty where there is none. */
export function dataOf(object: KubeObject, field: string): Readonly<Record<string, string>> {
  return (object[field] as Readonly<Record<string, string>> | undefined) ?? NOTHING;
}

/** A map of bytes in base64. Go writes null for no bytes. */
export function bytesOf(
  object: KubeObject,
  field: string,
): Readonly<Record<string, string | null>> {
  return dataOf(object, field);
}

/** The number of bytes that a base64 text stands for; null, as Go writes no bytes, for none. */
export function base64Bytes(text: string | null): number {
  if (text === null) return 0;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  return Math.floor(((text.length - padding) * 3) / 4);
}

/** A text in UTF-8 and base64. */
export function encodedText(text: string): string {
  return toBase64(fromUtf8(text));
}

/** What is wrong with base64 data that should be a JSON object, in Go's words. */
export function jsonObjectProblem(base64: string | null): string | undefined {
  const bytes = new Uint8Array(base64Bytes(base64));
  writeFromBase64(bytes, base64 ?? "", 0);
  const text = toUtf8(bytes);
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (error) {
    if (error instanceof JsonSyntaxError) return error.message;
    throw error;
  }
  const kind = jsonKind(value);
  if (kind === "object" || kind === "null") return undefined;
  return `json: cannot unmarshal ${kind} into Go value of type map[string]interface {}`;
}
