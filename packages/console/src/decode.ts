/** Kubernetes' values as YAML. */
import { storedValueText } from "@quorate/kube-storage";

/** A longer value is not decoded: some 5 ms for one of many small fields. */
export const MAX_DECODED_BYTES: number = 16 * 1024;

/** The object as YAML, or what the value is in a comment; undefined for one that is too long. */
export async function decodedYaml(value: Uint8Array): Promise<string | undefined> {
  return value.length > MAX_DECODED_BYTES ? undefined : storedValueText(value, 0);
}
