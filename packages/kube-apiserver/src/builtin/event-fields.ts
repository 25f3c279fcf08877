/** The fields of v1 Events, and the same event as events.k8s.io/v1 names its fields. */
import type { KubeObject } from "@quorate/kube-storage";

interface Reference {
  readonly kind?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly uid?: string;
  readonly apiVersion?: string;
  readonly resourceVersion?: string;
  readonly fieldPath?: string;
}

export interface EventSource {
  readonly component?: string;
  readonly host?: string;
}

/** core/v1 Event. */
export interface CoreEvent extends KubeObject {
  readonly involvedObject?: Reference;
  readonly reason?: string;
  readonly message?: string;
  readonly source?: EventSource;
  readonly firstTimestamp?: string | null;
  readonly lastTimestamp?: string | null;
  readonly count?: number;
  readonly type?: string;
  readonly eventTime?: string | null;
  readonly series?: { readonly count?: number; readonly lastObservedTime?: string | null };
  readonly action?: string;
  readonly related?: Reference;
  readonly reportingComponent?: string;
  readonly reportingInstance?: string;
}

/** Names in core/v1, and in events.k8s.io/v1 where they differ. */
const NAMES: readonly (readonly [core: string, events: string])[] = [
  ["involvedObject", "regarding"],
  ["message", "note"],
  ["source", "deprecatedSource"],
  ["firstTimestamp", "deprecatedFirstTimestamp"],
  ["lastTimestamp", "deprecatedLastTimestamp"],
  ["count", "deprecatedCount"],
  ["reportingComponent", "reportingController"],
];

const TO_EVENTS: ReadonlyMap<string, string> = new Map(NAMES);
const TO_CORE: ReadonlyMap<string, string> = new Map(NAMES.map(([core, events]) => [events, core]));

function renamed(
  object: KubeObject,
  names: ReadonlyMap<string, string>,
  apiVersion: string,
): KubeObject {
  if (object.apiVersion === apiVersion) return object;
  const { metadata } = object;
  const result: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(object)) result[names.get(field) ?? field] = value;
  return { ...result, kind: "Event", apiVersion, metadata };
}

/** The event in core/v1, which is stored. */
export function toCoreEvent(object: KubeObject): CoreEvent {
  return renamed(object, TO_CORE, "v1");
}

/** The event in events.k8s.io/v1. */
export function toEventsEvent(object: KubeObject): KubeObject {
  const event = renamed(object, TO_EVENTS, "events.k8s.io/v1");
  // Core/v1 writes empty reporters, events.k8s.io/v1 does not.
  const { reportingController, reportingInstance, ...rest } = event;
  return {
    ...(rest as KubeObject),
    ...(reportingController ? { reportingController } : {}),
    ...(reportingInstance ? { reportingInstance } : {}),
  };
}
