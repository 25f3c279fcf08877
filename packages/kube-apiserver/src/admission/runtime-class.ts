/**
 * RuntimeClass (kubernetes: plugin/pkg/admission/runtimeclass): a new pod gets the overhead, the
 * node selector and the tolerations of the RuntimeClass that it names.
 */
import { type Amounts, type KubeObject, sameAmounts } from "@quorate/kube-storage";
import { quoteText } from "@quorate/proto";
import type { AdmissionAttributes } from "./admission.ts";
import { type AdmissionPlugin, admissionForbidden, type FindNamed } from "./chain.ts";
import { mergedTolerations, type Toleration } from "./tolerations.ts";

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
