/** Objects as the bytes of a response. */

import type { KubeObject, ServedResource } from "@quorate/kube-storage";
import { metaProtobuf, notAcceptable, writeYaml } from "@quorate/kube-storage";
import { fromUtf8 } from "@quorate/proto";
import type { Encoding } from "./negotiation.ts";

/** The message of a value, without envelope. Throws ApiError 406 where it has no protobuf form. */
export function messageOf(value: KubeObject, resource: ServedResource | undefined): Uint8Array {
  if (isStatus(value)) return metaProtobuf.encode("Status", value);
  const isPartial = value.kind === "PartialObjectMetadata";
  if (isPartial && value.apiVersion.startsWith("meta.k8s.io/"))
    return metaProtobuf.encode("PartialObjectMetadata", value);
  if (resource?.protobuf !== undefined) return resource.protobuf.encode(value);
  throw notAcceptable(["application/json", "application/yaml"]);
}

/** The same in its envelope. */
export function envelopeOf(value: KubeObject, resource: ServedResource | undefined): Uint8Array {
  return metaProtobuf.wrap(value.apiVersion, value.kind, messageOf(value, resource));
}

/** JSON as Kubernetes ends it: with a line feed. */
export function jsonText(value: unknown, pretty: boolean): string {
  return `${JSON.stringify(value, undefined, pretty ? 2 : undefined)}\n`;
}

/** A value without protobuf form as JSON or YAML; protobuf becomes JSON. */
export async function encodePlain(
  value: unknown,
  encoding: Encoding,
  pretty: boolean,
): Promise<Uint8Array> {
  return fromUtf8(encoding === "yaml" ? await writeYaml(value) : jsonText(value, pretty));
}

/** Whether a value is metav1.Status. */
export function isStatus(value: KubeObject | { readonly kind: string }): boolean {
  return value.kind === "Status" && (value as { apiVersion?: string }).apiVersion === "v1";
}
