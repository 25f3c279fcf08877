/**
 * Authorizers in order (apiserver: pkg/authorization/union, authorizerfactory). The first that
 * allows or denies decides. Members of system:masters come before all of them.
 */
import { aggregateText } from "@quorate/kube-storage";
import { MASTERS_GROUP } from "../authn/user-names.ts";
import type { Authorizer } from "./authorizer.ts";
import type { RuleResolver, UserRules } from "./rbac-authorizer.ts";

export type AuthorizationMode = "AlwaysAllow" | "AlwaysDeny" | "RBAC" | "Webhook";
export const AUTHORIZATION_MODES: readonly AuthorizationMode[] = [
  "AlwaysAllow",
  "AlwaysDeny",
  "RBAC",
  "Webhook",
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
 * @param webhook of the mode Webhook; without one, that mode has no opinion
 */
export function unionAuthorizer(
  modes: readonly AuthorizationMode[],
  rbac: Authorizer & RuleResolver,
  webhook: Authorizer & RuleResolver = alwaysDeny,
): Authorizer & RuleResolver {
  const byMode = { AlwaysAllow: alwaysAllow, AlwaysDeny: alwaysDeny, RBAC: rbac, Webhook: webhook };
  const authorizers = modes.map((mode) => byMode[mode]);
  return {
    async authorize(attributes) {
      if (attributes.user.groups.includes(MASTERS_GROUP)) return { decision: "allow", reason: "" };
      const reasons: string[] = [];
      const errors: string[] = [];
      for (const authorizer of authorizers) {
        const decision = await authorizer.authorize(attributes);
        if (decision.decision !== "no-opinion") return decision;
        if (decision.error !== undefined) errors.push(decision.error);
        if (decision.reason !== "") reasons.push(decision.reason);
      }
      const error = errors.length === 0 ? {} : { error: aggregateText(errors) };
      return { decision: "no-opinion", reason: reasons.join("\n"), ...error };
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
