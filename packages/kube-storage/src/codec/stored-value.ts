/**
 * Values of Kubernetes' storage as text for people. What a value is follows from its first bytes:
 *
 *     "k8s\0"                 protobuf of a built-in kind, in its envelope
 *     "k8s:enc:NAME:v1:KEY:"  encrypted by a key of the API server
 *     "k8s:enc:kms:v2:NAME:"  encrypted by a KMS plugin
 *     "{"                     JSON: custom resources, and what old API servers wrote
 */
import { toLatin1, WireError } from "@quorate/proto";
import { parseApiVersion } from "../meta/kinds.ts";
import type { KubeObject } from "../meta/object.ts";
import { builtinKind, isEnvelope, metaProtobuf } from "./builtin-kind.ts";
import { decodeJsonObject } from "./json-codec.ts";
import { fitsDepth, MAX_JSON_DEPTH } from "./limits.ts";
import { writeYaml } from "./yaml.ts";

const ENCRYPTED = /^k8s:enc:(?:kms:(v[12]):([^:]+):|(\w+):v1:([^:]+):)?/;
/** Beginnings of values that are looked at; the names of providers and keys are shorter. */
const HEAD_BYTES = 512;

/**
 * A value as YAML, as `kubectl get -o yaml` shows the object: without managedFields, and with the
 * resourceVersion. What cannot be decoded is said in a comment: the text is YAML always.
 * @param revision of the record's last change; 0 leaves the resourceVersion out
 */
export async function storedValueText(value: Uint8Array, revision: number): Promise<string> {
  let note = encryption(value);
  let object: KubeObject | undefined;
  if (note === undefined)
    try {
      ({ object, note } = objectOf(value));
    } catch (error) {
      // Bytes that only begin like an object.
      if (!(error instanceof TypeError || error instanceof WireError)) throw error;
      note = `no object of Kubernetes, ${value.length} bytes: ${error.message}`;
    }
  const comment = note === undefined ? "" : `# ${oneLine(note)}\n`;
  return object === undefined ? comment : (await writeYaml(shown(object, revision))) + comment;
}

/** By what a value is encrypted; undefined for one that is not. */
function encryption(value: Uint8Array): string | undefined {
  const found = ENCRYPTED.exec(toLatin1(value.subarray(0, HEAD_BYTES)));
  if (found === null) return undefined;
  const [, version, plugin, cipher, key] = found;
  const size = `${value.length} bytes`;
  if (cipher !== undefined)
    return `encrypted by ${cipher} with the key ${JSON.stringify(key)}, ${size}`;
  if (plugin !== undefined)
    return `encrypted by the KMS plugin ${JSON.stringify(plugin)} (${version}), ${size}`;
  return `encrypted in a form that is not known here, ${size}`;
}

/** Throws TypeError or WireError for what is no object. */
function objectOf(value: Uint8Array): { object: KubeObject; note?: string } {
  if (!isEnvelope(value)) {
    if (value[0] !== 0x7b) throw new TypeError("it is neither protobuf nor JSON");
    const object = decodeJsonObject(value);
    if (!fitsDepth(object, MAX_JSON_DEPTH)) throw new TypeError("it is nested too deep");
    return { object };
  }
  const { apiVersion, kind, message } = metaProtobuf.unwrap(value);
  const version = parseApiVersion(apiVersion);
  const found = version && builtinKind({ ...version, kind });
  if (found !== undefined) return { object: found.codec.decode(value) };
  // Each kind has its metadata in the same field.
  const { metadata } = metaProtobuf.decode("PartialObjectMetadata", message) as KubeObject;
  const note = `the other fields of this kind are not known here, ${value.length} bytes in all`;
  return { object: { apiVersion, kind, metadata }, note };
}

function shown(object: KubeObject, revision: number): object {
  const { managedFields: _, ...metadata } = object.metadata;
  return {
    ...object,
    metadata: revision === 0 ? metadata : { ...metadata, resourceVersion: String(revision) },
  };
}

/** Without what a comment, or a terminal, would take for something else. */
function oneLine(text: string): string {
  return text.replace(/[^ -~]/g, "?");
}
