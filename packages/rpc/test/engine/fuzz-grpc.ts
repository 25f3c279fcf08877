/**
 * The gRPC layer under calls that are right, wrong and mutated, in frames that are all right:
 * headers of a call, message prefixes, gzip, plain HTTP. Each request has exactly one end, a call
 * that is as it should be its answer, and when all is over nothing of it is left.
 */
import assert from "node:assert/strict";
import { gunzipSync, gzipSync } from "node:zlib";
import type { Random } from "@quorate/host";
import { concat, equals } from "@quorate/proto";
import type { StreamCall } from "@quorate/rpc";
import { Flag, FrameType } from "../../src/http2/constants.ts";
import { data, rstStream, windowUpdate } from "./core.ts";
import { mutate, randomBytes } from "./fuzz-hpack.ts";
import { CALL, GrpcClient, message, settle } from "./grpc.ts";

const MAX_REQUEST_BYTES = 5000;
/** What gzip adds to what does not compress, and more. */
const GZIP_BYTES = 100;
const MAX_CALLS = 30;

/** Values that a header may have, most of them wrong for it. */
const ODD_VALUES = [
  "",
  " ",
  "-1",
  "0S",
  "99999999H",
  "100000000H",
  "1x",
  "5m",
  "gzip",
  "identity",
  "br",
  "gzip,identity",
  "application/grpc",
];
const ODD_TYPES = [
  "application/grpc+proto",
  "application/grpc;x",
  "application/grpc-web",
  "text/plain",
  "application/json",
  "",
];
const ODD_HEADERS = [
  "grpc-timeout",
  "grpc-encoding",
  "grpc-accept-encoding",
  "content-type",
  "te",
  "x-data-bin",
  "hasleader",
  "content-length",
];

interface Sent {
  /** What the answer's message is to be; undefined if anything may come. */
  readonly answer: Uint8Array | undefined;
  readonly got: Uint8Array[];
  ends: number;
  status: string | undefined;
}

/** A body of messages, gone wrong in one of many ways, or right. */
function oddBody(random: Random): Uint8Array {
  const plain = randomBytes(random, random.below(random.below(4) === 0 ? 9000 : 200));
  switch (random.below(8)) {
    case 0:
      return message(gzipSync(plain), 1);
    case 1:
      return message(mutate(random, gzipSync(plain)), 1);
    // What becomes large only when it is opened.
    case 2:
      return message(gzipSync(new Uint8Array(random.below(200_000))), 1);
    case 3:
      return mutate(random, message(plain, random.below(4)));
    case 4:
      return concat([message(plain), message(plain)]);
    case 5:
      return message(plain).slice(0, random.below(plain.length + 5));
    case 6:
      return randomBytes(random, random.below(40));
    default:
      return message(plain);
  }
}

function oddHeaders(random: Random): Record<string, string> {
  const headers: Record<string, string> = { ...CALL };
  headers[":path"] = [
    "/test.Echo/Now",
    "/test.Echo/Later",
    "/test.Chat/Talk",
    "/no.Such/Method",
    "/",
    "/test.Echo/",
    "/version",
  ][random.below(7)];
  if (random.below(3) === 0) headers["content-type"] = ODD_TYPES[random.below(ODD_TYPES.length)];
  if (random.below(6) === 0)
    headers[":method"] = ["GET", "PUT", "HEAD", "OPTIONS"][random.below(4)];
  for (let i = random.below(3); i > 0; i--) {
    const text =
      random.below(2) === 0
        ? ODD_VALUES[random.below(ODD_VALUES.length)]
        : String.fromCharCode(...randomBytes(random, random.below(30)));
    // A field's value has neither line ends nor blanks around it (RFC 9113 section 8.2.1); that is
    // the layer below's to see.
    headers[ODD_HEADERS[random.below(ODD_HEADERS.length - 1)]] = text
      .replaceAll(/[\0\r\n]/g, "")
      .trim();
  }
  if (random.below(8) === 0) headers["grpc-encoding"] = "gzip";
  return headers;
}

export async function fuzzGrpc(random: Random): Promise<void> {
  const waiting: (() => void)[] = [];
  const talks: StreamCall[] = [];
  const client = new GrpcClient({
    unary: {
      "/test.Echo/Now": (bytes, context) => {
        context.metadata("x-data-bin");
        return bytes;
      },
      "/test.Echo/Later": (bytes) => new Promise((resolve) => waiting.push(() => resolve(bytes))),
    },
    stream: {
      "/test.Chat/Talk": (call) => {
        talks.push(call);
        return { message: (bytes) => void call.send(bytes), halfClosed: () => call.end() };
      },
    },
    http: () => ({ status: 200, headers: { "content-type": "text/plain" }, body: "fine\n" }),
    limits: { maxIdleFramesBurst: 1e9, maxResetsBurst: 1e9 },
    maxHttpBodyBytes: 1000,
    grpcLimits: { maxRequestBytes: MAX_REQUEST_BYTES },
  });
  const calls = new Map<number, Sent>();
  const bodies = new Map<number, Uint8Array>();
  let id = 1;

  const open = (): void => {
    const isGood = random.below(3) === 0;
    const answer = isGood
      ? randomBytes(random, random.below(MAX_REQUEST_BYTES - GZIP_BYTES))
      : undefined;
    const headers = isGood
      ? { ...CALL, ":path": `/test.Echo/${random.below(2) === 0 ? "Now" : "Later"}` }
      : oddHeaders(random);
    const zipped = isGood && random.below(3) === 0;
    if (zipped) headers["grpc-encoding"] = "gzip";
    calls.set(id, { answer, got: [], ends: 0, status: undefined });
    const body =
      answer === undefined
        ? oddBody(random)
        : message(zipped ? gzipSync(answer) : answer, zipped ? 1 : 0);
    client.send(client.headers(id, headers));
    bodies.set(id, body);
    id += 2;
  };
  const read = (): void => {
    for (const one of client.takeFrames()) {
      assert.notEqual(one.type, FrameType.GoAway, one.line);
      if (one.streamId === 0) continue;
      const call = calls.get(one.streamId)!;
      if (one.type === FrameType.Data) {
        call.got.push(one.payload);
        client.send(windowUpdate(0, one.payload.length || 1));
      }
      // A stream that was answered before its end is cut off without an error; then its rest is of
      // no concern.
      if (one.type === FrameType.RstStream) {
        bodies.delete(one.streamId);
        if (call.ends > 0) continue;
      }
      if (one.type === FrameType.Headers)
        call.status = /grpc-status=(\d+)/.exec(one.line)?.[1] ?? call.status;
      if (one.type === FrameType.RstStream || (one.flags & Flag.EndStream) !== 0) {
        call.ends++;
        assert.equal(call.ends, 1, `stream ${one.streamId} ends twice`);
      }
    }
  };
  /** Sends some more of a body, and its end with the last of it. */
  const more = (stream: number, body: Uint8Array): void => {
    const size = Math.min(body.length, random.below(3) === 0 ? 1 + random.below(20) : 16_000);
    const isLast = size === body.length;
    client.send(data(stream, body.slice(0, size), isLast));
    if (isLast) bodies.delete(stream);
    else bodies.set(stream, body.slice(size));
  };

  const total = 1 + random.below(MAX_CALLS);
  while (calls.size < total || bodies.size > 0) {
    if (calls.size < total && random.below(2) === 0) open();
    for (const [stream, body] of [...bodies]) if (random.below(2) === 0) more(stream, body);
    if (random.below(3) === 0) waiting.shift()?.();
    if (random.below(4) === 0) await settle();
    if (random.below(10) === 0) client.compressor.release();
    if (random.below(30) === 0) {
      // What is on its way already is read first.
      read();
      const stream = 1 + 2 * random.below(calls.size || 1);
      const call = calls.get(stream);
      if (call !== undefined && call.answer === undefined && call.ends === 0) {
        client.send(rstStream(stream));
        bodies.delete(stream);
        call.ends = 1;
      }
    }
    read();
  }
  for (let left = waiting.length + 2 * calls.size + 3; left > 0; left--) {
    waiting.shift()?.();
    await settle();
    client.compressor.release();
    await settle();
    read();
  }
  for (const [stream, call] of calls) {
    if (call.answer === undefined) continue;
    assert.deepEqual([call.ends, call.status], [1, "0"], `stream ${stream} has no good end`);
    const body = concat(call.got);
    if (body[0] === 0)
      assert.ok(equals(body, message(call.answer)), `stream ${stream} has another answer`);
    else
      assert.ok(
        equals(gunzipSync(body.slice(5)), call.answer),
        `stream ${stream} has another answer`,
      );
  }
  client.connection.lost();
  await settle();
  const { held, pending, counters } = client.shared;
  assert.deepEqual([held.usedBytes, pending.usedBytes, counters.openStreams], [0, 0, 0]);
  for (const call of talks)
    assert.ok(!call.send(new Uint8Array(1)), "a stream outlives its connection");
}
