/**
 * Spans as OpenTelemetry's protocol has them (opentelemetry/proto, collector/trace/v1
 * ExportTraceServiceRequest, v1.x; only what is sent):
 *
 *     1 resource_spans   1 resource      1 attributes
 *                        2 scope_spans   1 scope   1 name, 2 version
 *                                        2 spans   1 trace_id, 2 span_id, 4 parent_span_id, 5 name,
 *                                                  6 kind, 7 start, 8 end (fixed64,
 *                                                  nanoseconds), 9 attributes, 11 events, 15
 *                                                  status, 16 flags
 *     a key and value    1 key, 2 value (1 string, 2 bool, 3 int)
 */
import { Writer } from "@quorate/proto";
import {
  type Attributes,
  type AttributeValue,
  MAX_ATTRIBUTE_CHARS,
  type Span,
  type SpanEvent,
} from "./span.ts";

const DELIMITED = 2;
const FIXED64 = 1;
const FIXED32 = 5;
const KINDS = { internal: 1, server: 2 } as const;
const STATUS_ERROR = 2;
/** The trace is sampled; whether the parent is another process's is known, and whether it is. */
const SAMPLED = 0x01;
const HAS_IS_REMOTE = 0x100;
const IS_REMOTE = 0x200;

/** Who sends: the service and the instance, and what made the spans. */
export interface Origin {
  readonly serviceName: string;
  /** Left out where it is empty. */
  readonly instanceId: string;
  readonly version: string;
}

/** Encodes one request with all these spans. */
export function encodeSpans(origin: Origin, spans: readonly Span[]): Uint8Array {
  const w = new Writer();
  const resourceSpans = open(w, 1);
  const resource = open(w, 1);
  attribute(w, 1, "service.name", origin.serviceName);
  if (origin.instanceId !== "") attribute(w, 1, "service.instance.id", origin.instanceId);
  w.close(resource);
  const scopeSpans = open(w, 2);
  const scope = open(w, 1);
  text(w, 1, "quorate");
  text(w, 2, origin.version);
  w.close(scope);
  for (const one of spans) span(w, one);
  w.close(scopeSpans);
  w.close(resourceSpans);
  return w.finish();
}

function span(w: Writer, one: Span): void {
  const start = open(w, 2);
  tag(w, 1, DELIMITED);
  w.view(id(one.traceHigh, one.traceLow));
  tag(w, 2, DELIMITED);
  w.view(id(one.spanId));
  if (one.parentSpanId !== undefined) {
    tag(w, 4, DELIMITED);
    w.view(id(one.parentSpanId));
  }
  text(w, 5, one.name);
  tag(w, 6, 0);
  w.uint32(KINDS[one.kind]);
  time(w, 7, one.startUs);
  time(w, 8, one.endUs);
  attributes(w, 9, one.attributes);
  for (const happened of one.events) event(w, happened);
  if (one.error !== undefined) {
    const status = open(w, 15);
    text(w, 2, one.error);
    tag(w, 3, 0);
    w.uint32(STATUS_ERROR);
    w.close(status);
  }
  tag(w, 16, FIXED32);
  const isRemote = one.kind === "server" && one.parentSpanId !== undefined;
  w.fixed32(SAMPLED | HAS_IS_REMOTE | (isRemote ? IS_REMOTE : 0));
  w.close(start);
}

function event(w: Writer, happened: SpanEvent): void {
  const start = open(w, 11);
  time(w, 1, happened.timeUs);
  text(w, 2, happened.name);
  attributes(w, 3, happened.attributes);
  w.close(start);
}

function attributes(w: Writer, field: number, pairs: Attributes): void {
  for (const [key, value] of pairs) attribute(w, field, key, value);
}

function attribute(w: Writer, field: number, key: string, value: AttributeValue): void {
  const start = open(w, field);
  text(w, 1, key);
  const held = open(w, 2);
  if (typeof value === "string") {
    // An empty one is a value, too.
    tag(w, 1, DELIMITED);
    w.string(value.slice(0, MAX_ATTRIBUTE_CHARS));
  } else if (typeof value === "boolean") {
    tag(w, 2, 0);
    w.bool(value);
  } else {
    tag(w, 3, 0);
    w.bigInt64(BigInt(value));
  }
  w.close(held);
  w.close(start);
}

function open(w: Writer, field: number): number {
  tag(w, field, DELIMITED);
  return w.open();
}

function tag(w: Writer, field: number, wireType: number): void {
  w.uint32(field * 8 + wireType);
}

function text(w: Writer, field: number, value: string): void {
  if (value === "") return;
  tag(w, field, DELIMITED);
  w.string(value);
}

function time(w: Writer, field: number, timeUs: number): void {
  tag(w, field, FIXED64);
  w.fixed64(BigInt(timeUs) * 1000n);
}

/** An id's bytes, the highest first. */
function id(...parts: bigint[]): Uint8Array {
  const bytes = new Uint8Array(8 * parts.length);
  const view = new DataView(bytes.buffer);
  for (const [i, part] of parts.entries()) view.setBigUint64(8 * i, part);
  return bytes;
}
