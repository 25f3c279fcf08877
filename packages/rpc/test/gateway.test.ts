import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, MemoryExchange } from "@quorate/host/testing";
import {
  concat,
  Event,
  httpRoutes,
  KeyValue,
  KVService,
  LeaseKeepAliveRequest,
  LeaseKeepAliveResponse,
  LeaseService,
  PutRequest,
  RangeRequest,
  RangeResponse,
  WatchResponse,
  WatchService,
} from "@quorate/proto";
import {
  type CallContext,
  Gateway,
  type GatewayLimits,
  type ServiceTable,
  StatusError,
  type StreamCall,
  type StreamListener,
  type UnaryHandler,
} from "../index.ts";

const RANGE = KVService.methods.Range.path;
const PUT = KVService.methods.Put.path;
const WATCH = WatchService.methods.Watch.path;
const KEEP_ALIVE = LeaseService.methods.LeaseKeepAlive.path;

const LIMITS: GatewayLimits = {
  maxRequestBytes: 4096,
  maxBodyBytes: 8192,
  maxResponseBytes: 1 << 24,
  sendBudgetBytes: 1000,
  maxLingeringBytes: 5000,
  maxCalls: 3,
};

function gatewayOf(
  table: Partial<ServiceTable>,
  limits: Partial<GatewayLimits> = {},
): { gateway: Gateway; clock: ManualClock; codes: string[] } {
  const clock = new ManualClock();
  const codes: string[] = [];
  const gateway = new Gateway({
    services: { unary: new Map(), stream: new Map(), ...table },
    routes: httpRoutes,
    clock,
    observer: {
      started: () => {},
      handled: (path, code) => void codes.push(`${path.replace(/.*\./, "")} ${code}`),
      messageReceived: () => {},
      messageSent: () => {},
    },
    limits: { ...LIMITS, ...limits },
  });
  return { gateway, clock, codes };
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function exchangeOf(
  path: string,
  headers: Readonly<Record<string, string>> = {},
  method = "POST",
): MemoryExchange {
  return new MemoryExchange({ path, method, headers: new Map(Object.entries(headers)) });
}

/** A finished exchange of a unary call. */
async function call(
  gateway: Gateway,
  path: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
  method = "POST",
): Promise<MemoryExchange> {
  const exchange = exchangeOf(path, headers, method).serve(gateway.handler, [bytes(body)]);
  await exchange.done;
  return exchange;
}

function unary(handler: UnaryHandler): Partial<ServiceTable> {
  return { unary: new Map([[RANGE, handler]]) };
}

const EMPTY_RANGE: UnaryHandler = () => RangeResponse.encode({});

test("a unary call is the service's own, with the metadata of the headers", async () => {
  const seen: (string | undefined)[] = [];
  const { gateway, codes } = gatewayOf(
    unary(async (request, context) => {
      const keys = ["authorization", "token", "hasleader", "x-bin", "traceparent", "te"];
      seen.push(...keys.map((key) => context.metadata(key)));
      seen.push(context.path, context.metadata("grpcgateway-accept"));
      const { key } = RangeRequest.decode(request);
      return RangeResponse.encode({ count: 2 ** 40, kvs: [keyValue(key, "1")] });
    }),
  );
  const exchange = await call(gateway, "/v3/kv/range", '{"key":"Zm9v"} rest', {
    authorization: "secret",
    "grpc-metadata-token": "t",
    "grpc-metadata-hasleader": "true",
    "grpc-metadata-x-bin": "YWI=",
    traceparent: "00-1-2-01",
    accept: "text/html",
    te: "trailers",
  });
  assert.equal(exchange.status, 200);
  assert.equal(exchange.text, '{"kvs":[{"key":"Zm9v","value":"MQ=="}],"count":"1099511627776"}');
  assert.deepEqual(exchange.headers, {
    "content-type": "application/json",
    "grpc-metadata-content-type": "application/grpc",
  });
  const metadata = ["secret", "t", "true", "ab", "00-1-2-01", undefined];
  assert.deepEqual(seen, [...metadata, RANGE, "text/html"]);
  assert.deepEqual(codes, ["KV/Range 0"]);
});

function keyValue(key: Uint8Array, value: string): Uint8Array {
  return KeyValue.encode({ key, value: bytes(value) }).slice();
}

test("errors have grpc-gateway's body, and the HTTP status of their code", async () => {
  const statuses: readonly (readonly [code: number, http: number])[] = [
    [1, 499],
    [2, 500],
    [3, 400],
    [4, 504],
    [5, 404],
    [6, 409],
    [7, 403],
    [8, 429],
    [9, 400],
    [10, 409],
    [11, 400],
    [12, 501],
    [13, 500],
    [14, 503],
    [15, 500],
    [16, 401],
    [99, 500],
  ];
  for (const [code, http] of statuses) {
    const { gateway } = gatewayOf(
      unary(() => {
        throw new StatusError(code, 'no <"\n');
      }),
    );
    const exchange = await call(gateway, "/v3/kv/range", "");
    assert.equal(exchange.status, http, String(code));
    assert.equal(exchange.text, `{"code":${code},"message":"no <\\"\\n"}`);
    assert.equal(exchange.headers["www-authenticate"], code === 16 ? 'no <" ' : undefined);
  }
  const { gateway } = gatewayOf(unary(() => Promise.reject(new Error("odd"))));
  assert.equal((await call(gateway, "/v3/kv/range", "")).text, '{"code":2,"message":"odd"}');
});

test("paths, methods and heads that are none are refused as etcd refuses them", async () => {
  const { gateway } = gatewayOf(unary(EMPTY_RANGE));
  const refused: readonly (readonly [
    path: string,
    method: string,
    status: number,
    text: RegExp,
  ])[] = [
    ["/v3/kv/nope", "POST", 404, /^\{"code":5,"message":"Not Found"\}$/],
    ["/v3/kv/range/", "POST", 404, /Not Found/],
    ["/v3/kv/range", "GET", 501, /^\{"code":12,"message":"Method Not Allowed"\}$/],
    ["/v3/kv/%zz", "POST", 400, /^\{"code":3,"message":"Bad Request"\}$/],
    ["/v3", "POST", 307, /^$/],
    ["/v3//kv/../kv/range", "GET", 307, /^<a href="\/v3\/kv\/range">Temporary Redirect<\/a>/],
    ["/v3beta/kv/range", "POST", 200, /^\{\}$/],
    ["/v3/kv/%72ange", "POST", 200, /^\{\}$/],
    ["/v3/kv/put", "POST", 501, /unknown method/],
  ];
  for (const [path, method, status, text] of refused) {
    const exchange = await call(gateway, path, "", {}, method);
    assert.equal(exchange.status, status, path);
    assert.match(exchange.text, text);
  }
  assert.equal(gateway.counters.unrouted, 5);
  const heads: readonly (readonly [name: string, value: string, text: string])[] = [
    ["grpc-timeout", "5", "invalid grpc-timeout: 5"],
    ["grpc-timeout", "5s", "invalid grpc-timeout: 5s"],
    [
      "grpc-metadata-x-bin",
      "!",
      "invalid binary header Grpc-Metadata-X-Bin: illegal base64 data at input byte 0",
    ],
  ];
  for (const [name, value, message] of heads) {
    const exchange = await call(gateway, "/v3/kv/range", "", { [name]: value });
    assert.deepEqual(JSON.parse(exchange.text), { code: 3, message });
  }
});

test("deadlines end calls, and cancel them for the service", async () => {
  const contexts: CallContext[] = [];
  const { gateway, clock, codes } = gatewayOf(
    unary((_, context) => {
      contexts.push(context);
      return new Promise(() => {});
    }),
  );
  const late = exchangeOf("/v3/kv/range", { "grpc-timeout": "50m" });
  late.serve(gateway.handler);
  let cancelled = 0;
  contexts[0].onCancel(() => cancelled++);
  clock.advance(60);
  await late.done;
  assert.equal(late.status, 504);
  assert.equal(late.text, '{"code":4,"message":"context deadline exceeded"}');
  assert.deepEqual([cancelled, contexts[0].cancelled, codes], [1, true, ["KV/Range 4"]]);
  // 0 is no deadline, and one that has passed comes behind what is wrong with the body.
  exchangeOf("/v3/kv/range", { "grpc-timeout": "0S" }).serve(gateway.handler);
  assert.equal(contexts[1].deadlineMs, undefined);
  const passed = await call(gateway, "/v3/kv/range", "", { "grpc-timeout": "-1S" });
  assert.equal(passed.status, 504);
  assert.equal((await call(gateway, "/v3/kv/range", "[", { "grpc-timeout": "-1S" })).status, 400);
  assert.equal(contexts.length, 2);
});

test("bodies that are no JSON, too long or without memory are refused", async () => {
  let calls = 0;
  const { gateway } = gatewayOf({
    unary: new Map([
      [
        PUT,
        () => {
          calls++;
          return PutRequest.encode({});
        },
      ],
    ]),
  });
  const answer = async (body: string) => (await call(gateway, "/v3/kv/put", body)).text;
  assert.match(await answer('{"key":'), /"code":3,"message":"unexpected EOF"/);
  assert.match(await answer('{"key":"!"}'), /invalid value for bytes field key/);
  assert.match(await answer("[".repeat(5000)), /"code":3/);
  const value = "A".repeat(6000);
  const long = /"code":8,"message":"grpc: received message larger than max \(450\d vs. 4096\)"/;
  assert.match(await answer(`{"value":"${value}"}`), long);
  const longer = /"code":8,"message":"grpc: received message larger than max \(9\d+ vs. 8192\)"/;
  assert.match(await answer(`{"value":"${value}AAAA", "x":"${"x".repeat(3000)}"}`), longer);
  assert.deepEqual([gateway.counters.malformed, gateway.counters.tooLarge, calls], [3, 2, 0]);
  const poor = exchangeOf("/v3/kv/put");
  poor.holdBudgetBytes = 10;
  poor.serve(gateway.handler, [bytes('{"key":'), bytes('"Zm9v"}')]);
  assert.equal(poor.status, 429);
  assert.match(poor.text, /hold too much memory/);
  assert.equal(gateway.counters.heldBytesRefusals, 1);
});

test("requests of clients that have gone count until their handlers end", async () => {
  const handlers: PromiseWithResolvers<Uint8Array>[] = [];
  const { gateway, codes } = gatewayOf(
    unary(() => {
      handlers.push(Promise.withResolvers());
      return handlers.at(-1)!.promise;
    }),
  );
  const body = bytes(`{"key":"${"A".repeat(400)}"}`);
  for (let i = 0; i < 3; i++) {
    const gone = exchangeOf("/v3/kv/range").serve(gateway.handler, [body]);
    gone.listener.aborted?.();
  }
  assert.deepEqual(codes, ["KV/Range 1", "KV/Range 1", "KV/Range 1"]);
  const refused = await call(gateway, "/v3/kv/range", "");
  assert.match(refused.text, /"code":8,"message":"grpc: requests of clients that have gone hold/);
  for (const { resolve } of handlers) resolve(RangeResponse.encode({}));
  await handlers[2].promise;
  const served = exchangeOf("/v3/kv/range").serve(gateway.handler, [body]);
  handlers[3].resolve(RangeResponse.encode({}));
  await served.done;
  assert.equal(served.status, 200);
});

test("calls beyond the limit wait for others to end", async () => {
  const handlers: PromiseWithResolvers<Uint8Array>[] = [];
  const { gateway } = gatewayOf(
    unary(() => {
      handlers.push(Promise.withResolvers());
      return handlers.at(-1)!.promise;
    }),
  );
  const exchanges = Array.from({ length: 6 }, () =>
    exchangeOf("/v3/kv/range").serve(gateway.handler),
  );
  assert.deepEqual([handlers.length, gateway.calls], [3, { running: 3, waiting: 3 }]);
  exchanges[3].listener.aborted?.();
  assert.deepEqual(gateway.calls, { running: 3, waiting: 2 });
  for (let i = 0; i < 5; i++) {
    handlers[i].resolve(RangeResponse.encode({}));
    await exchanges[i < 3 ? i : i + 1].done;
  }
  assert.deepEqual(gateway.calls, { running: 0, waiting: 0 });
});

test("a long response goes in pieces, as the client takes them", async () => {
  const value = "v".repeat(1000);
  const kvs = Array.from({ length: 500 }, (_, i) => keyValue(bytes(String(i)), value));
  const { gateway, clock } = gatewayOf(unary(() => RangeResponse.encode({ kvs })));
  const exchange = exchangeOf("/v3/kv/range");
  exchange.sendBudgetBytes = 0;
  exchange.serve(gateway.handler);
  assert.equal(exchange.pieces.length, 1);
  clock.advance(1000);
  assert.equal(exchange.pieces.length, 1);
  exchange.listener.drained?.();
  assert.equal(exchange.pieces.length, 2);
  exchange.sendBudgetBytes = Number.POSITIVE_INFINITY;
  exchange.listener.drained?.();
  const before = exchange.pieces.length;
  // One turn of the event loop does only a part.
  assert.equal(exchange.state, "started");
  for (let turn = 0; exchange.state === "started" && turn < 100; turn++) clock.advance(1);
  assert.ok(exchange.pieces.length > before);
  assert.equal(exchange.state, "ended");
  const whole = JSON.parse(exchange.text) as { kvs: { value: string }[] };
  assert.equal(whole.kvs.length, 500);
  assert.ok(exchange.pieces.every(({ length }) => length <= 100_000));
});

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
  assert.equal(concat(recorder.messages).length, 3);
});
