/**
 * The status that the server computes for a definition (apiextensions-apiserver: pkg/controller):
 * its names, whether it is established, and whether its schemas and its group are in order.
 */
import { aggregateText, sameJson } from "@quorate/kube-storage";
import { quoteText as goQuote } from "@quorate/proto";
import { approvalOf, isProtectedGroup } from "../definition/approval.ts";
import {
  type NewCondition,
  withCondition,
  withoutCondition,
  withStatus,
} from "../definition/conditions.ts";
import { isTooDeep, type RawSchema, unsupportedPart } from "../definition/raw-schema.ts";
import { structuralErrors } from "../definition/structural-rules.ts";
import {
  type Crd,
  type CrdNames,
  type CrdSpec,
  conditionOf,
  isConditionTrue,
} from "../definition/types.ts";
import { isCaBundle } from "../definition/webhook-rules.ts";

/**
 * The definition with its computed conditions but for Established=True and Terminating.
 * @param group all definitions of the same group
 * @param now as metaTime writes it
 */
export function withComputedStatus(crd: Crd, group: Iterable<Crd>, now: string): Crd {
  let result = crd;
  if (!sameJson(crd.spec.names, crd.status?.acceptedNames) || !conditionOf(crd, "NamesAccepted")) {
    const { names, condition } = namingOf(crd, group);
    if (!sameJson(names, crd.status?.acceptedNames ?? {})) {
      result = withStatus(result, { acceptedNames: names });
    }
    result = withCondition(result, condition, now);
    result = withCondition(result, initialEstablished(crd, condition), now);
  }
  const structural = nonStructural(crd.spec);
  result =
    structural === undefined
      ? withoutCondition(result, "NonStructuralSchema")
      : withCondition(result, structural, now);
  const approval = approvalCondition(crd);
  return approval === undefined ? result : withCondition(result, approval, now);
}

function initialEstablished(crd: Crd, naming: NewCondition): NewCondition {
  const present = conditionOf(crd, "Established");
  const type = "Established";
  if (present?.status !== "True" && naming.status === "True") {
    const message = "the initial names have been accepted";
    return { type, status: "False", reason: "Installing", message };
  }
  if (present !== undefined) {
    const { status, reason, message } = present;
    return { type, status, reason, message };
  }
  return { type, status: "False", reason: "NotAccepted", message: "not all names are accepted" };
}

/** A definition whose names are accepted becomes established. */
export function withEstablished(crd: Crd, now: string): Crd {
  if (!isConditionTrue(crd, "NamesAccepted") || isConditionTrue(crd, "Established")) return crd;
  const { strategy, webhook } = crd.spec.conversion ?? {};
  const caBundle = webhook?.clientConfig?.caBundle ?? "";
  const type = "Established";
  if (strategy === "Webhook" && caBundle !== "" && !isCaBundle(caBundle)) {
    const message = "The conversion webhook CABundle is invalid";
    return withCondition(crd, { type, status: "False", reason: "InvalidCABundle", message }, now);
  }
  const message = "the initial names have been accepted";
  const reason = "InitialNamesAccepted";
  return withCondition(crd, { type, status: "True", reason, message }, now);
}

const checked = new WeakMap<CrdSpec, NewCondition>();

/**
 * The condition of a definition that is not structural; undefined for others. One that prunes was
 * refused unless it is structural.
 */
function nonStructural(spec: CrdSpec): NewCondition | undefined {
  if (spec.preserveUnknownFields !== true) return undefined;
  const before = checked.get(spec);
  if (before !== undefined) return before;
  const texts = structureTexts(spec);
  const message = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  const made: NewCondition = {
    type: "NonStructuralSchema",
    status: "True",
    reason: "Violations",
    message,
  };
  checked.set(spec, made);
  return made;
}

function structureTexts(spec: CrdSpec): string[] {
  const texts = ["spec.preserveUnknownFields: Invalid value: true: must be false"];
  for (const [i, version] of (spec.versions ?? []).entries()) {
    const schema = version.schema?.openAPIV3Schema as RawSchema | undefined;
    if (schema === undefined || isTooDeep(schema) || unsupportedPart(schema) !== undefined)
      continue;
    const path = `spec.versions[${i}].schema.openAPIV3Schema`;
    const errors = structuralErrors(schema, path, undefined);
    texts.push(...errors.map(({ field, message }) => `${field}: ${message}`));
  }
  return texts;
}

const APPROVALS = {
  invalid: ["False", "InvalidAnnotation"],
  missing: ["False", "MissingAnnotation"],
  approved: ["True", "ApprovedAnnotation"],
  bypassed: ["False", "UnapprovedAnnotation"],
} as const;

function approvalCondition(crd: Crd): NewCondition | undefined {
  if (!isProtectedGroup(crd.spec.group ?? "")) return undefined;
  const { state, reason: message } = approvalOf(crd);
  const [status, reason] = APPROVALS[state];
  return { type: "KubernetesAPIApprovalPolicyConformant", status, reason, message };
}

/** The names after the comparison, and the condition NamesAccepted. */
export interface Naming {
  readonly names: CrdNames;
  readonly condition: NewCondition;
}

/** @param others all definitions of the group, this one included */
export function namingOf(crd: Crd, others: Iterable<Crd>): Naming {
  const taken = takenNames(others);
  const wanted = crd.spec.names ?? {};
  const present = crd.status?.acceptedNames ?? {};
  const names: Record<string, unknown> = { ...present };
  // The last conflict is the one that is reported.
  let conflict: NewCondition | undefined;
  const { shortNames = [] } = wanted;
  if (!sameJson(shortNames, present.shortNames ?? [])) {
    const known = new Set(present.shortNames ?? []);
    const clashes = shortNames.filter((name) => !known.has(name) && taken.resources.has(name));
    if (clashes.length === 0) names["shortNames"] = wanted.shortNames;
    else conflict = refused("ShortNamesConflict", aggregateText(clashes.map(inUse)));
  }
  for (const { field, reason, isKind } of NAMES) {
    const name = wanted[field] ?? "";
    const used = isKind ? taken.kinds : taken.resources;
    if (name === (present[field] ?? "") || !used.has(name)) names[field] = name;
    else if (isKind || conflict === undefined) conflict = refused(reason, inUse(name));
  }
  names["categories"] = wanted.categories;
  const set = Object.entries(names).filter(([, value]) => value !== undefined);
  return { names: Object.fromEntries(set) as CrdNames, condition: conflict ?? ACCEPTED };
}

const NAMES = [
  { field: "plural", reason: "PluralConflict", isKind: false },
  { field: "singular", reason: "SingularConflict", isKind: false },
  { field: "kind", reason: "KindConflict", isKind: true },
  { field: "listKind", reason: "ListKindConflict", isKind: true },
] as const;

const ACCEPTED: NewCondition = {
  type: "NamesAccepted",
  status: "True",
  reason: "NoConflicts",
  message: "no conflicts found",
};

function refused(reason: string, message: string): NewCondition {
  return { type: "NamesAccepted", status: "False", reason, message };
}

function inUse(name: string): string {
  return `${goQuote(name)} is already in use`;
}

function takenNames(others: Iterable<Crd>) {
  const resources = new Set<string>();
  const kinds = new Set<string>();
  for (const { status } of others) {
    const { plural, singular, shortNames = [], kind, listKind } = status?.acceptedNames ?? {};
    for (const name of [plural, singular, ...shortNames]) if (name) resources.add(name);
    for (const name of [kind, listKind]) if (name) kinds.add(name);
  }
  return { resources, kinds };
}
