/**
 * Authorizers in order (apiserver: pkg/authorization/union, authorizerfactory). The first that
 * allows or denies decides. Members of system:masters come before all of them.
 */
import { MASTERS_GROUP } from "../authn/user-names.ts";
import type { Authorizer } from "./authorizer.ts";
import type { RuleResolver, UserRules } from "./rbac-authorizer.ts";

export type AuthorizationMode = "AlwaysAllow" | "AlwaysDeny" | "RBAC";
export const AUTHORIZATION_MODES: readonly AuthorizationMode[] = [
  "AlwaysAllow",
  "AlwaysDeny",
  "RBAC",
];

const NO_RULES: UserRules = { rules: [], incomplete: false, errors: [] };

const alwaysAllow: Authorizer & RuleResolver = {
  authorize: async () => ({ decision: "allow", reason: "" }),
  rulesFor: () => ({
    ...NO_RULES,
    rules: [
      { verbs: ["*"], apiGroups: ["*"], resources: ["*"] },
      { verbs: ["*"], nonResourceURLs: ["*"] },
    ],
  }),
};

const alwaysDeny: Authorizer & RuleResolver = {
  authorize: async () => ({ decision: "no-opinion", reason: "Everything is forbidden." }),
  rulesFor: () => NO_RULES,
};

/**
 * The authorizer of --authorization-mode.
 * @param modes at least one, each once
 * @param rbac of the mode RBAC
 */
export function unionAuthorizer(
  modes: readonly AuthorizationMode[],
  rbac: Authorizer & RuleResolver,
): Authorizer & RuleResolver {
  const byMode = { AlwaysAllow: alwaysAllow, AlwaysDeny: alwaysDeny, RBAC: rbac };
  const authorizers = modes.map((mode) => byMode[mode]);
  return {
    async authorize(attributes) {
      if (attributes.user.groups.includes(MASTERS_GROUP)) return { decision: "allow", reason: "" };
      const reasons: string[] = [];
      for (const authorizer of authorizers) {
        const decision = await authorizer.authorize(attributes);
        if (decision.decision !== "no-opinion") return decision;
        if (decision.reason !== "") reasons.push(decision.reason);
      }
      return { decision: "no-opinion", reason: reasons.join("\n") };
    },
    rulesFor(user, namespace) {
      const all = authorizers.map((one) => one.rulesFor(user, namespace));
      return {
        rules: all.flatMap(({ rules }) => rules),
        incomplete: all.some(({ incomplete }) => incomplete),
        errors: all.flatMap(({ errors }) => errors),
      };
    },
  };
}
