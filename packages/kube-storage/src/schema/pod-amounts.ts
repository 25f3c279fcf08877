/** What a pod asks for (kubernetes: component-helpers/resource/helpers.go). */
import { type Amounts, added, maximum } from "./amounts.ts";

export interface Asked {
  readonly requests?: Amounts;
  readonly limits?: Amounts;
}

export interface AskingContainer {
  readonly name?: string;
  readonly restartPolicy?: string;
  readonly resources?: Asked;
}

export interface AskingPod {
  readonly containers?: readonly AskingContainer[] | null;
  readonly initContainers?: readonly AskingContainer[] | null;
  readonly resources?: Asked;
  readonly overhead?: Amounts;
}

/** Other resources count by their containers alone. */
export const OF_WHOLE_PODS = /^(?:cpu|memory|hugepages-.*)$/;

/** What all containers of a pod need at once, or one of those that run before the others. */
export function sumOf(spec: AskingPod, of: "requests" | "limits"): Amounts {
  const amountsOf = ({ resources }: AskingContainer): Amounts => resources?.[of] ?? {};
  let sum: Amounts = {};
  for (const container of spec.containers ?? []) sum = added(sum, amountsOf(container));
  let beside: Amounts = {};
  let most: Amounts = {};
  for (const container of spec.initContainers ?? []) {
    const own = amountsOf(container);
    const staysUp = container.restartPolicy === "Always";
    if (staysUp) {
      sum = added(sum, own);
      beside = added(beside, own);
    }
    most = maximum(most, staysUp ? beside : added(own, beside));
  }
  const whole = Object.entries(spec.resources?.[of] ?? {}).filter(([name]) =>
    OF_WHOLE_PODS.test(name),
  );
  return { ...maximum(sum, most), ...Object.fromEntries(whole) };
}

/** The same with the overhead of the pod's runtime, which raises only limits that there are. */
export function sumWithOverhead(spec: AskingPod, of: "requests" | "limits"): Amounts {
  const sum = sumOf(spec, of);
  const overhead = Object.entries(spec.overhead ?? {});
  const counted = of === "requests" ? overhead : overhead.filter(([name]) => name in sum);
  return added(sum, Object.fromEntries(counted));
}
