/**
 * The authorizer of --authorization-mode=Webhook (apiserver: plugin/pkg/authorizer/webhook): a
 * SubjectAccessReview for each decision, which is then kept for a time. A webhook that fails has no
 * opinion; the request ends in an error, unless another authorizer allows it.
 */
import type { Logger } from "@quorate/host";
import { ExpiringMap } from "../authn/expiring-map.ts";
import {
  type RemoteReviews,
  type RemoteReviewVersion,
  ReviewError,
} from "../authn/remote-reviews.ts";
import type { Sha256Hex } from "../authn/request-authenticator.ts";
import type { Authorizer, AuthorizerAttributes, Decision } from "./authorizer.ts";
import type { RuleResolver, UserRules } from "./rbac-authorizer.ts";

/** Decisions that are kept (apiserver: plugin/pkg/authorizer/webhook). */
export const MAX_CACHED_DECISIONS = 8192;
/** A decision about longer names is not kept: they are the client's. */
const MAX_CACHED_CHARS = 10_000;
/** Of a reason. */
const MAX_REASON_CHARS = 4096;

export interface DecisionTimes {
  /** --authorization-webhook-cache-authorized-ttl; 0: none is kept. */
  readonly allowedMs: number;
  /** --authorization-webhook-cache-unauthorized-ttl. */
  readonly refusedMs: number;
}

export interface WebhookAuthorizerDeps {
  readonly reviews: RemoteReviews;
  readonly sha256Hex: Sha256Hex;
  readonly nowMs: () => number;
  readonly logger: Logger;
}

/** authorization.k8s.io SubjectAccessReviewStatus. */
interface ReviewStatus {
  readonly allowed?: boolean | undefined;
  readonly denied?: boolean | undefined;
  readonly reason?: string;
}

export class WebhookAuthorizer implements Authorizer, RuleResolver {
  readonly #times: DecisionTimes;
  readonly #deps: WebhookAuthorizerDeps;
  readonly #known: ExpiringMap<ReviewStatus>;

  constructor(times: DecisionTimes, deps: WebhookAuthorizerDeps) {
    this.#times = times;
    this.#deps = deps;
    this.#known = new ExpiringMap(MAX_CACHED_DECISIONS, deps.nowMs);
  }

  async authorize(attributes: AuthorizerAttributes): Promise<Decision> {
    const spec = specOf(attributes, this.#deps.reviews.version);
    const key = this.#deps.sha256Hex(JSON.stringify(spec));
    const known = this.#known.get(key);
    if (known !== undefined) return decisionOf(known);
    let status: ReviewStatus;
    try {
      const {
        allowed,
        denied,
        reason = "",
      }: ReviewStatus = await this.#deps.reviews.review(spec, { allowed: false });
      status = { allowed, denied, reason: reason.slice(0, MAX_REASON_CHARS) };
    } catch (error) {
      if (!(error instanceof ReviewError)) throw error;
      this.#deps.logger.error("Failed to make webhook authorizer request", {
        error: error.message,
      });
      return { decision: "no-opinion", reason: "", error: error.message };
    }
    const { allowedMs, refusedMs } = this.#times;
    if (controlledChars(attributes) < MAX_CACHED_CHARS)
      this.#known.set(key, status, status.allowed === true ? allowedMs : refusedMs);
    return decisionOf(status);
  }

  rulesFor(): UserRules {
    const errors = ["webhook authorizer does not support user rule resolution"];
    return { rules: [], incomplete: true, errors };
  }
}

function decisionOf({ allowed, denied, reason = "" }: ReviewStatus): Decision {
  if (denied === true && allowed === true) {
    const error = "webhook subject access review returned both allow and deny response";
    return { decision: "deny", reason, error };
  }
  if (denied === true) return { decision: "deny", reason };
  return { decision: allowed === true ? "allow" : "no-opinion", reason };
}

function specOf(attributes: AuthorizerAttributes, version: RemoteReviewVersion): object {
  const { user, isResourceRequest, namespace, verb, group, resource, subresource } = attributes;
  const groups = user.groups.length === 0 ? undefined : user.groups;
  const of = { namespace, verb, group, version: attributes.version, resource, subresource };
  return {
    ...(isResourceRequest
      ? { resourceAttributes: filled({ ...of, name: attributes.name }) }
      : { nonResourceAttributes: filled({ path: attributes.path, verb }) }),
    ...filled({ user: user.name }),
    ...(groups === undefined ? {} : { [version === "v1" ? "groups" : "group"]: groups }),
    ...(Object.keys(user.extra).length === 0 ? {} : { extra: user.extra }),
    ...filled({ uid: user.uid }),
  };
}

function filled(texts: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== ""));
}

/** Characters that the client chooses. */
function controlledChars(attributes: AuthorizerAttributes): number {
  const { namespace, verb, group, version, resource, subresource, name, path } = attributes;
  const texts = [namespace, verb, group, version, resource, subresource, name, path];
  return texts.reduce((sum, text) => sum + text.length, 0);
}
