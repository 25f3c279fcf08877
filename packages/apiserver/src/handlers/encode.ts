/** Objects as the bytes of a response. */
import { fromUtf8 } from "@quorate/proto";
import type { KubeObject } from "../meta/object.ts";
import type { Encoding } from "./negotiation.ts";

/** Encodes objects of the meta group, and frames, in Kubernetes' protobuf form. */
export interface MetaProtobuf {
  /** The message of one of: Status, ListMeta, PartialObjectMetadata, DeleteOptions. */
  encode(kind: MetaKind, value: unknown): Uint8Array;
  decode(kind: MetaKind, bytes: Uint8Array): unknown;
  /** Puts a message into the envelope that begins with "k8s\0". */
  wrap(apiVersion: string, kind: string, message: Uint8Array): Uint8Array;
  /** Throws TypeError for bytes that are no envelope. */
  unwrap(bytes: Uint8Array): {
    readonly apiVersion: string;
    readonly kind: string;
    readonly message: Uint8Array;
  };
}

export type MetaKind = "Status" | "ListMeta" | "PartialObjectMetadata" | "DeleteOptions";

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
