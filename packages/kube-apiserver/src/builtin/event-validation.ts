/** Rules for events (kubernetes: apis/core/validation/events.go). */

import type { FieldError } from "@quorate/kube-storage";
import {
  invalidValue,
  isDns1123Subdomain,
  isQualifiedName,
  required,
  semanticEqual,
} from "@quorate/kube-storage";
import { utf8Length } from "@quorate/proto";
import type { CoreEvent } from "./event-fields.ts";
import { validateCoreFinalizers } from "./finalizer-names.ts";

/** Whose rules hold: those of core/v1 are weaker. */
export type EventApi = "core" | "events";

const MAX_SHORT_BYTES = 128;
const MAX_NOTE_BYTES = 1024;
const MISMATCH = "does not match event.namespace";

function bounded(value: string, field: string, maxBytes: number, needed: boolean): FieldError[] {
  if (value === "") return needed ? [required(field)] : [];
  if (utf8Length(value) <= maxBytes) return [];
  return [invalidValue(field, "", `can have at most ${maxBytes} characters`)];
}

function validateReporter(event: CoreEvent, api: EventApi): FieldError[] {
  const field = api === "core" ? "reportingComponent" : "reportingController";
  const name = event.reportingComponent ?? "";
  const errors = name === "" ? [required(field)] : [];
  for (const text of isQualifiedName(name)) errors.push(invalidValue(field, name, text));
  return errors;
}

/** The namespace of the object that the event is about, and of the event, must agree. */
function validateNamespaces(event: CoreEvent, allowed: readonly string[]): FieldError[] {
  const { namespace = "" } = event.metadata;
  const involved = event.involvedObject?.namespace ?? "";
  const field = "involvedObject.namespace";
  if (involved === "" && !allowed.includes(namespace)) {
    return [invalidValue(field, involved, MISMATCH)];
  }
  return [];
}

function validateLegacy(event: CoreEvent, api: EventApi): FieldError[] {
  const { namespace = "" } = event.metadata;
  const involved = event.involvedObject?.namespace ?? "";
  const errors: FieldError[] = [];
  if ((event.eventTime ?? null) === null) {
    errors.push(...validateNamespaces(event, ["", "default"]));
    if (involved !== "" && involved !== namespace) {
      errors.push(invalidValue("involvedObject.namespace", involved, MISMATCH));
    }
  } else {
    errors.push(
      ...validateNamespaces(event, ["default", "kube-system"]),
      ...validateReporter(event, api),
      ...bounded(event.reportingInstance ?? "", "reportingInstance", MAX_SHORT_BYTES, true),
      ...bounded(event.action ?? "", "action", MAX_SHORT_BYTES, true),
      ...bounded(event.reason ?? "", "reason", MAX_SHORT_BYTES, true),
      ...bounded(event.message ?? "", "message", MAX_NOTE_BYTES, false),
    );
  }
  for (const text of isDns1123Subdomain(namespace)) {
    errors.push(invalidValue("namespace", namespace, text));
  }
  return errors;
}

function validateSeries({ series }: CoreEvent): FieldError[] {
  if (series === undefined) return [];
  const errors: FieldError[] = [];
  if ((series.count ?? 0) < 2) {
    errors.push(invalidValue("series.count", "", "should be at least 2"));
  }
  if ((series.lastObservedTime ?? null) === null) errors.push(required("series.lastObservedTime"));
  return errors;
}

/** All errors of a new event besides those of its metadata. */
export function validateEvent(event: CoreEvent, api: EventApi): FieldError[] {
  const errors = validateLegacy(event, api);
  if (api === "core") return errors;
  errors.push(...validateCoreFinalizers(event), ...validateSeries(event));
  if ((event.eventTime ?? null) === null) errors.push(required("eventTime"));
  const { type = "" } = event;
  if (type !== "Normal" && type !== "Warning") {
    errors.push(invalidValue("type", "", `has invalid value: ${type}`));
  }
  const unset = (field: string, isSet: boolean): void => {
    if (isSet) errors.push(invalidValue(field, "", "needs to be unset"));
  };
  unset("firstTimestamp", (event.firstTimestamp ?? null) !== null);
  unset("lastTimestamp", (event.lastTimestamp ?? null) !== null);
  unset("count", (event.count ?? 0) !== 0);
  unset("source", Boolean(event.source?.component) || Boolean(event.source?.host));
  return errors;
}

/** What Kubernetes' text shows of a reference: Go's names of the fields. */
function shownReference(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const reference = value as Readonly<Record<string, string | undefined>>;
  return {
    Kind: reference["kind"] ?? "",
    Namespace: reference["namespace"] ?? "",
    Name: reference["name"] ?? "",
    UID: reference["uid"] ?? "",
    APIVersion: reference["apiVersion"] ?? "",
    ResourceVersion: reference["resourceVersion"] ?? "",
    FieldPath: reference["fieldPath"] ?? "",
  };
}

const IMMUTABLE = [
  ["involvedObject", "involvedObject"],
  ["reason", "reason"],
  ["message", "message"],
  ["source", "source"],
  ["firstTimestamp", "firstTimestamp"],
  ["lastTimestamp", "lastTimestamp"],
  ["count", "count"],
  ["type", "type"],
  ["eventTime", "eventTime"],
  ["action", "action"],
  ["related", "related"],
  ["reportingComponent", "reportingController"],
  ["reportingInstance", "reportingInstance"],
] as const;

/** All errors of a change besides those of metadata. */
export function validateEventUpdate(event: CoreEvent, old: CoreEvent, api: EventApi): FieldError[] {
  const errors = validateLegacy(event, api);
  if (api === "core") return errors;
  if (!semanticEqual(event.series, old.series)) errors.push(...validateSeries(event));
  for (const [name, field] of IMMUTABLE) {
    if (semanticEqual(event[name], old[name])) continue;
    const reference = name === "involvedObject" || name === "related";
    const value = event[name] ?? (typeof old[name] === "string" ? "" : null);
    const shown = reference ? shownReference(value) : value;
    errors.push(invalidValue(field, shown, "field is immutable"));
  }
  return errors;
}
