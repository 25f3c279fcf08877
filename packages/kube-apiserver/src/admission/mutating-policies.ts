/**
 * The plug-in MutatingAdmissionPolicy: expressions that change an object, by what they would apply
 * or by a JSON patch (apiserver: pkg/admission/plugin/policy/mutating). Nobody owns the fields that
 * they set.
 */

import {
  ApiError,
  internalError,
  type Json,
  type KubeObject,
  type ServedResource,
  semanticEqual,
  serviceUnavailable,
} from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import { jsonPatched, PatchFailure, TEST_FAILED } from "../apply/json-patch.ts";
import { atomicPaths } from "../apply/typed-fields.ts";
import { mergeTyped } from "../apply/typed-merge.ts";
import { typeOfObject } from "../apply/typed-schema.ts";
import { TypedError, validateTyped } from "../apply/typed-value.ts";
import { OBJECT_BUDGET } from "../crd/cel/base/budget.ts";
import { celJson, misplacedTypes } from "../crd/cel/functions/patch-types.ts";
import { type CompiledExpression, Evaluation } from "../crd/cel/request-expressions.ts";
import type { AdmissionAttributes } from "./admission.ts";
import { type AdmissionPlugin, admissionForbidden, Reinvocation, type Rounds } from "./chain.ts";
import { isExempt, type VersionedRequest } from "./matching.ts";
import type { CompiledPolicy, Mutation, PolicyList } from "./policy-config.ts";
import {
  type PolicyDependencies,
  type PolicyInvocation,
  type PolicyProblem,
  PolicyRequest,
} from "./policy-match.ts";

export function mutatingPolicies(policies: PolicyList, deps: PolicyDependencies): AdmissionPlugin {
  const states = new WeakMap<Rounds, Reinvocation>();
  return {
    isIdle: () => policies.bound.length === 0,
    async mutate(attributes, rounds) {
      const { object, operation } = attributes;
      if (operation === "DELETE" || isExempt(attributes)) return object;
      const again = Reinvocation.of(states, rounds, object);
      const work = new MutatingRequest(attributes, again, rounds.isSecond, deps);
      const result = await work.run(policies);
      again.ended(result);
      return result;
    },
  };
}

class MutatingRequest {
  readonly #request: PolicyRequest;
  readonly #attributes: AdmissionAttributes;
  readonly #again: Reinvocation;
  readonly #isSecond: boolean;
  readonly #deps: PolicyDependencies;
  readonly #problems: PolicyProblem[] = [];
  /** The present object, by its version. */
  readonly #objects = new Map<string, KubeObject>();
  #last: VersionedRequest | undefined;

  constructor(
    attributes: AdmissionAttributes,
    again: Reinvocation,
    isSecond: boolean,
    deps: PolicyDependencies,
  ) {
    this.#attributes = attributes;
    this.#again = again;
    this.#isSecond = isSecond;
    this.#deps = deps;
    this.#request = new PolicyRequest(attributes, deps);
  }

  async run({ bound }: PolicyList): Promise<KubeObject | undefined> {
    const invocations = await this.#request.invocations(bound, this.#problems);
    for (const invocation of invocations) await this.#invoke(invocation);
    let { object } = this.#attributes;
    if (this.#last !== undefined) {
      this.#again.changed();
      object = await this.#inOwnVersion(this.#last);
    }
    this.#refuse();
    return object;
  }

  async #invoke(invocation: PolicyInvocation): Promise<void> {
    const { policy, binding, request, params } = invocation;
    const compiled = await policy.compiled();
    const version = request.resource.version;
    const object = this.#objects.get(version) ?? request.object;
    const present = { ...invocation, request: { ...request, object } };
    try {
      if (!(await this.#request.matchesConditions(present, compiled))) return;
    } catch (error) {
      this.#fail(invocation, error);
      return;
    }
    const { name = "", namespace = "" } = params?.metadata ?? {};
    const id = JSON.stringify([policy.name, binding.name, namespace, name]);
    if (this.#isSecond && !this.#again.isDue(id)) return;
    const result = object && (await this.#mutated(present, object, compiled));
    if (result !== undefined) {
      this.#objects.set(version, result);
      if (!semanticEqual(result, object)) this.#again.changed();
    }
    if (policy.spec.reinvocationPolicy === "IfNeeded") this.#again.wait(id);
  }

  async #mutated(
    invocation: PolicyInvocation,
    before: KubeObject,
    compiled: CompiledPolicy,
  ): Promise<KubeObject> {
    const { policy, request } = invocation;
    let object = before;
    for (const [i, mutation] of (policy.spec.mutations ?? []).entries()) {
      const present = { ...request, object };
      try {
        object = await this.#patched(mutation, defined(compiled.mutations[i], "the mutation"), {
          ...invocation,
          request: present,
          compiled,
          object,
        });
        this.#last = { ...request, object };
      } catch (error) {
        this.#fail(invocation, error);
      }
    }
    return object;
  }

  async #patched(
    { patchType }: Mutation,
    expression: CompiledExpression,
    at: PolicyInvocation & { readonly compiled: CompiledPolicy; readonly object: KubeObject },
  ): Promise<KubeObject> {
    const { request, params, compiled, object } = at;
    const served = this.#served(request);
    if (expression.error !== undefined) throw new Error(expression.error);
    const activation = this.#request.activation(request, params);
    const { pauses } = this.#request;
    const evaluation = new Evaluation(compiled.set, activation, OBJECT_BUDGET, pauses);
    const outcome = await evaluation.run(expression);
    if ("error" in outcome) throw new Error(outcome.error);
    if (patchType === "JSONPatch") return patchedBySteps(served, object, outcome.value);
    return served.decode(applied(served, object, outcome.value)).object;
  }

  #served({ resource, kind }: VersionedRequest): ServedResource {
    const { subresource } = this.#attributes;
    const { group, version } = resource;
    const found = this.#deps.served.find(group, version, resource.resource, subresource);
    if (found?.schema !== undefined) return found;
    const shown = `${group}/${version}, Kind=${kind.kind}`;
    throw serviceUnavailable(
      `Resource kind ${shown} not found. There can be a delay between when ` +
        "CustomResourceDefinitions are created and when they are available.",
    );
  }

  async #inOwnVersion({ object, isConverted }: VersionedRequest): Promise<KubeObject | undefined> {
    if (!isConverted || object === undefined) return object;
    const { resource, kind } = this.#attributes;
    const own = this.#served({ resource, kind, object, oldObject: undefined, isConverted });
    return (await own.convert([object]))[0];
  }

  /** An error of the request itself ends it; others are the policy's. */
  #fail({ policy, binding }: PolicyInvocation, error: unknown): void {
    if (error instanceof ApiError || !(error instanceof Error)) throw error;
    this.#problems.push({ policy, binding, message: error.message });
  }

  #refuse(): void {
    const failures = this.#problems.filter(({ policy }) => policy.spec.failurePolicy !== "Ignore");
    if (failures.length === 0) return;
    const why = "admission request denied by policy";
    const { details } = admissionForbidden(this.#attributes, why);
    const causes = failures.map(({ policy, binding, message }) => ({
      message:
        binding === undefined
          ? `policy "${policy.name}" denied request: ${message}`
          : `policy '${policy.name}' with binding '${binding.name}' denied request: ${message}`,
    }));
    const all = [...(details?.causes ?? []), ...causes];
    const isOfRun = failures[0]?.message.startsWith("failed to configure ") !== true;
    const reason = isOfRun ? "Invalid" : "Forbidden";
    throw new ApiError(403, reason, causes[0]?.message ?? why, { ...details, causes: all });
  }
}

/** Steps that test for something else than what is there change nothing. */
function patchedBySteps(served: ServedResource, object: KubeObject, value: unknown): KubeObject {
  const steps = (value as readonly unknown[]).map(patchStep);
  let patched: unknown;
  try {
    patched = jsonPatched(object, steps);
  } catch (error) {
    if (!(error instanceof PatchFailure)) throw error;
    if (error.message === TEST_FAILED) return object;
    throw new Error(`JSON Patch: ${error.message}`, { cause: error });
  }
  return decoded(served, patched);
}

/** What a patch makes of an object has to be one. Throws ApiError 500. */
function decoded({ decode, strategicMerge }: ServedResource, value: unknown): KubeObject {
  try {
    const { object, strictErrors } = decode(value);
    if (!strategicMerge || strictErrors.length === 0) return object;
    throw internalError(`strict decoding error: ${strictErrors.join(", ")}`);
  } catch (error) {
    if (!(error instanceof ApiError) || error.httpStatus !== 400) throw error;
    throw internalError(error.message.replace(/^.* cannot be handled as an? \w+: /, ""));
  }
}

function patchStep(value: unknown): Readonly<Record<string, Json>> {
  const fields = (value as { readonly fields: ReadonlyMap<string, unknown> }).fields;
  const { op = "", path = "", from = "" } = Object.fromEntries(fields) as Record<string, string>;
  const step = { op, path, ...(from === "" ? {} : { from }) };
  if (!fields.has("value")) return step;
  checkPlaces(fields.get("value"), undefined);
  return { ...step, value: celJson(fields.get("value")) };
}

/** @param root of the type names; undefined: that of the value */
function checkPlaces(value: unknown, root: string | undefined): void {
  const own = (value as { readonly celType?: { readonly name: string } } | null)?.celType?.name;
  const misplaced = misplacedTypes(value, [root ?? own ?? ""]);
  if (misplaced.length > 0) throw new Error(`type mismatch: ${misplaced.join("\n")}`);
}

/** The object with what an expression applies to it. */
function applied({ schema, kind }: ServedResource, object: KubeObject, value: unknown): unknown {
  checkPlaces(value, "Object");
  const type = typeOfObject(schema);
  const { apiVersion } = object;
  const patch = { ...(celJson(value) as object), apiVersion, kind: kind.kind };
  const step = <T>(what: string, work: () => T): T => {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof TypedError)) throw error;
      throw new Error(`error applying patch: ${what}: ${error.message}`, { cause: error });
    }
  };
  step("failed to convert patch object to typed object", () => validateTyped(type, patch, false));
  const atomic = atomicPaths(type, patch);
  if (atomic.length > 0) {
    const why = `may not mutate atomic arrays, maps or structs: ${atomic.join(", ")}`;
    throw new Error(`error applying patch: invalid ApplyConfiguration: ${why}`);
  }
  step("failed to convert original object to typed object", () =>
    validateTyped(type, object, true),
  );
  return step("failed to merge patch", () => mergeTyped(type, object, patch));
}
