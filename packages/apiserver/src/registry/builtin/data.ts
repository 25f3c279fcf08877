/** The data of ConfigMaps and Secrets. */
import type { KubeObject } from "../../meta/object.ts";

/** All values of one object together (core.MaxSecretSize). */
export const MAX_DATA_BYTES = 1024 * 1024;

const NOTHING: Readonly<Record<string, string>> = {};

/** A map of texts in the object; empty where there is none. */
export function dataOf(object: KubeObject, field: string): Readonly<Record<string, string>> {
  return (object[field] as Readonly<Record<string, string>> | undefined) ?? NOTHING;
}

/** The number of bytes that a base64 text stands for. */
export function base64Bytes(text: string): number {
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  return Math.floor(((text.length - padding) * 3) / 4);
}
