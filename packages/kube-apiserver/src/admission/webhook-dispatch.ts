/**
 * Calls one webhook and says what came of it (apiserver: pkg/admission/plugin/webhook/{mutating,
 * validating}/dispatcher.go, errors/statuserror.go).
 *
 *     allowed    -> the result
 *     denied     -> ApiError 'admission webhook "x" denied the request: …'
 *     no result  -> failurePolicy Fail: ApiError 500 'failed calling webhook "x": …'
 *                   failurePolicy Ignore: undefined, and a line in the log
 */

import type { Clock, Logger, Random } from "@quorate/host";
import {
  ApiError,
  badRequest,
  internalError,
  newUid,
  textOf,
  timeout,
} from "@quorate/kube-storage";
import { quoteText as goQuote, toUtf8 } from "@quorate/proto";
import type { AdmissionAttributes } from "./admission.ts";
import { WebhookCallError, type WebhookCaller, type WebhookResponse } from "./webhook-caller.ts";
import { type Invocation, quotedName, type Webhook } from "./webhook-config.ts";
import {
  BadReviewError,
  decodeReview,
  encodeReview,
  type ReviewResult,
  type ReviewStatus,
  reviewRequest,
  reviewVersionOf,
} from "./webhook-review.ts";

const DEFAULT_TIMEOUT_SECONDS = 10;
/** Of a failed call's body, in the error's message. */
const MAX_SHOWN_BODY = 1024;

export interface DispatchDependencies {
  readonly caller: WebhookCaller;
  readonly random: Random;
  /** Long responses are read in slices. */
  readonly clock: Pick<Clock, "turns">;
  readonly logger: Logger;
}

/** Resolves with undefined for a failure that is ignored. Rejects with ApiError. */
export async function dispatch(
  invocation: Invocation,
  attributes: AdmissionAttributes,
  isMutating: boolean,
  deps: DispatchDependencies,
): Promise<ReviewResult | undefined> {
  const { webhook } = invocation;
  checkDryRun(webhook, attributes);
  let result: ReviewResult;
  try {
    result = await review(invocation, attributes, isMutating, deps);
  } catch (error) {
    return failed(webhook, attributes, failureText(error), deps.logger);
  }
  for (const [key, value] of Object.entries(result.auditAnnotations))
    attributes.annotate?.(`${webhook.spec.name}/${key}`, value);
  for (const warning of result.warnings) attributes.warn(warning);
  if (!result.allowed) throw denied(webhook, result.status);
  return result;
}

/** A call that did not work, as an ApiError or as a line in the log. */
export function failed(
  webhook: Webhook,
  { signal }: AdmissionAttributes,
  text: string,
  logger: Logger,
): undefined {
  const message = `failed calling webhook ${quotedName(webhook)}: ${text}`;
  if (webhook.spec.failurePolicy !== "Ignore") throw internalError(message);
  if (signal.aborted) throw timeout("request did not complete within requested timeout");
  logger.warn("a webhook failed and its policy is to ignore that", { error: message });
  return undefined;
}

function checkDryRun(webhook: Webhook, { dryRun }: AdmissionAttributes): void {
  const { sideEffects } = webhook.spec;
  if (!dryRun || sideEffects === "None" || sideEffects === "NoneOnDryRun") return;
  throw badRequest(`admission webhook ${quotedName(webhook)} does not support dry run`);
}

async function review(
  invocation: Invocation,
  attributes: AdmissionAttributes,
  isMutating: boolean,
  { caller, random, clock }: DispatchDependencies,
): Promise<ReviewResult> {
  const { spec } = invocation.webhook;
  const version = reviewVersionOf(spec.admissionReviewVersions ?? []);
  if (version === undefined) {
    const why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)";
    throw new WebhookCallError("Config", `could not create admission objects: ${why}`);
  }
  const uid = newUid(random);
  const response = await caller.call({
    config: spec.clientConfig,
    body: encodeReview(version, reviewRequest(uid, invocation, attributes)),
    timeoutMs: (spec.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS) * 1000,
    signal: attributes.signal,
  });
  if (response.status < 200 || response.status > 206) {
    throw new WebhookCallError("Unreachable", statusText(response));
  }
  return decodeReview(response.body, version, uid, isMutating, clock);
}

function failureText(error: unknown): string {
  if (error instanceof BadReviewError) return `received invalid webhook response: ${error.message}`;
  if (error instanceof WebhookCallError && error.message.startsWith("could not ")) {
    return error.message;
  }
  return `failed to call webhook: ${textOf(error)}`;
}

/** As client-go describes a response that is an error. */
function statusText({ status, body }: WebhookResponse): string {
  const text = toUtf8(body, 0, Math.min(body.length, MAX_SHOWN_BODY)).trim();
  try {
    const parsed = JSON.parse(text) as { kind?: unknown; message?: unknown };
    if (parsed.kind === "Status" && typeof parsed.message === "string") return parsed.message;
  } catch {
    // A body of another kind.
  }
  if (status === 404) return "the server could not find the requested resource";
  if (status === 401) return "the server has asked for the client to provide credentials";
  if (status === 403) return `forbidden: ${text}`;
  if (status >= 500) {
    const shown = goQuote(text || "unknown");
    return `an error on the server (${shown}) has prevented the request from succeeding`;
  }
  return "the server rejected our request for an unknown reason";
}

function denied(webhook: Webhook, status: ReviewStatus | undefined): ApiError {
  const by = `admission webhook ${quotedName(webhook)} denied the request`;
  const { code = 0, reason = "", message = "", details } = status ?? {};
  const why = message === "" ? reason : message;
  const text = why === "" ? `${by} without explanation` : `${by}: ${why}`;
  return new ApiError(code < 400 ? 400 : Math.min(code, 599), reason, text, details);
}
