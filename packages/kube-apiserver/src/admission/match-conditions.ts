/**
 * matchConditions of webhooks and policies: expressions that all must be true (apiserver:
 * pkg/admission/plugin/webhook/matchconditions), and the variables of expressions.
 */
import type { Pauses } from "@quorate/host";
import { aggregateText, type JsonObject, type KubeObject } from "@quorate/kube-storage";
import type { Decisions } from "../crd/cel/functions/authorization.ts";
import {
  type Activation,
  type CompiledExpression,
  Evaluation,
  type ExpressionSet,
  type RequestExpressions,
} from "../crd/cel/request-expressions.ts";
import type { AdmissionAttributes } from "./admission.ts";
import type { VersionedRequest } from "./matching.ts";
import { reviewRequest } from "./webhook-review.ts";

export interface MatchCondition {
  readonly name: string;
  readonly expression: string;
}

/** What all conditions of a webhook or policy may cost (RuntimeCELCostBudgetMatchConditions). */
const CONDITIONS_BUDGET = 2_500_000;

export interface CompiledConditions {
  readonly set: ExpressionSet;
  readonly conditions: readonly CompiledExpression[];
}

/** Conditions of a webhook, compiled with the first request that they are for. */
export class MatchConditions {
  readonly #conditions: readonly MatchCondition[];
  readonly #expressions: RequestExpressions;
  #compiled: CompiledConditions | undefined;

  constructor(conditions: readonly MatchCondition[], expressions: RequestExpressions) {
    this.#conditions = conditions;
    this.#expressions = expressions;
  }

  get isEmpty(): boolean {
    return this.#conditions.length === 0;
  }

  async compiled(): Promise<CompiledConditions> {
    if (this.#compiled === undefined) {
      await this.#expressions.load();
      const set = this.#expressions.set({ hasParams: false, hasVariables: false });
      this.#compiled = compiledConditions(this.#conditions, set);
    }
    return this.#compiled;
  }
}

export function compiledConditions(
  conditions: readonly MatchCondition[],
  set: ExpressionSet,
): CompiledConditions {
  return { set, conditions: conditions.map((one) => set.compile(one.expression.trim(), ["bool"])) };
}

/** Whether all are true; one false one outweighs failures. Rejects with Error for failures. */
export async function areTrue(
  { set, conditions }: CompiledConditions,
  activation: Activation,
  pauses: Pauses,
): Promise<boolean> {
  const evaluation = new Evaluation(set, activation, CONDITIONS_BUDGET, pauses);
  const failures: string[] = [];
  let isFalse = false;
  for (const condition of conditions) {
    const outcome = await evaluation.run(condition);
    if ("error" in outcome) failures.push(outcome.error);
    else if (outcome.value !== true) isFalse = true;
  }
  if (isFalse) return false;
  if (failures.length > 0) throw new Error(aggregateText(failures));
  return true;
}

/** What expressions of one policy see besides the request. */
export interface PolicyVariables {
  readonly namespace?: KubeObject | undefined;
  readonly params?: KubeObject | undefined;
}

/** The variables of a request. @param decisions shared by all expressions for it */
export function activationOf(
  request: VersionedRequest,
  attributes: AdmissionAttributes,
  decisions: Decisions,
  { namespace, params }: PolicyVariables = {},
): Activation {
  const { uid: _, object: __, oldObject: ___, ...review } = reviewRequest("", request, attributes);
  const { resource, subresource, name, user } = attributes;
  return {
    object: request.object,
    oldObject: request.oldObject,
    request: review as JsonObject,
    namespace,
    params,
    user,
    decisions,
    resource: { ...resource, subresource, namespace: attributes.namespace, name },
  };
}
