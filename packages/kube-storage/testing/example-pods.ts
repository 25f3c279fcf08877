/** The kind of the contract suites: pods with labels and a node. */
import type { GroupVersionKind } from "../src/meta/kinds.ts";
import type { KubeObject } from "../src/meta/object.ts";
import {
  type AttributesOf,
  EVERYTHING,
  SELECT_ALL,
  type SelectionPredicate,
  type Selector,
} from "../src/meta/selectors.ts";
import type { ListOptions } from "../src/storage/interface.ts";

export const POD: GroupVersionKind = { group: "example.test", version: "v1", kind: "Pod" };
export const PODS_PREFIX = "/pods";

export const podAttributes: AttributesOf = (object) => {
  const { nodeName = "" } = (object.spec ?? {}) as { nodeName?: string };
  return {
    labels: object.metadata.labels ?? {},
    fields: {
      "metadata.name": object.metadata.name ?? "",
      "metadata.namespace": object.metadata.namespace ?? "",
      "spec.nodeName": nodeName,
    },
  };
};

/** A pod. @param more fields of metadata */
export function pod(
  namespace: string,
  name: string,
  more: Partial<KubeObject["metadata"]> = {},
  nodeName = "",
): KubeObject {
  return {
    apiVersion: "example.test/v1",
    kind: "Pod",
    metadata: { name, ...(namespace === "" ? {} : { namespace }), ...more },
    ...(nodeName === "" ? {} : { spec: { nodeName } }),
  };
}

export function keyOfPod({ metadata }: KubeObject): string {
  const { namespace, name } = metadata;
  return `${PODS_PREFIX}/${namespace === undefined ? "" : `${namespace}/`}${name}`;
}

/** A selector of one attribute. */
export function where(attribute: string, operator: "=" | "!=", value: string): Selector {
  return {
    isEmpty: false,
    matches: (attributes) => ((attributes[attribute] ?? "") === value) === (operator === "="),
    exactValue: (name) => (name === attribute && operator === "=" ? value : undefined),
    toString: () => `${attribute}${operator}${value}`,
  };
}

export function predicate(more: Partial<SelectionPredicate> = {}): SelectionPredicate {
  return { ...SELECT_ALL, label: EVERYTHING, field: EVERYTHING, ...more };
}

/** Options of a list or watch of everything below a key, at the latest revision. */
export function listOptions(more: Partial<ListOptions> = {}): ListOptions {
  return {
    resourceVersion: "",
    resourceVersionMatch: "",
    predicate: predicate(),
    recursive: true,
    ...more,
  };
}
