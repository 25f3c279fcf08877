/**
 * RuntimeClass (kubernetes: plugin/pkg/admission/runtimeclass): a new pod gets the overhead, the
 * node selector and the tolerations of the RuntimeClass that it names.
 */
import { type Amounts, type KubeObject, sameAmounts } from "@quorate/kube-storage";
import { quoteText } from "@quorate/proto";
import type { AdmissionAttributes } from "./admission.ts";
import { type AdmissionPlugin, admissionForbidden, type FindNamed } from "./chain.ts";

type Labels = Readonly<Record<string, string>>;

interface RuntimeClass extends KubeObject {
  readonly overhead?: { readonly podFixed?: Amounts | null } | null;
  readonly scheduling?: {
    readonly nodeSelector?: Labels | null;
    readonly tolerations?: readonly Toleration[] | null;
  } | null;
}

interface PodRuntime {
  readonly runtimeClassName?: string | null;
  readonly overhead?: Amounts | null;
  readonly nodeSelector?: Labels | null;
  readonly tolerations?: readonly Toleration[] | null;
}

const specOf = (pod: KubeObject): PodRuntime => (pod["spec"] ?? {}) as PodRuntime;

/** @param find a RuntimeClass; the plug-in rejects with ApiError */
export function runtimeClass(find: FindNamed): AdmissionPlugin {
  const classFor = async (attributes: AdmissionAttributes, pod: KubeObject) => {
    const { runtimeClassName: name } = specOf(pod);
    if (name === undefined || name === null) return undefined;
    const found = await find(name);
    if (found !== undefined) return found as RuntimeClass;
    const why = `pod rejected: RuntimeClass ${quoteText(name)} not found`;
    throw admissionForbidden(attributes, why);
  };
  return {
    resources: ["/pods"],
    async mutate(attributes) {
      const { object } = attributes;
      if (object === undefined || !isNewPod(attributes)) return object;
      const found = await classFor(attributes, object);
      if (found === undefined) return object;
      return scheduled(attributes, withOverhead(attributes, object, found), found);
    },
    async validate(attributes) {
      const { object } = attributes;
      if (object === undefined || !isNewPod(attributes)) return;
      const overhead = (await classFor(attributes, object))?.overhead ?? undefined;
      const asked = specOf(object).overhead ?? undefined;
      if (overhead !== undefined) checkOverhead(attributes, overhead.podFixed ?? {}, asked ?? {});
      else if (asked !== undefined) {
        const why = "Pod Overhead set without corresponding RuntimeClass defined Overhead";
        throw admissionForbidden(attributes, `pod rejected: ${why}`);
      }
    },
  };
}

function isNewPod(attributes: AdmissionAttributes): boolean {
  const { operation, subresource } = attributes;
  return operation === "CREATE" && subresource === "";
}

function checkOverhead(attributes: AdmissionAttributes, fixed: Amounts, asked: Amounts): void {
  if (sameAmounts(fixed, asked)) return;
  const why = "Pod's Overhead doesn't match RuntimeClass's defined Overhead";
  throw admissionForbidden(attributes, `pod rejected: ${why}`);
}

function withOverhead(
  attributes: AdmissionAttributes,
  pod: KubeObject,
  { overhead }: RuntimeClass,
): KubeObject {
  if (overhead === undefined || overhead === null) return pod;
  const { overhead: asked, ...spec } = specOf(pod);
  const fixed = overhead.podFixed ?? {};
  if (Object.keys(asked ?? {}).length > 0) checkOverhead(attributes, fixed, asked ?? {});
  const own = Object.keys(fixed).length === 0 ? {} : { overhead: fixed };
  return { ...pod, spec: { ...spec, ...own } };
}

function scheduled(
  attributes: AdmissionAttributes,
  pod: KubeObject,
  { scheduling }: RuntimeClass,
): KubeObject {
  if (scheduling === undefined || scheduling === null) return pod;
  const spec = specOf(pod);
  const own = new Map(Object.entries(spec.nodeSelector ?? {}));
  for (const [key, value] of Object.entries(scheduling.nodeSelector ?? {})) {
    const asked = own.get(key) ?? value;
    if (asked !== value) {
      const why =
        `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${value}; ` +
        `pod.spec.nodeSelector[${key}] = ${asked}`;
      throw admissionForbidden(attributes, why);
    }
    own.set(key, value);
  }
  const tolerations = mergedTolerations([
    ...(spec.tolerations ?? []),
    ...(scheduling.tolerations ?? []),
  ]);
  return {
    ...pod,
    spec: {
      ...spec,
      ...(own.size === 0 ? {} : { nodeSelector: Object.fromEntries(own) }),
      ...(tolerations.length === 0 ? {} : { tolerations }),
    },
  };
}

export interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
  readonly tolerationSeconds?: number | null;
}

/**
 * Tolerations without those that another one covers (kubernetes: pkg/util/tolerations), in order.
 * Of equal ones the first stays; of those that cover each other, the last. The time is in
 * proportion to their number: what covers a toleration is found by the few names that it can have.
 */
export function mergedTolerations(all: readonly Toleration[]): Toleration[] {
  const byText = new Map<string, Toleration>();
  for (const one of all) {
    const { key = "", operator = "", value = "", effect = "" } = one;
    const text = JSON.stringify([key, operator, value, effect, one.tolerationSeconds ?? null]);
    if (!byText.has(text)) byText.set(text, one);
  }
  return uncovered(uncovered([...byText.values()].reverse()).reverse());
}

/** Those that none of those before them covers. */
function uncovered(tolerations: readonly Toleration[]): Toleration[] {
  const longest = new Map<string, number>();
  return tolerations.filter((one) => {
    const isCovered = coveringNames(one).some(
      (name) => (longest.get(name) ?? Number.NEGATIVE_INFINITY) >= secondsOf(one),
    );
    const name = nameOf(one);
    longest.set(name, Math.max(longest.get(name) ?? Number.NEGATIVE_INFINITY, reachOf(one)));
    return !isCovered;
  });
}

function secondsOf({ tolerationSeconds }: Toleration): number {
  return tolerationSeconds ?? Number.POSITIVE_INFINITY;
}

/** The longest time that it covers: only taints that evict have one. */
function reachOf(one: Toleration): number {
  return one.effect === "NoExecute" ? secondsOf(one) : Number.POSITIVE_INFINITY;
}

function nameOf({ key = "", operator = "", value = "", effect = "" }: Toleration): string {
  return JSON.stringify([key, effect, operator, operator === "Exists" ? "" : value]);
}

/** The names of those that cover it, if their time is long enough. */
function coveringNames(one: Toleration): string[] {
  const { key = "", effect = "" } = one;
  const isEqual = one.operator === "Equal";
  return [...new Set([effect, ""])].flatMap((covered) => [
    nameOf({ operator: "Exists", key, effect: covered }),
    nameOf({ operator: "Exists", effect: covered }),
    ...(isEqual ? ["Equal", ""] : []).map((operator) =>
      nameOf({ ...one, operator, effect: covered }),
    ),
  ]);
}
