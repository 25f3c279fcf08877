/**
 * SubjectAccessReview and its kin (Kubernetes: pkg/registry/authorization, apis/authorization/
 * validation): what a user may do, as the authorizer decides it.
 */
import type { Creater, KubeObject, UserInfo } from "@quorate/kube-storage";
import {
  ApiError,
  badRequest,
  type FieldError,
  invalid,
  invalidValue,
  required,
  semanticEqual,
} from "@quorate/kube-storage";
import type { Authorizer, AuthorizerAttributes } from "./authorizer.ts";
import type { RuleResolver } from "./rbac-authorizer.ts";

const GROUP = "authorization.k8s.io";

interface SelectorAttributes {
  readonly rawSelector?: string;
  readonly requirements?: readonly unknown[];
}

interface ReviewSpec {
  readonly resourceAttributes?: {
    readonly namespace?: string;
    readonly verb?: string;
    readonly group?: string;
    readonly version?: string;
    readonly resource?: string;
    readonly subresource?: string;
    readonly name?: string;
    readonly fieldSelector?: SelectorAttributes;
    readonly labelSelector?: SelectorAttributes;
  };
  readonly nonResourceAttributes?: { readonly path?: string; readonly verb?: string };
  readonly user?: string;
  readonly groups?: readonly string[];
  readonly uid?: string;
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

export function subjectAccessReviews(authorizer: Authorizer): Creater {
  return {
    async create(_ctx, object, validate) {
      const spec = specOf(object);
      refuse([...specErrors(spec), ...subjectErrors(spec), ...metadataErrors(object)]);
      await validate(object);
      return decided(object, attributesOf(userOf(spec), spec), authorizer);
    },
  };
}

export function localSubjectAccessReviews(authorizer: Authorizer): Creater {
  return {
    async create(ctx, object, validate) {
      const spec = specOf(object);
      refuse([
        ...specErrors(spec),
        ...subjectErrors(spec),
        ...metadataErrors(object, "must be empty except for namespace"),
        ...localErrors(spec, object.metadata.namespace ?? ""),
      ]);
      if (ctx.namespace !== object.metadata.namespace) {
        const text = `spec.resourceAttributes.namespace must match namespace: ${ctx.namespace}`;
        throw badRequest(text);
      }
      await validate(object);
      return decided(object, attributesOf(userOf(spec), spec), authorizer);
    },
  };
}

/** What the caller may do: kubectl auth can-i. */
export function selfSubjectAccessReviews(authorizer: Authorizer): Creater {
  return {
    async create(ctx, object, validate) {
      const spec = specOf(object);
      refuse([...specErrors(spec), ...metadataErrors(object)]);
      await validate(object);
      return decided(object, attributesOf(ctx.user, spec), authorizer);
    },
  };
}

/** All that the caller may do in a namespace: kubectl auth can-i --list. */
export function selfSubjectRulesReviews(resolver: RuleResolver): Creater {
  return {
    async create(ctx, object, validate) {
      const { namespace = "" } = (object["spec"] ?? {}) as { namespace?: string };
      if (namespace === "") throw badRequest("no namespace on request");
      await validate(object);
      const { rules, incomplete, errors } = resolver.rulesFor(ctx.user, namespace);
      const resourceRules = rules.flatMap(({ verbs, apiGroups, resources, resourceNames }) =>
        (resources?.length ?? 0) === 0 ? [] : [{ verbs, apiGroups, resources, resourceNames }],
      );
      const nonResourceRules = rules.flatMap(({ verbs, nonResourceURLs }) =>
        (nonResourceURLs?.length ?? 0) === 0 ? [] : [{ verbs, nonResourceURLs }],
      );
      const evaluationError = errors.length === 0 ? {} : { evaluationError: errors.join(", ") };
      return {
        kind: object.kind,
        apiVersion: object.apiVersion,
        metadata: {},
        spec: {},
        status: { resourceRules, nonResourceRules, incomplete, ...evaluationError },
      };
    },
  };
}

function specOf(object: KubeObject): ReviewSpec {
  return (object["spec"] ?? {}) as ReviewSpec;
}

/** As in Kubernetes, whose error names no kind here. */
function refuse(errors: readonly FieldError[]): void {
  if (errors.length === 0) return;
  const { message, details } = invalid({ group: GROUP, kind: "" }, "", errors);
  throw new ApiError(422, "Invalid", message, { ...details, kind: undefined });
}

function specErrors({ resourceAttributes, nonResourceAttributes }: ReviewSpec): FieldError[] {
  const errors: FieldError[] = [];
  if (resourceAttributes && nonResourceAttributes) {
    const text = "cannot be specified in combination with resourceAttributes";
    errors.push(invalidValue("spec.nonResourceAttributes", nonResourceAttributes, text));
  }
  if (!resourceAttributes && !nonResourceAttributes) {
    const text = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
    errors.push(invalidValue("spec.resourceAttributes", null, text));
  }
  for (const name of ["fieldSelector", "labelSelector"] as const) {
    const selector = resourceAttributes?.[name];
    if (selector) errors.push(...selectorErrors(selector, `spec.resourceAttributes.${name}`));
  }
  return errors;
}

function selectorErrors(selector: SelectorAttributes, field: string): FieldError[] {
  const { rawSelector = "", requirements = [] } = selector;
  if (rawSelector !== "" && requirements.length > 0) {
    const text = "may not specified at the same time as requirements";
    return [invalidValue(`${field}.rawSelector`, rawSelector, text)];
  }
  if (rawSelector !== "" || requirements.length > 0) return [];
  const text = `when ${field} is specified, requirements or rawSelector is required`;
  return [required(`${field}.requirements`, text)];
}

function subjectErrors({ user = "", groups = [] }: ReviewSpec): FieldError[] {
  if (user !== "" || groups.length > 0) return [];
  return [invalidValue("spec.user", user, "at least one of user or group must be specified")];
}

function metadataErrors({ metadata }: KubeObject, text = "must be empty"): FieldError[] {
  const { managedFields: _, namespace, creationTimestamp: __, ...rest } = metadata ?? {};
  const isLocal = text !== "must be empty";
  const shown = isLocal || namespace === undefined ? rest : { ...rest, namespace };
  return semanticEqual(shown, {}) ? [] : [invalidValue("metadata", metadata, text)];
}

function localErrors(spec: ReviewSpec, own: string): FieldError[] {
  const errors: FieldError[] = [];
  const { resourceAttributes, nonResourceAttributes } = spec;
  if (resourceAttributes && (resourceAttributes.namespace ?? "") !== own) {
    const field = "spec.resourceAttributes.namespace";
    const namespace = resourceAttributes.namespace ?? "";
    errors.push(invalidValue(field, namespace, "must match metadata.namespace"));
  }
  if (nonResourceAttributes) {
    const text = "disallowed on this kind of request";
    errors.push(invalidValue("spec.nonResourceAttributes", nonResourceAttributes, text));
  }
  return errors;
}

function userOf({ user = "", groups = [], uid = "", extra = {} }: ReviewSpec): UserInfo {
  return { name: user, groups, uid, extra };
}

function attributesOf(user: UserInfo, spec: ReviewSpec): AuthorizerAttributes {
  const { resourceAttributes, nonResourceAttributes } = spec;
  const of = resourceAttributes ?? {};
  const { path = "" } = nonResourceAttributes ?? {};
  return {
    user,
    verb: (resourceAttributes ? of.verb : nonResourceAttributes?.verb) ?? "",
    isResourceRequest: Boolean(resourceAttributes),
    namespace: of.namespace ?? "",
    group: of.group ?? "",
    version: of.version || (resourceAttributes ? "*" : ""),
    resource: of.resource ?? "",
    subresource: of.subresource ?? "",
    name: of.name ?? "",
    path,
  };
}

async function decided(
  object: KubeObject,
  attributes: AuthorizerAttributes,
  authorizer: Authorizer,
): Promise<KubeObject> {
  const { decision, reason, error } = await authorizer.authorize(attributes);
  const status = {
    allowed: decision === "allow",
    ...(decision === "deny" ? { denied: true } : {}),
    ...(reason === "" ? {} : { reason }),
    ...(error === undefined ? {} : { evaluationError: error }),
  };
  return { ...object, status };
}
