/**
 * The status that the server computes for a definition (apiextensions-apiserver: pkg/controller):
 * its names, whether it is established, and whether its schemas and its group are in order.
 */

import { sameJson } from "@quorate/kube-storage";
import { approvalOf, isProtectedGroup } from "../definition/approval.ts";
import type { NewCondition } from "../definition/conditions.ts";
import { withCondition, withoutCondition, withStatus } from "../definition/conditions.ts";
import { isTooDeep, type RawSchema, unsupportedPart } from "../definition/raw-schema.ts";
import { structuralErrors } from "../definition/structural-rules.ts";
import { type Crd, type CrdSpec, conditionOf, isConditionTrue } from "../definition/types.ts";
import { isCaBundle } from "../definition/webhook-rules.ts";
import { namingOf } from "./naming.ts";

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
