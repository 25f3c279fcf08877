/**
 * Whether a webhook is called for a request, and with which version of the object (apiserver:
 * pkg/admission/plugin/webhook/generic/webhook.go).
 */
import { type Clock, Pauses } from "@quorate/host";
import { forbidden } from "@quorate/kube-storage";
import type { Authorizer } from "../authz/authorizer.ts";
import { Decisions } from "../crd/cel/functions/authorization.ts";
import type { AdmissionAttributes } from "./admission.ts";
import { activationOf, areTrue } from "./match-conditions.ts";
import {
  inVersion,
  type MatchDependencies,
  matchedVersion,
  matchesNamespace,
  matchesObject,
} from "./matching.ts";
import type { Invocation, Webhook } from "./webhook-config.ts";

export interface WebhookMatchDependencies extends MatchDependencies {
  /** Of the variable "authorizer" of conditions. */
  readonly authorizer: Authorizer;
  readonly clock: Pick<Clock, "turns">;
}

/** Undefined: the webhook is not called. Rejects with ApiError. */
export async function invocationOf(
  webhook: Webhook,
  attributes: AdmissionAttributes,
  deps: WebhookMatchDependencies,
): Promise<Invocation | undefined> {
  const { rules = [], matchPolicy } = webhook.spec;
  const matched = matchedVersion(rules, matchPolicy, attributes, deps.served);
  if (matched === undefined) return undefined;
  if (!matchesObject(webhook.objectSelector, attributes)) return undefined;
  if (!(await matchesNamespace(webhook.namespaceSelector, attributes, deps.namespaces)))
    return undefined;
  const invocation = { webhook, ...(await inVersion(attributes, matched)) };
  return (await matchesConditions(invocation, attributes, deps)) ? invocation : undefined;
}

async function matchesConditions(
  invocation: Invocation,
  attributes: AdmissionAttributes,
  { authorizer, clock }: WebhookMatchDependencies,
): Promise<boolean> {
  const { webhook } = invocation;
  if (webhook.conditions.isEmpty) return true;
  const activation = activationOf(invocation, attributes, new Decisions(authorizer));
  try {
    const conditions = await webhook.conditions.compiled();
    return await areTrue(conditions, activation, new Pauses(clock.turns));
  } catch (error) {
    // As with a webhook that cannot be called.
    if (webhook.spec.failurePolicy === "Ignore") return false;
    const { resource, name } = attributes;
    const text = error instanceof Error ? error.message : String(error);
    throw forbidden(resource, name, text);
  }
}
