/** The limits of one HTTP/1.1 connection: sizes, budgets and time. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ECHO, HTTP1_LIMITS, Http1Client, responses, silent } from "./engine/http1.ts";

const GET = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
const POST = (length: number, fields = "") =>
  `POST / HTTP/1.1\r\nHost: x\r\n${fields}Content-Length: ${length}\r\n\r\n`;
const CHUNKED = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";

describe("limits", () => {
  const { maxHeaderListBytes, maxFields, maxChunkExtensionBytes, maxTrailerBytes } = HTTP1_LIMITS;
  const field = (size: number) => `A: ${"b".repeat(size - 5)}\r\n`;
  const full = 16 << 10;
  /** A head of this size, of as few fields as are allowed. */
  const head = (size: number) => {
    const whole = Math.floor((size - GET.length) / full) - 1;
    const names = ["B", "C", "D", "E"].slice(0, whole);
    const lines = names.map((name) => field(full).replace("A", name)).join("");
    const rest = size - GET.length - lines.length;
    const half = Math.floor(rest / 2);
    return GET.replace(
      "\r\n\r\n",
      `\r\n${lines}${field(half)}${field(rest - half).replace("A", "F")}\r\n`,
    );
  };
  const withField = (line: string) => GET.replace("\r\n\r\n", `\r\n${line}\r\n\r\n`);
  const fields = (count: number) =>
    GET.replace("\r\n\r\n", `\r\n${"A:\r\n".repeat(count - 1)}\r\n`);
  const extension = (size: number) => `1;${"e".repeat(size - 1)}\r\nx\r\n`;
  const trailers = (size: number) => `0\r\n${field(size - 2)}\r\n`;
  const cases: Readonly<Record<string, readonly [string, string, string]>> = {
    "bytes of a head": [head(maxHeaderListBytes), head(maxHeaderListBytes + 1), "431"],
    "a header": [
      withField(`A: ${"b".repeat(full - 3)}`),
      withField(`A: ${"b".repeat(full - 2)}`),
      "431",
    ],
    "a header that comes twice": [
      withField(`A: ${"b".repeat(full / 2)}\r\nA: ${"b".repeat(full / 2 - 2)}`),
      withField(`A: ${"b".repeat(full / 2)}\r\nA: ${"b".repeat(full / 2 - 1)}`),
      "431",
    ],
    "a target": [
      GET.replace("/ ", `/${"a".repeat(full - 1)} `),
      GET.replace("/ ", `/${"a".repeat(full)} `),
      "414",
    ],
    "a head without an end": [GET, GET.slice(0, -2) + "b".repeat(maxHeaderListBytes), "431"],
    "fields of a head": [fields(maxFields), fields(maxFields + 1), "431"],
    "chunk extensions": [
      `${CHUNKED + extension(maxChunkExtensionBytes / 2).repeat(2)}0\r\n\r\n`,
      `${CHUNKED + extension(maxChunkExtensionBytes / 2).repeat(2)}0;e\r\n\r\n`,
      "413",
    ],
    "a chunk extension without an end": [
      `${CHUNKED}0\r\n\r\n`,
      `${CHUNKED}1;${"e".repeat(maxChunkExtensionBytes)}`,
      "413",
    ],
    trailers: [CHUNKED + trailers(maxTrailerBytes), CHUNKED + trailers(maxTrailerBytes + 1), "431"],
  };
  for (const [name, [good, bad, status]] of Object.entries(cases)) {
    test(name, () => {
      assert.deepEqual(responses(new Http1Client(ECHO).send(good).take()), ["200"]);
      const client = new Http1Client(ECHO).send(bad);
      assert.deepEqual(responses(client.take()), [status]);
      const { malformedRequests, headersTooLarge } = client.shared.counters;
      assert.equal(malformedRequests + headersTooLarge, 1);
    });
  }

  test("budgets: bytes that wait, heads, and responses that are not read", () => {
    const poor = silent({ limits: { maxHeldBytes: 10 } }).client;
    poor.send(GET + GET);
    assert.ok(poor.isDestroyed);
    const large = new Http1Client(ECHO, { limits: { maxHeadBytes: 1000 } }).send(GET);
    assert.ok(large.isDestroyed);
    const { client, exchange, calls } = silent({ limits: { maxPendingBytes: 1000 } });
    client.send(GET);
    exchange().start(200, {});
    assert.equal(exchange().send(new Uint8Array(2000)), false);
    assert.ok(client.isDestroyed);
    assert.deepEqual(calls, ["ended", "aborted"]);
    for (const one of [poor, large, client]) assert.equal(one.countedBytes, 0);
    const holding = silent({ limits: { maxHeldBytes: 10 } });
    holding.client.send(GET);
    assert.deepEqual([holding.exchange().hold(10), holding.exchange().hold(1)], [true, false]);
    assert.equal(holding.client.shared.held.usedBytes, 10);
    holding.exchange().respond({ status: 200, headers: {}, body: "" });
    assert.equal(holding.client.shared.held.usedBytes, 0);
  });
});

describe("time", () => {
  const { headTimeoutMs, requestTimeoutMs, idleTimeoutMs, sendStallTimeoutMs } = HTTP1_LIMITS;
  test("for a head is limited: an answer to half of one, none to silence", () => {
    const mute = silent().client;
    mute.pass(headTimeoutMs - 1);
    assert.equal(mute.isDestroyed, false);
    mute.pass(1);
    assert.ok(mute.isDestroyed);
    const half = silent();
    half.client.send(GET);
    half.exchange().respond({ status: 200, headers: {}, body: "" });
    half.client.pass(headTimeoutMs * 2);
    half.client.send(GET.slice(0, 5));
    half.client.take();
    half.client.pass(headTimeoutMs - 1);
    assert.equal(half.client.connection.ending, false);
    half.client.pass(1);
    assert.match(half.client.take(), /^HTTP\/1\.1 408 [\s\S]*connection: close\r\n/);
  });

  test("for a body is limited until the response begins, not while the handler pauses", () => {
    const late = silent();
    late.client.send(POST(3));
    late.client.pass(requestTimeoutMs - 1);
    assert.equal(late.client.connection.ending, false);
    late.client.pass(1);
    assert.match(late.client.take(), /^HTTP\/1\.1 408 /);
    assert.deepEqual(late.calls, ["aborted"]);
    const open = silent();
    open.client.send(CHUNKED);
    open.exchange().start(200, {});
    open.client.take();
    open.client.pass(requestTimeoutMs * 100);
    assert.equal(open.client.connection.ending, false);
    const paused = silent();
    paused.client.send(POST(3));
    paused.exchange().pause();
    paused.client.pass(requestTimeoutMs * 100);
    assert.equal(paused.client.connection.ending, false);
  });

  test("between requests is limited, not while one is served", () => {
    const { client, exchange } = silent();
    client.send(GET);
    client.pass(idleTimeoutMs * 10);
    assert.equal(client.connection.idleSinceMs, undefined);
    exchange().respond({ status: 200, headers: {}, body: "" });
    client.take();
    assert.equal(client.connection.idleSinceMs, idleTimeoutMs * 10);
    client.pass(idleTimeoutMs - 1);
    assert.equal(client.connection.ending, false);
    client.pass(1);
    assert.ok(client.connection.ending);
  });

  test("for a client to take what it is sent is limited", () => {
    const { client, exchange, calls } = silent({ isStuck: true });
    client.send(GET);
    exchange().start(200, {});
    client.take();
    client.pass(sendStallTimeoutMs - 1);
    assert.equal(client.isDestroyed, false);
    client.pass(1);
    assert.ok(client.isDestroyed);
    assert.deepEqual(calls, ["ended", "aborted"]);
  });
});
