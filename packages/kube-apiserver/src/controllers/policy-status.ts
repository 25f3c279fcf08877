/**
 * Checks the expressions of ValidatingAdmissionPolicies against the types that they match, and
 * writes warnings to the policy's status (Kubernetes: pkg/controller/
 * validatingadmissionpolicystatus; apiserver: pkg/admission/plugin/policy/validating/
 * typechecking.go). Warnings change no decision.
 */
import type { Clock, Logger } from "@quorate/host";
import type {
  GroupVersionKind,
  KubeObject,
  ServedResource,
  ServedResources,
} from "@quorate/kube-storage";
import type { MatchRule } from "../admission/matching.ts";
import { type PolicySpec, policySpecOf } from "../admission/policy-config.ts";
import { POLICY_RESOURCES } from "../admission/policy-kinds.ts";
import { resourceOf } from "../admission/policy-match.ts";
import { ADMISSION_GROUP } from "../admission/webhook-kinds.ts";
import type { Type } from "../crd/cel/lang/types.ts";
import type { RequestExpressions } from "../crd/cel/request-expressions.ts";
import { celTypeOf } from "../crd/cel/types.ts";
import {
  isConflict,
  isNotFound,
  type LocalClient,
  type ResourceRef,
} from "../informers/local-client.ts";
import { WorkQueue } from "./work-queue.ts";

const POLICY_STATUS: ResourceRef = {
  group: ADMISSION_GROUP,
  version: "v1",
  resource: POLICY_RESOURCES.validating,
  subresource: "status",
};
export const MAX_CHECKED_POLICIES = 10_000;
/** Types that one policy is checked against. */
const MAX_TYPES = 10;

export interface PolicyStatusDependencies {
  readonly client: LocalClient;
  readonly served: ServedResources;
  readonly expressions: RequestExpressions;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface ExpressionWarning {
  /** Such as "spec.validations[0].expression". */
  readonly fieldRef: string;
  readonly warning: string;
}

export class PolicyStatus {
  readonly #deps: PolicyStatusDependencies;
  readonly #policies = new Map<string, KubeObject>();
  readonly #queue: WorkQueue<string>;

  constructor(deps: PolicyStatusDependencies) {
    this.#deps = deps;
    this.#queue = new WorkQueue(
      {
        name: "types of policies",
        concurrency: 1,
        maxKeys: MAX_CHECKED_POLICIES,
        process: (name) => this.#process(name),
        rescan: () => {
          for (const name of this.#policies.keys()) this.#queue.add(name);
        },
      },
      deps.clock,
      deps.logger,
    );
  }

  /** Call it with each policy as it changes. */
  observe(policy: KubeObject): void {
    const name = policy.metadata.name ?? "";
    this.#policies.set(name, policy);
    this.#queue.add(name);
  }

  remove(policy: KubeObject): void {
    this.#policies.delete(policy.metadata.name ?? "");
  }

  stop(): void {
    this.#queue.stop();
  }

  async #process(name: string): Promise<boolean> {
    const policy = this.#policies.get(name);
    const { generation = 0 } = policy?.metadata ?? {};
    const status = policy?.["status"] as { readonly observedGeneration?: number } | undefined;
    if (policy === undefined || generation <= (status?.observedGeneration ?? 0)) return true;
    const { client, expressions, served } = this.#deps;
    await expressions.load();
    const warnings = expressionWarnings(policySpecOf(policy), served, expressions);
    const typeChecking = warnings.length === 0 ? {} : { expressionWarnings: warnings };
    try {
      await client.update(POLICY_STATUS, "", name, (present) =>
        present.metadata.generation === generation
          ? {
              ...present,
              status: {
                ...(present["status"] as object | undefined),
                observedGeneration: generation,
                typeChecking,
              },
            }
          : undefined,
      );
      return true;
    } catch (error) {
      if (isNotFound(error)) return true;
      if (isConflict(error)) return false;
      throw error;
    }
  }
}

/** What the type checker finds, for each type that the policy names. */
export function expressionWarnings(
  spec: PolicySpec,
  served: ServedResources,
  expressions: RequestExpressions,
): ExpressionWarning[] {
  const types = typesToCheck(spec.matchConstraints?.resourceRules ?? [], served);
  const params = spec.paramKind && resourceOf(spec.paramKind, served);
  const checks = types.map((resource) => {
    const set = expressions.set({
      hasParams: spec.paramKind !== undefined,
      hasVariables: true,
      object: typeOf(resource),
      params: params && typeOf(params),
    });
    for (const { name = "", expression = "" } of spec.variables ?? [])
      set.declare(name, expression);
    return { kind: resource.kind, set };
  });
  const warn = (fieldRef: string, expression: string): ExpressionWarning[] => {
    const problems = checks.flatMap(({ kind, set }) => {
      const problem = FAULTS.exec(set.compile(expression, []).error ?? "")?.[1];
      return problem === undefined ? [] : [`${shownKind(kind)}: ${problem}\n`];
    });
    return problems.length === 0 ? [] : [{ fieldRef, warning: problems.join("\n") }];
  };
  return (spec.validations ?? []).flatMap(({ expression = "", messageExpression = "" }, i) => [
    ...warn(`spec.validations[${i}].expression`, expression),
    ...(messageExpression === ""
      ? []
      : warn(`spec.validations[${i}].messageExpression`, messageExpression)),
  ]);
}

const FAULTS = /^compilation failed: (.*)$/s;

function shownKind({ group, version, kind }: GroupVersionKind): string {
  return `${group}/${version}, Kind=${kind}`;
}

function typeOf({ schema, kind }: ServedResource): Type | undefined {
  if (schema === undefined) return undefined;
  const hasMetadata = schema.schema.properties?.["metadata"]?.properties?.["name"] !== undefined;
  return celTypeOf(schema.schema, !hasMetadata, kind.kind)?.type;
}

/** Resources that rules name without wildcards, in the order of their kinds. */
function typesToCheck(rules: readonly MatchRule[], served: ServedResources): ServedResource[] {
  const found = new Map<string, ServedResource>();
  const named = (values: readonly string[] | undefined): readonly string[] =>
    values?.some((one) => one.includes("*")) ? [] : [...(values ?? [])].sort();
  for (const { apiGroups, apiVersions, resources = [] } of rules) {
    const plain = resources.filter((one) => !/[*/]/.test(one)).sort();
    for (const group of named(apiGroups))
      for (const version of named(apiVersions))
        for (const resource of plain) {
          const one = served.find(group, version, resource, "");
          if (one !== undefined && found.size < MAX_TYPES) found.set(shownKind(one.kind), one);
        }
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, resource]) => resource);
}
