import assert from "node:assert/strict";
import { test } from "node:test";
import {
  concat,
  Event,
  LeaseKeepAliveRequest,
  LeaseKeepAliveResponse,
  LeaseService,
  WatchResponse,
  WatchService,
} from "@quorate/proto";
import type { GatewayLimits } from "../src/gateway/settings.ts";
import type { StreamCall, StreamListener } from "../src/service.ts";
import { bytes, exchangeOf, gatewayOf, keyValue } from "./helpers/gateway.ts";

const WATCH = WatchService.methods.Watch.path;
const KEEP_ALIVE = LeaseService.methods.LeaseKeepAlive.path;

/** A stream handler that records what comes. */
class Recorder implements StreamListener {
  readonly seen: string[] = [];
  readonly messages: Uint8Array[] = [];
  call!: StreamCall;
  onMessage: (bytes: Uint8Array) => void = () => {};

  readonly handler = (call: StreamCall): StreamListener => {
    this.call = call;
    return this;
  };

  message(bytes: Uint8Array): void {
    this.messages.push(bytes);
    this.seen.push("message");
    this.onMessage(bytes);
  }

  halfClosed(): void {
    this.seen.push("halfClosed");
  }

  drained(): void {
    this.seen.push("drained");
  }

  cancelled(): void {
    this.seen.push("cancelled");
  }
}

function streams(path: string, limits: Partial<GatewayLimits> = {}) {
  const recorder = new Recorder();
  const made = gatewayOf({ stream: new Map([[path, recorder.handler]]) }, limits);
  return { recorder, ...made };
}

test("a stream takes JSON values as they come, and sends a line for each message", async () => {
  const { gateway, recorder, codes } = streams(KEEP_ALIVE);
  recorder.onMessage = (request) => {
    const { ID } = LeaseKeepAliveRequest.decode(request);
    recorder.call.send(LeaseKeepAliveResponse.encode({ ID, TTL: 5 }));
  };
  const exchange = exchangeOf("/v3/lease/keepalive").serve(gateway.handler, [], true);
  assert.equal(exchange.state, "open");
  const { listener } = exchange;
  listener.data?.(bytes('{"ID":'));
  assert.deepEqual(recorder.seen, []);
  listener.data?.(bytes('"7"}{"ID":8}\n {"ID"'));
  assert.equal(exchange.text, '{"result":{"ID":"7","TTL":"5"}}\n{"result":{"ID":"8","TTL":"5"}}\n');
  assert.equal(exchange.heldBytes, 7);
  listener.data?.(bytes(":9}"));
  listener.ended?.();
  assert.deepEqual(recorder.seen, ["message", "message", "message", "halfClosed"]);
  recorder.call.end();
  assert.deepEqual(
    [exchange.state, exchange.heldBytes, codes],
    ["ended", 0, ["Lease/LeaseKeepAlive 0"]],
  );
});

test("a stream that fails has the status of its error, or a last line", async () => {
  const first = streams(WATCH);
  const early = exchangeOf("/v3/watch").serve(first.gateway.handler, [], true);
  first.recorder.call.end({ code: 7, message: "<no>" });
  assert.equal(early.status, 403);
  const escaped = "\\u003cno\\u003e";
  assert.equal(early.text, `{"error":{"code":7,"message":"${escaped}"}}\n`);
  const second = streams(WATCH);
  const late = exchangeOf("/v3/watch").serve(second.gateway.handler, [], true);
  second.recorder.call.send(WatchResponse.encode({ cancelReason: "<" }));
  second.recorder.call.end({ code: 11, message: "x" });
  assert.equal(late.status, 200);
  const lines = '{"result":{"cancel_reason":"\\u003c"}}\n{"error":{"code":11,"message":"x"}}\n';
  assert.equal(late.text, lines);
  const third = streams(WATCH);
  const broken = exchangeOf("/v3/watch").serve(third.gateway.handler, [bytes("{} {x")], true);
  assert.match(broken.text, /^\{"error":\{"code":3,"message":"Failed to decode request: invalid/);
  assert.deepEqual(third.recorder.seen, ["message", "cancelled"]);
  const empty = streams(KEEP_ALIVE);
  const nothing = exchangeOf("/v3/lease/keepalive").serve(empty.gateway.handler);
  empty.recorder.call.end();
  assert.deepEqual([nothing.status, nothing.text, nothing.headers], [200, "", {}]);
});

test("a paused stream takes no more, and a slow reader stops the source", async () => {
  const { gateway, recorder } = streams(WATCH);
  const exchange = exchangeOf("/v3/watch");
  exchange.sendBudgetBytes = 100;
  exchange.serve(gateway.handler, [], true);
  recorder.onMessage = () => recorder.call.pause();
  exchange.listener.data?.(bytes("{}{}"));
  assert.deepEqual([recorder.seen, exchange.paused], [["message"], true]);
  recorder.onMessage = () => {};
  recorder.call.resume();
  assert.deepEqual([recorder.seen, exchange.paused], [["message", "message"], false]);
  exchange.bufferedBytes = 2000;
  assert.equal(recorder.call.send(WatchResponse.encode({})), false);
  exchange.bufferedBytes = 0;
  exchange.listener.drained?.();
  assert.equal(recorder.seen.at(-1), "drained");
  assert.equal(recorder.call.send(WatchResponse.encode({})), true);
});

test("long messages of a stream keep their order, and a deadline cuts none in the middle", async () => {
  const { gateway, clock, recorder } = streams(WATCH);
  const exchange = exchangeOf("/v3/watch", { "grpc-timeout": "1S" });
  exchange.serve(gateway.handler, [], true);
  const kv = keyValue(bytes("k"), "v".repeat(300_000));
  const long = WatchResponse.encode({ events: [Event.encode({ kv }).slice()] }).slice();
  recorder.call.send(long);
  recorder.call.send(WatchResponse.encode({ watchId: 7 }).slice());
  for (let turn = 0; turn < 50; turn++) clock.advance(1);
  const lines = exchange.text.trimEnd().split("\n");
  assert.equal(lines.length, 2);
  assert.equal(lines[1], '{"result":{"watch_id":"7"}}');
  exchange.sendBudgetBytes = 0;
  recorder.call.send(long);
  clock.advance(2000);
  assert.equal(exchange.state, "aborted");
  assert.equal(recorder.seen.at(-1), "cancelled");
});

test("a stream ends when its client goes, and its body has a bound", async () => {
  const { gateway, recorder, codes } = streams(WATCH);
  const gone = exchangeOf("/v3/watch").serve(gateway.handler, [], true);
  gone.listener.aborted?.();
  assert.deepEqual([recorder.seen, codes], [["cancelled"], ["Watch/Watch 1"]]);
  assert.equal(recorder.call.send(WatchResponse.encode({})), false);
  const second = streams(WATCH);
  const endless = exchangeOf("/v3/watch").serve(second.gateway.handler, [], true);
  endless.listener.data?.(bytes('{"x":"'));
  for (let i = 0; i < 9; i++) endless.listener.data?.(bytes("x".repeat(1000)));
  assert.equal(endless.status, 429);
  assert.equal(second.gateway.counters.tooLarge, 1);
});

test("a method with one request takes the whole body", async () => {
  const path = "/v3electionpb.Election/Observe";
  const { gateway, recorder } = streams(path);
  const exchange = exchangeOf("/v3/election/observe").serve(gateway.handler, [], true);
  exchange.listener.data?.(bytes('{"name":"YQ=="} {'));
  assert.deepEqual(recorder.seen, []);
  exchange.listener.ended?.();
  assert.deepEqual(recorder.seen, ["message", "halfClosed"]);
  const broken = exchangeOf("/v3/election/observe").serve(gateway.handler, [bytes("{")]);
  assert.equal(broken.text, '{"code":3,"message":"unexpected EOF"}');
  const late = exchangeOf("/v3/election/observe", { "grpc-timeout": "-1S" });
  assert.match(late.serve(gateway.handler).text, /^\{"code":4,/);
  assert.equal(concat(recorder.messages).length, 3);
});
