/** Leases (kubernetes: registry/coordination/lease, apis/coordination/validation). */

import type { FieldError, KindSource, KubeObject, ResourceSpec } from "@quorate/kube-storage";
import {
  AGE,
  builtinSpec,
  invalidValue,
  nameColumn,
  plainStrategy,
  tableOf,
  textColumn,
} from "@quorate/kube-storage";

interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  readonly leaseTransitions?: number;
  /** Of coordinated leader election, which this server does not have. */
  readonly strategy?: string;
  readonly preferredHolder?: string;
}

function specOf(object: KubeObject): LeaseSpec {
  return (object["spec"] as LeaseSpec | undefined) ?? {};
}

function validate(object: KubeObject): FieldError[] {
  const { leaseDurationSeconds, leaseTransitions } = specOf(object);
  const errors: FieldError[] = [];
  if (leaseDurationSeconds !== undefined && leaseDurationSeconds <= 0) {
    const field = "spec.leaseDurationSeconds";
    errors.push(invalidValue(field, leaseDurationSeconds, "must be greater than 0"));
  }
  if (leaseTransitions !== undefined && leaseTransitions < 0) {
    const field = "spec.leaseTransitions";
    errors.push(invalidValue(field, leaseTransitions, "must be greater than or equal to 0"));
  }
  return errors;
}

/** Fields of a feature that is off are dropped, as Kubernetes does by default. */
function withoutCoordination(object: KubeObject): KubeObject {
  const { strategy, preferredHolder, ...spec } = specOf(object);
  if (strategy === undefined && preferredHolder === undefined) return object;
  return { ...object, spec };
}

/** The resource "leases". */
export function leases(source: KindSource): ResourceSpec {
  return builtinSpec(source, "leases", {
    strategy: plainStrategy(
      { kind: source.kind, namespaced: true },
      {
        prepareForCreate: (_ctx, object) => withoutCoordination(object),
        validate: (_ctx, object) => validate(object),
        prepareForUpdate: (_ctx, object) => withoutCoordination(object),
        validateUpdate: (_ctx, object) => validate(object),
        allowCreateOnUpdate: true,
        allowUnconditionalUpdate: false,
      },
    ),
    table: tableOf(
      nameColumn(),
      textColumn("Holder", "The holder of the lease; empty where nothing holds it.", (object) => {
        return specOf(object).holderIdentity ?? "";
      }),
      AGE,
    ),
  });
}
