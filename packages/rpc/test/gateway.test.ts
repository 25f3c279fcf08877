import assert from "node:assert/strict";
import { test } from "node:test";
import { KVService, PutRequest, RangeRequest, RangeResponse } from "@quorate/proto";
import { CallSlots } from "../src/gateway/call-slots.ts";
import {
  type CallContext,
  type ServiceTable,
  StatusError,
  type UnaryHandler,
} from "../src/service.ts";
import { bytes, call, exchangeOf, gatewayOf, keyValue } from "./helpers/gateway.ts";

const RANGE = KVService.methods.Range.path;
const PUT = KVService.methods.Put.path;

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
      seen.push(context.metadata("x-forwarded-for"));
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
    "x-forwarded-for": "192.0.2.1",
    "grpc-metadata-x-forwarded-for": "192.0.2.99",
  });
  assert.equal(exchange.status, 200);
  assert.equal(exchange.text, '{"kvs":[{"key":"Zm9v","value":"MQ=="}],"count":"1099511627776"}');
  assert.deepEqual(exchange.headers, {
    "content-type": "application/json",
    "grpc-metadata-content-type": "application/grpc",
  });
  const metadata = ["secret", "t", "true", "ab", "00-1-2-01", undefined, "192.0.2.1"];
  assert.deepEqual(seen, [...metadata, RANGE, "text/html"]);
  assert.deepEqual(codes, ["KV/Range 0"]);
});

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

test("a turn writes pieces of a long response for some milliseconds, however slow that is", () => {
  const kvs = Array.from({ length: 500 }, (_, i) => keyValue(bytes(`${i}`), "v".repeat(1000)));
  for (const [msPerPiece, most] of [
    [0, 8],
    [1, 2],
    [50, 1],
  ] as const) {
    const { gateway, clock } = gatewayOf(unary(() => RangeResponse.encode({ kvs })));
    const exchange = exchangeOf("/v3/kv/range");
    const now = clock.monotonicMs.bind(clock);
    clock.monotonicMs = () => now() + msPerPiece * exchange.pieces.length;
    exchange.sendBudgetBytes = Number.POSITIVE_INFINITY;
    exchange.serve(gateway.handler);
    assert.equal(exchange.pieces.length, most);
    for (let turn = 0; exchange.state === "started" && turn < 100; turn++) clock.advance(1);
    assert.equal(exchange.state, "ended");
    assert.ok(exchange.pieces.every(({ length }) => length <= 20_000));
  }
});

test("the calls that wait for a slot have a bound", () => {
  const slots = new CallSlots(1, 2);
  const ran: number[] = [];
  assert.equal(slots.takeFree(), true);
  assert.equal(slots.takeFree(), false);
  const [first, second, third] = [1, 2, 3].map((n) => () => void ran.push(n));
  assert.deepEqual(
    [first, second, third].map((run) => slots.wait(run)),
    [true, true, false],
  );
  assert.equal(slots.leave(first), true);
  slots.release();
  assert.deepEqual([ran, slots.used, slots.leave(second)], [[2], 1, false]);
  slots.release();
  assert.equal(slots.used, 0);
});
