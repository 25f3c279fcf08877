/**
 * The resources of admissionregistration.k8s.io/v1 (Kubernetes: pkg/registry/
 * admissionregistration).
 */

import type {
  FieldError,
  GroupVersionKind,
  KindSource,
  KubeObject,
  ResourceSpec,
} from "@quorate/kube-storage";
import {
  AGE,
  builtinSpec,
  nameColumn,
  plainStrategy,
  semanticEqual,
  tableOf,
  withMetadata,
} from "@quorate/kube-storage";
import type { RequestExpressions } from "../crd/cel/request-expressions.ts";
import { webhooksOf } from "./webhook-config.ts";
import { webhookConfigurationErrors } from "./webhook-validation.ts";

export const ADMISSION_GROUP = "admissionregistration.k8s.io";

export const WEBHOOK_RESOURCES = {
  mutating: "mutatingwebhookconfigurations",
  validating: "validatingwebhookconfigurations",
} as const;

/** @param expressions compile matchConditions */
export function webhookResources(
  source: (kind: GroupVersionKind) => KindSource,
  expressions: RequestExpressions,
): readonly ResourceSpec[] {
  const of = (kind: string): KindSource => source({ group: ADMISSION_GROUP, version: "v1", kind });
  return [
    specOf(of("MutatingWebhookConfiguration"), WEBHOOK_RESOURCES.mutating, expressions),
    specOf(of("ValidatingWebhookConfiguration"), WEBHOOK_RESOURCES.validating, expressions),
  ];
}

function specOf(
  source: KindSource,
  resource: string,
  expressions: RequestExpressions,
): ResourceSpec {
  return builtinSpec(source, resource, {
    categories: ["api-extensions"],
    namespaced: false,
    strategy: plainStrategy(
      { kind: source.kind, namespaced: false },
      {
        allowUnconditionalUpdate: false,
        prepareForCreate: (_ctx, object) => withMetadata(object, { generation: 1 }),
        prepareForUpdate(_ctx, object, old) {
          const { generation = 0 } = old.metadata;
          const isSame = semanticEqual(object["webhooks"], old["webhooks"]);
          return withMetadata(object, { generation: isSame ? generation : generation + 1 });
        },
        validate: (_ctx, object) => errorsOf(object, expressions),
        validateUpdate: (_ctx, object) => errorsOf(object, expressions),
      },
    ),
    table: tableOf(
      nameColumn(),
      {
        column: {
          name: "Webhooks",
          type: "integer",
          format: "",
          description: "The number of webhooks.",
          priority: 0,
        },
        cell: (object) => webhooksOf(object).length,
      },
      AGE,
    ),
  });
}

async function errorsOf(
  object: KubeObject,
  expressions: RequestExpressions,
): Promise<FieldError[]> {
  await expressions.load();
  const set = expressions.set({ hasParams: false, hasVariables: false });
  return webhookConfigurationErrors(object, set);
}
