/**
 * The plug-in ValidatingAdmissionPolicy: expressions that a request must fulfil (apiserver:
 * pkg/admission/plugin/policy/validating).
 */
import { ApiError } from "@quorate/kube-storage";
import { fromUtf8, toUtf8 } from "@quorate/proto";
import { OBJECT_BUDGET } from "../crd/cel/base/budget.ts";
import { Evaluation, OutOfBudgetError } from "../crd/cel/request-expressions.ts";
import type { AdmissionAttributes } from "./admission.ts";
import { type AdmissionPlugin, admissionForbidden } from "./chain.ts";
import { isExempt } from "./matching.ts";
import type { Binding, CompiledPolicy, Policy, PolicyList } from "./policy-config.ts";
import {
  type PolicyDependencies,
  type PolicyInvocation,
  type PolicyProblem,
  PolicyRequest,
} from "./policy-match.ts";

const FAILURE_ANNOTATION = "validation.policy.admission.k8s.io/validation_failure";
const MAX_ANNOTATION_BYTES = 10 * 1024;
const MAX_MESSAGE_BYTES = 5 * 1024;
const CODES: Readonly<Record<string, number>> = { Forbidden: 403, RequestEntityTooLarge: 413 };

/** A refusal of one validation. @param index of the validation in its policy */
interface Denial {
  readonly index: number;
  readonly message: string;
  readonly reason?: string | undefined;
}

export function validatingPolicies(
  policies: PolicyList,
  deps: PolicyDependencies,
): AdmissionPlugin {
  return {
    isIdle: () => policies.bound.length === 0,
    async validate(attributes) {
      if (isExempt(attributes)) return;
      await new ValidatingRequest(attributes, deps).run(policies);
    },
  };
}

interface Denied {
  readonly policy: Policy;
  readonly binding: Binding | undefined;
  readonly denial: Omit<Denial, "index">;
}

class ValidatingRequest {
  readonly #request: PolicyRequest;
  readonly #attributes: AdmissionAttributes;
  readonly #denied: Denied[] = [];
  /** Values for the audit log, by policy and key. */
  readonly #annotations = new Map<string, Set<string>>();

  constructor(attributes: AdmissionAttributes, deps: PolicyDependencies) {
    this.#attributes = attributes;
    this.#request = new PolicyRequest(attributes, deps);
  }

  async run({ bound }: PolicyList): Promise<void> {
    const problems: PolicyProblem[] = [];
    const invocations = await this.#request.invocations(bound, problems);
    for (const { policy, binding, message } of problems)
      if (policy.spec.failurePolicy !== "Ignore")
        this.#denied.push({ policy, binding, denial: { message } });
    for (const invocation of invocations) await this.#invoke(invocation);
    for (const [key, values] of this.#annotations)
      this.#attributes.annotate?.(key, [...values].join(", "));
    // Policies in the order of their names, as problems come first above.
    const [first] = this.#denied.toSorted((a, b) => (a.policy.name < b.policy.name ? -1 : 1));
    if (first !== undefined) throw this.#refusal(first);
  }

  async #invoke(invocation: PolicyInvocation): Promise<void> {
    const { policy, binding } = invocation;
    const compiled = await policy.compiled();
    try {
      if (!(await this.#request.matchesConditions(invocation, compiled))) return;
      const denials = await this.#denials(invocation, compiled);
      // An annotation whose budget is used up stands for all that was found before.
      const annotations = await this.#auditAnnotations(invocation, compiled);
      for (const one of denials) this.#deny(invocation, one);
      for (const message of annotations)
        this.#denied.push({ policy, binding, denial: { message } });
    } catch (error) {
      if (error instanceof ApiError || !(error instanceof Error)) throw error;
      if (policy.spec.failurePolicy !== "Ignore")
        this.#deny(invocation, { index: 0, message: error.message });
    }
  }

  /** Rejects with Error where no validation can be evaluated any more. */
  async #denials(invocation: PolicyInvocation, compiled: CompiledPolicy): Promise<Denial[]> {
    const { policy, request, params } = invocation;
    const isFailClosed = policy.spec.failurePolicy !== "Ignore";
    const activation = this.#request.activation(request, params);
    const { pauses } = this.#request;
    const evaluation = new Evaluation(compiled.set, activation, OBJECT_BUDGET, pauses);
    const outcomes = [];
    for (const one of compiled.validations) outcomes.push(await evaluation.run(one));
    const messages = await this.#messages(invocation, compiled, evaluation.left);
    return outcomes.flatMap((outcome, index): Denial[] => {
      const validation = policy.spec.validations?.[index] ?? {};
      if ("error" in outcome) return isFailClosed ? [{ index, message: outcome.error }] : [];
      if (messages === undefined) {
        const message = `failed messageExpression: ${new OutOfBudgetError().message}`;
        return isFailClosed ? [{ index, message }] : [];
      }
      if (outcome.value === true) return [];
      const message =
        messages[index] ||
        validation.message?.trim() ||
        `failed expression: ${validation.expression?.trim()}`;
      return [{ index, message, reason: validation.reason }];
    });
  }

  /** By the validations' indices, "" for none. Undefined: the budget is used up. */
  async #messages(
    { request, params }: PolicyInvocation,
    { set, messages }: CompiledPolicy,
    limit: number,
  ): Promise<readonly string[] | undefined> {
    const activation = this.#request.activation(request, params);
    const evaluation = new Evaluation(set, activation, limit, this.#request.pauses);
    const texts: string[] = [];
    try {
      for (const one of messages) {
        const outcome = one === undefined ? { value: "" } : await evaluation.run(one);
        const value = "value" in outcome ? outcome.value : "";
        texts.push(typeof value === "string" ? usableMessage(value.trim()) : "");
      }
    } catch (error) {
      if (error instanceof OutOfBudgetError) return undefined;
      throw error;
    }
    return texts;
  }

  #deny({ policy, binding }: PolicyInvocation, denial: Denial): void {
    const { message, index } = denial;
    const { validationActions = [] } = binding.spec;
    for (const action of validationActions) {
      if (action === "Deny") this.#denied.push({ policy, binding, denial });
      else if (action === "Warn")
        this.#attributes.warn(
          `Validation failed for ValidatingAdmissionPolicy '${policy.name}' with binding ` +
            `'${binding.name}': ${message}`,
        );
      else
        this.#attributes.annotate?.(
          FAILURE_ANNOTATION,
          JSON.stringify([
            {
              message,
              policy: policy.name,
              binding: binding.name,
              expressionIndex: index,
              validationActions,
            },
          ]),
        );
    }
  }

  /** Adds the annotations. Resolves with failures. */
  async #auditAnnotations(
    { policy, request, params }: PolicyInvocation,
    { set, auditAnnotations }: CompiledPolicy,
  ): Promise<string[]> {
    const activation = this.#request.activation(request, params);
    const { pauses } = this.#request;
    const evaluation = new Evaluation(set, activation, OBJECT_BUDGET, pauses);
    const failures: string[] = [];
    const found: [string, string][] = [];
    for (const [i, compiled] of auditAnnotations.entries()) {
      const outcome = await evaluation.run(compiled);
      if ("error" in outcome) failures.push(outcome.error);
      else if (typeof outcome.value === "string" && outcome.value.trim() !== "") {
        const key = `${policy.name}/${policy.spec.auditAnnotations?.[i]?.key}`;
        found.push([key, cut(outcome.value.trim())]);
      }
    }
    for (const [key, value] of found) {
      const values = this.#annotations.get(key) ?? new Set();
      this.#annotations.set(key, values.add(value));
    }
    return policy.spec.failurePolicy === "Ignore" ? [] : failures;
  }

  #refusal({ policy, binding, denial }: Denied): ApiError {
    const by = binding === undefined ? "" : ` with binding '${binding.name}'`;
    const text = `ValidatingAdmissionPolicy '${policy.name}'${by} denied request: ${denial.message}`;
    const { message, details } = admissionForbidden(this.#attributes, text);
    const { reason = "Invalid" } = denial;
    const code = (Object.hasOwn(CODES, reason) ? CODES[reason] : undefined) ?? 422;
    const causes = [...(details?.causes ?? []), { message: text }];
    return new ApiError(code, reason, message, { ...details, causes });
  }
}

/** A message that is too long or has several lines counts as none. */
function usableMessage(text: string): string {
  return text.includes("\n") || fromUtf8(text).length > MAX_MESSAGE_BYTES ? "" : text;
}

function cut(text: string): string {
  const bytes = fromUtf8(text);
  return bytes.length <= MAX_ANNOTATION_BYTES ? text : toUtf8(bytes, 0, MAX_ANNOTATION_BYTES);
}
