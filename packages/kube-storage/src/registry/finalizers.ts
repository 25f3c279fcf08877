/**
 * Finalizers by which the garbage collector deletes or orphans dependents (apiserver:
 * registry/generic/registry/store.go, deletionFinalizersForGarbageCollection).
 */
import type { KubeObject } from "../meta/object.ts";
import { FOREGROUND_FINALIZER, ORPHAN_FINALIZER } from "../meta/object-meta-validation.ts";
import type { RestDeleteOptions } from "../rest/interfaces.ts";
import type { StoreContext } from "./store-context.ts";

type Dependents = "orphan" | "foreground" | "background";

/** What a deletion wants for dependents: its options first, then the object, then its kind. */
function wantedFor(
  { spec }: StoreContext,
  object: KubeObject,
  options: RestDeleteOptions,
): Dependents {
  const policy = spec.garbageCollection ?? "background";
  if (policy === "unsupported") return "background";
  if (options.orphanDependents !== undefined) {
    return options.orphanDependents ? "orphan" : "background";
  }
  if (options.propagationPolicy === "Orphan") return "orphan";
  if (options.propagationPolicy === "Foreground") return "foreground";
  if (options.propagationPolicy === "Background") return "background";
  for (const finalizer of object.metadata.finalizers ?? []) {
    if (finalizer === ORPHAN_FINALIZER) return "orphan";
    if (finalizer === FOREGROUND_FINALIZER) return "foreground";
  }
  return policy;
}

/** The finalizers that the deletion has to set; undefined where they stay as they are. */
export function finalizersForDeletion(
  context: StoreContext,
  object: KubeObject,
  options: RestDeleteOptions,
): readonly string[] | undefined {
  if (!context.parts.collectsGarbage) return undefined;
  const present = object.metadata.finalizers ?? [];
  const wanted = present.filter(
    (name) => name !== ORPHAN_FINALIZER && name !== FOREGROUND_FINALIZER,
  );
  const dependents = wantedFor(context, object, options);
  if (dependents === "orphan") wanted.push(ORPHAN_FINALIZER);
  if (dependents === "foreground") wanted.push(FOREGROUND_FINALIZER);
  const set = new Set(wanted);
  const same = present.every((name) => set.has(name)) && set.size === new Set(present).size;
  return same ? undefined : wanted;
}
