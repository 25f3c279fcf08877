/**
 * The file of --audit-policy-file (apiserver: pkg/apis/audit/v1/types.go, validation.go):
 *
 *     apiVersion: audit.k8s.io/v1
 *     kind: Policy
 *     omitStages: [RequestReceived]
 *     rules:
 *     - level: None
 *       users: [system:apiserver]
 *     - level: Metadata
 *       resources: [{group: "", resources: [secrets]}]
 *     - level: RequestResponse
 */

import type { FieldError } from "@quorate/kube-storage";
import { invalidValue, isDns1123Subdomain, notSupported, required } from "@quorate/kube-storage";
import {
  AUDIT_LEVELS,
  AUDIT_STAGES,
  type AuditPolicy,
  type AuditRule,
  type AuditStage,
  type GroupResources,
} from "./policy.ts";

/** A policy with more rules, or a rule with longer lists, is refused. */
export const MAX_POLICY_LIST = 1000;

const POLICY_FIELDS = [
  "apiVersion",
  "kind",
  "metadata",
  "rules",
  "omitStages",
  "omitManagedFields",
];
const RULE_FIELDS = [
  "level",
  "users",
  "userGroups",
  "verbs",
  "resources",
  "namespaces",
  "nonResourceURLs",
  "omitStages",
  "omitManagedFields",
];
const RESOURCE_FIELDS = ["group", "resources", "resourceNames"];

type Fields = Readonly<Record<string, unknown>>;

/** A policy, and the fields of its file that are not known. */
export interface ParsedPolicy {
  readonly policy: AuditPolicy;
  /** As "rules[0].verb"; Kubernetes ignores them too, with a warning. */
  readonly unknownFields: readonly string[];
}

/** Reads the value of the file. Throws Error with all that is wrong with it. */
export function parseAuditPolicy(value: unknown): ParsedPolicy {
  const reader = new PolicyReader();
  const policy = reader.policy(value);
  const texts = [...new Set(reader.errors.map(({ field, message }) => `${field}: ${message}`))];
  if (texts.length > 0) throw new Error(texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`);
  if (policy.rules.length === 0) throw new Error("loaded illegal policy with 0 rules");
  return { policy, unknownFields: reader.unknownFields };
}

class PolicyReader {
  readonly errors: FieldError[] = [];
  readonly unknownFields: string[] = [];

  policy(value: unknown): AuditPolicy {
    const fields = this.#fields(value, "", POLICY_FIELDS);
    const { apiVersion, kind, omitManagedFields } = fields;
    if (apiVersion !== "audit.k8s.io/v1" || kind !== "Policy")
      throw new Error(
        `unknown group version field in policy: apiVersion ${JSON.stringify(apiVersion)}, ` +
          `kind ${JSON.stringify(kind)}; it must be Policy of audit.k8s.io/v1`,
      );
    return {
      rules: list(fields["rules"], "rules").map((rule, at) => this.#rule(rule, `rules[${at}]`)),
      omitStages: this.#stages(fields["omitStages"], "omitStages"),
      omitManagedFields: flag(omitManagedFields, "omitManagedFields") ?? false,
    };
  }

  #rule(value: unknown, path: string): AuditRule {
    const fields = this.#fields(value, path, RULE_FIELDS);
    const strings = (name: string): readonly string[] => texts(fields[name], `${path}.${name}`);
    const rule: AuditRule = {
      level: this.#level(fields["level"], `${path}.level`),
      users: strings("users"),
      userGroups: strings("userGroups"),
      verbs: strings("verbs"),
      nonResourceUrls: strings("nonResourceURLs"),
      resources: list(fields["resources"], `${path}.resources`).map((one, at) =>
        this.#resources(one, `${path}.resources`, `${path}.resources[${at}]`),
      ),
      namespaces: strings("namespaces"),
      omitStages: this.#stages(fields["omitStages"], `${path}.omitStages`),
      omitManagedFields: flag(fields["omitManagedFields"], `${path}.omitManagedFields`),
    };
    this.#checkUrls(rule, `${path}.nonResourceURLs`);
    return rule;
  }

  #level(value: unknown, path: string): AuditRule["level"] {
    const level = AUDIT_LEVELS.find((one) => one === value);
    if (level !== undefined) return level;
    const isMissing = value === undefined || value === null || value === "";
    this.errors.push(isMissing ? required(path) : notSupported(path, value, AUDIT_LEVELS));
    return "None";
  }

  #stages(value: unknown, path: string): AuditStage[] {
    return texts(value, path).flatMap((text, at) => {
      const stage = AUDIT_STAGES.find((one) => one === text);
      if (stage !== undefined) return [stage];
      const why = `allowed stages are ${AUDIT_STAGES.join(",")}`;
      this.errors.push(invalidValue(`${path}[${at}]`, text, why));
      return [];
    });
  }

  #checkUrls({ nonResourceUrls: urls, resources, namespaces }: AuditRule, path: string): void {
    for (const [at, url] of urls.entries()) {
      const add = (why: string) => this.errors.push(invalidValue(`${path}[${at}]`, url, why));
      if (url === "*") continue;
      if (!url.startsWith("/")) add("non-resource URL rules must begin with a '/' character");
      if (url.slice(0, -1).includes("*"))
        add("non-resource URL wildcards '*' must be the final character of the rule");
    }
    if (urls.length > 0 && (resources.length > 0 || namespaces.length > 0)) {
      const why = "rules cannot apply to both regular resources and non-resource URLs";
      this.errors.push(invalidValue(path, urls, why));
    }
  }

  #resources(value: unknown, errorPath: string, path: string): GroupResources {
    const fields = this.#fields(value, path, RESOURCE_FIELDS);
    const { group = "" } = fields;
    if (typeof group !== "string") throw new Error(`${path}.group: expected a text`);
    const resources = texts(fields["resources"], `${path}.resources`);
    const resourceNames = texts(fields["resourceNames"], `${path}.resourceNames`);
    const problems = group === "" || group === "*" ? [] : isDns1123Subdomain(group);
    if (problems.length > 0)
      this.errors.push(invalidValue(`${errorPath}.group`, group, problems.join(",")));
    if (resourceNames.length > 0 && resources.length === 0) {
      const why = "using resourceNames requires at least one resource";
      this.errors.push(invalidValue(`${errorPath}.resourceNames`, resourceNames, why));
    }
    return { group, resources, resourceNames };
  }

  #fields(value: unknown, path: string, known: readonly string[]): Fields {
    if (typeof value !== "object" || value === null || Array.isArray(value))
      throw new Error(`failed decoding: ${path || "the file"}: expected an object`);
    for (const field of Object.keys(value))
      if (!known.includes(field)) this.unknownFields.push(path === "" ? field : `${path}.${field}`);
    return value as Fields;
  }
}

function list(value: unknown, path: string): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new Error(`failed decoding: ${path}: expected a list`);
  if (value.length > MAX_POLICY_LIST)
    throw new Error(`failed decoding: ${path}: more than ${MAX_POLICY_LIST} elements`);
  return value;
}

function texts(value: unknown, path: string): readonly string[] {
  return list(value, path).map((one) => {
    if (typeof one !== "string") throw new Error(`failed decoding: ${path}: expected texts`);
    return one;
  });
}

function flag(value: unknown, path: string): boolean | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "boolean")
    throw new Error(`failed decoding: ${path}: expected true or false`);
  return value;
}
