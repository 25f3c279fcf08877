/** Objects as the bytes of a response. */
import { fromUtf8 } from "@quorate/proto";
import { mustBuiltinKind } from "../codec/builtin-kind.ts";
import { parseApiVersion } from "../meta/kinds.ts";
import type { KubeObject } from "../meta/object.ts";
import { notAcceptable } from "../meta/status-errors.ts";
import type { ServedResource } from "../rest/served-resource.ts";
import type { Encoding } from "./negotiation.ts";

/** The kinds of meta/v1 that responses hold besides objects of resources. */
const STATUS = { group: "", version: "v1", kind: "Status" };
const PARTIAL = "PartialObjectMetadata";

/** What a value's kind needs for protobuf. Throws ApiError 406 where it has no protobuf form. */
export function protobufOf(
  value: KubeObject,
  resource: ServedResource | undefined,
): NonNullable<ServedResource["protobuf"]> {
  if (isStatus(value)) return mustBuiltinKind(STATUS).protobuf;
  const { group = "", version = "" } = parseApiVersion(value.apiVersion) ?? {};
  const isPartial = value.kind === PARTIAL && group === "meta.k8s.io";
  if (isPartial) return mustBuiltinKind({ group, version, kind: PARTIAL }).protobuf;
  if (resource?.protobuf !== undefined) return resource.protobuf;
  throw notAcceptable(["application/json", "application/yaml"]);
}

/** JSON as Kubernetes ends it: with a line feed. */
export function jsonText(value: unknown, pretty: boolean): string {
  return `${JSON.stringify(value, undefined, pretty ? 2 : undefined)}\n`;
}

/** YAML. Loads the library at the first use. */
export async function yamlText(value: unknown): Promise<string> {
  const { stringify } = await import("yaml");
  return stringify(value, { aliasDuplicateObjects: false, lineWidth: 0 });
}

/** A value without protobuf form as JSON or YAML; protobuf becomes JSON. */
export async function encodePlain(
  value: unknown,
  encoding: Encoding,
  pretty: boolean,
): Promise<Uint8Array> {
  return fromUtf8(encoding === "yaml" ? await yamlText(value) : jsonText(value, pretty));
}

/** Whether a value is metav1.Status. */
export function isStatus(value: KubeObject | { readonly kind: string }): boolean {
  return value.kind === "Status" && (value as { apiVersion?: string }).apiVersion === "v1";
}
