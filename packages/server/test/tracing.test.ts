/** Traces: whose they are, which are kept, how they wait for the collector, and what is sent. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom, silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { Counter } from "@quorate/metrics";
import { otlpSchema } from "../../../test/support/otlp-schema.ts";
import {
  BATCH_DELAY_MS,
  Batches,
  type Delivery,
  MAX_BATCH_SPANS,
  MAX_QUEUED_SPANS,
  RETRY_DELAY_MS,
} from "../src/tracing/batches.ts";
import { encodeSpans } from "../src/tracing/otlp.ts";
import {
  MAX_SPAN_EVENTS,
  parseTraceparent,
  ratioSampler,
  type Span,
  Tracer,
} from "../src/tracing/span.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = "b7ad6b7169203331";

test("a traceparent is read as W3C has it, or is none", () => {
  assert.deepEqual(parseTraceparent(`00-${TRACE}-${PARENT}-01`), {
    traceHigh: 0x0af7651916cd43ddn,
    traceLow: 0x8448eb211c80319cn,
    spanId: 0xb7ad6b7169203331n,
    isSampled: true,
  });
  assert.equal(parseTraceparent(`00-${TRACE}-${PARENT}-00`)?.isSampled, false);
  assert.equal(parseTraceparent(`cc-${TRACE}-${PARENT}-03-later`)?.isSampled, true);
  for (const bad of [
    "",
    "00",
    `00-${TRACE}-${PARENT}`,
    `00-${TRACE}-${PARENT}-01-more`,
    `ff-${TRACE}-${PARENT}-01`,
    `00-${TRACE.toUpperCase()}-${PARENT}-01`,
    `00-${"0".repeat(32)}-${PARENT}-01`,
    `00-${TRACE}-${"0".repeat(16)}-01`,
    `00-${TRACE.slice(1)}-${PARENT}-01`,
  ]) {
    assert.equal(parseTraceparent(bad), undefined, bad);
  }
});

test("a rate keeps about its share of traces, none at 0 and all at a million", () => {
  const random = new SeededRandom(1n);
  const share = (perMillion: number) => {
    const isSampled = ratioSampler(perMillion);
    let kept = 0;
    for (let i = 0; i < 10_000; i++) if (isSampled(random.uint64())) kept++;
    return kept / 10_000;
  };
  assert.equal(share(0), 0);
  assert.equal(share(1_000_000), 1);
  assert.ok(Math.abs(share(250_000) - 0.25) < 0.02);
});

function tracing(samplingRate: number) {
  const clock = new ManualClock(1_700_000_000_000);
  const spans: Span[] = [];
  const tracer = new Tracer(samplingRate, {
    clock,
    random: new SeededRandom(7n),
    ended: (span) => spans.push(span),
  });
  return { clock, tracer, spans };
}

test("the caller decides for its trace, the rate for those that begin here", () => {
  const never = tracing(0).tracer;
  assert.equal(never.serve("s", undefined, []), undefined);
  assert.equal(never.serve("s", "nonsense", []), undefined);
  assert.equal(never.serve("s", `00-${TRACE}-${PARENT}-00`, []), undefined);
  const taken = never.serve("s", `00-${TRACE}-${PARENT}-01`, []);
  assert.equal(taken?.parentSpanId, 0xb7ad6b7169203331n);
  assert.equal(taken?.traceLow, 0x8448eb211c80319cn);
  const always = tracing(1_000_000).tracer;
  assert.equal(always.serve("s", `00-${TRACE}-${PARENT}-00`, []), undefined);
  const root = always.serve("s", undefined, []);
  assert.ok(root !== undefined && root.parentSpanId === undefined && root.traceHigh !== 0n);
});

test("events of one span have a bound", () => {
  const { tracer } = tracing(1_000_000);
  const span = tracer.serve("s", undefined, [])!;
  for (let i = 0; i < MAX_SPAN_EVENTS + 10; i++) tracer.event(span, "e");
  assert.equal(span.events.length, MAX_SPAN_EVENTS);
});

const OTLP = otlpSchema.lookupType("Request");

test("spans are encoded as OTLP has them", () => {
  const { clock, tracer, spans } = tracing(0);
  const server = tracer.serve("etcdserverpb.KV/Put", `00-${TRACE}-${PARENT}-01`, [
    ["rpc.system.name", "grpc"],
  ])!;
  const inner = tracer.within(server, "put", [
    ["key", "schlüssel"],
    ["empty", ""],
    ["yes", true],
    ["lease", -1n],
    ["rev", 2 ** 40],
  ]);
  tracer.event(inner, "Send raft proposal", [["a", "b"]]);
  clock.advance(2);
  tracer.end(inner);
  server.error = "etcdserver: request timed out";
  tracer.end(server);
  const decoded = OTLP.toObject(
    OTLP.decode(encodeSpans({ serviceName: "store", instanceId: "m1", version: "3.7.0" }, spans)),
    {
      bytes: String,
      longs: String,
    },
  ) as {
    resourceSpans: {
      resource: unknown;
      scopeSpans: { scope: unknown; spans: Record<string, unknown>[] }[];
    }[];
  };
  const [{ resource, scopeSpans }] = decoded.resourceSpans as [(typeof decoded.resourceSpans)[0]];
  assert.deepEqual(resource, {
    attributes: [
      { key: "service.name", value: { stringValue: "store" } },
      { key: "service.instance.id", value: { stringValue: "m1" } },
    ],
  });
  assert.deepEqual(scopeSpans[0].scope, { name: "quorate", version: "3.7.0" });
  const [put, rpc] = scopeSpans[0].spans as [Record<string, unknown>, Record<string, unknown>];
  const base64 = (hex: string) => Buffer.from(hex, "hex").toString("base64");
  assert.equal(rpc["traceId"], base64(TRACE));
  assert.equal(rpc["parentSpanId"], base64(PARENT));
  assert.deepEqual([rpc["kind"], rpc["flags"]], [2, 0x301]);
  assert.deepEqual(rpc["status"], { message: "etcdserver: request timed out", code: 2 });
  assert.equal(put["parentSpanId"], rpc["spanId"]);
  assert.deepEqual([put["kind"], put["flags"], put["status"]], [1, 0x101, undefined]);
  assert.deepEqual(put["attributes"], [
    { key: "key", value: { stringValue: "schlüssel" } },
    { key: "empty", value: { stringValue: "" } },
    { key: "yes", value: { boolValue: true } },
    { key: "lease", value: { intValue: "-1" } },
    { key: "rev", value: { intValue: "1099511627776" } },
  ]);
  assert.equal(
    BigInt(put["endTimeUnixNano"] as string) - BigInt(put["startTimeUnixNano"] as string),
    2_000_000n,
  );
  assert.ok((put["startTimeUnixNano"] as string).startsWith("1700000000"));
  assert.deepEqual((put["events"] as { name: string }[])[0].name, "Send raft proposal");
});

function batches(answer: () => Delivery) {
  const clock = new ManualClock();
  const exported = new Counter();
  const dropped = new Counter();
  const sent: number[] = [];
  const queue = new Batches({
    clock,
    logger: silentLogger,
    exported,
    dropped,
    send: (spans) => {
      sent.push(spans.length);
      return Promise.resolve(answer());
    },
  });
  const { tracer } = tracing(1_000_000);
  const add = (count: number) => {
    for (let i = 0; i < count; i++) queue.add(tracer.serve("s", undefined, [])!);
  };
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  return { clock, exported, dropped, sent, queue, add, settle };
}

test("spans leave after a while, or as soon as a batch is full", async () => {
  const { clock, exported, sent, queue, add, settle } = batches(() => ({ kind: "done" }));
  add(3);
  await settle();
  assert.deepEqual(sent, []);
  clock.advance(BATCH_DELAY_MS);
  await settle();
  assert.deepEqual(sent, [3]);
  add(MAX_BATCH_SPANS + 5);
  await settle();
  assert.deepEqual(sent, [3, MAX_BATCH_SPANS]);
  clock.advance(BATCH_DELAY_MS);
  await settle();
  assert.deepEqual(sent, [3, MAX_BATCH_SPANS, 5]);
  add(2);
  await queue.close();
  assert.deepEqual(sent, [3, MAX_BATCH_SPANS, 5, 2]);
  assert.equal(exported.value, MAX_BATCH_SPANS + 10);
});

test("a collector that is away holds up no more than the bound, and what it cannot take is counted", async () => {
  let answer: Delivery = { kind: "again", reason: "away" };
  const { clock, dropped, exported, sent, queue, add, settle } = batches(() => answer);
  add(MAX_BATCH_SPANS);
  await settle();
  add(MAX_QUEUED_SPANS + 7);
  assert.equal(queue.waitingCount, MAX_QUEUED_SPANS);
  assert.equal(dropped.value, 7);
  // Again and again for a minute, then the batch is given up and the next one tried.
  for (let i = 0; i < 12; i++) {
    clock.advance(RETRY_DELAY_MS);
    await settle();
  }
  assert.equal(dropped.value, 7 + MAX_BATCH_SPANS);
  answer = { kind: "done" };
  clock.advance(RETRY_DELAY_MS);
  for (let i = 0; i < 10; i++) await settle();
  assert.equal(exported.value, MAX_QUEUED_SPANS);
  assert.ok(sent.every((count) => count <= MAX_BATCH_SPANS));
  // What is refused is not sent again.
  answer = { kind: "refused", reason: "no" };
  add(1);
  await queue.close();
  assert.equal(dropped.value, 8 + MAX_BATCH_SPANS);
});
