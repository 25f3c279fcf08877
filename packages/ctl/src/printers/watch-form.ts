/** How a watch's responses are printed. */
import { concat, defined, Event, Event_EventType, fromUtf8, WatchResponse } from "@quorate/proto";
import {
  type FieldLine,
  type Form,
  headerJson,
  present,
  recordFields,
  recordJson,
  recordLines,
} from "./form.ts";

/** The name of a kind of event. */
export function eventName(type: number): string {
  return type === Event_EventType.DELETE ? "DELETE" : "PUT";
}

function decodeEvent(bytes: Uint8Array) {
  const { type, kv, prevKv } = Event.decode(bytes);
  return { type, kv: defined(kv, "the kv of an event"), prevKv };
}

export const watchForm: Form<WatchResponse> = {
  simple: ({ events }, style) =>
    concat(
      events.map((bytes) => {
        const { type, kv, prevKv } = decodeEvent(bytes);
        return concat([
          fromUtf8(`${eventName(type)}\n`),
          recordLines(prevKv === undefined ? [kv] : [prevKv, kv], style),
        ]);
      }),
    ),
  fields: ({ events }, style) =>
    events.flatMap((bytes): FieldLine[] => {
      const { type, kv, prevKv } = decodeEvent(bytes);
      return [
        ["Type", eventName(type)],
        ...(prevKv === undefined ? [] : recordFields("Prev", prevKv, style)),
        ...recordFields("", kv, style),
      ];
    }),
  // Go's client has a type of its own for this, whose members have no JSON names and are never left
  // out.
  json: ({ header, events, compactRevision, canceled, created, cancelReason }) => ({
    Header: headerJson(header) ?? null,
    Events: events.map((bytes) => {
      const { type, kv, prevKv } = decodeEvent(bytes);
      return {
        type: present(type),
        kv: recordJson(kv),
        prev_kv: prevKv === undefined ? undefined : recordJson(prevKv),
      };
    }),
    CompactRevision: compactRevision,
    Canceled: canceled,
    Created: created,
    CancelReason: cancelReason,
  }),
  protobuf: ({ header, events, compactRevision, canceled, created }) =>
    WatchResponse.encode({ header, events, compactRevision, canceled, created }),
};
