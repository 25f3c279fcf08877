/**
 * Webhooks as MutatingWebhookConfigurations and ValidatingWebhookConfigurations declare them
 * (apiserver: pkg/admission/configuration), and the list of all in the order of their calls.
 */

import type { KubeObject, LabelSelectorObject, Selector } from "@quorate/kube-storage";
import { defined, quoteText as goQuote } from "@quorate/proto";
import type { RequestExpressions } from "../crd/cel/request-expressions.ts";
import { type MatchCondition, MatchConditions } from "./match-conditions.ts";
import { type MatchRule, selectorOf, type VersionedRequest } from "./matching.ts";
import type { WebhookClientConfig } from "./webhook-caller.ts";

/** MutatingWebhook or ValidatingWebhook, as stored. */
export interface WebhookSpec {
  readonly name: string;
  readonly clientConfig: WebhookClientConfig;
  readonly rules?: readonly MatchRule[];
  readonly failurePolicy?: string;
  readonly matchPolicy?: string;
  readonly namespaceSelector?: LabelSelectorObject;
  readonly objectSelector?: LabelSelectorObject;
  readonly sideEffects?: string;
  readonly timeoutSeconds?: number;
  readonly admissionReviewVersions?: readonly string[];
  readonly matchConditions?: readonly MatchCondition[];
  readonly reinvocationPolicy?: string;
}

/** A webhook, prepared for matching. */
export interface Webhook {
  readonly spec: WebhookSpec;
  /** The name of its configuration. */
  readonly configuration: string;
  /** Distinguishes webhooks of one name: configuration, name, index. */
  readonly id: string;
  readonly namespaceSelector: Selector;
  readonly objectSelector: Selector;
  readonly conditions: MatchConditions;
}

/** A call that a webhook wants: in the version of the request, or in another one. */
export interface Invocation extends VersionedRequest {
  readonly webhook: Webhook;
}

export function webhooksOf(configuration: KubeObject): readonly WebhookSpec[] {
  return (configuration["webhooks"] as readonly WebhookSpec[] | null | undefined) ?? [];
}

/**
 * The webhooks of all configurations of one kind. Configurations are called in the order of their
 * names, the webhooks of one in their own order.
 */
export class WebhookList {
  readonly #expressions: RequestExpressions;
  readonly #byName = new Map<string, readonly Webhook[]>();
  #all: readonly Webhook[] = [];

  constructor(expressions: RequestExpressions) {
    this.#expressions = expressions;
  }

  get all(): readonly Webhook[] {
    return this.#all;
  }

  set(configuration: KubeObject): void {
    const name = configuration.metadata.name ?? "";
    const webhooks = webhooksOf(configuration).map((spec, i) => ({
      spec,
      configuration: name,
      id: `${name}/${spec.name}/${i}`,
      namespaceSelector: selectorOf(spec.namespaceSelector),
      objectSelector: selectorOf(spec.objectSelector),
      conditions: new MatchConditions(spec.matchConditions ?? [], this.#expressions),
    }));
    this.#byName.set(name, webhooks);
    this.#sort();
  }

  delete(configuration: KubeObject): void {
    this.#byName.delete(configuration.metadata.name ?? "");
    this.#sort();
  }

  #sort(): void {
    const names = [...this.#byName.keys()].sort();
    this.#all = names.flatMap((name) => defined(this.#byName.get(name), "the webhooks"));
  }
}

/** How errors name a webhook. */
export function quotedName({ spec }: Webhook): string {
  return goQuote(spec.name);
}
