/** Errors of RBAC's objects (Kubernetes: pkg/apis/rbac/validation/validation.go). */

import {
  type FieldError,
  invalidValue,
  isDns1123Subdomain,
  isPathSegmentName,
  type KubeObject,
  type LabelSelectorObject,
  notSupported,
  required,
  selectorOfObject,
  semanticEqual,
  validateLabelSelector,
} from "@quorate/kube-storage";
import {
  type PolicyRule,
  RBAC_GROUP,
  type RoleRef,
  rulesOf,
  type Subject,
  subjectsOf,
} from "./rules.ts";

interface AggregationRule {
  readonly clusterRoleSelectors?: readonly LabelSelectorObject[] | null;
}

/** The selectors of a ClusterRole whose rules come from others; undefined for another one. */
export function aggregationSelectors(role: KubeObject): readonly LabelSelectorObject[] | undefined {
  const rule = role["aggregationRule"] as AggregationRule | null | undefined;
  return rule === undefined || rule === null ? undefined : (rule.clusterRoleSelectors ?? []);
}

/** Errors of a Role or ClusterRole. */
export function roleErrors(role: KubeObject, namespaced: boolean): FieldError[] {
  const errors = rulesOf(role).flatMap((rule, i) => ruleErrors(rule, namespaced, `rules[${i}]`));
  const selectors = namespaced ? undefined : aggregationSelectors(role);
  if (selectors === undefined) return errors;
  const field = "aggregationRule.clusterRoleSelectors";
  if (selectors.length === 0) {
    const text = "at least one clusterRoleSelector required if aggregationRule is non-nil";
    errors.push(required(field, text));
  }
  selectors.forEach((selector, i) => {
    errors.push(...validateLabelSelector(selector, `${field}[${i}]`));
    if (isBadSelector(selector)) {
      errors.push(invalidValue(`${field}[${i}]`, null, "invalid label selector."));
    }
  });
  return errors;
}

function isBadSelector(selector: LabelSelectorObject): boolean {
  try {
    selectorOfObject(selector);
    return false;
  } catch {
    return true;
  }
}

function ruleErrors(rule: PolicyRule, namespaced: boolean, field: string): FieldError[] {
  const { verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule;
  const errors: FieldError[] = [];
  if ((verbs ?? []).length === 0) {
    errors.push(required(`${field}.verbs`, "verbs must contain at least one value"));
  }
  if (nonResourceURLs.length > 0) {
    const urls = `${field}.nonResourceURLs`;
    if (namespaced) {
      const text = "namespaced rules cannot apply to non-resource URLs";
      errors.push(invalidValue(urls, nonResourceURLs, text));
    }
    if (apiGroups.length > 0 || resources.length > 0 || resourceNames.length > 0) {
      const text = "rules cannot apply to both regular resources and non-resource URLs";
      errors.push(invalidValue(urls, nonResourceURLs, text));
    }
    return errors;
  }
  if (apiGroups.length === 0) {
    const text = "resource rules must supply at least one api group";
    errors.push(required(`${field}.apiGroups`, text));
  }
  if (resources.length === 0) {
    const text = "resource rules must supply at least one resource";
    errors.push(required(`${field}.resources`, text));
  }
  return errors;
}

/** Errors of a RoleBinding or ClusterRoleBinding. */
export function bindingErrors(binding: KubeObject, namespaced: boolean): FieldError[] {
  const { apiGroup = "", kind = "", name = "" } = (binding["roleRef"] ?? {}) as Partial<RoleRef>;
  const kinds = namespaced ? ["Role", "ClusterRole"] : ["ClusterRole"];
  const errors: FieldError[] = [];
  if (apiGroup !== RBAC_GROUP) {
    errors.push(notSupported("roleRef.apiGroup", apiGroup, [RBAC_GROUP]));
  }
  if (!kinds.includes(kind)) errors.push(notSupported("roleRef.kind", kind, kinds));
  if (name === "") errors.push(required("roleRef.name"));
  for (const text of name === "" ? [] : isPathSegmentName(name)) {
    errors.push(invalidValue("roleRef.name", name, text));
  }
  subjectsOf(binding).forEach((subject, i) => {
    errors.push(...subjectErrors(subject, namespaced, `subjects[${i}]`));
  });
  return errors;
}

/** Errors of a change of a binding: its role is immutable. */
export function bindingUpdateErrors(
  binding: KubeObject,
  old: KubeObject,
  namespaced: boolean,
): FieldError[] {
  const errors = bindingErrors(binding, namespaced);
  if (!semanticEqual(binding["roleRef"], old["roleRef"])) {
    // Kubernetes prints the internal type's fields here.
    const { apiGroup, kind, name } = binding["roleRef"] as RoleRef;
    const shown = { APIGroup: apiGroup, Kind: kind, Name: name };
    errors.push(invalidValue("roleRef", shown, "cannot change roleRef"));
  }
  return errors;
}

function subjectErrors(subject: Subject, namespaced: boolean, field: string): FieldError[] {
  const { kind, apiGroup = "", name = "", namespace = "" } = subject;
  const errors: FieldError[] = [];
  if (name === "") errors.push(required(`${field}.name`));
  if (kind === "ServiceAccount") {
    for (const text of name === "" ? [] : isDns1123Subdomain(name)) {
      errors.push(invalidValue(`${field}.name`, name, text));
    }
    if (apiGroup !== "") errors.push(notSupported(`${field}.apiGroup`, apiGroup, [""]));
    if (!namespaced && namespace === "") errors.push(required(`${field}.namespace`));
  } else if (kind === "User" || kind === "Group") {
    if (apiGroup !== RBAC_GROUP) {
      errors.push(notSupported(`${field}.apiGroup`, apiGroup, [RBAC_GROUP]));
    }
  } else {
    errors.push(notSupported(`${field}.kind`, kind, ["ServiceAccount", "User", "Group"]));
  }
  return errors;
}
