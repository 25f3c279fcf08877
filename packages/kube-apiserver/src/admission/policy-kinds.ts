/**
 * ValidatingAdmissionPolicy, MutatingAdmissionPolicy and their bindings as resources (Kubernetes:
 * pkg/registry/admissionregistration).
 */
import type {
  FieldError,
  GroupVersionKind,
  KindSource,
  KubeObject,
  RequestContext,
  ResourceSpec,
  ServedResources,
  Strategy,
} from "@quorate/kube-storage";
import {
  AGE,
  builtinSpec,
  fieldForbidden,
  nameColumn,
  plainStrategy,
  statusStrategyOf,
  tableOf,
  textColumn,
} from "@quorate/kube-storage";
import { MASTERS_GROUP } from "../authn/user-names.ts";
import type { Authorizer } from "../authz/authorizer.ts";
import type { RequestExpressions } from "../crd/cel/request-expressions.ts";
import { bindingSpecOf, type ParamKind, policySpecOf } from "./policy-config.ts";
import { resourceOf } from "./policy-match.ts";
import { bindingErrors, policyErrors } from "./policy-validation.ts";
import { ADMISSION_GROUP } from "./webhook-kinds.ts";

export const POLICY_RESOURCES = {
  validating: "validatingadmissionpolicies",
  validatingBindings: "validatingadmissionpolicybindings",
  mutating: "mutatingadmissionpolicies",
  mutatingBindings: "mutatingadmissionpolicybindings",
} as const;

export interface PolicyKindDependencies {
  readonly expressions: RequestExpressions;
  /** Who writes a policy must be allowed to read its parameters. */
  readonly authorizer: Authorizer;
  readonly served: ServedResources;
  /** The policy of a binding; undefined where there is none. */
  policyNamed(resource: string, name: string): Promise<KubeObject | undefined>;
}

export function policyResources(
  source: (kind: GroupVersionKind) => KindSource,
  deps: PolicyKindDependencies,
): readonly ResourceSpec[] {
  const of = (kind: string): KindSource => source({ group: ADMISSION_GROUP, version: "v1", kind });
  const { validating, validatingBindings, mutating, mutatingBindings } = POLICY_RESOURCES;
  return [
    policyKind(of("ValidatingAdmissionPolicy"), validating, "Validations", deps),
    bindingKind(of("ValidatingAdmissionPolicyBinding"), validatingBindings, validating, deps),
    policyKind(of("MutatingAdmissionPolicy"), mutating, "Mutations", deps),
    bindingKind(of("MutatingAdmissionPolicyBinding"), mutatingBindings, mutating, deps),
  ];
}

const FIRST_UPPER = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

function policyKind(
  source: KindSource,
  resource: string,
  counted: "Validations" | "Mutations",
  deps: PolicyKindDependencies,
): ResourceSpec {
  const hasStatus = counted === "Validations";
  const errorsOf = async (ctx: RequestContext, object: KubeObject, old?: KubeObject) => {
    await deps.expressions.load();
    const errors = policyErrors(object, old, deps.expressions);
    if (errors.length > 0) return errors;
    const before = old && policySpecOf(old).paramKind;
    return kindReadErrors(ctx, policySpecOf(object).paramKind, before, deps);
  };
  const strategy = strategyOf(source, hasStatus, errorsOf);
  return builtinSpec(source, resource, {
    singular: source.kind.kind.toLowerCase(),
    categories: ["api-extensions"],
    namespaced: false,
    strategy,
    ...(hasStatus ? { statusStrategy: statusStrategyOf(strategy) } : {}),
    table: tableOf(
      nameColumn(),
      {
        column: {
          name: counted,
          type: "integer",
          format: "",
          description: `The number of ${counted.toLowerCase()}.`,
          priority: 0,
        },
        cell: (object) =>
          (policySpecOf(object)[counted === "Validations" ? "validations" : "mutations"] ?? [])
            .length,
      },
      textColumn("ParamKind", "The kind of parameters.", (object) => {
        const { paramKind } = policySpecOf(object);
        return paramKind === undefined ? "<unset>" : `${paramKind.apiVersion}/${paramKind.kind}`;
      }),
      AGE,
    ),
  });
}

function bindingKind(
  source: KindSource,
  resource: string,
  policies: string,
  deps: PolicyKindDependencies,
): ResourceSpec {
  const errorsOf = async (ctx: RequestContext, object: KubeObject, old?: KubeObject) => {
    const errors = bindingErrors(object);
    return errors.length > 0 ? errors : refReadErrors(ctx, object, old, policies, deps);
  };
  return builtinSpec(source, resource, {
    singular: source.kind.kind.toLowerCase(),
    categories: ["api-extensions"],
    namespaced: false,
    strategy: strategyOf(source, false, errorsOf),
    table: tableOf(
      nameColumn(),
      textColumn(
        "PolicyName",
        "The policy that is bound.",
        (object) => bindingSpecOf(object).policyName ?? "",
      ),
      textColumn("ParamRef", "The parameters.", shownParamRef),
      AGE,
    ),
  });
}

function shownParamRef(binding: KubeObject): string {
  const { paramRef } = bindingSpecOf(binding);
  if (paramRef === undefined) return "<unset>";
  const { name = "", namespace = "", selector } = paramRef;
  if (name !== "") return `${namespace === "" ? "*" : namespace}/${name}`;
  const shown = Object.entries(selector?.matchLabels ?? {}).map(([key, it]) => `${key}: ${it},`);
  const expressions = (selector?.matchExpressions ?? []).map((one) => {
    const fields = Object.entries(one).map(([key, it]) =>
      key === "values"
        ? `Values:[${(it as readonly string[]).join(" ")}],`
        : `${FIRST_UPPER(key)}:${it},`,
    );
    return `LabelSelectorRequirement{${fields.join("")}},`;
  });
  const labels = `map[string]string{${shown.join("")}}`;
  return `&LabelSelector{MatchLabels:${labels},MatchExpressions:[]LabelSelectorRequirement{${expressions.join("")}},}`;
}

type ErrorsOf = (
  ctx: RequestContext,
  object: KubeObject,
  old?: KubeObject,
) => Promise<readonly FieldError[]>;

function strategyOf(source: KindSource, hasStatus: boolean, errorsOf: ErrorsOf): Strategy {
  return plainStrategy(
    { kind: source.kind, namespaced: false, hasStatus, countsGenerations: true },
    {
      allowUnconditionalUpdate: false,
      validate: async (ctx, object) => [...(await errorsOf(ctx, object))],
      validateUpdate: async (ctx, object, old) => [...(await errorsOf(ctx, object, old))],
    },
  );
}

/** Users that need no permission: they may grant themselves any. */
function mayEscalate({ user }: RequestContext): boolean {
  return user.groups.includes(MASTERS_GROUP);
}

function shownUser({ user: { name, uid, groups, extra } }: RequestContext): string {
  const shown = Object.entries(extra).map(([key, values]) => `${key}:[${values.join(" ")}]`);
  return `&{${name} ${uid} [${groups.join(" ")}] map[${shown.join(" ")}]}`;
}

/** The group, version and resource of parameters; "*" for what is not known. */
function paramResource(kind: ParamKind | undefined, { served }: PolicyKindDependencies) {
  const parts = (kind?.apiVersion ?? "").split("/");
  if (kind === undefined || parts.length > 2) return { group: "*", version: "*", resource: "*" };
  const [group, version] = parts.length === 2 ? (parts as [string, string]) : ["", parts[0] ?? ""];
  return { group, version, resource: resourceOf(kind, served)?.resource ?? "*" };
}

function isAllowed(
  { user }: RequestContext,
  { authorizer }: PolicyKindDependencies,
  what: ReturnType<typeof paramResource> & {
    readonly verb: string;
    readonly namespace: string;
    readonly name: string;
  },
): Promise<boolean> {
  const asked = { ...what, user, isResourceRequest: true, subresource: "", path: "" };
  return authorizer.authorize(asked).then(({ decision }) => decision === "allow");
}

async function kindReadErrors(
  ctx: RequestContext,
  kind: ParamKind | undefined,
  before: ParamKind | undefined,
  deps: PolicyKindDependencies,
): Promise<readonly FieldError[]> {
  if (kind === undefined || mayEscalate(ctx)) return [];
  if (before?.apiVersion === kind.apiVersion && before?.kind === kind.kind) return [];
  const what = { ...paramResource(kind, deps), verb: "get", namespace: "*", name: "*" };
  if (await isAllowed(ctx, deps, what)) return [];
  const text =
    `user ${shownUser(ctx)} must have "get" permission on all objects of the referenced ` +
    `paramKind (kind=${kind.kind}, apiVersion=${kind.apiVersion})`;
  return [fieldForbidden("spec.paramKind", text)];
}

async function refReadErrors(
  ctx: RequestContext,
  binding: KubeObject,
  old: KubeObject | undefined,
  policies: string,
  deps: PolicyKindDependencies,
): Promise<readonly FieldError[]> {
  const { paramRef, policyName = "" } = bindingSpecOf(binding);
  if (paramRef === undefined || mayEscalate(ctx)) return [];
  const before = old && bindingSpecOf(old);
  const isSame = JSON.stringify(before?.paramRef) === JSON.stringify(paramRef);
  if (isSame && before?.policyName === policyName) return [];
  const policy = await deps.policyNamed(policies, policyName);
  const kind = policy && policySpecOf(policy).paramKind;
  const { name = "", namespace = "" } = paramRef;
  const verb = name === "" ? "list" : "get";
  const of = paramResource(kind, deps);
  if (await isAllowed(ctx, deps, { ...of, verb, namespace, name })) return [];
  const user = shownUser(ctx);
  const all = `user ${user} does not have "${verb}" permission for all groups, versions and resources`;
  const minimum = "to determine minimum required permissions and";
  const text =
    policy === undefined
      ? `unable to get policy ${policyName} ${minimum} ${all}`
      : kind !== undefined && of.resource === "*"
        ? `unable to resolve paramKind {${kind.apiVersion} ${kind.kind}} ${minimum} ${all}`
        : `user ${user} does not have "${verb}" permission on the object referenced by paramRef`;
  return [fieldForbidden("spec.paramRef", text)];
}
