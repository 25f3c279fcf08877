/**
 * Which requests are recorded, and how much of each: the rules of an audit policy (apiserver:
 * pkg/audit/policy/checker.go). The first rule that fits a request decides.
 */
import type { AuthorizerAttributes } from "../authz/authorizer.ts";
import { urlCovers } from "../authz/rules.ts";

/** How much of a request is recorded, from nothing to both bodies. */
export const AUDIT_LEVELS = ["None", "Metadata", "Request", "RequestResponse"] as const;
export type AuditLevel = (typeof AUDIT_LEVELS)[number];

/** When an event is recorded; a request has one for each stage that it reaches. */
export const AUDIT_STAGES = [
  "RequestReceived",
  "ResponseStarted",
  "ResponseComplete",
  "Panic",
] as const;
export type AuditStage = (typeof AUDIT_STAGES)[number];

export interface GroupResources {
  /** "" is the core group, "*" all groups. */
  readonly group: string;
  /** "pods", "pods/log", "pods/*", "*" and "*\/scale"; none: all of the group. */
  readonly resources: readonly string[];
  /** None: all. */
  readonly resourceNames: readonly string[];
}

/** One rule; an empty list fits everything. */
export interface AuditRule {
  readonly level: AuditLevel;
  readonly users: readonly string[];
  readonly userGroups: readonly string[];
  readonly verbs: readonly string[];
  readonly resources: readonly GroupResources[];
  readonly namespaces: readonly string[];
  readonly nonResourceUrls: readonly string[];
  readonly omitStages: readonly AuditStage[];
  /** Undefined: as the policy has it. */
  readonly omitManagedFields: boolean | undefined;
}

export interface AuditPolicy {
  readonly rules: readonly AuditRule[];
  readonly omitStages: readonly AuditStage[];
  readonly omitManagedFields: boolean;
}

/** What the policy says about one request. */
export interface AuditDecision {
  readonly level: AuditLevel;
  readonly omitStages: readonly AuditStage[];
  readonly omitManagedFields: boolean;
}

/** Whether `level` records at least what `least` does. */
export function atLeast(level: AuditLevel, least: AuditLevel): boolean {
  return AUDIT_LEVELS.indexOf(level) >= AUDIT_LEVELS.indexOf(least);
}

/** The decision for a request. @param attributes with the user who authenticated */
export function auditDecision(
  policy: AuditPolicy,
  attributes: AuthorizerAttributes,
): AuditDecision {
  const { omitStages, omitManagedFields } = policy;
  const rule = policy.rules.find((one) => fits(one, attributes));
  if (rule === undefined) return { level: "None", omitStages, omitManagedFields };
  return {
    level: rule.level,
    omitStages: [...omitStages, ...rule.omitStages],
    omitManagedFields: rule.omitManagedFields ?? omitManagedFields,
  };
}

function fits(rule: AuditRule, attributes: AuthorizerAttributes): boolean {
  const { user, verb } = attributes;
  if (rule.users.length > 0 && !rule.users.includes(user.name)) return false;
  if (rule.userGroups.length > 0 && !rule.userGroups.some((group) => user.groups.includes(group)))
    return false;
  if (rule.verbs.length > 0 && !rule.verbs.includes(verb)) return false;
  if (rule.namespaces.length > 0 || rule.resources.length > 0)
    return attributes.isResourceRequest && fitsResource(rule, attributes);
  if (rule.nonResourceUrls.length === 0) return true;
  if (attributes.isResourceRequest) return false;
  return rule.nonResourceUrls.some((url) => urlCovers(url, attributes.path));
}

function fitsResource(rule: AuditRule, attributes: AuthorizerAttributes): boolean {
  const { namespace, group, name } = attributes;
  if (rule.namespaces.length > 0 && !rule.namespaces.includes(namespace)) return false;
  if (rule.resources.length === 0) return true;
  return rule.resources.some((one) => {
    if (one.group !== group && one.group !== "*") return false;
    if (one.resources.length === 0) return true;
    if (one.resourceNames.length > 0 && !one.resourceNames.includes(name)) return false;
    return one.resources.some((text) => fitsResourceText(text, attributes));
  });
}

function fitsResourceText(
  text: string,
  { resource, subresource }: Pick<AuthorizerAttributes, "resource" | "subresource">,
): boolean {
  const whole = subresource === "" ? resource : `${resource}/${subresource}`;
  if (text === whole || text === "*") return true;
  if (subresource !== "" && text === `*/${subresource}`) return true;
  return text === `${resource}/*`;
}
