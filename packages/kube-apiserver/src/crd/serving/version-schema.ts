/**
 * The schema of one version, ready for use: reading values, and the schemas that validation, apply
 * and OpenAPI work with (apiextensions-apiserver: customresource_handler.go).
 */

import {
  type GroupVersionKind,
  type JsonObject,
  jsonOf,
  type KubeObject,
  kubeObjectOf,
  type Schema,
  setField,
} from "@quorate/kube-storage";
import type { CrdVersion } from "../definition/types.ts";
import { applyDefaults, dropNulls } from "../schema/defaults.ts";
import { coerceEmbedded } from "../schema/embedded.ts";
import { type CoerceOptions, coerceObjectMeta } from "../schema/object-meta.ts";
import { asResource, prune } from "../schema/prune.ts";

/** Deeper values are refused: they are walked by recursion. */
export const MAX_VALUE_DEPTH = 512;

export class VersionSchema {
  readonly kind: GroupVersionKind;
  /** As the definition has it; undefined where it has none. */
  readonly schema: Schema | undefined;
  /** With the fields of every object: apiVersion, kind and metadata. */
  readonly complete: Schema;
  readonly #resource: Schema;
  readonly #preserves: boolean;

  /**
   * @param metadata the schema of metadata
   * @param preserves spec.preserveUnknownFields of old definitions: nothing is pruned
   */
  constructor(kind: GroupVersionKind, version: CrdVersion, metadata: Schema, preserves: boolean) {
    this.kind = kind;
    this.schema = version.schema?.openAPIV3Schema;
    this.#preserves = preserves;
    this.#resource = asResource(this.schema);
    this.complete = completeSchema(version, metadata, preserves);
  }

  /**
   * Prunes, drops nulls, sets defaults. Throws MetaTypeError or EmbeddedError for malformed
   * metadata unless it is to be dropped.
   */
  read(object: KubeObject, options: CoerceOptions, defaults = true): KubeObject {
    const { apiVersion, kind, metadata } = object;
    const unknown: string[] | undefined = options.unknown === undefined ? undefined : [];
    const meta = coerceObjectMeta((metadata ?? {}) as JsonObject, "metadata", options);
    let value = jsonOf(object);
    if (!this.#preserves) {
      value = prune(value, this.#resource, unknown);
      value = dropNulls(value, this.schema);
    }
    value = coerceEmbedded(value, this.schema, { ...options, unknown });
    options.unknown?.push(...(unknown ?? []));
    const typed = withMeta(kubeObjectOf(value), apiVersion, kind, meta as never);
    if (!defaults) return typed;
    return kubeObjectOf(applyDefaults(jsonOf(typed), this.schema));
  }
}

function withMeta(
  object: KubeObject,
  apiVersion: string,
  kind: string,
  metadata: KubeObject["metadata"],
): KubeObject {
  const same =
    object.apiVersion === apiVersion && object.kind === kind && object.metadata === metadata;
  return same ? object : { ...object, apiVersion, kind, metadata };
}

const TEXT: Schema = { type: "string" };

function completeSchema(version: CrdVersion, metadata: Schema, preserves: boolean): Schema {
  const schema = version.schema?.openAPIV3Schema;
  const selectable = (version.selectableFields ?? []).map(({ jsonPath = "" }) => ({
    fieldPath: jsonPath.replace(/^\./, ""),
  }));
  const properties: Record<string, Schema> = { ...schema?.properties };
  setField(properties, "apiVersion", { ...TEXT, ...schema?.properties?.["apiVersion"] });
  setField(properties, "kind", { ...TEXT, ...schema?.properties?.["kind"] });
  setField(properties, "metadata", metadata);
  const open = schema === undefined || preserves;
  return {
    type: "object",
    ...schema,
    properties,
    ...(open ? { "x-kubernetes-preserve-unknown-fields": true } : {}),
    ...(selectable.length > 0 ? { "x-kubernetes-selectable-fields": selectable } : {}),
  };
}
