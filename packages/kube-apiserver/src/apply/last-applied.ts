/**
 * The annotation of `kubectl apply` on the client's side, when the same user goes over to
 * server-side apply (util/managedfields/internal/lastappliedmanager.go, lastappliedupdater.go).
 */
import { canonicalJson, type KubeObject } from "@quorate/kube-storage";
import { utf8Length } from "@quorate/proto";
import type { Conflict } from "./apply-conflict.ts";
import { differenceOf, hasPath } from "./field-set.ts";
import { compareTyped } from "./typed-compare.ts";
import { fieldSetOfValue } from "./typed-fields.ts";
import type { TypeAtom } from "./typed-schema.ts";
import { isMap, TypedError, validateTyped } from "./typed-value.ts";

const ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration";

/** Bytes of all annotations of an object together (apimachinery: api/validation/objectmeta.go). */
const MAX_ANNOTATIONS_BYTES = 256 * 1024;

/**
 * The conflicts that remain after those with fields that the annotation shows to be kubectl's own:
 * fields that it applied and that still have the applied value.
 */
export function allowedConflicts(
  type: TypeAtom,
  live: KubeObject,
  apiVersion: string,
  conflicts: readonly Conflict[],
): readonly Conflict[] {
  const text = live.metadata?.annotations?.[ANNOTATION];
  if (!text) return conflicts;
  const applied = parse(text);
  if (applied === undefined || applied["apiVersion"] !== apiVersion) return conflicts;
  try {
    validateTyped(type, applied, false);
    const changes = compareTyped(type, applied, live);
    let own = fieldSetOfValue(type, applied);
    for (const changed of [changes.modified, changes.added, changes.removed]) {
      own = differenceOf(own, changed);
    }
    return conflicts.filter(({ path }) => !hasPath(own, path));
  } catch (error) {
    // An annotation that does not fit the schema proves nothing.
    if (error instanceof TypedError) return conflicts;
    throw error;
  }
}

function parse(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isMap(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Brings the annotation up to date after kubectl's server-side apply, if the object has one. */
export function withLastApplied(object: KubeObject, applied: KubeObject): KubeObject {
  if (!object.metadata.annotations?.[ANNOTATION]) return object;
  const annotations: Record<string, string> = { ...object.metadata.annotations };
  annotations[ANNOTATION] = lastAppliedText(applied);
  if (sizeOf(annotations) > MAX_ANNOTATIONS_BYTES) delete annotations[ANNOTATION];
  return { ...object, metadata: { ...object.metadata, annotations } };
}

function lastAppliedText(applied: KubeObject): string {
  const { annotations: present, ...metadata } = applied.metadata ?? {};
  if (!present) return `${canonicalJson({ ...applied, metadata })}\n`;
  const { [ANNOTATION]: _, ...annotations } = present;
  return `${canonicalJson({ ...applied, metadata: { ...metadata, annotations } })}\n`;
}

function sizeOf(annotations: Readonly<Record<string, string>>): number {
  let bytes = 0;
  for (const [name, text] of Object.entries(annotations)) {
    bytes += utf8Length(name) + utf8Length(text);
  }
  return bytes;
}
