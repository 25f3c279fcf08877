/**
 * ValidatingAdmissionPolicies, MutatingAdmissionPolicies and their bindings as they are stored, and
 * the list of all that are bound (apiserver: pkg/admission/plugin/policy/generic/policy_source.go).
 */
import type { KubeObject, LabelSelectorObject } from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import type {
  CompiledExpression,
  ExpressionSet,
  RequestExpressions,
} from "../crd/cel/request-expressions.ts";
import {
  type CompiledConditions,
  compiledConditions,
  type MatchCondition,
} from "./match-conditions.ts";
import type { MatchRule } from "./matching.ts";

export interface MatchResources {
  readonly namespaceSelector?: LabelSelectorObject;
  readonly objectSelector?: LabelSelectorObject;
  readonly resourceRules?: readonly MatchRule[];
  readonly excludeResourceRules?: readonly MatchRule[];
  readonly matchPolicy?: string;
}

export interface ParamKind {
  readonly apiVersion?: string;
  readonly kind?: string;
}

export interface ParamRef {
  readonly name?: string;
  readonly namespace?: string;
  readonly selector?: LabelSelectorObject;
  readonly parameterNotFoundAction?: string;
}

export interface PolicyValidation {
  readonly expression?: string;
  readonly message?: string;
  readonly reason?: string;
  readonly messageExpression?: string;
}

export interface AuditAnnotation {
  readonly key?: string;
  readonly valueExpression?: string;
}

export interface Mutation {
  readonly patchType?: string;
  readonly applyConfiguration?: { readonly expression?: string };
  readonly jsonPatch?: { readonly expression?: string };
}

/** The spec of a policy of either kind. */
export interface PolicySpec {
  readonly paramKind?: ParamKind;
  readonly matchConstraints?: MatchResources;
  readonly failurePolicy?: string;
  readonly matchConditions?: readonly MatchCondition[];
  readonly variables?: readonly { readonly name?: string; readonly expression?: string }[];
  readonly validations?: readonly PolicyValidation[];
  readonly auditAnnotations?: readonly AuditAnnotation[];
  readonly mutations?: readonly Mutation[];
  readonly reinvocationPolicy?: string;
}

/** The spec of a binding of either kind. */
export interface BindingSpec {
  readonly policyName?: string;
  readonly paramRef?: ParamRef;
  readonly matchResources?: MatchResources;
  readonly validationActions?: readonly string[];
}

export function policySpecOf(policy: KubeObject): PolicySpec {
  return (policy["spec"] ?? {}) as PolicySpec;
}

export function bindingSpecOf(binding: KubeObject): BindingSpec {
  return (binding["spec"] ?? {}) as BindingSpec;
}

export interface Binding {
  readonly name: string;
  readonly spec: BindingSpec;
}

/** The expressions of a policy. */
export interface CompiledPolicy {
  readonly set: ExpressionSet;
  readonly conditions: CompiledConditions;
  readonly validations: readonly CompiledExpression[];
  /** Of the validation with the same index; undefined where it has none. */
  readonly messages: readonly (CompiledExpression | undefined)[];
  readonly auditAnnotations: readonly CompiledExpression[];
  readonly mutations: readonly CompiledExpression[];
}

/** A policy, whose expressions are compiled with the first request that it is for. */
export class Policy {
  readonly name: string;
  readonly spec: PolicySpec;
  readonly #expressions: RequestExpressions;
  #compiled: CompiledPolicy | undefined;

  constructor(policy: KubeObject, expressions: RequestExpressions) {
    this.name = policy.metadata.name ?? "";
    this.spec = policySpecOf(policy);
    this.#expressions = expressions;
  }

  async compiled(): Promise<CompiledPolicy> {
    if (this.#compiled === undefined) {
      await this.#expressions.load();
      this.#compiled = compiledPolicy(this.spec, this.#expressions);
    }
    return this.#compiled;
  }
}

/** The text of a mutation's expression. */
export function mutationText({ patchType, applyConfiguration, jsonPatch }: Mutation): string {
  return (patchType === "JSONPatch" ? jsonPatch : applyConfiguration)?.expression ?? "";
}

/** The type that a mutation's expression must have. */
export function mutationType({ patchType }: Mutation): string {
  return patchType === "JSONPatch" ? "list(JSONPatch)" : "Object";
}

function compiledPolicy(spec: PolicySpec, expressions: RequestExpressions): CompiledPolicy {
  const set = expressions.set({ hasParams: spec.paramKind !== undefined, hasVariables: true });
  const { variables = [], validations = [], auditAnnotations = [], mutations = [] } = spec;
  for (const { name = "", expression = "" } of variables) set.declare(name, expression);
  return {
    set,
    conditions: compiledConditions(spec.matchConditions ?? [], set),
    validations: validations.map(({ expression = "" }) => set.compile(expression, ["bool"])),
    messages: validations.map(({ messageExpression = "" }) =>
      messageExpression === ""
        ? undefined
        : set.compile(messageExpression, ["string"], { hasAuthorizer: false }),
    ),
    auditAnnotations: auditAnnotations.map(({ valueExpression = "" }) =>
      set.compile(valueExpression, ["string", "null_type"]),
    ),
    mutations: mutations.map((one) =>
      set.compile(mutationText(one), [mutationType(one)], { hasPatchTypes: true }),
    ),
  };
}

/** A policy with all of its bindings; both are in the order of their names. */
export interface BoundPolicy {
  readonly policy: Policy;
  readonly bindings: readonly Binding[];
}

/** The policies of one kind that have bindings. */
export class PolicyList {
  readonly #expressions: RequestExpressions;
  readonly #policies = new Map<string, Policy>();
  readonly #bindings = new Map<string, Binding>();
  #bound: readonly BoundPolicy[] = [];

  constructor(expressions: RequestExpressions) {
    this.#expressions = expressions;
  }

  get bound(): readonly BoundPolicy[] {
    return this.#bound;
  }

  setPolicy(policy: KubeObject): void {
    const made = new Policy(policy, this.#expressions);
    this.#policies.set(made.name, made);
    this.#combine();
  }

  deletePolicy(policy: KubeObject): void {
    this.#policies.delete(policy.metadata.name ?? "");
    this.#combine();
  }

  setBinding(binding: KubeObject): void {
    const name = binding.metadata.name ?? "";
    this.#bindings.set(name, { name, spec: bindingSpecOf(binding) });
    this.#combine();
  }

  deleteBinding(binding: KubeObject): void {
    this.#bindings.delete(binding.metadata.name ?? "");
    this.#combine();
  }

  #combine(): void {
    const bindings = Map.groupBy(
      [...this.#bindings.keys()].sort().map((name) => defined(this.#bindings.get(name), "it")),
      ({ spec }) => spec.policyName ?? "",
    );
    this.#bound = [...bindings.keys()].sort().flatMap((name) => {
      const policy = this.#policies.get(name);
      return policy === undefined ? [] : [{ policy, bindings: bindings.get(name) ?? [] }];
    });
  }
}
