/** The data of ConfigMaps and Secrets. */

import type { KubeObject } from "@quorate/kube-storage";
import { JsonSyntaxError, jsonKind, parseJson } from "@quorate/kube-storage";
import { fromUtf8, toBase64, toUtf8, writeFromBase64 } from "@quorate/proto";

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
