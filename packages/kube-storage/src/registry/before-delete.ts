/** Checks of a deletion, and its grace period (apiserver: registry/rest/delete.go BeforeDelete). */

import { invalidValue, notSupported } from "../meta/field-errors.ts";
import { type KubeObject, withMetadata } from "../meta/object.ts";
import { conflict, type FieldError, invalid } from "../meta/status.ts";
import { metaTime, parseTime } from "../meta/time.ts";
import type { RestDeleteOptions } from "../rest/interfaces.ts";
import type { StoreContext } from "./resource-spec.ts";

export interface DeletionPlan {
  /** `graceful`: the object stays until its time is over. `pending`: it already waits for that. */
  readonly kind: "immediate" | "graceful" | "pending";
  /** The object, marked as deleted where the deletion is graceful. */
  readonly object: KubeObject;
  /** The grace period of a graceful deletion, in seconds. */
  readonly gracePeriodSeconds: number;
}

const POLICIES = ["Foreground", "Background", "Orphan"];

/** All errors of deletion options (apimachinery: ValidateDeleteOptions). */
export function validateDeleteOptions(options: RestDeleteOptions): FieldError[] {
  const errors: FieldError[] = [];
  const policy = options.propagationPolicy;
  if (options.orphanDependents !== undefined && policy !== undefined) {
    const text = "orphanDependents and deletionPropagation cannot be both set";
    errors.push(invalidValue("propagationPolicy", policy, text));
  }
  if (policy !== undefined && !POLICIES.includes(policy)) {
    errors.push(notSupported("propagationPolicy", policy, [...POLICIES, "nil"]));
  }
  return errors;
}

function checkPreconditions(
  { spec }: StoreContext,
  object: KubeObject,
  options: RestDeleteOptions,
): void {
  const { uid: wantedUid, resourceVersion: wantedRevision } = options.preconditions ?? {};
  const { uid = "", resourceVersion = "", name = "" } = object.metadata;
  const of = { group: spec.kind.group, resource: spec.kind.kind };
  if (wantedUid !== undefined && wantedUid !== uid) {
    const text =
      `the UID in the precondition (${wantedUid}) does not match the UID in record (${uid}). ` +
      "The object might have been deleted and then recreated";
    throw conflict(of, name, text);
  }
  if (wantedRevision !== undefined && wantedRevision !== resourceVersion) {
    const text =
      `the ResourceVersion in the precondition (${wantedRevision}) does not match the ` +
      `ResourceVersion in record (${resourceVersion}). The object might have been modified`;
    throw conflict(of, name, text);
  }
}

/** Shortens the grace period of an object that already waits for its end. */
function shortened(object: KubeObject, period: number, nowMs: number): DeletionPlan {
  const { deletionTimestamp, deletionGracePeriodSeconds: present = 0 } = object.metadata;
  let endMs = (parseTime(deletionTimestamp) ?? nowMs) + (period - present) * 1000;
  let seconds = period;
  if (endMs < nowMs) {
    endMs = nowMs;
    // The time is over; one second keeps it a graceful deletion that another party completes.
    if (period !== 0) seconds = 1;
  }
  const changes = { deletionTimestamp: metaTime(endMs), deletionGracePeriodSeconds: seconds };
  return { kind: "graceful", object: withMetadata(object, changes), gracePeriodSeconds: period };
}

/**
 * Decides how an object is deleted. Throws ApiError 409 where preconditions fail and 422 for
 * options that are not valid.
 */
export function planDeletion(
  context: StoreContext,
  object: KubeObject,
  options: RestDeleteOptions,
): DeletionPlan {
  const errors = validateDeleteOptions(options);
  if (errors.length > 0) throw invalid({ group: "meta.k8s.io", kind: "DeleteOptions" }, "", errors);
  checkPreconditions(context, object, options);
  const { strategy } = context.spec;
  const { metadata } = object;
  const immediate: DeletionPlan = { kind: "immediate", object, gracePeriodSeconds: 0 };
  if (strategy.gracePeriodSeconds === undefined) return immediate;
  const requested =
    options.gracePeriodSeconds !== undefined && options.gracePeriodSeconds < 0
      ? 1
      : options.gracePeriodSeconds;
  const nowMs = context.parts.clock.wallMs();
  if (metadata.deletionTimestamp !== undefined) {
    const present =
      Math.sign(metadata.deletionGracePeriodSeconds ?? 0) < 0
        ? 1
        : (metadata.deletionGracePeriodSeconds ?? 0);
    if (present === 0) return immediate;
    if (requested === undefined || requested >= present) {
      return { kind: "pending", object, gracePeriodSeconds: present };
    }
    return shortened(object, requested, nowMs);
  }
  const seconds = strategy.gracePeriodSeconds(object, requested);
  const { generation = 0 } = metadata;
  const marked = withMetadata(object, {
    deletionTimestamp: metaTime(nowMs + seconds * 1000),
    deletionGracePeriodSeconds: seconds,
    generation: generation > 0 ? generation + 1 : metadata.generation,
  });
  return { kind: "graceful", object: marked, gracePeriodSeconds: seconds };
}
