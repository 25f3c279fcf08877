/**
 * Priority (kubernetes: plugin/pkg/admission/priority): a new pod gets the number and the
 * preemption policy of the PriorityClass that it names, or of the default class, of which there is
 * one at most.
 */
import type { KubeObject } from "@quorate/kube-storage";
import type { InformerHandler } from "../informers/informer.ts";
import type { AdmissionAttributes } from "./admission.ts";
import { type AdmissionPlugin, admissionForbidden, type FindNamed, isOf } from "./chain.ts";

interface PriorityClass extends KubeObject {
  readonly value?: number;
  readonly globalDefault?: boolean;
  readonly preemptionPolicy?: string | null;
}

interface PodPriority {
  readonly priorityClassName?: string | null;
  readonly priority?: number | null;
  readonly preemptionPolicy?: string | null;
}

const NO_CLASS: Pick<PriorityClass, "value" | "preemptionPolicy"> = {
  value: 0,
  preemptionPolicy: "PreemptLowerPriority",
};

const classOf = (object: KubeObject): PriorityClass => object as PriorityClass;
const levelOf = (object: KubeObject): number => classOf(object).value ?? 0;
const specOf = (pod: KubeObject | undefined): PodPriority => (pod?.["spec"] ?? {}) as PodPriority;

/** Follows the classes that say that they are the default. Races of servers can make several. */
export class DefaultPriorityClasses implements InformerHandler {
  readonly #byName = new Map<string, KubeObject>();

  added(object: KubeObject): void {
    const { name = "" } = object.metadata;
    if (classOf(object).globalDefault === true) this.#byName.set(name, object);
    else this.#byName.delete(name);
  }

  updated(object: KubeObject): void {
    this.added(object);
  }

  deleted({ metadata }: KubeObject): void {
    this.#byName.delete(metadata.name ?? "");
  }

  /** The one with the lowest value; undefined where there is none. */
  get lowest(): KubeObject | undefined {
    let lowest: KubeObject | undefined;
    for (const one of this.#byName.values())
      if (lowest === undefined || levelOf(one) < levelOf(lowest)) lowest = one;
    return lowest;
  }
}

/** @param find a PriorityClass; the plug-in rejects with ApiError */
export function podPriority(
  defaults: Pick<DefaultPriorityClasses, "lowest">,
  find: FindNamed,
): AdmissionPlugin {
  return {
    resources: ["/pods", "scheduling.k8s.io/priorityclasses"],
    async mutate(attributes) {
      const { object, oldObject, operation, subresource } = attributes;
      if (object === undefined || subresource !== "" || !isOf(attributes, "", "pods"))
        return object;
      if (operation === "UPDATE") return kept(object, specOf(oldObject));
      if (operation !== "CREATE") return object;
      const name = specOf(object).priorityClassName ?? "";
      const found = name === "" ? defaults.lowest : await find(name);
      if (name !== "" && found === undefined)
        throw admissionForbidden(attributes, `no PriorityClass with name ${name} was found`);
      return prioritized(object, found, attributes);
    },
    async validate(attributes) {
      const { object, operation, subresource } = attributes;
      if (object === undefined || subresource !== "") return;
      if (!isOf(attributes, "scheduling.k8s.io", "priorityclasses")) return;
      if (operation !== "CREATE" && operation !== "UPDATE") return;
      if (classOf(object).globalDefault !== true) return;
      const present = defaults.lowest?.metadata.name;
      if (present === undefined) return;
      if (operation === "UPDATE" && present === object.metadata.name) return;
      const why = `PriorityClass ${present} is already marked as default. Only one default can exist`;
      throw admissionForbidden(attributes, why);
    },
  };
}

/** An update that leaves out what the server filled in keeps it. */
function kept(pod: KubeObject, old: PodPriority): KubeObject {
  const spec = specOf(pod);
  const priority = spec.priority ?? old.priority;
  const preemptionPolicy = spec.preemptionPolicy ?? old.preemptionPolicy;
  return withSpec(pod, { priority, preemptionPolicy });
}

function prioritized(
  pod: KubeObject,
  found: KubeObject | undefined,
  attributes: AdmissionAttributes,
): KubeObject {
  const spec = specOf(pod);
  const { value = 0, preemptionPolicy } = found === undefined ? NO_CLASS : classOf(found);
  const check = <T>(what: string, given: T | null | undefined, wanted: T): void => {
    if (given === undefined || given === null || given === wanted) return;
    const why =
      `the ${what} (${given}) must not be provided in pod spec; priority admission controller ` +
      `computed ${wanted} from the given PriorityClass name`;
    throw admissionForbidden(attributes, why);
  };
  check("integer value of priority", spec.priority, value);
  if (typeof preemptionPolicy === "string")
    check("string value of PreemptionPolicy", spec.preemptionPolicy, preemptionPolicy);
  const priorityClassName = found?.metadata.name;
  return withSpec(pod, { priorityClassName, priority: value, preemptionPolicy });
}

/** The pod with those of the fields that are there. */
function withSpec(pod: KubeObject, fields: Readonly<Record<string, unknown>>): KubeObject {
  const known = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  return { ...pod, spec: { ...specOf(pod), ...Object.fromEntries(known) } };
}
