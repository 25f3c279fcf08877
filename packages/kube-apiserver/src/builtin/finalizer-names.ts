/** The stricter rule of core kinds for finalizers (kubernetes: apis/core/validation). */

import type { FieldError, KubeObject } from "@quorate/kube-storage";
import { FOREGROUND_FINALIZER, invalidValue, ORPHAN_FINALIZER } from "@quorate/kube-storage";

/** The finalizer in spec.finalizers that the namespace controller removes. */
export const NAMESPACE_FINALIZER = "kubernetes";

const STANDARD = new Set([NAMESPACE_FINALIZER, ORPHAN_FINALIZER, FOREGROUND_FINALIZER]);

/** A finalizer without a domain must be one of Kubernetes' own. */
export function validateFinalizerDomain(name: string, field: string): FieldError[] {
  if (name.includes("/") || STANDARD.has(name)) return [];
  const text = "name is neither a standard finalizer name nor is it fully qualified";
  return [invalidValue(field, name, text)];
}

/** The rule for metadata.finalizers. */
export function validateCoreFinalizers({ metadata }: KubeObject): FieldError[] {
  return (metadata.finalizers ?? []).flatMap((name, index) =>
    validateFinalizerDomain(name, `metadata.finalizers[${index}]`),
  );
}
