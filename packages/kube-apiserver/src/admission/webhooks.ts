/**
 * The plug-in MutatingAdmissionWebhook: webhooks are called one after the other, each with the
 * object that the one before left. Those with reinvocationPolicy IfNeeded are called a second time
 * when something changed the object after them (apiserver: mutating/dispatcher.go).
 */

import { type Clock, Pauses } from "@quorate/host";
import {
  ApiError,
  forbidden,
  internalError,
  type KubeObject,
  sameJson,
  textOf,
} from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import { applyPatch } from "../apply/apply-patch.ts";
import type { Authorizer } from "../authz/authorizer.ts";
import { Decisions } from "../crd/cel/functions/authorization.ts";
import type { AdmissionAttributes } from "./admission.ts";
import { type AdmissionPlugin, Reinvocation, type Rounds } from "./chain.ts";
import { activationOf, areTrue } from "./match-conditions.ts";
import {
  inVersion,
  isExempt,
  type MatchDependencies,
  matchedVersion,
  matchesNamespace,
  matchesObject,
} from "./matching.ts";
import { type Invocation, quotedName, type Webhook, type WebhookList } from "./webhook-config.ts";
import { type DispatchDependencies, dispatch } from "./webhook-dispatch.ts";

type WebhookDependencies = DispatchDependencies & WebhookMatchDependencies;

export function mutatingWebhooks(
  webhooks: WebhookList,
  deps: WebhookDependencies,
): AdmissionPlugin {
  const states = new WeakMap<Rounds, Reinvocation>();
  return {
    isIdle: () => webhooks.all.length === 0,
    async mutate(attributes, rounds) {
      if (isExempt(attributes)) return attributes.object;
      const again = Reinvocation.of(states, rounds, attributes.object);
      const object = await runAll(webhooks, attributes, again, rounds, deps);
      again.ended(object);
      return object;
    },
  };
}

async function runAll(
  webhooks: WebhookList,
  attributes: AdmissionAttributes,
  again: Reinvocation,
  rounds: Rounds,
  deps: WebhookDependencies,
): Promise<KubeObject | undefined> {
  const { isSecond } = rounds;
  let { object } = attributes;
  for (const [at, webhook] of webhooks.all.entries()) {
    if (isSecond && !again.isDue(webhook.id)) continue;
    const present = { ...attributes, object };
    const invocation = await invocationOf(webhook, present, deps);
    if (invocation === undefined) continue;
    const next = await runOne(invocation, present, `round_${isSecond ? 1 : 0}_index_${at}`, deps);
    if (next !== undefined) {
      object = next;
      again.changed();
    }
    if (webhook.spec.reinvocationPolicy === "IfNeeded") again.wait(webhook.id);
  }
  return object;
}

/** Annotation of the audit log: whether a webhook changed the object. */
const MUTATION = "mutation.webhook.admission.k8s.io/";

/** The changed object; undefined where the webhook changes nothing. */
async function runOne(
  invocation: Invocation,
  attributes: AdmissionAttributes,
  place: string,
  deps: WebhookDependencies,
): Promise<KubeObject | undefined> {
  const { spec, configuration } = invocation.webhook;
  const by = { configuration, webhook: spec.name };
  const mark = (mutated: boolean) =>
    attributes.annotate?.(`${MUTATION}${place}`, JSON.stringify({ ...by, mutated }));
  const result = await dispatch(invocation, attributes, true, deps);
  if (result === undefined) attributes.annotate?.(`failed-open.${MUTATION}${place}`, spec.name);
  if (result?.patch === undefined) {
    mark(false);
    return undefined;
  }
  const { webhook, object } = invocation;
  if (object === undefined) {
    throw internalError(
      `admission webhook ${quotedName(webhook)} attempted to modify the object, which is not ` +
        "supported for this operation",
    );
  }
  const patched = await decoded(invocation, attributes, patchedBy(object, result.patch), deps);
  // Both are decoded: an empty field that is left is one that Go's types keep, and a change.
  const isSame = sameJson(patched, attributes.object);
  mark(!isSame);
  return isSame ? undefined : patched;
}

function patchedBy(object: KubeObject, patch: unknown) {
  try {
    return applyPatch("application/json-patch+json", object, patch, undefined);
  } catch (error) {
    if (error instanceof ApiError) throw internalError(error.message);
    throw error;
  }
}

/** Reads what the patch made, in the webhook's version, and returns to the request's. */
async function decoded(
  { resource, isConverted }: Invocation,
  attributes: AdmissionAttributes,
  value: unknown,
  { served }: WebhookDependencies,
): Promise<KubeObject> {
  const { subresource } = attributes;
  const of = served.find(resource.group, resource.version, resource.resource, subresource);
  const own = served.find(
    attributes.resource.group,
    attributes.resource.version,
    attributes.resource.resource,
    subresource,
  );
  if (of === undefined || own === undefined) throw internalError("the resource is served no more");
  try {
    const { object } = of.decode(value);
    return isConverted ? defined((await own.convert([object]))[0], "the object") : object;
  } catch (error) {
    if (error instanceof ApiError) throw internalError(error.message);
    throw error;
  }
}

/** Annotation of the audit log: a webhook that failed was ignored. */
const FAILED_OPEN = "failed-open.validating.webhook.admission.k8s.io/";

/**
 * The plug-in ValidatingAdmissionWebhook: all webhooks that match are called at the same time.
 */
export function validatingWebhooks(
  webhooks: WebhookList,
  deps: WebhookDependencies,
): AdmissionPlugin {
  return {
    isIdle: () => webhooks.all.length === 0,
    async validate(attributes) {
      if (isExempt(attributes)) return;
      const invocations: Invocation[] = [];
      for (const webhook of webhooks.all) {
        const invocation = await invocationOf(webhook, attributes, deps);
        if (invocation !== undefined) invocations.push(invocation);
      }
      const calls = invocations.map(async (one, at) => {
        if ((await dispatch(one, attributes, false, deps)) === undefined)
          attributes.annotate?.(`${FAILED_OPEN}round_0_index_${at}`, one.webhook.spec.name);
      });
      // All end before the first failure is reported, so that none outlives the request.
      const failures = await Promise.allSettled(calls);
      for (const failure of failures) if (failure.status === "rejected") throw failure.reason;
    },
  };
}

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
    const text = textOf(error);
    throw forbidden(resource, name, text);
  }
}
