/** Clients that mean harm: each finds a bound, is counted, and leaves its neighbours alone. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { concat, fromLatin1 } from "@quorate/proto";
import { Indexing } from "../src/hpack/hpack.ts";
import { MAX_TURN_WORK } from "../src/http2/connection.ts";
import { TokenBucket } from "../src/http2/connection-state.ts";
import { ErrorCode, Flag, FrameType, PREFACE, Setting } from "../src/http2/constants.ts";
import type { EngineCounters } from "../src/http2/shared.ts";
import {
  data,
  fieldsOf,
  frame,
  GET,
  rstStream,
  settingsFrame,
  windowUpdate,
  words,
} from "./engine/core.ts";
import { CALL, GrpcClient, type GrpcOptions, message } from "./engine/grpc.ts";

const HELLO = fromLatin1("hello");
const LIMITS = {
  maxIdleFramesBurst: 100,
  maxIdleFramesPerSecond: 10,
  maxResetsBurst: 100,
  maxResetsPerSecond: 10,
  keepAliveMinTimeMs: 0,
};

const SERVICES: GrpcOptions = {
  unary: { "/test.Echo/Now": (bytes) => bytes, "/test.Echo/Never": () => new Promise(() => {}) },
  stream: { "/test.Chat/Talk": () => ({}) },
};

/** A client and a neighbour on the same server. */
function pair(limits: GrpcOptions["limits"] = {}): {
  client: GrpcClient;
  neighbour: GrpcClient;
  counters: EngineCounters;
} {
  const client = new GrpcClient({ ...SERVICES, limits: { ...LIMITS, ...limits } });
  const neighbour = new GrpcClient({ ...SERVICES, shared: client.shared });
  return { client, neighbour, counters: client.shared.counters };
}

/**
 * Sends until the connection ends, and returns how many times that took; fails if it does not end.
 */
function flood(client: GrpcClient, atMost: number, send: (i: number) => void): number {
  for (let i = 0; i < atMost; i++) {
    send(i);
    if (client.connection.ending) return i + 1;
  }
  throw new assert.AssertionError({ message: `the connection still stands after ${atMost}` });
}

function serves(neighbour: GrpcClient, stream = 1): void {
  neighbour.take();
  neighbour.call(stream, HELLO);
  assert.equal(neighbour.take().length, 3);
}

/** The reason in the GOAWAY that the client got. */
function reason(client: GrpcClient): string {
  return client
    .take()
    .find((line) => line.startsWith("GOAWAY"))!
    .replace(/^GOAWAY \d+ /, "");
}

describe("floods of frames that move nothing", () => {
  const ping = frame(FrameType.Ping, 0, 0, new Uint8Array(8));
  const frames: Readonly<Record<string, Uint8Array>> = {
    PING: ping,
    "PING acknowledgements": frame(FrameType.Ping, Flag.Ack, 0, new Uint8Array(8)),
    SETTINGS: settingsFrame([Setting.InitialWindowSize, 70_000]),
    "SETTINGS acknowledgements": frame(FrameType.Settings, Flag.Ack, 0),
    PRIORITY: frame(FrameType.Priority, 0, 99, concat([words(0), Uint8Array.of(1)])),
    WINDOW_UPDATE: windowUpdate(0, 1),
    "WINDOW_UPDATE of a stream": windowUpdate(1, 1),
    "empty DATA": data(1, 0),
    "empty padded DATA": frame(FrameType.Data, Flag.Padded, 1, Uint8Array.of(0)),
    "frames of unknown types": frame(77, 0, 0),
    GOAWAY: frame(FrameType.GoAway, 0, 0, words(0, 0)),
    "RST_STREAM of a closed stream": rstStream(3),
    "DATA of a closed stream": data(3, 1),
  };
  for (const [name, bytes] of Object.entries(frames)) {
    test(name, () => {
      const { client, neighbour, counters } = pair();
      client.send(
        client.headers(1, { ...CALL, ":path": "/test.Chat/Talk" }),
        client.headers(3, GET),
        rstStream(3),
      );
      client.take();
      const sent = flood(client, 500, () => client.send(bytes));
      assert.ok(sent >= 90 && sent <= 110, `${sent} were enough`);
      assert.equal(reason(client), "EnhanceYourCalm too many idle frames");
      assert.equal(counters.frameFloods, 1);
      assert.equal(counters.openStreams, 0);
      serves(neighbour);
    });
  }

  test("one change of windows of many streams costs as many frames as it is worth", () => {
    const { client } = pair();
    for (let id = 1; id < 2001; id += 2)
      client.send(client.headers(id, { ...CALL, ":path": "/test.Chat/Talk" }));
    // 1000 streams: eleven each.
    const sent = flood(client, 500, (i) =>
      client.send(settingsFrame([Setting.InitialWindowSize, 70_000 + i])),
    );
    assert.ok(sent <= 11, `${sent} were enough`);
  });

  test("as many are allowed again as time passes, and calls are answered", () => {
    const { client } = pair();
    for (let second = 0; second < 20; second++) {
      for (let i = 0; i < 10; i++) client.send(ping);
      client.nowMs += 1000;
    }
    for (let id = 1; id < 1000; id += 2) {
      client.send(ping, ping);
      client.call(id, HELLO);
    }
    assert.equal(client.connection.ending, false);
  });

  test("pings beyond what the keep-alive policy allows end it sooner", () => {
    const { client, counters } = pair({ keepAliveMinTimeMs: 5000 });
    client.send(client.headers(1, { ...CALL, ":path": "/test.Chat/Talk" }));
    client.send(ping);
    client.nowMs += 5000;
    client.send(ping, ping, ping);
    assert.equal(client.connection.ending, false);
    client.send(ping);
    assert.equal(reason(client), "EnhanceYourCalm too_many_pings");
    assert.equal(counters.pingFloods, 1);
  });
});

describe("many requests in one segment", () => {
  /** What was begun by the end of each turn; the neighbour is served in between. */
  const turnsOf = (requests: (client: GrpcClient) => Uint8Array[]): number[] => {
    const begun: number[] = [];
    let count = 0;
    const unary = {
      "/test.Echo/Now": (bytes: Uint8Array) => {
        count++;
        return bytes;
      },
    };
    const client = new GrpcClient({ unary });
    const neighbour = new GrpcClient({ ...SERVICES, shared: client.shared });
    client.connection.receive(concat(requests(client)), 0);
    do {
      begun.push(count);
      serves(neighbour, 1 + 2 * begun.length);
    } while (client.goOn());
    assert.equal(client.connection.ending, false);
    return begun;
  };

  test("are begun in turns, in which others have theirs", () => {
    const call = (client: GrpcClient, i: number) => [
      client.headers(1 + 2 * i, { ...CALL, ":path": "/test.Echo/Now" }),
      data(1 + 2 * i, message(HELLO), true),
    ];
    const begun = turnsOf((client) =>
      Array.from({ length: 1000 }, (_, i) => call(client, i)).flat(),
    );
    assert.ok(begun.length >= 1000 / MAX_TURN_WORK, `${begun}`);
    assert.equal(begun.at(-1), 1000);
    for (const [i, count] of begun.entries())
      assert.ok(count - (begun[i - 1] ?? 0) <= MAX_TURN_WORK, `${count} in turn ${i}`);
  });

  test("count by the bytes of their headers, too", () => {
    const large = { ...CALL, ":path": "/test.Echo/Now", "x-large": "\u00fe".repeat(8 * 256) };
    const begun = turnsOf((client) =>
      Array.from({ length: 64 }, (_, i) => [
        client.headers(1 + 2 * i, large),
        data(1 + 2 * i, message(HELLO), true),
      ]).flat(),
    );
    assert.ok(begun.length >= (64 * 8) / MAX_TURN_WORK, `${begun}`);
    assert.equal(begun.at(-1), 64);
  });
});

describe("resets", () => {
  test("of streams as fast as they open", () => {
    const { client, neighbour, counters } = pair();
    const sent = flood(client, 500, (i) =>
      client.send(client.headers(1 + 2 * i, CALL), rstStream(1 + 2 * i)),
    );
    assert.equal(sent, 101);
    assert.equal(reason(client), "EnhanceYourCalm too many resets");
    assert.equal(counters.resetFloods, 1);
    assert.equal(counters.resetsReceived, 101);
    serves(neighbour);
  });

  test("that the client has us send", () => {
    const { client, neighbour, counters } = pair();
    const sent = flood(client, 500, (i) =>
      client.send(client.headers(1 + 2 * i, CALL), windowUpdate(1 + 2 * i, 0)),
    );
    assert.equal(sent, 101);
    assert.equal(reason(client), "EnhanceYourCalm too many resets");
    assert.equal(counters.streamErrors, 101);
    serves(neighbour);
  });

  test("with malformed requests", () => {
    const { client } = pair();
    assert.equal(
      flood(client, 500, (i) => client.send(client.headers(1 + 2 * i, { ":method": "GET" }, true))),
      101,
    );
  });

  test("do not add up on a connection whose calls end", () => {
    const { client } = pair();
    for (let i = 0; i < 1000; i++) {
      client.call(1 + 4 * i, HELLO);
      client.send(client.headers(3 + 4 * i, CALL), rstStream(3 + 4 * i));
    }
    assert.equal(client.connection.ending, false);
  });

  test("do not free a place while the service works", () => {
    const { client } = pair({ maxConcurrentStreams: 10 });
    for (let id = 1; id < 100; id += 2) {
      client.call(id, HELLO, { ":path": "/test.Echo/Never" });
      client.send(rstStream(id));
    }
    assert.equal(client.connection.lingeringCalls, 10);
  });
});

describe("header blocks", () => {
  test("without end, in frames that carry nothing", () => {
    const { client, neighbour, counters } = pair();
    client.send(frame(FrameType.Headers, 0, 1));
    const sent = flood(client, 500, () => client.send(frame(FrameType.Continuation, 0, 1)));
    assert.equal(sent, 33);
    assert.equal(reason(client), "EnhanceYourCalm a header block is too long");
    assert.equal(counters.headerBlockFloods, 1);
    serves(neighbour);
  });

  test("without end, in frames as large as they may be", () => {
    const { client, counters } = pair();
    client.send(frame(FrameType.Headers, 0, 1, new Uint8Array(16_000)));
    const sent = flood(client, 500, () =>
      client.send(frame(FrameType.Continuation, 0, 1, new Uint8Array(16_000))),
    );
    assert.equal(sent, 4);
    assert.equal(counters.headerBlockFloods, 1);
  });

  test("that do not become whole in time", () => {
    const { client, counters } = pair({ frameTimeoutMs: 30_000 });
    client.send(frame(FrameType.Headers, 0, 1));
    for (let i = 0; i < 29; i++) {
      client.sweep(1000);
      client.send(frame(FrameType.Continuation, 0, 1));
    }
    assert.equal(client.connection.ending, false);
    client.sweep(1000);
    assert.equal(client.connection.ending, true);
    assert.equal(counters.frameTimeouts, 1);
  });

  test("a field of more than 16 KiB", () => {
    const { client, neighbour, counters } = pair();
    const send = (streamId: number, bytes: number): string => {
      const given = { name: "x", value: "\xff".repeat(bytes - 1) };
      const block = client.encoder.encode([given]);
      const head = new Uint8Array([0x82, 0x86, 0x84, ...block]);
      const flags = Flag.EndStream;
      client.send(frame(FrameType.Headers, flags, streamId, head.subarray(0, 16_000)));
      client.send(frame(FrameType.Continuation, Flag.EndHeaders, streamId, head.subarray(16_000)));
      return client.take()[0];
    };
    assert.doesNotMatch(send(1, 16 << 10), /431/);
    assert.match(send(3, (16 << 10) + 1), /^HEADERS 3 :status=431 /);
    assert.equal(counters.headerListsTooLarge, 1);
    serves(neighbour);
  });

  test("that become large only when they are read", () => {
    const { client, neighbour, counters } = pair();
    // A field of 4,000 bytes goes into the table, and is then named 15,000 times in one frame: 60
    // MB of fields.
    const big = client.encoder.encode([{ name: "x", value: "a".repeat(3900), indexing: 0x40 }]);
    client.send(frame(FrameType.Headers, Flag.EndHeaders | Flag.EndStream, 1, big));
    client.take();
    const bomb = new Uint8Array(15_000).fill(0xbe);
    bomb.set([0x82, 0x86, 0x84]);
    client.send(frame(FrameType.Headers, Flag.EndHeaders | Flag.EndStream, 3, bomb));
    assert.match(client.take()[0], /^HEADERS 3 :status=431 /);
    assert.equal(counters.headerListsTooLarge, 1);
    assert.equal(client.connection.ending, false);
    serves(neighbour);
  });

  test("of streams that stay open are bounded on a connection, and on all", () => {
    const client = new GrpcClient({
      ...SERVICES,
      limits: { ...LIMITS, maxHeadBytes: 100_000 },
      maxHeadTotalBytes: 150_000,
    });
    const second = new GrpcClient({ ...SERVICES, shared: client.shared });
    const third = new GrpcClient({ ...SERVICES, shared: client.shared });
    const { counters, heads } = client.shared;
    const open = (one: GrpcClient, id: number) =>
      one.send(one.headers(id, { ...CALL, "x-long": `${id}`.padEnd(9000, "x") }));
    const take = (one: GrpcClient) => one.take().filter((line) => line.startsWith("RST_STREAM"));
    for (let i = 0; i < 12; i++) open(client, 1 + 2 * i);
    assert.equal(take(client).length, counters.headBytesRefusals);
    assert.ok(counters.headBytesRefusals >= 1 && counters.headBytesRefusals <= 3);
    assert.ok(heads.usedBytes > 90_000 && heads.usedBytes <= 100_000);
    for (let i = 0; i < 4; i++) open(second, 1 + 2 * i);
    assert.ok(heads.usedBytes > 125_000 && heads.usedBytes <= 150_000);
    // Small requests still fit. Where none does, the largest holder is cut off.
    serves(third);
    assert.equal(counters.largestHolderCuts, 0);
    for (let i = 4; i < 8; i++) open(second, 1 + 2 * i);
    assert.deepEqual(take(second), []);
    assert.deepEqual(
      [counters.largestHolderCuts, client.connection.ending, second.connection.ending],
      [1, true, false],
    );
    for (const one of [client, second, third]) one.connection.lost();
    assert.equal(heads.usedBytes, 0);
  });

  test("of many fields in few bytes count as fields", () => {
    const { client, counters } = pair({ maxHeadBytes: 100_000 });
    client.indexing = Indexing.Add;
    client.send(client.headers(1, { ...CALL, x: "y" }));
    // The newest entry of the table is named 1,500 times in as many bytes.
    const named = new Uint8Array(1500).fill(0xbe);
    for (let i = 1; i < 10; i++) {
      const block = concat([client.encoder.encode(fieldsOf(CALL)), named]);
      client.send(frame(FrameType.Headers, Flag.EndHeaders, 1 + 2 * i, block));
    }
    assert.ok(counters.headBytesRefusals >= 6, `${counters.headBytesRefusals} refused`);
    assert.ok(client.shared.heads.usedBytes <= 100_000);
  });

  test("whose table changes size all the time", () => {
    const { client } = pair();
    const resize = new Uint8Array(16_000).fill(0x20);
    resize.set([0x82, 0x86, 0x84], resize.length - 3);
    client.send(frame(FrameType.Headers, Flag.EndHeaders | Flag.EndStream, 1, resize));
    assert.match(client.take()[0], /^HEADERS 1 :status=404 /);
  });
});

describe("windows", () => {
  const LARGE = { ":path": "/test.Echo/Large" };
  const services: GrpcOptions = {
    unary: { ...SERVICES.unary, "/test.Echo/Large": () => new Uint8Array(100_000) },
  };

  test("that stay shut hold up a bounded number of answers", () => {
    const client = new GrpcClient({
      ...services,
      limits: { ...LIMITS, maxPendingBytes: 1_000_000 },
      maxPendingTotalBytes: 1_500_000,
    });
    const second = new GrpcClient({ ...services, shared: client.shared });
    const third = new GrpcClient({ ...services, shared: client.shared });
    for (const one of [client, second, third]) {
      one.send(settingsFrame([Setting.InitialWindowSize, 0]));
      for (let id = 1; id < 100; id += 2) one.call(id, HELLO, LARGE);
    }
    const { counters } = client.shared;
    assert.ok(client.shared.pending.usedBytes <= 1_500_000);
    // Nine responses fit each; the first and then the second connection are cut off for the next.
    assert.equal(counters.pendingBytesRefusals, 3 * (50 - 9));
    assert.deepEqual(
      [client, second, third].map((one) => one.connection.ending),
      [true, true, false],
    );
    assert.equal(counters.largestHolderCuts, 2);
    for (const one of [client, second, third]) one.connection.lost();
    assert.equal(client.shared.pending.usedBytes, 0);
  });

  test("that many connections of one client keep shut cost other clients nothing", () => {
    const other = (address: string, shared?: GrpcOptions["shared"]) =>
      new GrpcClient({
        ...services,
        ...(shared === undefined ? {} : { shared }),
        limits: { ...LIMITS, maxPendingBytes: 1_000_000 },
        maxPendingTotalBytes: 3_000_000,
        peer: { peerAddress: `${address}:7`, peerCommonName: undefined },
      });
    const first = other("10.6.6.6");
    const attackers = [first, ...Array.from({ length: 14 }, () => other("10.6.6.6", first.shared))];
    for (const one of attackers) {
      one.send(settingsFrame([Setting.InitialWindowSize, 0]));
      // Two of a hundred kilobytes each: all of them together fill the budget.
      for (let id = 1; id < 5; id += 2) one.call(id, HELLO, LARGE);
    }
    const { counters, pending } = first.shared;
    assert.ok(pending.usedBytes > 2_700_000);
    // Slow, with windows of its own, and more than any of the attackers' connections holds.
    const neighbour = other("10.0.0.1", first.shared);
    neighbour.send(settingsFrame([Setting.InitialWindowSize, 10_000]));
    for (let id = 1; id < 10; id += 2) neighbour.call(id, HELLO, LARGE);
    assert.equal(neighbour.take().filter((line) => line.startsWith("DATA")).length, 5);
    assert.equal(neighbour.connection.ending, false);
    assert.equal(counters.pendingBytesRefusals, 0);
    assert.ok(counters.largestHolderCuts >= 2);
    assert.equal(
      reason(attackers.find((one) => one.connection.ending)!),
      "EnhanceYourCalm the server is out of buffer memory, and this connection holds the most",
    );
    neighbour.send(windowUpdate(0, 1_000_000), settingsFrame([Setting.InitialWindowSize, 200_000]));
    assert.equal(neighbour.take().filter((line) => line.includes("grpc-status=0")).length, 5);
  });

  test("requests that never become whole cost other clients nothing", () => {
    const connect = (address: string, shared?: GrpcOptions["shared"]) =>
      new GrpcClient({
        ...SERVICES,
        ...(shared === undefined ? {} : { shared }),
        limits: { ...LIMITS, maxHeldBytes: 500_000 },
        maxHeldTotalBytes: 1_000_000,
        peer: { peerAddress: `${address}:7`, peerCommonName: undefined },
      });
    const first = connect("10.6.6.6");
    const attackers = [first, connect("10.6.6.6", first.shared)];
    for (const one of attackers) {
      one.send(one.headers(1, CALL));
      for (let i = 0; i < 31; i++)
        one.send(
          data(
            1,
            i === 0
              ? concat([message(new Uint8Array(1_000_000)).subarray(0, 5), new Uint8Array(15_995)])
              : 16_000,
          ),
        );
    }
    assert.equal(first.shared.held.usedBytes, 2 * 31 * 16_000);
    const neighbour = connect("10.0.0.1", first.shared);
    neighbour.call(1, new Uint8Array(15_000));
    assert.match(neighbour.take().at(-1)!, /grpc-status=0/);
    assert.equal(first.shared.counters.largestHolderCuts, 1);
    assert.equal(first.shared.counters.heldBytesRefusals, 0);
  });

  test("that are never opened end the connection after a time", () => {
    const client = new GrpcClient({ ...services, limits: { sendStallTimeoutMs: 60_000 } });
    client.send(settingsFrame([Setting.InitialWindowSize, 10]));
    client.call(1, HELLO, LARGE);
    client.sweep(59_000);
    client.send(windowUpdate(1, 1));
    client.sweep(59_000);
    assert.equal(client.connection.ending, false, "a byte has left meanwhile");
    client.sweep(1000);
    assert.equal(reason(client), "EnhanceYourCalm responses are not read");
    assert.equal(client.shared.counters.sendStalls, 1);
    assert.equal(client.shared.pending.usedBytes, 0);
  });

  test("that are shut on a stream whose service has not ended it may stay so", () => {
    const client = new GrpcClient({
      stream: { "/test.Chat/Talk": (call) => (call.send(HELLO) ? {} : {}) },
      limits: { sendStallTimeoutMs: 60_000 },
    });
    client.send(
      settingsFrame([Setting.InitialWindowSize, 0]),
      client.headers(1, { ...CALL, ":path": "/test.Chat/Talk" }),
    );
    client.sweep(3_600_000);
    assert.equal(client.connection.ending, false);
  });

  test("that open byte by byte run out of frames", () => {
    const client = new GrpcClient({ ...services, limits: LIMITS });
    client.send(settingsFrame([Setting.InitialWindowSize, 1]));
    client.call(1, HELLO, LARGE);
    const sent = flood(client, 500, () => client.send(windowUpdate(1, 1)));
    assert.ok(sent <= 110, `${sent} were enough`);
    assert.equal(client.shared.counters.frameFloods, 1);
  });

  test("of a client that takes long answers in the common way do not", () => {
    const client = new GrpcClient({
      unary: { "/test.Echo/Now": () => new Uint8Array(20_000_000) },
      limits: LIMITS,
    });
    client.send(settingsFrame([Setting.InitialWindowSize, 65_535]));
    client.call(1, HELLO);
    let received = 0;
    for (let frames = client.takeFrames(); frames.length > 0; frames = client.takeFrames()) {
      for (const one of frames) {
        if (one.type !== FrameType.Data) continue;
        received += one.payload.length;
        client.send(windowUpdate(0, one.payload.length), windowUpdate(1, one.payload.length));
      }
    }
    assert.equal(received, 20_000_005);
    assert.equal(client.connection.ending, false);
  });
});

describe("silence", () => {
  test("before the preface, and behind it", () => {
    for (const bytes of [
      new Uint8Array(0),
      fromLatin1(PREFACE.slice(0, 20)),
      fromLatin1(PREFACE),
    ]) {
      const client = new GrpcClient({ limits: { prefaceTimeoutMs: 10_000 } });
      const other = new (class extends GrpcClient {
        override greet(): void {
          this.take();
        }
      })({ shared: client.shared });
      if (bytes.length > 0) other.send(bytes);
      other.sweep(9_999);
      assert.equal(other.connection.ending, false);
      other.sweep(1);
      assert.equal(other.connection.ending, true);
      assert.equal(client.shared.counters.prefaceTimeouts, 1);
    }
  });

  test("within a frame, but not between frames", () => {
    const { client, counters } = pair({ frameTimeoutMs: 30_000 });
    const body = data(1, message(HELLO));
    client.send(client.headers(1, CALL));
    client.sweep(3_600_000);
    // Frames that are cut, one after the other, each in time.
    for (let i = 0; i < 10; i++) {
      client.send(frame(77, 0, 0, new Uint8Array(10)).subarray(0, 12));
      client.sweep(20_000);
      client.send(new Uint8Array(7));
    }
    assert.equal(client.connection.ending, false);
    client.send(body.subarray(0, 10));
    client.sweep(29_999);
    assert.equal(client.connection.ending, false);
    client.send(body.subarray(10, 11));
    client.sweep(1);
    assert.equal(client.connection.ending, true);
    assert.equal(counters.frameTimeouts, 1);
  });

  test("of a client that is gone is noticed by a ping", () => {
    const { client, counters } = pair({ keepAliveIntervalMs: 60_000, keepAliveTimeoutMs: 20_000 });
    client.sweep(59_999);
    assert.deepEqual(client.take(), []);
    client.sweep(1);
    assert.deepEqual(client.take(), ["PING 0000000000000000"]);
    client.sweep(19_999);
    client.send(frame(FrameType.Ping, Flag.Ack, 0, new Uint8Array(8)));
    client.sweep(59_999);
    assert.deepEqual(client.take(), []);
    client.sweep(1);
    assert.deepEqual(client.take(), ["PING 0000000000000000"]);
    client.sweep(20_000);
    assert.equal(client.connection.ending, true);
    assert.equal(counters.keepAliveTimeouts, 1);
  });
});

test("a client that is ended is not read any more", () => {
  const { client } = pair();
  client.send(data(0, 0));
  client.take();
  for (let i = 0; i < 1000; i++)
    client.send(client.headers(1 + 2 * i, CALL), frame(FrameType.Ping, 0, 0, new Uint8Array(8)));
  assert.deepEqual(client.take(), []);
  assert.equal(client.shared.counters.streams, 0);
});

test("an allowance fills up with time, and not beyond its burst", () => {
  const bucket = new TokenBucket(10, 5, 0);
  assert.equal(bucket.take(10, 0), true);
  assert.equal(bucket.take(1, 0), false);
  assert.equal(bucket.take(2, 400), true);
  assert.equal(bucket.take(1, 400), false);
  assert.equal(bucket.take(11, 1e9), false);
  bucket.give(1000);
  assert.equal(bucket.take(10, 1e9), true);
  assert.equal(bucket.take(1, 1e9), false);
});

test("the code that says so is the one meant for it", () =>
  assert.equal(ErrorCode.EnhanceYourCalm, 0xb));
