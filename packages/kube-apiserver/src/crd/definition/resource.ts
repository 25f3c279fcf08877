/** The resource "customresourcedefinitions", with /status. */
import type { KindSource, ObjectCodec, ResourceSpec } from "@quorate/kube-storage";
import { DEFAULT_TABLE, jsonCodec } from "@quorate/kube-storage";
import { CrdStore } from "./store.ts";
import { fromStored, toStored } from "./stored-form.ts";
import { crdStatusStrategy, crdStrategy, type LoadRules } from "./strategy.ts";
import { CRD_GROUP, CRD_KIND, CRD_RESOURCE, type Crd } from "./types.ts";

/** As kube-apiserver stores definitions: JSON in the form of v1beta1. */
export const crdCodec: ObjectCodec = {
  encode: (object) => jsonCodec.encode(toStored(object as Crd)),
  decode: (bytes) => fromStored(jsonCodec.decode(bytes)),
};

/**
 * @param source of the kind, for its OpenAPI schema
 * @param pause lets other work run
 */
export function customResourceDefinitions(
  source: Pick<KindSource, "schema">,
  loadRules: LoadRules,
  pause: () => Promise<void>,
): ResourceSpec {
  const spec: ResourceSpec = {
    kind: CRD_KIND,
    resource: CRD_RESOURCE.resource,
    singular: "customresourcedefinition",
    shortNames: ["crd", "crds"],
    categories: ["api-extensions"],
    namespaced: false,
    storagePrefix: `${CRD_GROUP}/${CRD_RESOURCE.resource}`,
    codec: crdCodec,
    get schema() {
      return source.schema;
    },
    strategy: crdStrategy(loadRules, pause),
    statusStrategy: crdStatusStrategy(),
    table: DEFAULT_TABLE,
    selectableFieldNames: [],
    returnsDeletedObject: false,
    customize: (storages, parts) => ({ ...storages, main: new CrdStore(spec, parts) }),
  };
  return spec;
}
