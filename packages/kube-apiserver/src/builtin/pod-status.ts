/**
 * The status that a new pod begins with: its phase, and its class of service, which follows from
 * what its containers ask for (kubernetes: registry/core/pod/strategy.go, apis/core/v1/helper/qos).
 */
import type { KubeObject, Strategy } from "@quorate/kube-storage";
import { fieldOf } from "./workload-fields.ts";

type Quantities = Readonly<Record<string, string>>;

interface PodContainer {
  readonly resources?: { readonly limits?: Quantities; readonly requests?: Quantities };
}

const COUNTED = ["cpu", "memory"] as const;

/** The quantity, or undefined for none and for zero. Decoding has made it canonical. */
function amount(quantities: Quantities | undefined, name: string): string | undefined {
  const quantity = quantities?.[name];
  return quantity === "0" ? undefined : quantity;
}

/** Guaranteed: each limit is there and requested. BestEffort: there is neither. Else Burstable. */
export function qosClassOf(pod: KubeObject): string {
  const containers = [
    ...fieldOf<readonly PodContainer[]>(pod, "spec", "containers", []),
    ...fieldOf<readonly PodContainer[]>(pod, "spec", "initContainers", []),
  ];
  let isAny = false;
  let areAllGuaranteed = true;
  for (const { resources } of containers) {
    for (const name of COUNTED) {
      const limit = amount(resources?.limits, name);
      const request = amount(resources?.requests, name);
      if (limit !== undefined || request !== undefined) isAny = true;
      if (limit === undefined || limit !== request) areAllGuaranteed = false;
    }
  }
  if (!isAny) return "BestEffort";
  return areAllGuaranteed ? "Guaranteed" : "Burstable";
}

/** The strategy, with the first status of a pod. */
export function pendingPods(strategy: Strategy): Strategy {
  return {
    ...strategy,
    prepareForCreate(ctx, object) {
      const prepared = strategy.prepareForCreate(ctx, object);
      return { ...prepared, status: { phase: "Pending", qosClass: qosClassOf(prepared) } };
    },
  };
}
