/**
 * TaintNodesByCondition (kubernetes: plugin/pkg/admission/nodetaint): a new node takes no pods
 * before the controller of nodes' lifecycle has seen that it is ready.
 */
import type { AdmissionPlugin } from "./chain.ts";

interface Taint {
  readonly key?: string;
  readonly effect?: string;
}

const NOT_READY = { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" } as const;

export function nodeTaints(): AdmissionPlugin {
  return {
    resources: ["/nodes"],
    async mutate({ object, operation, subresource }) {
      if (object === undefined || operation !== "CREATE" || subresource !== "") return object;
      const spec = (object["spec"] ?? {}) as { readonly taints?: readonly Taint[] | null };
      const taints = spec.taints ?? [];
      const { key, effect } = NOT_READY;
      if (taints.some((taint) => taint.key === key && taint.effect === effect)) return object;
      return { ...object, spec: { ...spec, taints: [...taints, NOT_READY] } };
    },
  };
}
