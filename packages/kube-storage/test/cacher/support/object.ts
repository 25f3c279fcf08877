/** Small objects for the tests of the cache. */
import { fromUtf8 } from "@quorate/proto";
import type { KubeObject } from "../../../src/meta/object.ts";
import type { AttributesOf } from "../../../src/meta/selectors.ts";
import { objectVersioner } from "../../../src/storage/etcd-values.ts";
import type { StoredObject } from "../../../src/storage/stored-object.ts";

export const RESOURCE_PREFIX = "/widgets";

export const WIDGET = { group: "example.org", version: "v1", kind: "Widget" };

export const attributesOf: AttributesOf = ({ metadata, spec }) => ({
  labels: metadata.labels ?? {},
  fields: {
    "metadata.name": metadata.name ?? "",
    "metadata.namespace": metadata.namespace ?? "",
    "spec.node": (spec as { node?: string } | undefined)?.node ?? "",
  },
});

/** @param key "/widgets/NAMESPACE/NAME" */
export function widget(
  key: string,
  labels: Readonly<Record<string, string>> = {},
  spec: Readonly<Record<string, unknown>> = {},
): KubeObject {
  const [, , namespace, name] = key.split("/");
  return {
    apiVersion: "example.org/v1",
    kind: "Widget",
    metadata: { name, namespace, labels },
    spec,
  };
}

export function stored(key: string, revision: number, object: KubeObject): StoredObject {
  const versioned = objectVersioner.withResourceVersion(object, revision);
  let json: Uint8Array | undefined;
  return {
    key,
    resourceVersion: revision,
    sizeBytes: 100,
    object: () => versioned,
    json: () => (json ??= fromUtf8(JSON.stringify(versioned))),
  };
}
