/**
 * AdmissionReview, what webhooks get and send back (apiserver: pkg/admission/plugin/webhook/
 * request/admissionreview.go). Versions v1 and v1beta1 have the same fields.
 */
import type { Clock } from "@quorate/host";
import type { StatusCause, StatusDetails } from "@quorate/kube-storage";
import { isObject, parseJsonInSlices } from "@quorate/kube-storage";
import {
  CodedError,
  fromUtf8,
  quoteText as goQuote,
  toUtf8,
  writeFromBase64,
} from "@quorate/proto";
import { userInfoObject } from "../authn/reviews.ts";
import type { AdmissionAttributes } from "./admission.ts";
import type { VersionedRequest } from "./matching.ts";

/** A response that does not hold to the protocol; its message says why. */
export class BadReviewError extends CodedError<"BadReview"> {
  constructor(message: string) {
    super("BadReviewError", "BadReview", message);
  }
}

/** More warnings, or audit annotations, of one response are dropped. */
export const MAX_WEBHOOK_WARNINGS = 64;

export type ReviewVersion = "v1" | "v1beta1";

/** The version to speak with a webhook: the first of its own that is known here. */
export function reviewVersionOf(versions: readonly string[]): ReviewVersion | undefined {
  return versions.find((one): one is ReviewVersion => one === "v1" || one === "v1beta1");
}

/** AdmissionReview.request. */
export function reviewRequest(
  uid: string,
  { kind, resource, object, oldObject }: VersionedRequest,
  attributes: AdmissionAttributes,
): Record<string, unknown> {
  const { subresource, name, namespace, operation, user, dryRun, options } = attributes;
  const sub = subresource === "" ? {} : { subResource: subresource };
  const requestSub = subresource === "" ? {} : { requestSubResource: subresource };
  return {
    uid,
    kind: { group: kind.group, version: kind.version, kind: kind.kind },
    resource: { group: resource.group, version: resource.version, resource: resource.resource },
    ...sub,
    requestKind: { ...attributes.kind },
    requestResource: { ...attributes.resource },
    ...requestSub,
    ...(name === "" ? {} : { name }),
    ...(namespace === "" ? {} : { namespace }),
    operation,
    userInfo: userInfoObject(user),
    object: object ?? null,
    oldObject: oldObject ?? null,
    dryRun,
    options: options ?? null,
  };
}

export function encodeReview(version: ReviewVersion, request: unknown): Uint8Array {
  const apiVersion = `admission.k8s.io/${version}`;
  return fromUtf8(JSON.stringify({ kind: "AdmissionReview", apiVersion, request }));
}

/** The part of metav1.Status that a webhook may set. */
export interface ReviewStatus {
  readonly code?: number;
  readonly status?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: StatusDetails | undefined;
}

/** Characters of a text, and causes, of a refusal that its client receives. */
export const MAX_REFUSAL_CHARS: number = 32 * 1024;
export const MAX_REFUSAL_CAUSES = 1000;

export interface ReviewResult {
  readonly allowed: boolean;
  readonly status: ReviewStatus | undefined;
  /** A parsed JSON patch; undefined without one. */
  readonly patch: unknown;
  readonly warnings: readonly string[];
  /** For the audit log. */
  readonly auditAnnotations: Readonly<Record<string, string>>;
}

interface Response {
  readonly uid?: unknown;
  readonly allowed?: unknown;
  readonly status?: unknown;
  readonly patch?: unknown;
  readonly patchType?: unknown;
  readonly warnings?: unknown;
  readonly auditAnnotations?: unknown;
}

/**
 * Reads a webhook's response. Rejects with BadReviewError.
 * @param isMutating whether it may have a patch
 * @param clock a long response is parsed in slices
 */
export async function decodeReview(
  body: Uint8Array,
  version: ReviewVersion,
  uid: string,
  isMutating: boolean,
  clock: Pick<Clock, "turns">,
): Promise<ReviewResult> {
  const response = responseOf(await parsed(body, clock), version, uid);
  const { patch, patchType, status, allowed, warnings, auditAnnotations } = response;
  const hasPatch = typeof patch === "string" && patch !== "";
  if (!isMutating) {
    if (hasPatch) throw new BadReviewError("validating webhook may not return response.patch");
    if (patchType !== undefined && patchType !== null) {
      throw new BadReviewError("validating webhook may not return response.patchType");
    }
  } else if (version === "v1") checkPatchType(hasPatch, patchType);
  return {
    allowed: allowed === true,
    status: status === undefined || status === null ? undefined : statusOf(status),
    patch: hasPatch ? await parsePatch(patch, clock) : undefined,
    warnings: textsOf(warnings).slice(0, MAX_WEBHOOK_WARNINGS),
    auditAnnotations: annotationsOf(auditAnnotations),
  };
}

function responseOf(review: Review, version: ReviewVersion, uid: string): Response {
  const { response } = review;
  if (typeof response !== "object" || response === null) {
    throw new BadReviewError("webhook response was absent");
  }
  if (version === "v1beta1") return response;
  if (response.uid !== uid) {
    const got = typeof response.uid === "string" ? response.uid : "";
    throw new BadReviewError(`expected response.uid=${goQuote(uid)}, got ${goQuote(got)}`);
  }
  const { kind, apiVersion } = review;
  if (kind !== "AdmissionReview" || apiVersion !== "admission.k8s.io/v1") {
    const wanted = "admission.k8s.io/v1, Kind=AdmissionReview";
    const text = (value: unknown) => (typeof value === "string" ? value : "");
    const got = `${text(apiVersion)}, Kind=${text(kind)}`;
    throw new BadReviewError(`expected webhook response of ${wanted}, got ${got}`);
  }
  return response;
}

interface Review {
  readonly kind?: unknown;
  readonly apiVersion?: unknown;
  readonly response?: Response;
}

async function parsed(body: Uint8Array, clock: Pick<Clock, "turns">): Promise<Review> {
  let value: unknown;
  try {
    value = await parseJsonInSlices(toUtf8(body), clock);
  } catch {
    value = undefined;
  }
  if (typeof value !== "object" || value === null) {
    throw new BadReviewError("the response is no JSON object");
  }
  return value;
}

/** The fields of metav1.Status, which all reach the client; of other types they are no status. */
function statusOf(value: unknown): ReviewStatus {
  const status = objectOf(value, "status");
  const text = (name: string): string => textOf(status[name], `status.${name}`);
  return {
    code: integerOf(status["code"], "status.code"),
    status: text("status"),
    reason: text("reason"),
    message: text("message"),
    details: status["details"] ? detailsOf(status["details"]) : undefined,
  };
}

function detailsOf(value: unknown): StatusDetails {
  const details = objectOf(value, "status.details");
  const text = (name: string) => textOf(details[name], `status.details.${name}`) || undefined;
  const causes = details["causes"] ?? [];
  if (!Array.isArray(causes)) throw wrongType("status.details.causes", "list");
  return {
    name: text("name"),
    group: text("group"),
    kind: text("kind"),
    uid: text("uid"),
    causes: causes.slice(0, MAX_REFUSAL_CAUSES).map((one: unknown, at): StatusCause => {
      const where = `status.details.causes[${at}]`;
      const cause = objectOf(one, where);
      const part = (name: string) => textOf(cause[name], `${where}.${name}`) || undefined;
      return { reason: part("reason"), message: part("message"), field: part("field") };
    }),
    retryAfterSeconds:
      integerOf(details["retryAfterSeconds"], "status.details.retryAfterSeconds") || undefined,
  };
}

function wrongType(field: string, wanted: string): BadReviewError {
  return new BadReviewError(`response.${field} must be of type ${wanted}`);
}

function objectOf(value: unknown, field: string): Readonly<Record<string, unknown>> {
  if (isObject(value)) return value;
  throw wrongType(field, "object");
}

function textOf(value: unknown, field: string): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") throw wrongType(field, "string");
  return value.slice(0, MAX_REFUSAL_CHARS);
}

/** 0 where there is none. */
function integerOf(value: unknown, field: string): number {
  if (value === undefined || value === null) return 0;
  if (typeof value !== "number" || (value | 0) !== value) throw wrongType(field, "int32");
  return value;
}

function checkPatchType(hasPatch: boolean, patchType: unknown): void {
  const hasType = patchType !== undefined && patchType !== null;
  if (hasPatch && !hasType) {
    throw new BadReviewError("webhook returned response.patch but not response.patchType");
  }
  if (!hasPatch && hasType) {
    throw new BadReviewError("webhook returned response.patchType but not response.patch");
  }
  if (hasType && patchType !== "JSONPatch") {
    const shown = goQuote(typeof patchType === "string" ? patchType : JSON.stringify(patchType));
    throw new BadReviewError(`unsupported patch type ${shown}`);
  }
}

async function parsePatch(base64: string, clock: Pick<Clock, "turns">): Promise<unknown> {
  const bytes = fromUtf8(base64);
  const length = writeFromBase64(bytes, base64, 0);
  try {
    const patch = await parseJsonInSlices(toUtf8(bytes, 0, length), clock);
    if (Array.isArray(patch)) return patch.length === 0 ? undefined : patch;
  } catch {
    // Reported below.
  }
  throw new BadReviewError("received undecodable patch in webhook response");
}

function annotationsOf(value: unknown): Readonly<Record<string, string>> {
  if (typeof value !== "object" || value === null) return {};
  const texts = Object.entries(value).filter(([, text]) => typeof text === "string");
  return Object.fromEntries(texts.slice(0, MAX_WEBHOOK_WARNINGS));
}

function textsOf(value: unknown): readonly string[] {
  if (!Array.isArray(value)) return [];
  return value.filter((one): one is string => typeof one === "string" && one !== "");
}
