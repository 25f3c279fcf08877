/**
 * Kubernetes' values as text: the envelope "k8s\0" with the protobuf of a built-in kind, as YAML.
 */
import { builtinKind, metaProtobuf, parseApiVersion, writeYaml } from "@quorate/kube-storage";

/** A longer value is not decoded: some 5 ms for one of many small fields. */
export const MAX_DECODED_BYTES: number = 16 * 1024;

/** The object as YAML; undefined for a value that is no object of a built-in kind. */
export async function decodedYaml(value: Uint8Array): Promise<string | undefined> {
  if (value.length > MAX_DECODED_BYTES) return undefined;
  try {
    const { apiVersion, kind } = metaProtobuf.unwrap(value);
    const version = parseApiVersion(apiVersion);
    const found = version && builtinKind({ ...version, kind });
    return found && (await writeYaml(found.codec.decode(value)));
  } catch (error) {
    // Bytes that only begin like an object.
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
