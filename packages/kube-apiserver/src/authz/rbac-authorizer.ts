/** The authorizer of --authorization-mode=RBAC (Kubernetes: plugin/pkg/auth/authorizer/rbac). */
import { aggregateText, type UserInfo } from "@quorate/kube-storage";
import type { Authorizer, AuthorizerAttributes, Decision } from "./authorizer.ts";
import type { RbacIndex } from "./rbac-index.ts";
import { type PolicyRule, ruleAllows } from "./rules.ts";

/** The rules of a user, for SelfSubjectRulesReview and the escalation check. */
export interface UserRules {
  readonly rules: readonly PolicyRule[];
  /** There may be more, which the authorizer cannot list. */
  readonly incomplete: boolean;
  readonly errors: readonly string[];
}

export interface RuleResolver {
  rulesFor(user: UserInfo, namespace: string): UserRules;
}

export class RbacAuthorizer implements Authorizer, RuleResolver {
  readonly #index: RbacIndex;

  constructor(index: RbacIndex) {
    this.#index = index;
  }

  async authorize(attributes: AuthorizerAttributes): Promise<Decision> {
    return this.decide(attributes);
  }

  /** As `authorize`, at once. */
  decide(attributes: AuthorizerAttributes): Decision {
    let reason = "";
    let isAllowed = false;
    const { user, namespace } = attributes;
    const errors = this.#index.visitRules(user, namespace, (rule, source) => {
      if (!ruleAllows(rule, attributes)) return true;
      isAllowed = true;
      reason = `RBAC: allowed by ${source()}`;
      return false;
    });
    if (isAllowed) return { decision: "allow", reason };
    return {
      decision: "no-opinion",
      reason: errors.length === 0 ? "" : `RBAC: ${aggregateText(errors)}`,
    };
  }

  rulesFor(user: UserInfo, namespace: string): UserRules {
    const rules: PolicyRule[] = [];
    const errors = this.#index.visitRules(user, namespace, (rule) => {
      rules.push(rule);
      return true;
    });
    return { rules, incomplete: false, errors };
  }
}
