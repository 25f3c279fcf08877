/**
 * Which policies, bindings and parameters are for a request (apiserver: pkg/admission/plugin/
 * policy/generic/policy_dispatcher.go, policy/matching).
 */

import { type Clock, Pauses } from "@quorate/host";
import {
  ApiError,
  type KubeObject,
  parseApiVersion,
  type ServedResource,
  type ServedResources,
  storageWith,
  textOf,
} from "@quorate/kube-storage";
import type { Authorizer } from "../authz/authorizer.ts";
import { Decisions } from "../crd/cel/functions/authorization.ts";
import type { Activation } from "../crd/cel/request-expressions.ts";
import { listOptions } from "../informers/informer.ts";
import { systemContext } from "../informers/system-context.ts";
import type { AdmissionAttributes } from "./admission.ts";
import { activationOf, areTrue } from "./match-conditions.ts";
import {
  inVersion,
  type MatchDependencies,
  matchedVersion,
  matchesNamespace,
  matchesObject,
  namespaceNamed,
  selectorOf,
  type VersionedRequest,
} from "./matching.ts";
import type {
  Binding,
  BoundPolicy,
  CompiledPolicy,
  MatchResources,
  ParamKind,
  ParamRef,
  Policy,
} from "./policy-config.ts";

export interface PolicyDependencies extends MatchDependencies {
  readonly authorizer: Authorizer;
  readonly clock: Pick<Clock, "turns">;
}

/** A policy that cannot be used as it is configured; failurePolicy says what follows. */
export interface PolicyProblem {
  readonly policy: Policy;
  readonly binding: Binding | undefined;
  readonly message: string;
}

/** A policy with a binding and one parameter, which is undefined without paramKind or paramRef. */
export interface PolicyInvocation {
  readonly policy: Policy;
  readonly binding: Binding;
  readonly request: VersionedRequest;
  readonly params: KubeObject | undefined;
}

/** What expressions for one request share. */
export class PolicyRequest {
  readonly attributes: AdmissionAttributes;
  readonly pauses: Pauses;
  readonly #deps: PolicyDependencies;
  readonly #decisions: Decisions;
  #namespace: KubeObject | undefined;

  constructor(attributes: AdmissionAttributes, deps: PolicyDependencies) {
    this.attributes = attributes;
    this.#deps = deps;
    this.#decisions = new Decisions(deps.authorizer);
    this.pauses = new Pauses(deps.clock.turns);
  }

  /**
   * The invocations of bound policies, in their order. Rejects with ApiError where the namespace
   * does not exist.
   * @param problems are added to
   */
  async invocations(
    bound: readonly BoundPolicy[],
    problems: PolicyProblem[],
  ): Promise<PolicyInvocation[]> {
    const found: PolicyInvocation[] = [];
    for (const { policy, bindings } of bound) {
      const version = await this.#matched(policy.spec.matchConstraints);
      if (version === undefined) continue;
      const { paramKind } = policy.spec;
      const kind = paramKind && resourceOf(paramKind, this.#deps.served);
      if (paramKind !== undefined && kind === undefined) {
        const shown = shownKind(paramKind);
        const why = `failed to find resource referenced by paramKind: '${shown}'`;
        problems.push(problemOf(policy, undefined, why));
        continue;
      }
      let request: VersionedRequest | undefined;
      for (const binding of bindings) {
        const { matchResources, paramRef } = binding.spec;
        if (matchResources !== undefined && (await this.#matched(matchResources)) === undefined)
          continue;
        try {
          const all = await this.#params(kind, paramRef);
          if (all.length > 0) request ??= await inVersion(this.attributes, version);
          for (const params of all)
            found.push({ policy, binding, request: request as VersionedRequest, params });
        } catch (error) {
          problems.push(problemOf(policy, binding, textOf(error)));
        }
      }
    }
    if (found.length > 0) this.#namespace = await this.#namespaceOf();
    return found;
  }

  /** Undefined: the resources are not those of the request. */
  async #matched(resources: MatchResources = {}): Promise<ServedResource | "same" | undefined> {
    const { attributes } = this;
    const { served, namespaces } = this.#deps;
    const { resourceRules = [], excludeResourceRules = [], matchPolicy } = resources;
    const namespace = selectorOf(resources.namespaceSelector);
    if (!(await matchesNamespace(namespace, attributes, namespaces))) return undefined;
    if (!matchesObject(selectorOf(resources.objectSelector), attributes)) return undefined;
    const excluded = matchedVersion(excludeResourceRules, matchPolicy, attributes, served);
    if (excluded !== undefined) return undefined;
    if (resourceRules.length === 0) return "same";
    return matchedVersion(resourceRules, matchPolicy, attributes, served);
  }

  /** [undefined] where there are none to look for. Throws Error where none may be used. */
  async #params(
    kind: ServedResource | undefined,
    ref: ParamRef | undefined,
  ): Promise<readonly (KubeObject | undefined)[]> {
    if (kind === undefined || ref === undefined) return [undefined];
    const namespace = this.#paramNamespace(kind, ref);
    const found = await paramsOf(kind, namespace, ref);
    if (found.length === 0 && ref.parameterNotFoundAction === "Deny")
      throw new Error("no params found for policy binding with `Deny` parameterNotFoundAction");
    return found;
  }

  #paramNamespace({ namespaced }: ServedResource, { namespace = "" }: ParamRef): string {
    if (!namespaced) {
      if (namespace === "") return "";
      throw new Error("paramRef.namespace must not be provided for a cluster-scoped `paramKind`");
    }
    const own = namespace === "" ? this.attributes.namespace : namespace;
    if (own === "")
      throw new Error(
        "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources",
      );
    return own;
  }

  async #namespaceOf(): Promise<KubeObject | undefined> {
    const { kind, namespace } = this.attributes;
    const isNamespace = kind.group === "" && kind.kind === "Namespace";
    if (namespace === "" || isNamespace) return undefined;
    return namespaceNamed(namespace, this.#deps.namespaces);
  }

  /** The variables of an invocation's expressions. */
  activation(request: VersionedRequest, params: KubeObject | undefined): Activation {
    const namespace = this.#namespace;
    return activationOf(request, this.attributes, this.#decisions, { namespace, params });
  }

  /**
   * Whether the match conditions of a policy are true. Rejects with Error for failures; with
   * failurePolicy Ignore those count as false.
   */
  async matchesConditions(
    { policy, request, params }: PolicyInvocation,
    { conditions }: CompiledPolicy,
  ): Promise<boolean> {
    if (conditions.conditions.length === 0) return true;
    // Conditions see the resource of the request, and no namespace.
    const { resource } = this.attributes;
    const activation = activationOf({ ...request, resource }, this.attributes, this.#decisions, {
      params,
    });
    try {
      return await areTrue(conditions, activation, this.pauses);
    } catch (error) {
      if (policy.spec.failurePolicy === "Ignore") return false;
      throw error;
    }
  }
}

function problemOf(policy: Policy, binding: Binding | undefined, why: string): PolicyProblem {
  const what = binding === undefined ? "policy" : "binding";
  return { policy, binding, message: `failed to configure ${what}: ${why}` };
}

function shownKind({ apiVersion = "", kind = "" }: ParamKind): string {
  return `${apiVersion.includes("/") ? apiVersion : `/${apiVersion}`}, Kind=${kind}`;
}

/** The resource of a kind; undefined where it is not served. */
export function resourceOf(
  { apiVersion = "", kind = "" }: ParamKind,
  served: ServedResources,
): ServedResource | undefined {
  const of = parseApiVersion(apiVersion);
  return served.all().find((one) => {
    if (one.subresource !== "" || one.kind.kind !== kind) return false;
    return one.group === of?.group && one.version === of.version;
  });
}

/** From the cache of the resource, where it has one. */
async function paramsOf(
  { storage }: ServedResource,
  namespace: string,
  { name = "", selector }: ParamRef,
): Promise<readonly KubeObject[]> {
  const ctx = systemContext(namespace);
  const resourceVersion = "0";
  if (name === "") {
    const options = listOptions({ resourceVersion });
    const label = selectorOf(selector);
    const predicate = { ...options.predicate, label };
    const { items } = await storageWith(storage, "list").list(ctx, { ...options, predicate });
    return items.map((item) => item.object());
  }
  try {
    return [(await storageWith(storage, "get").get(ctx, name, { resourceVersion })).object()];
  } catch (error) {
    if (error instanceof ApiError && error.httpStatus === 404) return [];
    throw error;
  }
}
