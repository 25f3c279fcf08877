/**
 * Kubernetes objects as JSON values.
 *
 * Objects are immutable once they are decoded: caches, watches and responses share them. Code that
 * changes one makes a copy first, by a spread of the part that changes.
 */
import { badRequest } from "./status.ts";

/** A JSON value. Integers beyond 2^53 do not occur in Kubernetes' types. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [field: string]: Json | undefined;
}

/** Whether a value is a JSON object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean | undefined;
  readonly blockOwnerDeletion?: boolean | undefined;
}

/** Who set which fields (server-side apply). */
export interface ManagedFieldsEntry {
  readonly manager?: string | undefined;
  readonly operation?: string | undefined;
  readonly apiVersion?: string | undefined;
  readonly time?: string | undefined;
  readonly fieldsType?: string | undefined;
  readonly fieldsV1?: JsonObject | undefined;
  readonly subresource?: string | undefined;
}

/** metav1.ObjectMeta. Times are RFC 3339 texts in whole seconds, as Kubernetes writes them. */
export interface ObjectMeta {
  readonly name?: string | undefined;
  readonly generateName?: string | undefined;
  readonly namespace?: string | undefined;
  readonly uid?: string | undefined;
  /** The revision of the last change, as a decimal text. Never part of what is stored. */
  readonly resourceVersion?: string | undefined;
  readonly generation?: number | undefined;
  readonly creationTimestamp?: string | null | undefined;
  readonly deletionTimestamp?: string | undefined;
  readonly deletionGracePeriodSeconds?: number | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  readonly ownerReferences?: readonly OwnerReference[] | undefined;
  readonly finalizers?: readonly string[] | undefined;
  readonly managedFields?: readonly ManagedFieldsEntry[] | undefined;
}

/** Any object with metadata. */
export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

/** The object as a JSON value: it came from JSON, or from protobuf of the same fields. */
export function jsonOf(object: KubeObject): JsonObject {
  return object as JsonObject;
}

/**
 * A JSON object, a Status or a Table as an object. Its apiVersion, kind and metadata are what the
 * sender wrote: a reader of untrusted ones checks their types.
 */
export function kubeObjectOf(value: object): KubeObject {
  return value as KubeObject;
}

/**
 * A copy with these fields of metadata set; those that are undefined are removed. The rest is
 * shared.
 */
export function withMetadata(object: KubeObject, changes: Partial<ObjectMeta>): KubeObject {
  const metadata: Record<string, unknown> = { ...object.metadata };
  for (const [field, value] of Object.entries(changes)) {
    if (value === undefined) delete metadata[field];
    else metadata[field] = value;
  }
  return { ...object, metadata };
}

/** A copy with one top-level field set; removed where the value is undefined. */
export function withField(object: KubeObject, field: string, value: unknown): KubeObject {
  if (value !== undefined) return { ...object, [field]: value };
  const { [field]: _, ...rest } = object;
  return rest as KubeObject;
}

/**
 * The object without the fields of a deletion and selfLink, which only the server sets
 * (rest.WipeObjectMetaSystemFields). A new object's uid and creationTimestamp are set when it is
 * stored.
 */
export function withoutSystemFields(object: KubeObject): KubeObject {
  const { deletionTimestamp, deletionGracePeriodSeconds, ...rest } = object.metadata;
  const { selfLink, ...metadata } = rest as ObjectMeta & { selfLink?: string };
  if (deletionTimestamp === undefined && deletionGracePeriodSeconds === undefined && !selfLink)
    return object;
  return { ...object, metadata };
}

/**
 * The object with a request's namespace; "" is that of a resource without namespaces
 * (rest.EnsureObjectNamespaceMatchesRequestNamespace).
 * @throws ApiError 400 where it names another one
 */
export function inNamespace(object: KubeObject, wanted: string): KubeObject {
  const { namespace = "" } = object.metadata;
  if (namespace === wanted) return object;
  if (namespace !== "" && wanted !== "")
    throw badRequest(
      "the namespace of the provided object does not match the namespace sent on the request",
    );
  return withMetadata(object, { namespace: wanted === "" ? undefined : wanted });
}
