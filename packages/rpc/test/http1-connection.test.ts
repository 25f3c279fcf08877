/** One HTTP/1.1 connection: its responses, their order, and a takeover. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { HttpExchange, HttpTunnel } from "@quorate/host";
import { fromLatin1, toLatin1 } from "@quorate/proto";
import { MAX_KNOWN_HEADS } from "../src/http1/response-head.ts";
import {
  ECHO,
  HTTP1_LIMITS,
  Http1Client,
  type Http1Options,
  responses,
  silent,
} from "./engine/http1.ts";

const GET = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
const POST = (length: number, fields = "") =>
  `POST / HTTP/1.1\r\nHost: x\r\n${fields}Content-Length: ${length}\r\n\r\n`;
const CHUNKED = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
const DATE = "date: Thu, 01 Jan 2026 00:00:00 GMT\r\n";

describe("responses", () => {
  const begin = (request: string, act: (exchange: HttpExchange) => void) => {
    const { client, exchange } = silent();
    client.send(request);
    act(exchange());
    return { text: client.take(), isEnding: client.connection.ending };
  };
  const OLD = "GET / HTTP/1.0\r\n\r\n";
  const HEAD = GET.replace("GET", "HEAD");
  const CLOSE = GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
  const whole = (one: HttpExchange) => one.respond({ status: 200, headers: { A: "b" }, body: "é" });
  const pieces = (one: HttpExchange) => {
    one.start(200, {});
    one.send(fromLatin1("one"));
    one.send(fromLatin1(""));
    one.send(fromLatin1("x".repeat(17)));
    one.end();
  };
  const sized = (one: HttpExchange) => {
    one.start(200, { "Content-Length": "3" });
    one.send(fromLatin1("abc"));
    one.end();
  };
  const HEADER = `HTTP/1.1 200 OK\r\na: b\r\n${DATE}content-length: 2\r\n`;
  const PLAIN = `HTTP/1.1 200 OK\r\n${DATE}`;
  const cases: readonly (readonly [
    string,
    string,
    (one: HttpExchange) => void,
    string,
    boolean,
  ])[] = [
    ["whole", GET, whole, `${HEADER}\r\n\xc3\xa9`, false],
    ["to HEAD", HEAD, whole, `${HEADER}\r\n`, false],
    ["to HTTP/1.0", OLD, whole, `${HEADER}connection: close\r\n\r\n\xc3\xa9`, true],
    ["to Connection: close", CLOSE, whole, `${HEADER}connection: close\r\n\r\n\xc3\xa9`, true],
    [
      "in pieces",
      GET,
      pieces,
      `${PLAIN}transfer-encoding: chunked\r\n\r\n3\r\none\r\n11\r\n${"x".repeat(17)}\r\n0\r\n\r\n`,
      false,
    ],
    ["in pieces to HEAD", HEAD, pieces, `${PLAIN}transfer-encoding: chunked\r\n\r\n`, false],
    [
      "in pieces to HTTP/1.0",
      OLD,
      pieces,
      `${PLAIN}connection: close\r\n\r\none${"x".repeat(17)}`,
      true,
    ],
    ["in pieces with a length", GET, sized, `${PLAIN}content-length: 3\r\n\r\nabc`, false],
    [
      "with a length that HTTP/1.0 keeps alive",
      "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
      sized,
      `${PLAIN}content-length: 3\r\nconnection: keep-alive\r\n\r\nabc`,
      false,
    ],
    [
      "without a body",
      GET,
      (one) => one.respond({ status: 204, headers: {}, body: "dropped" }),
      `HTTP/1.1 204 No Content\r\n${DATE}\r\n`,
      false,
    ],
    [
      "with fields that would split it",
      GET,
      (one) =>
        one.respond({
          status: 200,
          headers: { "a b": "c", a: "b\r\nc: d", connection: "upgrade", date: "now" },
          body: "",
        }),
      "HTTP/1.1 200 OK\r\na: b??c: d\r\ndate: now\r\ncontent-length: 0\r\n\r\n",
      false,
    ],
    [
      "cut off",
      GET,
      (one) => {
        one.start(200, {});
        one.send(fromLatin1("abc"));
        one.abort();
      },
      `${PLAIN}transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n`,
      true,
    ],
    [
      "shorter than promised",
      GET,
      (one) => {
        one.start(200, { "content-length": "5" });
        one.send(fromLatin1("abc"));
        one.end();
      },
      `${PLAIN}content-length: 5\r\n\r\nabc`,
      true,
    ],
    [
      "longer than promised",
      GET,
      (one) => {
        one.start(200, { "content-length": "2" });
        assert.equal(one.send(fromLatin1("abc")), false);
        one.end();
      },
      `${PLAIN}content-length: 2\r\n\r\n`,
      true,
    ],
  ];
  for (const [name, request, act, text, isEnding] of cases) {
    test(name, () => assert.deepEqual(begin(request, act), { text, isEnding }));
  }

  test("of a handler that throws, before and after it has begun", () => {
    const early = new Http1Client(() => {
      throw new Error("on purpose");
    });
    assert.match(early.send(GET).take(), /^HTTP\/1\.1 500 /);
    const { client, calls, exchange } = silent(
      {},
      {
        data() {
          exchange().start(200, {});
          throw new Error("on purpose");
        },
      },
    );
    client.send(`${POST(3)}abc`);
    assert.ok(client.connection.ending);
    assert.deepEqual(calls, []);
  });
});

test("headers that cannot change: each response has its own status, length, Date and end", () => {
  const headers = Object.freeze({ a: "b" });
  const later = Array.from({ length: 2 * MAX_KNOWN_HEADS }, (_, i) => Object.freeze({ n: `${i}` }));
  const { client, exchange } = silent();
  const ask = (request: string, status: number, body: string, fields: object = headers) => {
    client.send(request);
    exchange().respond({ status, headers: fields as Record<string, string>, body });
    return client.take();
  };
  const head = (line: string, length: number, second = "00", end = "") =>
    `HTTP/1.1 ${line}\r\na: b\r\ndate: Thu, 01 Jan 2026 00:00:${second} GMT\r\n` +
    `content-length: ${length}\r\n${end}\r\n`;
  const HEAD = GET.replace("GET", "HEAD");
  assert.equal(ask(GET, 200, "one"), `${head("200 OK", 3)}one`);
  assert.equal(ask(GET, 200, "x".repeat(1000)), `${head("200 OK", 1000)}${"x".repeat(1000)}`);
  assert.equal(ask(GET, 200, ""), head("200 OK", 0));
  assert.equal(ask(HEAD, 200, "one"), head("200 OK", 3));
  assert.equal(ask(GET, 404, "none"), `${head("404 Not Found", 4)}none`);
  assert.equal(ask(GET, 200, "one"), `${head("200 OK", 3)}one`);
  client.clock.advance(1000);
  assert.equal(ask(GET, 200, "two"), `${head("200 OK", 3, "01")}two`);
  // More than are kept; what the first ones were is not taken for them.
  for (const [i, fields] of later.entries())
    assert.match(ask(GET, 200, "n", fields), new RegExp(`^HTTP/1.1 200 OK\r\nn: ${i}\r\n`));
  const old = GET.replace("1.1", "1.0");
  assert.equal(ask(old, 200, "end"), `${head("200 OK", 3, "01", "connection: close\r\n")}end`);
});

test("a connection streams from the head of a response in pieces to its end, and as a tunnel", () => {
  const { client, exchange } = silent();
  const states: boolean[] = [];
  const note = () => void states.push(client.connection.isStreaming);
  note();
  client.send(GET);
  note();
  exchange().respond({ status: 200, headers: {}, body: "whole" });
  note();
  client.send(GET);
  exchange().start(200, {});
  note();
  exchange().send(fromLatin1("piece"));
  note();
  exchange().end();
  note();
  client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n");
  exchange().upgrade({});
  note();
  assert.deepEqual(states, [false, false, false, true, true, false, true]);
});

describe("requests on one connection", () => {
  test("are served one after the other, however they arrive, and beyond a limit not read", () => {
    const { client, calls, exchange } = silent();
    client.send(GET + POST(3).replace("/", "/two"));
    assert.equal(client.exchanges.length, 1);
    client.send("abc");
    client.send(GET.repeat(3000));
    assert.equal(client.isReading, false);
    assert.ok(client.countedBytes > HTTP1_LIMITS.maxPipelinedBytes);
    exchange().respond({ status: 200, headers: {}, body: "" });
    assert.equal(client.exchanges.length, 2);
    assert.deepEqual(calls, ["ended", "abc", "ended"]);
    for (let i = 0; i < 3000; i++) exchange().respond({ status: 200, headers: {}, body: "" });
    assert.ok(client.isReading);
    assert.equal(responses(client.take()).length, 3001);
    client.connection.lost();
    assert.equal(client.countedBytes, 0);
    assert.equal(calls.at(-1), "aborted");
  });

  test("wait while the client does not read, and the handler is held up", () => {
    const limits = { outputTargetBytes: 3000 };
    const { client, calls, exchange } = silent({ isStuck: true, limits });
    client.send(GET + GET);
    exchange().start(200, {});
    assert.equal(exchange().send(new Uint8Array(900)), true);
    assert.equal(exchange().send(new Uint8Array(900)), false);
    client.take();
    assert.ok(exchange().bufferedBytes > 1800);
    assert.deepEqual(calls, ["ended"]);
    client.drain();
    assert.deepEqual(calls, ["ended", "drained"]);
    client.isStuck = true;
    exchange().send(new Uint8Array(4000));
    exchange().end();
    client.take();
    assert.equal(client.exchanges.length, 1);
    client.drain();
    assert.equal(client.exchanges.length, 2);
  });

  test("stop at pause and continue at resume", () => {
    const { client, calls, exchange } = silent();
    client.send(POST(6));
    exchange().pause();
    client.send("abc");
    assert.equal(client.isReading, false);
    assert.deepEqual(calls, []);
    exchange().resume();
    assert.ok(client.isReading);
    client.send("def");
    assert.deepEqual(calls, ["abc", "def", "ended"]);
  });

  test("with Expect get 100 only if the handler has not responded", () => {
    const { client } = silent();
    client.send(POST(3, "Expect: 100-continue\r\n"));
    assert.equal(client.take(), "HTTP/1.1 100 Continue\r\n\r\n");
    const refusing = new Http1Client((exchange) => {
      exchange.respond({ status: 413, headers: {}, body: "" });
      return {};
    });
    const text = refusing.send(POST(3, "Expect: 100-continue\r\n")).take();
    assert.deepEqual(responses(text), ["413"]);
    assert.ok(refusing.connection.ending, "the client may send the body or not");
  });

  test("whose bodies are of no use any more: a short rest is dropped, a long one ends it", () => {
    const refuse = (one: HttpExchange) => one.respond({ status: 413, headers: {}, body: "" });
    const short = silent();
    short.client.send(`${POST(10)}abc`);
    refuse(short.exchange());
    short.client.send(`defghij${GET}`);
    assert.equal(short.client.exchanges.length, 2);
    assert.deepEqual(short.calls, ["abc", "ended"]);
    const long = silent();
    long.client.send(POST(HTTP1_LIMITS.maxDiscardedBytes + 1));
    refuse(long.exchange());
    assert.match(long.client.take(), /^HTTP\/1\.1 413 [\s\S]*connection: close\r\n/);
    const endless = silent();
    endless.client.send(CHUNKED);
    refuse(endless.exchange());
    const chunk = `10000\r\n${"x".repeat(65_536)}\r\n`;
    for (let i = 0; i < 4; i++) endless.client.send(chunk);
    assert.equal(endless.client.connection.ending, false);
    endless.client.send(chunk);
    assert.ok(endless.client.connection.ending);
    const slow = silent();
    slow.client.send(CHUNKED);
    refuse(slow.exchange());
    slow.client.pass(HTTP1_LIMITS.discardTimeoutMs);
    assert.ok(slow.client.connection.ending);
  });

  test("are taken no more in a drain: the present one is the last", () => {
    const { client, exchange } = silent();
    client.send(GET);
    client.connection.drain();
    assert.equal(client.connection.ending, false);
    exchange().respond({ status: 200, headers: {}, body: "" });
    assert.match(client.take(), /connection: close/);
    assert.ok(client.connection.ending);
    const idle = silent().client;
    idle.send(GET.slice(0, 5));
    idle.connection.drain();
    assert.ok(idle.connection.ending);
  });

  test("are not served without a slot", () => {
    const client = new Http1Client(ECHO, { hasSlot: false }).send(GET);
    assert.equal(client.exchanges.length, 0);
  });
});

describe("a connection that is taken over", () => {
  const UPGRADE = GET.replace(
    "\r\n\r\n",
    "\r\nConnection: keep-alive, Upgrade\r\nUpgrade: a, b\r\n\r\n",
  );
  function taken(options: Http1Options = {}) {
    const { client, exchange, calls } = silent(options);
    client.send(`${UPGRADE}first`);
    calls.length = 0;
    const tunnel = exchange().upgrade({ "x-y": "z" }) as HttpTunnel;
    tunnel.onClose(() => void calls.push("closed"));
    tunnel.onDrain(() => void calls.push("drained"));
    return { client, tunnel, calls, exchange: exchange() };
  }

  test("carries bytes both ways, what followed the head first", () => {
    const { client, tunnel, calls, exchange } = taken();
    client.send("second");
    assert.equal(
      client.take(),
      "HTTP/1.1 101 Switching Protocols\r\nupgrade: a\r\nconnection: Upgrade\r\nx-y: z\r\n\r\n",
    );
    tunnel.onData((bytes) => void calls.push(toLatin1(bytes)));
    tunnel.pause();
    client.send("third");
    assert.equal(client.isReading, false);
    tunnel.resume();
    exchange.respond({ status: 200, headers: {}, body: "ignored" });
    tunnel.send(fromLatin1("hello"));
    assert.equal(client.take(), "hello");
    client.pass(HTTP1_LIMITS.idleTimeoutMs * 10);
    assert.deepEqual(calls, ["firstsecond", "third"]);
    tunnel.end();
    tunnel.end();
    assert.equal(tunnel.send(fromLatin1("late")), false);
    assert.deepEqual(calls.slice(2), ["closed"]);
    assert.equal(client.shared.counters.openRequests, 0);
  });

  test("is held up, held to budgets and destroyed like any other", () => {
    const { client, tunnel, calls } = taken({ isStuck: true, limits: { maxHeldBytes: 1000 } });
    assert.equal(tunnel.send(new Uint8Array(2000)), false);
    client.take();
    assert.ok(tunnel.bufferedBytes >= 2000);
    client.drain();
    assert.deepEqual(calls, ["drained"]);
    assert.deepEqual([tunnel.hold(900), tunnel.hold(200)], [true, false]);
    tunnel.destroy();
    assert.ok(client.isDestroyed);
    assert.deepEqual(calls, ["drained", "closed"]);
    assert.equal(tunnel.hold(1), false);
    assert.equal(client.countedBytes, 0);
  });

  test("is not possible with a body, without the fields, or behind a response", () => {
    for (const request of [
      GET,
      UPGRADE.replace("Upgrade\r\n", "x\r\n"),
      UPGRADE.replace("HTTP/1.1", "HTTP/1.0"),
      `${UPGRADE.replace("Host", "Content-Length: 1\r\nHost")}x`,
    ]) {
      const { client, exchange } = silent();
      client.send(request);
      assert.equal(exchange().upgrade({}), undefined);
    }
    const { client, exchange } = silent();
    client.send(UPGRADE);
    exchange().start(200, {});
    assert.equal(exchange().upgrade({}), undefined);
  });
});
