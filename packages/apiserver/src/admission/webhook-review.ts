/**
 * AdmissionReview, what webhooks get and send back (apiserver: pkg/admission/plugin/webhook/
 * request/admissionreview.go). Versions v1 and v1beta1 have the same fields.
 */
import { CodedError, fromUtf8, toUtf8, writeFromBase64 } from "@quorate/proto";
import { userInfoObject } from "../authn/reviews.ts";
import { goQuote } from "../meta/go-text.ts";
import type { AdmissionAttributes } from "./admission.ts";
import type { Invocation } from "./webhook-config.ts";

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
  { kind, resource, object, oldObject }: Invocation,
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
  readonly details?: Record<string, unknown>;
}

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
  readonly status?: ReviewStatus;
  readonly patch?: unknown;
  readonly patchType?: unknown;
  readonly warnings?: unknown;
  readonly auditAnnotations?: unknown;
}

/**
 * Reads a webhook's response. Throws BadReviewError.
 * @param isMutating whether it may have a patch
 */
export function decodeReview(
  body: Uint8Array,
  version: ReviewVersion,
  uid: string,
  isMutating: boolean,
): ReviewResult {
  const response = responseOf(body, version, uid);
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
    status: typeof status === "object" && status !== null ? status : undefined,
    patch: hasPatch ? parsePatch(patch) : undefined,
    warnings: textsOf(warnings).slice(0, MAX_WEBHOOK_WARNINGS),
    auditAnnotations: annotationsOf(auditAnnotations),
  };
}

function responseOf(body: Uint8Array, version: ReviewVersion, uid: string): Response {
  const review = parsed(body) as { kind?: unknown; apiVersion?: unknown; response?: Response };
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
    const got = `${apiVersion ?? ""}, Kind=${kind ?? ""}`;
    throw new BadReviewError(`expected webhook response of ${wanted}, got ${got}`);
  }
  return response;
}

function parsed(body: Uint8Array): object {
  let value: unknown;
  try {
    value = JSON.parse(toUtf8(body));
  } catch {
    value = undefined;
  }
  if (typeof value !== "object" || value === null) {
    throw new BadReviewError("the response is no JSON object");
  }
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
    throw new BadReviewError(`unsupported patch type ${goQuote(String(patchType))}`);
  }
}

function parsePatch(base64: string): unknown {
  const bytes = fromUtf8(base64);
  const length = writeFromBase64(bytes, base64, 0);
  try {
    const patch: unknown = JSON.parse(toUtf8(bytes, 0, length));
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
