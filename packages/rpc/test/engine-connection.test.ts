/**
 * RFC 9113 frame by frame: what a connection does with each frame in each state, and what it says
 * to a client that breaks a rule.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { concat, fromHex, fromLatin1 } from "@quorate/proto";
import { constantFields } from "../src/hpack/hpack.ts";
import {
  ErrorCode,
  Flag,
  FrameType,
  MAX_WINDOW_BYTES,
  PREFACE,
  Setting,
} from "../src/http2/constants.ts";
import {
  CoreClient,
  type CoreOptions,
  data,
  fieldsOf,
  frame,
  GET,
  rstStream,
  settingsFrame,
  windowUpdate,
  words,
} from "./engine/core.ts";
import { Recorder } from "./engine/recorder.ts";

function greeted(
  options: CoreOptions = {},
  ...settings: [number, number][]
): { client: CoreClient; recorder: Recorder } {
  const recorder = new Recorder();
  const client = new CoreClient(recorder, options);
  client.greet(...settings);
  return { client, recorder };
}

const OK = constantFields({ name: ":status", value: "200" });
const DONE = constantFields({ name: "x-done", value: "1" });

describe("the preface", () => {
  test("is answered by our settings, and the client's by an acknowledgement", () => {
    const client = new CoreClient(new Recorder(), {
      limits: {
        maxConcurrentStreams: 7,
        streamWindowBytes: 70_000,
        connectionWindowBytes: 100_000,
        maxHeaderListBytes: 999,
      },
    });
    assert.equal(client.wakes, 1);
    assert.deepEqual(client.take(), [
      "SETTINGS MaxConcurrentStreams=7 InitialWindowSize=70000 MaxHeaderListSize=999",
      `WINDOW_UPDATE 0 ${100_000 - 65_535}`,
    ]);
    client.send(fromLatin1(PREFACE), settingsFrame([Setting.EnablePush, 0]));
    assert.deepEqual(client.take(), ["SETTINGS ack"]);
    client.send(frame(FrameType.Settings, Flag.Ack, 0));
    assert.deepEqual(client.take(), []);
  });

  test("may come byte by byte, as everything may", () => {
    const recorder = new Recorder();
    const client = new CoreClient(recorder);
    const bytes = concat([
      fromLatin1(PREFACE),
      settingsFrame(),
      client.headers(1, { ...GET, ":method": "POST" }),
      data(1, fromLatin1("hello")),
      frame(FrameType.Ping, 0, 0, new Uint8Array(8)),
      data(1, fromLatin1("world"), true),
    ]);
    for (const byte of bytes) client.send(Uint8Array.of(byte));
    assert.deepEqual(recorder.take(), [
      "request 1 POST /",
      "data 1 hello",
      "data 1 world",
      "ended 1",
    ]);
    assert.deepEqual(client.take().slice(2), ["SETTINGS ack", "PING 0000000000000000 ack"]);
  });

  test("that is none ends the connection, as does anything but SETTINGS behind it", () => {
    const wrong = new CoreClient(new Recorder());
    wrong.take();
    wrong.send(fromLatin1("PRI * HTTP/1"));
    assert.deepEqual(wrong.take(), ["GOAWAY 0 ProtocolError bad preface"]);
    assert.equal(wrong.connection.ending, true);
    for (const second of [
      frame(FrameType.Ping, 0, 0, new Uint8Array(8)),
      frame(FrameType.Settings, Flag.Ack, 0),
    ]) {
      const client = new CoreClient(new Recorder());
      client.take();
      client.send(fromLatin1(PREFACE), second);
      assert.deepEqual(client.take(), ["GOAWAY 0 ProtocolError no SETTINGS behind the preface"]);
    }
  });
});

describe("a request", () => {
  test("with a body and trailers is handed on, and answered", () => {
    const { client, recorder } = greeted();
    client.send(
      client.headers(1, { ...GET, ":method": "POST", ":path": "/a?b" }),
      data(1, fromLatin1("one")),
    );
    client.send(data(1, fromLatin1("two")), client.headers(1, { "x-trailer": "1" }, true));
    assert.deepEqual(recorder.take(), [
      "request 1 POST /a?b",
      "data 1 one",
      "data 1 two",
      "ended 1",
    ]);
    const stream = recorder.streams.get(1)!;
    const { sender } = client.connection;
    sender.headers(stream, OK, false);
    sender.data(stream, [fromLatin1("an"), fromLatin1("swer")], 6);
    sender.finish(stream, DONE);
    assert.deepEqual(client.take(), [
      "HEADERS 1 :status=200",
      "DATA 1 6",
      "HEADERS 1 x-done=1 end",
    ]);
    assert.equal(client.connection.streams.size, 0);
  });

  test("without a body ends with its headers", () => {
    const { client, recorder } = greeted();
    client.send(client.headers(1, GET, true));
    assert.deepEqual(recorder.take(), ["request 1 GET / end"]);
    client.connection.sender.headers(recorder.streams.get(1)!, OK, true);
    assert.deepEqual(client.take(), ["HEADERS 1 :status=200 end"]);
  });

  test("that is answered before its end is cut off without an error, and its rest is dropped", () => {
    const { client, recorder } = greeted();
    client.send(client.headers(1, GET));
    client.connection.sender.headers(recorder.streams.get(1)!, OK, true);
    assert.deepEqual(client.take(), ["HEADERS 1 :status=200 end", "RST_STREAM 1 NoError"]);
    client.send(
      data(1, 100),
      data(1, 0, true),
      client.headers(1, { late: "1" }, true),
      rstStream(1),
      windowUpdate(1, 5),
    );
    assert.deepEqual(client.take(), []);
    assert.deepEqual(recorder.take(), ["request 1 GET /"]);
  });

  test("may be padded and carry a priority", () => {
    const { client, recorder } = greeted();
    const block = client.encoder.encode(fieldsOf(GET));
    const payload = concat([
      Uint8Array.of(3),
      words(0),
      Uint8Array.of(200),
      block,
      new Uint8Array(3),
    ]);
    client.send(
      frame(FrameType.Headers, Flag.EndHeaders | Flag.Padded | Flag.Priority, 1, payload),
    );
    client.send(
      frame(
        FrameType.Data,
        Flag.Padded,
        1,
        concat([Uint8Array.of(9), fromLatin1("abc"), new Uint8Array(9)]),
      ),
    );
    client.send(frame(FrameType.Data, Flag.Padded | Flag.EndStream, 1, Uint8Array.of(0)));
    client.send(frame(FrameType.Priority, 0, 99, concat([words(0), Uint8Array.of(1)])));
    assert.deepEqual(recorder.take(), ["request 1 GET /", "data 1 abc", "ended 1"]);
    assert.deepEqual(client.take(), []);
  });

  test("may come in CONTINUATION frames", () => {
    const { client, recorder } = greeted();
    const block = client.encoder.encode(fieldsOf({ ...GET, long: "x".repeat(300) }));
    client.send(frame(FrameType.Headers, Flag.EndStream, 1, block.slice(0, 10)));
    client.send(
      frame(FrameType.Continuation, 0, 1, block.slice(10, 20)),
      frame(FrameType.Continuation, 0, 1),
    );
    assert.deepEqual(recorder.take(), []);
    client.send(frame(FrameType.Continuation, Flag.EndHeaders, 1, block.slice(20)));
    assert.deepEqual(recorder.take(), ["request 1 GET / end"]);
  });

  test("that repeats another's bytes means what the table says now", () => {
    const { client, recorder } = greeted();
    // :path /a goes into the table; 0xbe names the newest entry.
    const first = fromHex("8286440161");
    client.send(frame(FrameType.Headers, 5, 1, first));
    const again = fromHex("8286be");
    client.send(frame(FrameType.Headers, 5, 3, again), frame(FrameType.Headers, 5, 5, again));
    // Another path takes its place.
    client.send(frame(FrameType.Headers, 5, 7, fromHex("8286440162")));
    client.send(
      frame(FrameType.Headers, 5, 9, again),
      frame(FrameType.Headers, 5, 11, fromHex("8286bf")),
    );
    client.send(
      frame(FrameType.Headers, 5, 13, again),
      frame(FrameType.Headers, 5, 15, fromHex("8286bf")),
    );
    assert.deepEqual(
      recorder.take().map((event) => event.split(" ")[3]),
      ["a", "a", "a", "b", "b", "a", "b", "a"],
    );
  });

  test("that repeats another's bytes changes the table once more", () => {
    const { client, recorder } = greeted();
    const add = fromHex("8286440161");
    client.send(
      frame(FrameType.Headers, 5, 1, add),
      frame(FrameType.Headers, 5, 3, add),
      frame(FrameType.Headers, 5, 5, fromHex("8286bf")),
    );
    // A literal that leaves the table alone.
    const plain = fromHex("8286040162");
    client.send(frame(FrameType.Headers, 5, 7, plain), frame(FrameType.Headers, 5, 9, plain));
    assert.deepEqual(
      recorder.take().map((event) => event.split(" ")[3]),
      ["a", "a", "a", "b", "b"],
    );
  });

  for (const [name, headers] of Object.entries<Record<string, string>>({
    "no method": { ":scheme": "http", ":path": "/" },
    "no scheme": { ":method": "GET", ":path": "/" },
    "no path": { ":method": "GET", ":scheme": "http" },
    "an empty path": { ...GET, ":path": "" },
    "a pseudo-header field behind others": { x: "1", ...GET },
    "an unknown pseudo-header field": { ...GET, ":weird": "1" },
    "a status": { ...GET, ":status": "200" },
    "capitals in a name": { ...GET, Upper: "1" },
    "a connection field": { ...GET, connection: "close" },
    "te: gzip": { ...GET, te: "gzip" },
    "a line break in a value": { ...GET, x: "a\r\nb" },
    "a bad length": { ...GET, "content-length": "-1" },
  })) {
    test(`with ${name} is reset`, () => {
      const { client, recorder } = greeted();
      client.send(client.headers(1, headers, true), client.headers(3, GET, true));
      assert.deepEqual(client.take(), ["RST_STREAM 1 ProtocolError"]);
      assert.deepEqual(recorder.take(), ["request 3 GET / end"]);
      assert.equal(client.shared.counters.streamErrors, 1);
    });
  }

  test("with another length than it said is reset", () => {
    const { client, recorder } = greeted();
    client.send(client.headers(1, { ...GET, "content-length": "3" }), data(1, 4));
    client.send(client.headers(3, { ...GET, "content-length": "3" }), data(3, 2, true));
    client.send(
      client.headers(5, { ...GET, "content-length": "3" }),
      data(5, 2),
      client.headers(5, { x: "1" }, true),
    );
    client.send(client.headers(7, { ...GET, "content-length": "3" }, true));
    client.send(client.headers(9, { ...GET, "content-length": "3" }), data(9, 1), data(9, 2, true));
    assert.deepEqual(
      client.take(),
      [1, 3, 5, 7].map((id) => `RST_STREAM ${id} ProtocolError`),
    );
    assert.equal(recorder.take().at(-1), "ended 9");
  });

  test("with fields beyond the bound is refused, and the next is not", () => {
    const { client, recorder } = greeted({
      limits: { maxHeaderListBytes: 1000, maxHeaderBlockBytes: 5000 },
    });
    client.send(
      client.headers(1, { ...GET, big: "x".repeat(2000) }, true),
      client.headers(3, GET, true),
    );
    assert.deepEqual(recorder.take(), ["too large 1", "request 3 GET / end"]);
    assert.deepEqual(client.take(), ["HEADERS 1 :status=431 end"]);
    assert.equal(client.shared.counters.headerListsTooLarge, 1);
  });

  test("beyond the most that may be open is refused, also while calls linger", () => {
    const { client, recorder } = greeted({ limits: { maxConcurrentStreams: 2 } });
    client.send(client.headers(1, GET), client.headers(3, GET), client.headers(5, GET));
    assert.deepEqual(client.take(), ["RST_STREAM 5 RefusedStream"]);
    client.send(rstStream(1));
    client.connection.lingeringCalls = 1;
    client.send(client.headers(7, GET));
    client.connection.lingeringCalls = 0;
    client.send(client.headers(9, GET));
    assert.deepEqual(client.take(), ["RST_STREAM 7 RefusedStream"]);
    assert.deepEqual(recorder.take(), [
      "request 1 GET /",
      "request 3 GET /",
      "aborted 1",
      "request 9 GET /",
    ]);
    assert.equal(client.shared.counters.refusedStreams, 2);
  });

  test("is dropped when the client resets it", () => {
    const { client, recorder } = greeted();
    client.send(client.headers(1, GET), rstStream(1), windowUpdate(1, 1), rstStream(1));
    assert.deepEqual(recorder.take(), ["request 1 GET /", "aborted 1"]);
    assert.deepEqual(client.take(), []);
    assert.equal(client.shared.counters.resetsReceived, 1);
  });
});

describe("flow control", () => {
  const BODY = new Uint8Array(40_000).fill(7);

  test("holds an answer back, and lets it out as the windows open", () => {
    const { client, recorder } = greeted({}, [Setting.InitialWindowSize, 10]);
    client.send(client.headers(1, GET, true));
    const stream = recorder.streams.get(1)!;
    const { sender } = client.connection;
    sender.headers(stream, OK, false);
    assert.equal(sender.data(stream, [BODY], BODY.length, "plain"), true);
    assert.deepEqual(client.take(), ["HEADERS 1 :status=200", "DATA 1 10"]);
    assert.equal(stream.pendingBytes, BODY.length - 10);
    client.send(windowUpdate(1, 5));
    assert.deepEqual(client.take(), ["DATA 1 5"]);
    client.send(settingsFrame([Setting.InitialWindowSize, 30]));
    assert.deepEqual(client.take(), ["SETTINGS ack", "DATA 1 20"]);
    // Smaller than what was sent: the window is below zero.
    client.send(settingsFrame([Setting.InitialWindowSize, 0]), windowUpdate(1, 30));
    assert.deepEqual(client.take(), ["SETTINGS ack"]);
    client.send(windowUpdate(1, 1));
    assert.deepEqual(client.take(), ["DATA 1 1"]);
    client.send(windowUpdate(1, 1_000_000));
    assert.deepEqual(client.take(), [
      "DATA 1 16384",
      "DATA 1 16384",
      `DATA 1 ${BODY.length - 36 - 32_768} end`,
    ]);
    assert.equal(client.connection.streams.size, 0);
  });

  test("of the connection is shared in turns", () => {
    const { client, recorder } = greeted({}, [Setting.InitialWindowSize, 1_000_000]);
    const { sender } = client.connection;
    for (const id of [1, 3, 5]) {
      client.send(client.headers(id, GET, true));
      sender.headers(recorder.streams.get(id)!, OK, false);
    }
    client.take();
    sender.data(recorder.streams.get(1)!, [BODY, BODY], 80_000, "plain");
    sender.data(recorder.streams.get(3)!, [BODY], 40_000, DONE);
    sender.data(recorder.streams.get(5)!, [BODY.subarray(0, 5)], 5, "plain");
    assert.deepEqual(client.take(), [
      "DATA 1 16384",
      "DATA 1 16384",
      "DATA 1 16384",
      "DATA 1 16383",
    ]);
    client.send(windowUpdate(0, 100_000));
    assert.deepEqual(client.take(), [
      "DATA 1 14465 end",
      "DATA 3 16384",
      "DATA 5 5 end",
      "DATA 3 16384",
      "DATA 3 7232",
      "HEADERS 3 x-done=1 end",
    ]);
    assert.equal(client.shared.pending.usedBytes, 0);
  });

  test("notifies once when less than the mark waits", () => {
    const { client, recorder } = greeted({}, [Setting.InitialWindowSize, 0]);
    client.send(client.headers(1, GET, true));
    const stream = recorder.streams.get(1)!;
    client.connection.sender.headers(stream, OK, false);
    client.connection.sender.data(stream, [BODY], BODY.length);
    stream.drainBytes = 10_000;
    recorder.take();
    client.send(windowUpdate(1, 29_999));
    assert.deepEqual(recorder.take(), []);
    client.send(windowUpdate(1, 1), windowUpdate(1, 1));
    assert.deepEqual(recorder.take(), ["drained 1"]);
  });

  test("lets the client send on as its bytes are taken", () => {
    const { client, recorder } = greeted({
      limits: { streamWindowBytes: 1000, connectionWindowBytes: 65_535 },
    });
    client.send(client.headers(1, GET), data(1, 499));
    assert.deepEqual(client.take(), []);
    client.send(data(1, 1));
    assert.deepEqual(client.take(), ["WINDOW_UPDATE 1 500"]);
    recorder.credits = false;
    client.send(client.headers(3, GET), data(3, 600), data(3, 401));
    assert.deepEqual(client.take(), ["RST_STREAM 3 FlowControlError"]);
    // The connection's window is given back whatever becomes of the bytes.
    for (let sent = 1501; sent < 32_768; sent += 1000) client.send(data(1, 1000));
    assert.deepEqual(
      client.take().filter((line) => line.startsWith("WINDOW_UPDATE 0")),
      ["WINDOW_UPDATE 0 33501"],
    );
  });

  test("credits padding", () => {
    const { client, recorder } = greeted({ limits: { streamWindowBytes: 300 } });
    recorder.credits = false;
    client.send(client.headers(1, GET));
    client.send(
      frame(FrameType.Data, Flag.Padded, 1, concat([Uint8Array.of(149), new Uint8Array(149)])),
    );
    assert.deepEqual(client.take(), ["WINDOW_UPDATE 1 150"]);
  });

  test("is held back while the socket is full, and goes on in portions", () => {
    const { client, recorder } = greeted({ limits: { outputTargetBytes: 20_000 } }, [
      Setting.InitialWindowSize,
      1_000_000,
    ]);
    const { connection } = client;
    client.send(client.headers(1, GET, true));
    connection.sender.setBlocked(true);
    const stream = recorder.streams.get(1)!;
    connection.sender.headers(stream, OK, false);
    connection.sender.data(stream, [BODY], BODY.length, "plain");
    assert.deepEqual(client.take(), ["HEADERS 1 :status=200"]);
    assert.equal(connection.sender.hasMore, false);
    connection.sender.setBlocked(false);
    assert.deepEqual(client.take(), ["DATA 1 16384", "DATA 1 16384"]);
    assert.equal(connection.sender.hasMore, true);
    connection.sender.refill();
    assert.deepEqual(client.take(), ["DATA 1 7232 end"]);
  });

  test("passes large pieces on as they are", () => {
    const { client, recorder } = greeted();
    client.send(client.headers(1, GET, true));
    const stream = recorder.streams.get(1)!;
    const piece = new Uint8Array(10_000);
    client.connection.sender.headers(stream, OK, false);
    client.connection.sender.data(stream, [fromLatin1("small"), piece], 10_005, "plain");
    const chunks = client.connection.takeOutput();
    assert.ok(chunks.includes(piece), "the piece itself is in the output");
    assert.equal(chunks.length, 2);
  });
});

describe("a connection", () => {
  test("answers pings, and ignores frames of unknown types", () => {
    const { client } = greeted();
    client.send(
      frame(FrameType.Ping, 0, 0, fromHex("0102030405060708")),
      frame(99, 0xff, 5, new Uint8Array(20)),
    );
    client.send(
      frame(FrameType.Ping, Flag.Ack, 0, new Uint8Array(8)),
      frame(FrameType.GoAway, 0, 0, words(0, 0)),
    );
    assert.deepEqual(client.take(), ["PING 0102030405060708 ack"]);
    assert.equal(client.connection.ending, false);
  });

  test("keeps to the client's table for header fields", () => {
    const { client, recorder } = greeted({}, [Setting.HeaderTableSize, 0]);
    const add = constantFields(
      { name: ":status", value: "200" },
      { name: "x-a", value: "b", indexing: 0x40 },
    );
    for (const id of [1, 3]) {
      client.send(client.headers(id, GET, true));
      client.connection.sender.headers(recorder.streams.get(id)!, add, true);
    }
    assert.deepEqual(client.take(), [
      "HEADERS 1 :status=200 x-a=b end",
      "HEADERS 3 :status=200 x-a=b end",
    ]);
    client.send(settingsFrame([Setting.HeaderTableSize, 4096]));
    const sizes: number[] = [];
    for (const id of [5, 7, 9]) {
      client.send(client.headers(id, GET, true));
      client.connection.sender.headers(recorder.streams.get(id)!, add, true);
      const headers = client.takeFrames().find((one) => one.type === FrameType.Headers)!;
      assert.match(headers.line, /:status=200 x-a=b end$/);
      sizes.push(headers.payload.length);
    }
    // A table size and a literal; then two indexes.
    assert.deepEqual(sizes, [11, 2, 2]);
  });

  test("drains: says so, waits until the client has heard it, and ends with the last stream", () => {
    const { client, recorder } = greeted();
    client.send(client.headers(1, GET, true));
    client.connection.drain(0);
    assert.deepEqual(client.take(), [`GOAWAY ${2 ** 31 - 1} NoError`, "PING 647261696e000001"]);
    client.send(
      client.headers(3, GET, true),
      frame(FrameType.Ping, Flag.Ack, 0, fromHex("647261696e000001")),
    );
    assert.deepEqual(client.take(), ["GOAWAY 3 NoError"]);
    client.send(client.headers(5, GET, true));
    assert.deepEqual(client.take(), ["RST_STREAM 5 RefusedStream"]);
    const { sender } = client.connection;
    sender.headers(recorder.streams.get(1)!, OK, true);
    assert.equal(client.connection.ending, false);
    sender.headers(recorder.streams.get(3)!, OK, true);
    assert.equal(client.connection.ending, true);
    assert.deepEqual(client.take(), ["HEADERS 1 :status=200 end", "HEADERS 3 :status=200 end"]);
  });

  test("drains without an answer to its ping after a time", () => {
    const { client } = greeted({ limits: { drainTimeoutMs: 5000 } });
    client.connection.drain(0);
    client.take();
    client.sweep(4999);
    assert.deepEqual(client.take(), []);
    client.sweep(1);
    assert.deepEqual(client.take(), ["GOAWAY 0 NoError"]);
    assert.equal(client.connection.ending, true);
  });

  test("that is lost aborts its streams, once", () => {
    const { client, recorder } = greeted();
    client.send(client.headers(1, GET), client.headers(3, GET, true));
    recorder.take();
    client.connection.lost();
    client.connection.lost();
    assert.deepEqual(recorder.take(), ["aborted 1", "aborted 3"]);
    assert.deepEqual(
      [client.shared.counters.openConnections, client.shared.counters.openStreams],
      [0, 0],
    );
  });

  test("wakes its owner once for each portion of output", () => {
    const { client, recorder } = greeted();
    client.send(client.headers(1, GET, true), client.headers(3, GET, true));
    assert.equal(client.wakes, 0);
    for (const stream of recorder.streams.values()) {
      client.connection.sender.headers(stream, OK, true);
      client.connection.touched();
    }
    assert.equal(client.wakes, 1);
    client.take();
    client.connection.touched();
    assert.equal(client.wakes, 0);
  });
});

/** Frames that break a rule, what is said to them, and whether the connection goes on. */
const BROKEN: Readonly<Record<string, (client: CoreClient) => Uint8Array>> = {
  "GOAWAY 0 ProtocolError DATA on an idle stream": () => data(1, 1),
  "GOAWAY 1 ProtocolError DATA on an idle stream": (client) =>
    concat([client.headers(1, GET), data(0, 1)]),
  "GOAWAY 0 ProtocolError HEADERS on a stream that is not a client's": (client) =>
    client.headers(2, GET),
  "GOAWAY 5 ProtocolError HEADERS on a closed stream": (client) =>
    concat([client.headers(5, GET), client.headers(3, GET)]),
  "GOAWAY 1 StreamClosed HEADERS on a closed stream": (client) =>
    concat([client.headers(1, GET), rstStream(1), client.headers(1, GET, true)]),
  "RST_STREAM 1 StreamClosed": (client) => concat([client.headers(1, GET, true), data(1, 1)]),
  "RST_STREAM 3 StreamClosed": (client) =>
    concat([client.headers(3, GET, true), client.headers(3, { x: "1" }, true)]),
  "RST_STREAM 5 StreamClosed": (client) =>
    concat([client.headers(5, GET), rstStream(5), data(5, 1)]),
  "RST_STREAM 7 ProtocolError": (client) =>
    concat([client.headers(7, GET), client.headers(7, { x: "1" })]),
  "RST_STREAM 9 ProtocolError": (client) =>
    concat([client.headers(9, GET), client.headers(9, { ":path": "1" }, true)]),
  "RST_STREAM 11 ProtocolError": (client) => concat([client.headers(11, GET), windowUpdate(11, 0)]),
  "RST_STREAM 13 FlowControlError": (client) =>
    concat([client.headers(13, GET), windowUpdate(13, MAX_WINDOW_BYTES)]),
  "RST_STREAM 15 FrameSizeError": () => frame(FrameType.Priority, 0, 15, new Uint8Array(4)),
  "RST_STREAM 17 ProtocolError": () =>
    frame(FrameType.Priority, 0, 17, concat([words(17), Uint8Array.of(0)])),
  "RST_STREAM 19 ProtocolError": (client) =>
    frame(
      FrameType.Headers,
      Flag.EndHeaders | Flag.Priority,
      19,
      concat([words(19), Uint8Array.of(0), client.encoder.encode(fieldsOf(GET))]),
    ),
  "GOAWAY 0 ProtocolError PRIORITY of the connection": () =>
    frame(FrameType.Priority, 0, 0, new Uint8Array(5)),
  "GOAWAY 0 ProtocolError RST_STREAM of the connection": () => rstStream(0),
  "GOAWAY 0 ProtocolError RST_STREAM on an idle stream": () => rstStream(1),
  "GOAWAY 0 FrameSizeError RST_STREAM does not have four bytes": () =>
    frame(FrameType.RstStream, 0, 1, new Uint8Array(3)),
  "GOAWAY 0 ProtocolError SETTINGS on a stream": () => frame(FrameType.Settings, 0, 1),
  "GOAWAY 0 FrameSizeError a setting does not have six bytes": () =>
    frame(FrameType.Settings, 0, 0, new Uint8Array(5)),
  "GOAWAY 0 FrameSizeError an acknowledgement of SETTINGS has a payload": () =>
    frame(FrameType.Settings, Flag.Ack, 0, new Uint8Array(6)),
  "GOAWAY 0 ProtocolError ENABLE_PUSH is neither 0 nor 1": () =>
    settingsFrame([Setting.EnablePush, 2]),
  "GOAWAY 0 FlowControlError a window is too large": () =>
    settingsFrame([Setting.InitialWindowSize, 2 ** 31]),
  "GOAWAY 0 ProtocolError MAX_FRAME_SIZE is out of range": () =>
    settingsFrame([Setting.MaxFrameSize, 16_383]),
  "GOAWAY 0 ProtocolError clients do not push": () =>
    frame(FrameType.PushPromise, 0, 1, new Uint8Array(10)),
  "GOAWAY 0 ProtocolError PING on a stream": () => frame(FrameType.Ping, 0, 1, new Uint8Array(8)),
  "GOAWAY 0 FrameSizeError PING does not have eight bytes": () =>
    frame(FrameType.Ping, 0, 0, new Uint8Array(7)),
  "GOAWAY 0 ProtocolError GOAWAY on a stream": () =>
    frame(FrameType.GoAway, 0, 1, new Uint8Array(8)),
  "GOAWAY 0 FrameSizeError GOAWAY is too short": () =>
    frame(FrameType.GoAway, 0, 0, new Uint8Array(7)),
  "GOAWAY 0 ProtocolError WINDOW_UPDATE by 0": () => windowUpdate(0, 0),
  "GOAWAY 0 ProtocolError WINDOW_UPDATE on an idle stream": () => windowUpdate(1, 1),
  "GOAWAY 0 FrameSizeError WINDOW_UPDATE does not have four bytes": () =>
    frame(FrameType.WindowUpdate, 0, 0, new Uint8Array(5)),
  "GOAWAY 0 ProtocolError CONTINUATION without an open header block": () =>
    frame(FrameType.Continuation, Flag.EndHeaders, 1),
  "GOAWAY 0 ProtocolError a header block is interrupted": () =>
    concat([frame(FrameType.Headers, 0, 1), frame(FrameType.Ping, 0, 0, new Uint8Array(8))]),
  "GOAWAY 0 FrameSizeError padded HEADERS are empty": () =>
    frame(FrameType.Headers, Flag.EndHeaders | Flag.Padded, 1),
  "GOAWAY 0 FrameSizeError HEADERS are too short for their priority": () =>
    frame(FrameType.Headers, Flag.EndHeaders | Flag.Priority, 1, new Uint8Array(4)),
  "GOAWAY 0 ProtocolError padding is longer than its frame": () =>
    frame(FrameType.Headers, Flag.EndHeaders | Flag.Padded, 1, Uint8Array.of(5, 1, 2)),
  "GOAWAY 1 ProtocolError padding is longer than its frame": (client) =>
    concat([client.headers(1, GET), frame(FrameType.Data, Flag.Padded, 1, Uint8Array.of(3, 1, 2))]),
  "GOAWAY 1 FrameSizeError padded DATA is empty": (client) =>
    concat([client.headers(1, GET), frame(FrameType.Data, Flag.Padded, 1)]),
  "GOAWAY 0 FrameSizeError a frame is longer than 16384": () =>
    frame(FrameType.Settings, 0, 0, new Uint8Array(16_385)),
  "GOAWAY 1 CompressionError no field has the index 70": () =>
    frame(FrameType.Headers, Flag.EndHeaders, 1, Uint8Array.of(0xc6)),
};

describe("what breaks a rule", () => {
  for (const [line, bytes] of Object.entries(BROKEN)) {
    test(line, () => {
      const { client, recorder } = greeted();
      client.send(bytes(client));
      assert.deepEqual(client.take(), [line]);
      const ending = line.startsWith("GOAWAY");
      assert.equal(client.connection.ending, ending);
      assert.equal(client.shared.counters.connectionErrors, ending ? 1 : 0);
      // All open streams were notified, and an ended connection takes no more.
      assert.equal(client.connection.streams.size, 0);
      const requests = recorder.take().filter((event) => event.startsWith("request")).length;
      client.send(client.headers(101, GET, true));
      assert.equal(recorder.events.length, ending ? 0 : 1);
      assert.ok(requests <= 1);
    });
  }

  test("windows beyond the largest there are, of the connection and by a change of settings", () => {
    const { client } = greeted();
    client.send(windowUpdate(0, MAX_WINDOW_BYTES - 65_535), windowUpdate(0, 1));
    assert.deepEqual(client.take(), ["GOAWAY 0 FlowControlError a window is too large"]);
    const { client: other } = greeted();
    other.send(
      other.headers(1, GET),
      windowUpdate(1, 1),
      settingsFrame([Setting.InitialWindowSize, MAX_WINDOW_BYTES]),
    );
    assert.deepEqual(other.take(), [
      "SETTINGS ack",
      "GOAWAY 1 FlowControlError a window is too large",
    ]);
  });

  test("more DATA than the connection's window", () => {
    const { client } = greeted({
      limits: { streamWindowBytes: 1_000_000, connectionWindowBytes: 65_535, maxHeldBytes: 10 },
    });
    client.connection.held.take(10);
    client.connection.working(10);
    client.send(
      client.headers(1, GET),
      data(1, 16_384),
      data(1, 16_384),
      data(1, 16_384),
      data(1, 16_383),
    );
    assert.deepEqual(
      client.take().filter((line) => line.startsWith("GOAWAY")),
      [],
    );
    client.send(data(1, 1));
    assert.deepEqual(client.take(), [
      "GOAWAY 1 FlowControlError more DATA than the connection's window allows",
    ]);
  });
});

test("error codes have the numbers of RFC 9113", () => {
  assert.equal(ErrorCode.EnhanceYourCalm, 11);
  assert.equal(ErrorCode.CompressionError, 9);
});
