/** Whether a definition in one of Kubernetes' own groups was approved there. */

import type { FieldError, KubeObject } from "@quorate/kube-storage";
import { invalidValue, required } from "@quorate/kube-storage";
import { quoteText as goQuote } from "@quorate/proto";

export const APPROVAL_ANNOTATION = "api-approved.kubernetes.io";
const MORE = "see https://github.com/kubernetes/enhancements/pull/1111";

export type ApprovalState = "invalid" | "approved" | "bypassed" | "missing";

/** k8s.io and kubernetes.io, and what is below them. */
export function isProtectedGroup(group: string): boolean {
  return /(^|\.)(k8s|kubernetes)\.io$/.test(group);
}

/** The state that the annotation declares, and why. */
export function approvalOf(object: KubeObject): { state: ApprovalState; reason: string } {
  const value = object.metadata.annotations?.[APPROVAL_ANNOTATION] ?? "";
  const must = `protected groups must have approval annotation ${goQuote(APPROVAL_ANNOTATION)}`;
  if (value === "") return { state: "missing", reason: `${must}, ${MORE}` };
  if (value.startsWith("unapproved")) {
    return { state: "bypassed", reason: `not approved: ${goQuote(value)}` };
  }
  if (/^[a-zA-Z][a-zA-Z0-9+.-]*:\/\/[^/?#\s]\S*$/.test(value)) {
    return { state: "approved", reason: `approved in ${value}` };
  }
  const reason = `${must} with either a URL or a reason starting with "unapproved", ${MORE}`;
  return { state: "invalid", reason };
}

/** @param old undefined for a new definition; a state that stays is not judged again */
export function approvalErrors(
  object: KubeObject,
  old: KubeObject | undefined,
  group: string,
): FieldError[] {
  if (!isProtectedGroup(group)) return [];
  const { state, reason } = approvalOf(object);
  if (old !== undefined && approvalOf(old).state === state) return [];
  const path = `metadata.annotations[${APPROVAL_ANNOTATION}]`;
  const value = object.metadata.annotations?.[APPROVAL_ANNOTATION] ?? "";
  if (state === "invalid") return [invalidValue(path, value, reason)];
  return state === "missing" ? [required(path, reason)] : [];
}
