/**
 * Compressed requests that become large: decompressed beside other work, in turn, and no more of
 * them than a connection's allowance.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { concat, fromLatin1 } from "@quorate/proto";
import type { StreamCall } from "@quorate/rpc";
import {
  INFLATE_BURST_BYTES,
  INFLATE_BYTES_PER_SECOND,
  MAX_INFLATING,
} from "../src/grpc/compression.ts";
import { data, MIB } from "./engine/core.ts";
import { CALL, GrpcClient, message, settle } from "./engine/grpc.ts";

const HELLO = fromLatin1("hello");
const GZIP = { "grpc-encoding": "gzip" };
const LARGE = new Uint8Array(2 * MIB);
/** Some two kilobytes that become two megabytes. */
const BOMB = gzipSync(LARGE);

function client(shared?: GrpcClient, handled: number[] = []): GrpcClient {
  const made = new GrpcClient({
    unary: {
      "/test.Echo/Now": (bytes) => {
        handled.push(bytes.length);
        return HELLO;
      },
    },
    ...(shared === undefined ? {} : { shared: shared.shared, grpc: shared.grpc }),
  });
  return made;
}

function send(to: GrpcClient, id: number, gzipped: Uint8Array): void {
  to.send(to.headers(id, { ...CALL, ...GZIP }), data(id, message(gzipped, 1), true));
}

describe("requests that become large", () => {
  test("are decompressed beside other work, one of a connection at a time, while others are served", async () => {
    const handled: number[] = [];
    const attacker = client(undefined, handled);
    for (let id = 1; id < 40; id += 2) send(attacker, id, BOMB);
    assert.deepEqual(handled, []);
    assert.equal(attacker.compressor.held, 1);
    // A small one is decompressed at once, and so goes on before them, like one that is not
    // compressed.
    send(attacker, 41, gzipSync(HELLO));
    attacker.call(43, HELLO);
    assert.deepEqual(handled, [5, 5]);
    for (let turn = 0; turn < 10 && handled.length < 8; turn++) {
      assert.equal(attacker.compressor.held, 1);
      attacker.compressor.release();
      await settle();
    }
    assert.deepEqual(new Set(handled), new Set([5, LARGE.length]));
  });

  test("of many connections are two at a time", () => {
    const first = client();
    for (const one of [first, client(first), client(first), client(first)]) send(one, 1, BOMB);
    assert.equal(first.compressor.held, MAX_INFLATING);
  });

  test("of several connections take turns", async () => {
    const attacker = client();
    const neighbourHandled: number[] = [];
    const neighbour = client(attacker, neighbourHandled);
    for (let id = 1; id < 40; id += 2) send(attacker, id, BOMB);
    send(neighbour, 1, BOMB);
    attacker.compressor.release();
    await settle();
    attacker.compressor.release();
    await settle();
    assert.match(neighbour.take().at(-1)!, /grpc-status=0/);
  });

  test("wait for their connection's allowance once it is used up", async () => {
    const handled: number[] = [];
    const attacker = client(undefined, handled);
    const burst = INFLATE_BURST_BYTES / LARGE.length;
    for (let id = 1; id < 2 * 30; id += 2) send(attacker, id, BOMB);
    const drain = async () => {
      while (attacker.compressor.held > 0) {
        attacker.compressor.release();
        await settle();
      }
    };
    await drain();
    assert.ok(
      handled.length >= burst && handled.length <= burst + MAX_INFLATING,
      `${handled.length} at once`,
    );
    const before = handled.length;
    for (let step = 0; step < 4; step++) {
      attacker.clock.advance((1000 * LARGE.length) / INFLATE_BYTES_PER_SECOND);
      await drain();
    }
    assert.ok(
      handled.length > before && handled.length <= before + 4 + MAX_INFLATING,
      `${handled.length - before} more`,
    );
    assert.ok(attacker.grpc.inflater.throttled > 0);
  });

  test("of calls that have ended are dropped", async () => {
    const handled: number[] = [];
    const attacker = client(undefined, handled);
    for (let id = 1; id < 40; id += 2) send(attacker, id, BOMB);
    attacker.connection.lost();
    for (let turn = 0; turn < 30; turn++) {
      attacker.compressor.release();
      await settle();
    }
    assert.deepEqual(handled, []);
    assert.equal(attacker.grpc.inflater.inflated, 1);
    assert.equal(attacker.shared.held.usedBytes, 0);
  });

  test("beyond the longest message are refused with grpc-go's text", async () => {
    const attacker = client();
    send(attacker, 1, gzipSync(new Uint8Array(3 * MIB)));
    attacker.compressor.release();
    await settle();
    assert.match(attacker.take().at(-1)!, /grpc-status=/);
    assert.equal(attacker.shared.held.usedBytes, 0);
  });
});

test("messages of a stream stay in order, and the stream waits for one that is being decompressed", async () => {
  const got: number[] = [];
  let ended = false;
  let talk: StreamCall | undefined;
  const one = new GrpcClient({
    stream: {
      "/test.Chat/Talk": (call) => {
        talk = call;
        return {
          message: (bytes) => {
            got.push(bytes.length);
            if (got.length === 2) call.pause();
          },
          halfClosed: () => {
            ended = true;
          },
        };
      },
    },
  });
  one.send(one.headers(1, { ...CALL, ...GZIP, ":path": "/test.Chat/Talk" }));
  const body = concat([
    message(HELLO),
    message(BOMB, 1),
    message(gzipSync(new Uint8Array(7)), 1),
    message(BOMB, 1),
    message(HELLO),
  ]);
  one.send(data(1, body, true));
  assert.deepEqual(got, [5]);
  one.compressor.release();
  await settle();
  assert.deepEqual(got, [5, LARGE.length]);
  talk!.resume();
  assert.deepEqual(got, [5, LARGE.length, 7]);
  assert.equal(ended, false);
  one.compressor.release();
  await settle();
  assert.deepEqual(got, [5, LARGE.length, 7, LARGE.length, 5]);
  assert.equal(ended, true);
});
