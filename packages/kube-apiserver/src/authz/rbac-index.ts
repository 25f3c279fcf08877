/**
 * Roles and bindings in memory, by subject, so that a decision looks only at what concerns its user
 * (Kubernetes: pkg/registry/rbac/validation/rule.go scans all bindings). Fed by informers.
 *
 *     subject "g:developers" -> role "Role/team-a/editor" -> bindings that join them
 */
import type { KubeObject, UserInfo } from "@quorate/kube-storage";
import { defined, quoteText as goQuote } from "@quorate/proto";
import { serviceAccountUsername } from "../authn/user-names.ts";
import {
  type PolicyRule,
  RBAC_GROUP,
  type RoleRef,
  rulesOf,
  type Subject,
  subjectsOf,
} from "./rules.ts";

/** A role through which a subject has rules, and the bindings that say so. */
interface Grant {
  readonly role: RoleRef;
  /** "" for a ClusterRoleBinding. */
  readonly namespace: string;
  /** By the binding's name: how the reason describes it. */
  readonly bindings: Map<string, string>;
}

type Grants = Map<string, Grant>;

/** One rule that applies to a user, or a role that is not there. */
export type Visit = (rule: PolicyRule, source: () => string) => boolean;

export interface RoleRules {
  readonly rules: readonly PolicyRule[];
  /** Undefined where the role is there. */
  readonly error: string | undefined;
}

export class RbacIndex {
  /** By "Role/namespace/name" or "ClusterRole//name". */
  readonly #roles = new Map<string, readonly PolicyRule[]>();
  /** By the binding's namespace ("" for ClusterRoleBindings), then subject, then role. */
  readonly #subjects = new Map<string, Map<string, Grants>>();

  setRole(role: KubeObject): void {
    this.#roles.set(roleKey(role.kind, role.metadata.namespace ?? "", role), rulesOf(role));
  }

  deleteRole(role: KubeObject): void {
    this.#roles.delete(roleKey(role.kind, role.metadata.namespace ?? "", role));
  }

  addBinding(binding: KubeObject): void {
    const namespace = binding.metadata.namespace ?? "";
    const role = binding["roleRef"] as RoleRef;
    const name = binding.metadata.name ?? "";
    const bySubject = entryOf(this.#subjects, namespace, () => new Map<string, Grants>());
    for (const subject of [...subjectsOf(binding)].reverse()) {
      const key = subjectKey(subject, namespace);
      if (key === undefined) continue;
      const grants = entryOf(bySubject, key, () => new Map<string, Grant>());
      const grant = entryOf(grants, `${role.kind}/${role.name}`, () => ({
        role,
        namespace,
        bindings: new Map(),
      }));
      grant.bindings.set(name, describe(binding, role, subject, namespace));
    }
  }

  deleteBinding(binding: KubeObject): void {
    const namespace = binding.metadata.namespace ?? "";
    const role = binding["roleRef"] as RoleRef;
    const bySubject = this.#subjects.get(namespace);
    for (const subject of subjectsOf(binding)) {
      const key = subjectKey(subject, namespace);
      const grants = key === undefined ? undefined : bySubject?.get(key);
      const grant = grants?.get(`${role.kind}/${role.name}`);
      if (key === undefined || grants === undefined || grant === undefined) continue;
      grant.bindings.delete(binding.metadata.name ?? "");
      if (grant.bindings.size === 0) grants.delete(`${role.kind}/${role.name}`);
      if (grants.size === 0) bySubject?.delete(key);
    }
    if (bySubject?.size === 0) this.#subjects.delete(namespace);
  }

  /** The rules of a role that a binding in `namespace` ("" for none) refers to. */
  roleRules({ kind, name }: RoleRef, namespace: string): RoleRules {
    if (kind !== "Role" && kind !== "ClusterRole") {
      return { rules: [], error: `unsupported role reference kind: ${goQuote(kind)}` };
    }
    const rules = this.#roles.get(`${kind}/${kind === "Role" ? namespace : ""}/${name}`);
    if (rules !== undefined) return { rules, error: undefined };
    const error = `${kind.toLowerCase()}.${RBAC_GROUP} ${goQuote(name)} not found`;
    return { rules: [], error };
  }

  /**
   * Calls `visit` with each rule that applies to a user in a namespace ("" for the cluster) until it
   * returns false.
   * @returns roles that were not found
   */
  visitRules(user: UserInfo, namespace: string, visit: Visit): readonly string[] {
    const errors = new Set<string>();
    for (const scope of namespace === "" ? [""] : ["", namespace]) {
      const bySubject = this.#subjects.get(scope);
      if (bySubject === undefined) continue;
      if (!this.#visitSubject(bySubject.get(`u:${user.name}`), visit, errors)) return [];
      for (const group of user.groups) {
        if (!this.#visitSubject(bySubject.get(`g:${group}`), visit, errors)) return [];
      }
    }
    return [...errors];
  }

  #visitSubject(grants: Grants | undefined, visit: Visit, errors: Set<string>): boolean {
    if (grants === undefined) return true;
    for (const { role, namespace, bindings } of grants.values()) {
      const { rules, error } = this.roleRules(role, namespace);
      if (error !== undefined) errors.add(error);
      const source = (): string => defined(bindings.values().next().value, "the value");
      for (const rule of rules) if (!visit(rule, source)) return false;
    }
    return true;
  }
}

function entryOf<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}

function roleKey(kind: string, namespace: string, { metadata }: KubeObject): string {
  return `${kind}/${namespace}/${metadata.name}`;
}

function subjectKey(subject: Subject, namespace: string): string | undefined {
  switch (subject.kind) {
    case "User":
      return `u:${subject.name}`;
    case "Group":
      return `g:${subject.name}`;
    case "ServiceAccount": {
      const of = subject.namespace || namespace;
      return of === "" ? undefined : `u:${serviceAccountUsername(of, subject.name)}`;
    }
    default:
      return undefined;
  }
}

/** Such as: ClusterRoleBinding "ops" of ClusterRole "admin" to Group "ops". */
function describe(binding: KubeObject, role: RoleRef, subject: Subject, namespace: string): string {
  const name = binding.metadata.name ?? "";
  const whole = namespace === "" ? name : `${name}/${namespace}`;
  const kind = namespace === "" ? "ClusterRoleBinding" : "RoleBinding";
  const of =
    subject.kind === "ServiceAccount"
      ? `${subject.name}/${subject.namespace || namespace}`
      : subject.name;
  return (
    `${kind} ${goQuote(whole)} of ${role.kind} ${goQuote(role.name)} to ` +
    `${subject.kind} ${goQuote(of)}`
  );
}
