/** Bugs of Kubernetes' access control and controllers, which their tests catch. */
import type { Mutant } from "../../../test/mutants/mutant.ts";

type Bug = readonly [name: string, file: string, before: string, after: string];

const garbage: readonly Bug[] = [
  [
    "the collector believes that an owner is gone by its uid alone",
    "controllers/garbage-collector.ts",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the source's text
    "return `${uid}/${kind}/${namespace}/${name}`;",
    "return [uid, kind, namespace, name][0];",
  ],
  [
    "the collector deletes an object one of whose owners is there",
    "controllers/garbage-collector.ts",
    "if (solid.length > 0) {",
    "if (solid.length > 1) {",
  ],
  [
    "the collector takes an owner of an unknown kind for gone",
    "controllers/garbage-collector.ts",
    'if (owner === "unknown-kind") return "unknown-kind";',
    'if (owner === "unknown-kind") { owners.dangling.push(reference); continue; }',
  ],
  [
    "an owner in a namespace is looked for outside of it",
    "controllers/gc-objects.ts",
    'if (resource.namespaced && identity.namespace === "") return "namespaced-owner";',
    'if (resource.namespaced && identity.namespace === "") return "absent";',
  ],
  [
    "a foreground deletion does not wait",
    "controllers/garbage-collector.ts",
    "if (blocking.length === 0) {",
    "if (blocking.length >= 0) {",
  ],
  [
    "a circle of foreground deletions stays",
    "controllers/garbage-collector.ts",
    "if ([...node.dependents].some(({ isDeletingDependents }) => isDeletingDependents)) {",
    "if (node.dependents.size < 0) {",
  ],
  [
    "an orphan keeps its reference",
    "controllers/garbage-collector.ts",
    "for (const { identity } of [...node.dependents]) {",
    "for (const { identity } of [...node.dependents].slice(1)) {",
  ],
  [
    "dependents of a deleted object are not looked at",
    "controllers/gc-graph.ts",
    "for (const dependent of node.dependents) this.#listener.attemptDelete(dependent);\n    this.#wakeWaitingOwners(node.owners);",
    "this.#wakeWaitingOwners(node.owners);",
  ],
];

const access: readonly Bug[] = [
  [
    "a role of a namespace counts in all of them",
    "authz/rbac-index.ts",
    'for (const scope of namespace === "" ? [""] : ["", namespace]) {',
    "for (const scope of this.#subjects.keys()) {",
  ],
  [
    "a user grants verbs that it does not have",
    "authz/escalation.ts",
    "coversAll(owner.verbs, right.verbs) &&",
    "owner.verbs.length > 0 &&",
  ],
  [
    "a rule for one name covers all names",
    "authz/escalation.ts",
    "return wanted !== undefined && wanted.length > 0 && wanted.every((one) => owner.includes(one));",
    "return wanted === undefined || wanted.every((one) => owner.includes(one));",
  ],
  [
    "the algorithm in a token's header is not compared with the key's",
    "authn/service-account-tokens.ts",
    "if (header.alg !== algorithm) continue;",
    "if (header.alg === undefined) continue;",
  ],
  [
    "a token is good for every audience",
    "authn/service-account-tokens.ts",
    "if (common.length === 0) {",
    "if (common.length < 0) {",
  ],
  [
    "a token outlives the object that it is bound to",
    "authn/service-account-claims.ts",
    "if (object === undefined || isGone(object, wallMs)) {",
    "if (object === undefined) return;\n  if (isGone(object, wallMs)) {",
  ],
  [
    "impersonated extra values need no permission",
    "authn/impersonation.ts",
    "for (const name of values) await check({ ...base, subresource, name });",
    "for (const name of values) await check({ ...base, subresource, name }).catch(() => {});",
  ],
  [
    "a webhook guards its own configuration",
    "admission/webhook-match.ts",
    'if (kind.group !== "admissionregistration.k8s.io") return false;',
    'if (kind.group !== "none") return false;',
  ],
  [
    "a webhook's denial is ignored with failurePolicy Ignore",
    "admission/webhook-dispatch.ts",
    "if (!result.allowed) throw denied(webhook, result.status);",
    'if (!result.allowed && webhook.spec.failurePolicy !== "Ignore") throw denied(webhook, result.status);',
  ],
];

const directory = "packages/kube-apiserver/test/policy";

function mutants(bugs: readonly Bug[], tests: readonly string[]): Mutant[] {
  return bugs.map(([name, file, before, after]) => ({
    name,
    file: `kube-apiserver/src/${file}`,
    before,
    after,
    tests: tests.map((test) => `${directory}/${test}.test.ts`),
    sim: "no",
  }));
}

export const MUTANTS: readonly Mutant[] = [
  ...mutants(garbage, ["garbage"]),
  ...mutants(access, ["access", "rbac", "tokens", "impersonation", "webhooks"]),
];
