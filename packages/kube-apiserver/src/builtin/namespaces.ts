/**
 * Namespaces (kubernetes: registry/core/namespace). A deletion first sets the phase "Terminating";
 * a controller deletes what the namespace contains and removes "kubernetes" from spec.finalizers
 * through /finalize; with the last finalizer the namespace goes.
 */

import {
  AGE,
  builtinSpec,
  type FieldError,
  FOREGROUND_FINALIZER,
  invalidValue,
  isQualifiedName,
  type KindSource,
  type KubeObject,
  metaTime,
  nameColumn,
  nameIsDnsLabel,
  ORPHAN_FINALIZER,
  plainStrategy,
  type ResourceSpec,
  type RestDeleteOptions,
  type Strategy,
  subresourceStoreOf,
  tableOf,
  textColumn,
  withField,
  withMetadata,
} from "@quorate/kube-storage";
import {
  NAMESPACE_FINALIZER,
  validateCoreFinalizers,
  validateFinalizerDomain,
} from "./finalizer-names.ts";
import { twoStepStoreOf } from "./two-step-deletion.ts";

/** The label that holds a namespace's name, for selectors. */
export const NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name";

/** spec.finalizers. */
export function finalizersOf(object: KubeObject): readonly string[] {
  const spec = object["spec"] as { readonly finalizers?: readonly string[] } | undefined;
  return spec?.finalizers ?? [];
}

/** status.phase; "" without one. */
export function phaseOf(object: KubeObject | undefined): string {
  const status = object?.["status"] as { readonly phase?: string } | undefined;
  return status?.phase ?? "";
}

/** metadata.finalizers after a deletion with these options. */
function deletionFinalizers(
  present: readonly string[],
  { orphanDependents, propagationPolicy }: RestDeleteOptions,
): readonly string[] {
  const wants = (name: string, byFlag: boolean, policy: string): boolean => {
    if (orphanDependents !== undefined) return orphanDependents === byFlag;
    if (propagationPolicy !== undefined) return propagationPolicy === policy;
    return present.includes(name);
  };
  const own = [ORPHAN_FINALIZER, FOREGROUND_FINALIZER];
  const finalizers = present.filter((name) => !own.includes(name));
  if (wants(ORPHAN_FINALIZER, true, "Orphan")) finalizers.push(ORPHAN_FINALIZER);
  if (wants(FOREGROUND_FINALIZER, false, "Foreground")) finalizers.push(FOREGROUND_FINALIZER);
  return finalizers;
}

function terminating(present: KubeObject, options: RestDeleteOptions, nowMs: number): KubeObject {
  const { deletionTimestamp = metaTime(nowMs), finalizers = [] } = present.metadata;
  const wanted = deletionFinalizers(finalizers, options);
  const marked = withMetadata(present, {
    deletionTimestamp,
    finalizers: wanted.length === 0 ? undefined : wanted,
  });
  return { ...marked, status: { ...(present["status"] as object), phase: "Terminating" } };
}

function validateFinalizer(name: string, field: string): FieldError[] {
  return [
    ...isQualifiedName(name).map((text) => invalidValue(field, name, text)),
    ...validateFinalizerDomain(name, field),
  ];
}

function validate(object: KubeObject): FieldError[] {
  return [
    ...validateCoreFinalizers(object),
    ...finalizersOf(object).flatMap((name) => validateFinalizer(name, "spec.finalizers")),
  ];
}

function strategyOf(source: KindSource): Strategy {
  return plainStrategy(
    { kind: source.kind, namespaced: false },
    {
      prepareForCreate(_ctx, object) {
        const present = finalizersOf(object);
        const finalizers = present.includes(NAMESPACE_FINALIZER)
          ? present
          : [...present, NAMESPACE_FINALIZER];
        return { ...object, spec: { finalizers }, status: { phase: "Active" } };
      },
      validate: (_ctx, object) => validate(object),
      canonicalize: (object) =>
        withMetadata(object, {
          labels: { ...object.metadata.labels, [NAMESPACE_NAME_LABEL]: object.metadata.name ?? "" },
        }),
      prepareForUpdate(_ctx, object, old) {
        const finalizers = finalizersOf(old);
        const spec = finalizers.length === 0 ? {} : { finalizers };
        return withField({ ...object, spec }, "status", old["status"]);
      },
      validateUpdate: (_ctx, object) => validate(object),
      resetFields: { "f:status": {} },
    },
  );
}

function statusStrategyOf(strategy: Strategy): Strategy {
  return {
    ...strategy,
    prepareForUpdate: (_ctx, object, old) => withField(object, "spec", old["spec"]),
    validateUpdate(_ctx, object) {
      const deleted = object.metadata.deletionTimestamp !== undefined;
      const wanted = deleted ? "Terminating" : "Active";
      const phase = phaseOf(object);
      if (phase === wanted) return [];
      const not = deleted ? "not " : "";
      const text = `may only be '${wanted}' if \`deletionTimestamp\` is ${not}empty`;
      return [invalidValue("status.Phase", phase, text)];
    },
    resetFields: { "f:spec": {} },
  };
}

function finalizeStrategyOf(strategy: Strategy): Strategy {
  return {
    ...strategy,
    prepareForUpdate: (_ctx, object, old) => withField(object, "status", old["status"]),
    validateUpdate: (_ctx, object) =>
      finalizersOf(object).flatMap((name, index) =>
        validateFinalizer(name, `spec.finalizers[${index}]`),
      ),
  };
}

/** The resource "namespaces", with /status and /finalize. */
export function namespaces(source: KindSource): ResourceSpec {
  const strategy = strategyOf(source);
  const spec: ResourceSpec = builtinSpec(source, "namespaces", {
    shortNames: ["ns"],
    namespaced: false,
    strategy,
    statusStrategy: statusStrategyOf(strategy),
    nameRule: nameIsDnsLabel,
    returnsDeletedObject: true,
    deletesDuringUpdate: (object) => finalizersOf(object).length === 0,
    selectableFields: (object) => ({
      "status.phase": phaseOf(object),
      name: object.metadata.name ?? "",
    }),
    selectableFieldNames: ["status.phase"],
    table: tableOf(
      nameColumn(),
      textColumn("Status", "The phase: Active or Terminating.", phaseOf),
      AGE,
    ),
    customize: (storages, parts) => {
      const { update } = subresourceStoreOf(spec, parts, finalizeStrategyOf(strategy));
      const { deleteCollection: _, ...main } = twoStepStoreOf(spec, parts, {
        marked: terminating,
        isKept: (object) => finalizersOf(object).length > 0,
      });
      return { main, subresources: { ...storages.subresources, finalize: { update } } };
    },
  });
  return spec;
}
