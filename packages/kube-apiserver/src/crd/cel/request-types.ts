/**
 * The types of the variables "request" and "namespaceObject" (apiserver: pkg/admission/plugin/cel/
 * compile.go): what is not in them is refused when a policy is written.
 */
import type { Schema } from "@quorate/kube-storage";
import { type CelType, celTypeOf } from "./types.ts";

const TEXT: Schema = { type: "string" };
const TEXTS: Schema = { type: "array", items: TEXT };
const TIME: Schema = { type: "string", format: "date-time" };
const ANYTHING: Schema = { "x-kubernetes-int-or-string": true };

function object(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: "object", properties };
}

function mapOf(additionalProperties: Schema): Schema {
  return { type: "object", additionalProperties };
}

function texts(names: string): Record<string, Schema> {
  return Object.fromEntries(names.split(" ").map((name) => [name, TEXT]));
}

const KIND = object(texts("group version kind"));
const RESOURCE = object(texts("group version resource"));

const REQUEST = object({
  ...texts("subResource requestSubResource name namespace operation"),
  kind: KIND,
  resource: RESOURCE,
  requestKind: KIND,
  requestResource: RESOURCE,
  userInfo: object({ ...texts("username uid"), groups: TEXTS, extra: mapOf(TEXTS) }),
  dryRun: { type: "boolean" },
  options: ANYTHING,
});

const NAMESPACE = object({
  metadata: object({
    ...texts("name generateName namespace UID resourceVersion"),
    labels: mapOf(TEXT),
    annotations: mapOf(TEXT),
    creationTimestamp: TIME,
    deletionTimestamp: TIME,
    deletionGracePeriodSeconds: { type: "integer" },
    generation: { type: "integer" },
    finalizers: TEXTS,
  }),
  spec: object({ finalizers: TEXTS }),
  status: object({
    phase: TEXT,
    conditions: {
      type: "array",
      items: object({ ...texts("status type message reason"), lastTransitionTime: TIME }),
    },
  }),
});

export const REQUEST_TYPE = celTypeOf(REQUEST, false, "kubernetes.AdmissionRequest") as CelType;
export const NAMESPACE_TYPE = celTypeOf(NAMESPACE, false, "kubernetes.Namespace") as CelType;
