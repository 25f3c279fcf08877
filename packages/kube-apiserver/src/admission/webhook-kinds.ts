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
import type { ConditionEngine } from "./match-conditions.ts";
import { webhooksOf } from "./webhook-config.ts";
import { webhookConfigurationErrors } from "./webhook-validation.ts";

export const ADMISSION_GROUP = "admissionregistration.k8s.io";

export const WEBHOOK_RESOURCES = {
  mutating: "mutatingwebhookconfigurations",
  validating: "validatingwebhookconfigurations",
} as const;

/** @param engine of matchConditions */
export function webhookResources(
  source: (kind: GroupVersionKind) => KindSource,
  engine: ConditionEngine,
): readonly ResourceSpec[] {
  const of = (kind: string): KindSource => source({ group: ADMISSION_GROUP, version: "v1", kind });
  return [
    specOf(of("MutatingWebhookConfiguration"), WEBHOOK_RESOURCES.mutating, engine),
    specOf(of("ValidatingWebhookConfiguration"), WEBHOOK_RESOURCES.validating, engine),
  ];
}

function specOf(source: KindSource, resource: string, engine: ConditionEngine): ResourceSpec {
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
        validate: (_ctx, object) => errorsOf(object, engine),
        validateUpdate: (_ctx, object) => errorsOf(object, engine),
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

async function errorsOf(object: KubeObject, engine: ConditionEngine): Promise<FieldError[]> {
  const hasConditions = webhooksOf(object).some(({ matchConditions }) => matchConditions?.length);
  if (hasConditions) await engine.load();
  return webhookConfigurationErrors(object, engine.compile);
}
