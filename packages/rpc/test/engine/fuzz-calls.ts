/**
 * Good clients with any habits: each call gets exactly its answer, whatever the windows, the cuts
 * and the order of things.
 */
import assert from "node:assert/strict";
import type { Random } from "@quorate/host";
import { concat, equals, fromLatin1 } from "@quorate/proto";
import { Indexing } from "../../src/hpack/hpack.ts";
import { Flag, FrameType, Setting } from "../../src/http2/constants.ts";
import { data, frame, settingsFrame, windowUpdate } from "./core.ts";
import { randomBytes } from "./fuzz-hpack.ts";
import { CALL, GrpcClient, message } from "./grpc.ts";

/** What a stream is to get, and has got. */
interface Expected {
  readonly answer: Uint8Array;
  readonly got: Uint8Array[];
  /** What the server may still send on the stream. */
  windowBytes: number;
  ended: boolean;
}

const MAX_CALLS = 30;

/** Cuts a body into DATA frames, some padded, some empty. */
function frames(random: Random, id: number, body: Uint8Array): Uint8Array[] {
  const list: Uint8Array[] = [];
  let at = 0;
  do {
    const end = Math.min(body.length, at + random.below(random.below(3) === 0 ? 20 : 16_000));
    const last = end === body.length && random.below(2) === 0 ? Flag.EndStream : 0;
    const padding = random.below(5) === 0 ? random.below(100) : -1;
    const payload = body.slice(at, end);
    list.push(
      padding < 0
        ? data(id, payload, last !== 0)
        : frame(
            FrameType.Data,
            last | Flag.Padded,
            id,
            concat([Uint8Array.of(padding), payload, new Uint8Array(padding)]),
          ),
    );
    at = end;
    if (last !== 0) return list;
  } while (at < body.length);
  list.push(data(id, 0, true));
  return list;
}

export async function fuzzCalls(random: Random): Promise<void> {
  const waiting: (() => void)[] = [];
  const client = new GrpcClient({
    unary: {
      "/test.Echo/Now": (bytes, context) => [bytes, fromLatin1(context.metadata("x-tag") ?? "")],
      "/test.Echo/Later": (bytes) =>
        new Promise((resolve) => waiting.push(() => resolve([bytes.slice(0, 1), bytes.slice(1)]))),
    },
    stream: {
      "/test.Chat/Talk": (call) => ({
        message(bytes) {
          call.send(bytes);
          if (random.below(10) > 0) return;
          call.pause();
          waiting.push(() => call.resume());
        },
        halfClosed: () => call.end(),
      }),
    },
    limits: { outputTargetBytes: 1 + random.below(50_000), maxIdleFramesBurst: 1e9 },
    grpcLimits: { sendBudgetBytes: 1000 },
  });
  let windowBytes = 65_535;
  let streamWindowBytes = random.below(3) === 0 ? random.below(2000) : 65_535;
  client.send(
    settingsFrame(
      [Setting.InitialWindowSize, streamWindowBytes],
      [Setting.HeaderTableSize, random.below(3) * 100],
    ),
  );
  const tags = [
    "",
    ...Array.from({ length: 4 }, (_, i) => String(i).repeat(1 + random.below(1500))),
  ];
  // Some clients open their windows by little.
  const mostOpened = random.below(3) === 0 ? 400 : 40_000;
  const calls = new Map<number, Expected>();
  const queues: Uint8Array[][] = [];
  const total = 1 + random.below(MAX_CALLS);
  let id = 1;
  const open = (): void => {
    const stream = random.below(4) === 0;
    const method = stream ? "Chat/Talk" : random.below(2) === 0 ? "Echo/Now" : "Echo/Later";
    const bodies = Array.from({ length: stream ? random.below(6) : 1 }, () =>
      randomBytes(random, random.below(8) === 0 ? random.below(60_000) : random.below(300)),
    );
    // A tag is one of a few, so that blocks and table entries come again, and are forgotten again.
    const tag = method === "Echo/Now" ? tags[random.below(tags.length)] : "";
    const body = concat(bodies.map((one) => message(one)));
    const answer = tag === "" ? body : message(concat([bodies[0], fromLatin1(tag)]));
    calls.set(id, { answer, got: [], windowBytes: streamWindowBytes, ended: false });
    client.indexing = random.below(4) === 0 ? Indexing.None : Indexing.Add;
    const tagged: Record<string, string> = tag === "" ? {} : { "x-tag": tag };
    client.send(client.headers(id, { ...CALL, ":path": `/test.${method}`, ...tagged }));
    queues.push(frames(random, id, body));
    id += 2;
  };
  const read = (): void => {
    for (const one of client.takeFrames()) {
      const call = calls.get(one.streamId);
      if (one.type === FrameType.GoAway || one.type === FrameType.RstStream) assert.fail(one.line);
      if (call === undefined) continue;
      assert.equal(call.ended, false, "frames behind the end");
      if (one.type === FrameType.Data) {
        call.got.push(one.payload);
        call.windowBytes -= one.payload.length;
        windowBytes -= one.payload.length;
        assert.ok(windowBytes >= 0, "more than the connection's window allows");
        assert.ok(
          one.payload.length === 0 || call.windowBytes >= 0,
          "more than the stream's window allows",
        );
      } else if (one.type === FrameType.Headers && (one.flags & Flag.EndStream) !== 0) {
        assert.match(one.line, /grpc-status=0 end$/);
        call.ended = true;
      }
    }
  };
  while (calls.size < total || [...calls.values()].some((call) => !call.ended)) {
    if (calls.size < total && random.below(3) === 0) open();
    const queue = queues.length === 0 ? undefined : queues[random.below(queues.length)];
    if (queue !== undefined) {
      client.send(queue.shift()!);
      if (queue.length === 0) queues.splice(queues.indexOf(queue), 1);
    }
    if (random.below(4) === 0) waiting.splice(random.below(waiting.length || 1), 1)[0]?.();
    if (random.below(5) === 0) await new Promise((resolve) => setImmediate(resolve));
    client.connection.sender.setBlocked(random.below(6) === 0);
    client.connection.sender.refill();
    read();
    const more = random.below(mostOpened) + 1;
    if (random.below(3) === 0) {
      client.send(windowUpdate(0, more));
      windowBytes += more;
    }
    for (const [stream, call] of calls) {
      if (call.ended || random.below(3) > 0) continue;
      client.send(windowUpdate(stream, more));
      call.windowBytes += more;
    }
    if (random.below(40) === 0) {
      const next = random.below(70_000);
      // What is on its way already came out of the windows as they were.
      read();
      client.send(settingsFrame([Setting.InitialWindowSize, next]));
      for (const call of calls.values()) call.windowBytes += next - streamWindowBytes;
      streamWindowBytes = next;
    }
    read();
  }
  // Not by deepEqual, whose account of a difference takes gigabytes at these sizes.
  for (const [stream, call] of calls)
    assert.ok(equals(concat(call.got), call.answer), `stream ${stream} has another answer`);
  const { held, pending, counters } = client.shared;
  assert.deepEqual([held.usedBytes, pending.usedBytes, counters.openStreams], [0, 0, 0]);
}
