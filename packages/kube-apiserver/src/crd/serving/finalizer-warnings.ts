/** Warnings for finalizers whose names another program may use, too. */

import type { KubeObject } from "@quorate/kube-storage";
import { isQualifiedName } from "@quorate/kube-storage";
import { quoteText as goQuote } from "@quorate/proto";

const STANDARD: ReadonlySet<string> = new Set(["orphan", "foregroundDeletion", "kubernetes"]);

/** @param old undefined for a new object; only added finalizers are judged */
export function finalizerWarnings(object: KubeObject, old: KubeObject | undefined): string[] {
  const present = new Set(old?.metadata.finalizers ?? []);
  const added = (object.metadata.finalizers ?? []).filter((name) => !present.has(name));
  return [...new Set(added)].sort().flatMap(warningsFor);
}

function warningsFor(name: string): string[] {
  const start = `metadata.finalizers: ${goQuote(name)}: `;
  const warnings = isQualifiedName(name).map((text) => start + text);
  if (name.includes("/") || STANDARD.has(name)) return warnings;
  const path = name.includes(".") ? " including a path (/)" : "";
  const reason = "to avoid accidental conflicts with other finalizer writers";
  return [...warnings, `${start}prefer a domain-qualified finalizer name${path} ${reason}`];
}
