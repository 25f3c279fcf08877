/** serviceaccounts/token (Kubernetes: pkg/registry/core/serviceaccount/storage/token.go). */
import type { Clock } from "@quorate/host";
import type { Getter, KubeObject, NamedCreater, RequestContext } from "@quorate/kube-storage";
import {
  badRequest,
  conflict,
  type FieldError,
  invalid,
  invalidValue,
  metaTime,
  notFound,
} from "@quorate/kube-storage";
import type { BoundObjects, ClaimRef, KubernetesClaims } from "./service-account-claims.ts";
import type { ServiceAccountTokens } from "./service-account-tokens.ts";

const KIND = { group: "authentication.k8s.io", kind: "TokenRequest" };
const MIN_SECONDS = 600;
const MAX_SECONDS = 2 ** 32;
const DEFAULT_SECONDS = 3600;

export interface TokenRequestOptions {
  /** Of the server; the default of a request. */
  readonly audiences: readonly string[];
  /** --service-account-max-token-expiration; 0 for none. */
  readonly maxExpirationSeconds: number;
}

export interface TokenRequestDependencies {
  readonly clock: Clock;
  readonly tokens: ServiceAccountTokens;
  readonly serviceAccounts: Getter;
  readonly objects: BoundObjects;
}

interface TokenRequestSpec {
  readonly audiences?: readonly string[];
  readonly expirationSeconds?: number;
  readonly boundObjectRef?: {
    readonly kind?: string;
    readonly apiVersion?: string;
    readonly name?: string;
    readonly uid?: string;
  };
}

export function tokenRequests(
  options: TokenRequestOptions,
  deps: TokenRequestDependencies,
): NamedCreater {
  return {
    async createNamed(ctx, name, object, validate) {
      checkNames(ctx, name, object);
      const found = await deps.serviceAccounts.get(ctx, name, { resourceVersion: "" });
      const account = found.object();
      const request = completed(object, account, options, deps.clock.wallMs());
      const spec = request["spec"] as Required<TokenRequestSpec>;
      const errors = expirationErrors(spec.expirationSeconds);
      if (errors.length > 0) throw invalid(KIND, "", errors);
      await validate(request);
      const bound = await boundRef(ctx, name, spec, deps.objects);
      return await issue(ctx, request, account, bound, options, deps);
    },
  };
}

function checkNames(ctx: RequestContext, name: string, { metadata }: KubeObject): void {
  const errors: FieldError[] = [];
  if (metadata.name && metadata.name !== name) {
    const text = "must match the service account name if specified";
    errors.push(invalidValue("metadata.name", metadata.name, text));
  } else if (metadata.namespace && metadata.namespace !== ctx.namespace) {
    const text = "must match the service account namespace if specified";
    errors.push(invalidValue("metadata.namespace", metadata.namespace, text));
  }
  if (errors.length > 0) throw invalid(KIND, name, errors);
}

/** The request with its defaults, and without a status. */
function completed(
  object: KubeObject,
  account: KubeObject,
  options: TokenRequestOptions,
  wallMs: number,
): KubeObject {
  const { name = "", namespace, uid } = account.metadata;
  const own = object.metadata.uid;
  if (own !== undefined && own !== "" && own !== uid) {
    const resource = { group: KIND.group, resource: KIND.kind };
    throw conflict(
      resource,
      name,
      `the UID in the token request (${own}) does not match the UID of the service account (${uid})`,
    );
  }
  const spec = (object["spec"] ?? {}) as TokenRequestSpec;
  // Clients written in Go send null for an absent list.
  const audiences = spec.audiences ?? [];
  const expirationSeconds = spec.expirationSeconds ?? DEFAULT_SECONDS;
  const creationTimestamp = metaTime(wallMs);
  return {
    ...object,
    metadata: { ...object.metadata, name, namespace, uid, creationTimestamp },
    spec: {
      ...spec,
      audiences: audiences.length === 0 ? options.audiences : audiences,
      expirationSeconds,
    },
    status: { token: "", expirationTimestamp: null },
  };
}

function expirationErrors(seconds: number): FieldError[] {
  const field = "spec.expirationSeconds";
  if (seconds < MIN_SECONDS) {
    return [invalidValue(field, seconds, "may not specify a duration less than 10 minutes")];
  }
  if (seconds <= MAX_SECONDS) return [];
  return [invalidValue(field, seconds, "may not specify a duration larger than 2^32 seconds")];
}

type Bound = Pick<KubernetesClaims, "secret" | "pod" | "node">;

/** The object that the token dies with. */
async function boundRef(
  ctx: RequestContext,
  account: string,
  { boundObjectRef: ref }: TokenRequestSpec,
  objects: BoundObjects,
): Promise<Bound> {
  if (ref === undefined || ref === null) return {};
  const { kind = "", apiVersion = "", name = "", uid = "" } = ref;
  const resource = BOUND[kind as keyof typeof BOUND];
  if (resource === undefined || apiVersion.includes("/")) {
    const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
    const gvk = `${group}/${version}, Kind=${kind}`;
    throw badRequest(`cannot bind token to object of type ${gvk}`);
  }
  const namespace = resource === "nodes" ? "" : ctx.namespace;
  const object = await objects.get(resource, namespace, name);
  if (object === undefined) throw notFound({ group: "", resource }, name);
  checkPod(account, resource, object);
  const actual = object.metadata.uid ?? "";
  if (uid !== "" && uid !== actual) {
    throw conflict(
      { group: "", resource: kind },
      name,
      `the UID in the bound object reference (${uid}) does not match the UID in record. ` +
        "The object might have been deleted and then recreated",
    );
  }
  const claim: ClaimRef = { name, uid: actual };
  return { [kind.toLowerCase()]: claim };
}

const BOUND = { Pod: "pods", Node: "nodes", Secret: "secrets" } as const;

function checkPod(account: string, resource: string, object: KubeObject): void {
  if (resource !== "pods") return;
  const spec = object["spec"] as { readonly serviceAccountName?: string } | undefined;
  if (spec?.serviceAccountName === account) return;
  const of = JSON.stringify(account);
  throw badRequest(
    `cannot bind token for serviceaccount ${of} to pod running with different serviceaccount name.`,
  );
}

async function issue(
  ctx: RequestContext,
  request: KubeObject,
  account: KubeObject,
  bound: Bound,
  { maxExpirationSeconds }: TokenRequestOptions,
  { tokens, clock }: TokenRequestDependencies,
): Promise<KubeObject> {
  const spec = request["spec"] as Required<TokenRequestSpec>;
  let seconds = spec.expirationSeconds;
  if (maxExpirationSeconds > 0 && seconds > maxExpirationSeconds) {
    ctx.warn(
      `requested expiration of ${seconds} seconds shortened to ${maxExpirationSeconds} seconds`,
    );
    seconds = maxExpirationSeconds;
  }
  const { name = "", namespace = "", uid = "" } = account.metadata;
  const endMs = clock.wallMs() + seconds * 1000;
  const token = await tokens.issue({
    claims: { namespace, serviceaccount: { name, uid }, ...bound },
    audiences: spec.audiences,
    expirationSeconds: seconds,
  });
  return {
    ...request,
    spec: { ...spec, expirationSeconds: seconds },
    status: { token, expirationTimestamp: metaTime(endMs) },
  };
}
