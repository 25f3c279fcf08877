/** Resources that are calculated and not stored, such as tokenreviews: they have only `create`. */
import type { KindSource, RestStorage, ServedResource } from "@quorate/kube-storage";

export interface UnstoredResource {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly singular: string;
  readonly subresource?: string;
  readonly namespaced: boolean;
  readonly storage: RestStorage;
}

/** @param source of the kind that clients send and get back */
export function servedUnstored(resource: UnstoredResource, source: KindSource): ServedResource {
  return {
    subresource: "",
    ...resource,
    kind: source.kind,
    shortNames: [],
    categories: [],
    table: undefined,
    schema: source.schema,
    strategicMerge: true,
    storageVersionHash: "",
    decode: (value) => source.decode(value),
    convert: async (objects) => objects,
    protobuf: source.protobuf,
    deprecationWarning: undefined,
  };
}
