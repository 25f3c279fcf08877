/**
 * Events (kubernetes: registry/core/event): one set of stored objects, served as core/v1 and as
 * events.k8s.io/v1. They expire an hour after their last write.
 */

import type { KindSource, KubeObject, ResourceSpec } from "@quorate/kube-storage";
import {
  ageSince,
  builtinSpec,
  ConvertedStorage,
  nameColumn,
  nameIsPathSegment,
  plainStrategy,
  tableOf,
  textColumn,
} from "@quorate/kube-storage";
import { type CoreEvent, toCoreEvent, toEventsEvent } from "./event-fields.ts";
import { type EventApi, validateEvent, validateEventUpdate } from "./event-validation.ts";

/** --event-ttl of kube-apiserver. */
export const DEFAULT_EVENT_TTL_SECONDS: number = 60 * 60;

const REFERENCE_FIELDS = [
  "kind",
  "namespace",
  "name",
  "uid",
  "apiVersion",
  "resourceVersion",
  "fieldPath",
] as const;

const CORE_FIELDS = [
  ...REFERENCE_FIELDS.map((field) => `involvedObject.${field}`),
  "reason",
  "reportingComponent",
  "source",
  "type",
];

const EVENTS_FIELDS = [
  ...REFERENCE_FIELDS.map((field) => `regarding.${field}`),
  "reason",
  "reportingController",
  "type",
];

/** Both versions' names: one storage serves both. */
function selectableFields(object: KubeObject): Record<string, string> {
  const event: CoreEvent = object;
  const reporter = event.reportingComponent ?? "";
  const fields: Record<string, string> = {
    reason: event.reason ?? "",
    reportingComponent: reporter,
    reportingController: reporter,
    source: event.source?.component || reporter,
    type: event.type ?? "",
  };
  for (const field of REFERENCE_FIELDS) {
    const value = event.involvedObject?.[field] ?? "";
    fields[`involvedObject.${field}`] = value;
    fields[`regarding.${field}`] = value;
  }
  return fields;
}

function firstSeen(event: CoreEvent, nowMs: number): string {
  return ageSince(event.firstTimestamp ?? event.eventTime, nowMs);
}

function lastSeen(event: CoreEvent, nowMs: number): string {
  if (event.series !== undefined) return ageSince(event.series.lastObservedTime, nowMs);
  if ((event.lastTimestamp ?? null) === null) return firstSeen(event, nowMs);
  return ageSince(event.lastTimestamp, nowMs);
}

function countOf({ series, count = 0 }: CoreEvent): number {
  if (series !== undefined) return series.count ?? 0;
  return count === 0 ? 1 : count;
}

function targetOf({ involvedObject = {} }: CoreEvent): string {
  const kind = (involvedObject.kind ?? "").toLowerCase();
  const { name = "" } = involvedObject;
  return name === "" ? kind : `${kind}/${name}`;
}

function sourceText(event: CoreEvent): string {
  const component = event.source?.component || event.reportingComponent || "";
  const host = event.source?.host || event.reportingInstance || "";
  return host === "" ? component : `${component}, ${host}`;
}

const TABLE = tableOf(
  textColumn("Last Seen", "The time since the event was last observed.", (object, nowMs) =>
    lastSeen(toCoreEvent(object), nowMs),
  ),
  textColumn("Type", "Normal or Warning.", (object) => toCoreEvent(object).type ?? ""),
  textColumn("Reason", "Why the event was made, as one word.", (object) => {
    return toCoreEvent(object).reason ?? "";
  }),
  textColumn("Object", "The object that the event is about.", (object) =>
    targetOf(toCoreEvent(object)),
  ),
  textColumn(
    "Subobject",
    "The part of the object that the event is about.",
    (object) => toCoreEvent(object).involvedObject?.fieldPath ?? "",
    1,
  ),
  textColumn("Source", "The reporter, and where it runs.", (o) => sourceText(toCoreEvent(o)), 1),
  textColumn("Message", "What happened.", (object) => {
    return (toCoreEvent(object).message ?? "").trim();
  }),
  textColumn(
    "First Seen",
    "The time since the event was first observed.",
    (object, nowMs) => firstSeen(toCoreEvent(object), nowMs),
    1,
  ),
  textColumn("Count", "How often it was observed.", (o) => countOf(toCoreEvent(o)), 1),
  nameColumn(1),
);

/** Events as stored; `api` decides which rules a request's objects have to keep. */
function eventsSpec(
  source: KindSource,
  api: EventApi,
  ttlSeconds: number,
  more: Pick<ResourceSpec, "servedKind" | "customize"> = {},
): ResourceSpec {
  return builtinSpec(source, "events", {
    shortNames: ["ev"],
    nameRule: api === "core" ? nameIsPathSegment : undefined,
    garbageCollection: "unsupported",
    ttlSeconds: () => ttlSeconds,
    selectableFields,
    selectableFieldNames: api === "core" ? CORE_FIELDS : EVENTS_FIELDS,
    strategy: plainStrategy(
      { kind: source.kind, namespaced: true },
      {
        validate: (_ctx, object) => validateEvent(object, api),
        validateUpdate: (_ctx, object, old) => validateEventUpdate(object, old, api),
        allowCreateOnUpdate: true,
      },
    ),
    table: TABLE,
    ...more,
  });
}

/** The resource "events" of core/v1, whose objects are stored. */
export function coreEvents(
  source: KindSource,
  ttlSeconds: number = DEFAULT_EVENT_TTL_SECONDS,
): ResourceSpec {
  return eventsSpec(source, "core", ttlSeconds);
}

/**
 * The resource "events" of events.k8s.io/v1, over the storage of core/v1's.
 * @param core of core/v1 Event; the kind in which objects are stored and errors name them
 */
export function groupEvents(
  core: KindSource,
  ttlSeconds: number = DEFAULT_EVENT_TTL_SECONDS,
): ResourceSpec {
  return eventsSpec(core, "events", ttlSeconds, {
    servedKind: { group: "events.k8s.io", version: "v1", kind: "Event" },
    customize: ({ main, subresources }) => ({
      main: new ConvertedStorage(main, toCoreEvent, toEventsEvent).verbs(),
      subresources,
    }),
  });
}
