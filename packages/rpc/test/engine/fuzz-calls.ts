/** Good clients with any habits: each call gets exactly its answer, whatever the windows, the cuts and the order of things. */
import assert from "node:assert/strict";
import type { Random } from "@quorate/host";
import { concat } from "@quorate/proto";
import { Flag, FrameType, Setting } from "../../src/http2/constants.ts";
import { data, frame, settingsFrame, windowUpdate } from "./core.ts";
import { randomBytes } from "./fuzz-hpack.ts";
import { CALL, GrpcClient, message } from "./grpc.ts";

/** What a stream is to get, and has got. */
interface Expected {
  readonly body: Uint8Array;
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
        : frame(FrameType.Data, last | Flag.Padded, id, concat([Uint8Array.of(padding), payload, new Uint8Array(padding)])),
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
      "/test.Echo/Now": (bytes) => bytes,
      "/test.Echo/Later": (bytes) => new Promise((resolve) => waiting.push(() => resolve([bytes.slice(0, 1), bytes.slice(1)]))),
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
  client.send(settingsFrame([Setting.InitialWindowSize, streamWindowBytes], [Setting.HeaderTableSize, random.below(3) * 100]));
  const calls = new Map<number, Expected>();
  const queues: Uint8Array[][] = [];
  const total = 1 + random.below(MAX_CALLS);
  let id = 1;
  const open = (): void => {
    const stream = random.below(4) === 0;
    const path = stream ? "/test.Chat/Talk" : `/test.Echo/${random.below(2) === 0 ? "Now" : "Later"}`;
    const messages = Array.from({ length: stream ? random.below(6) : 1 }, () =>
      message(randomBytes(random, random.below(8) === 0 ? random.below(60_000) : random.below(300))),
    );
    const body = concat(messages);
    calls.set(id, { body, got: [], windowBytes: streamWindowBytes, ended: false });
    const headers = random.below(2) === 0 ? { ...CALL, ":path": path } : { ...CALL, ":path": path, "x-id": String(id) };
    client.send(client.headers(id, headers));
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
        assert.ok(call.windowBytes >= 0 && windowBytes >= 0, "more than the windows allow");
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
    const more = random.below(40_000) + 1;
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
      // Negative windows are the server's to bear, so the bound on what comes moves as well.
      for (const call of calls.values()) call.windowBytes += Math.max(0, next - streamWindowBytes);
      if (next >= streamWindowBytes) {
        client.send(settingsFrame([Setting.InitialWindowSize, next]));
        streamWindowBytes = next;
      } else for (const call of calls.values()) call.windowBytes -= Math.max(0, next - streamWindowBytes);
    }
    read();
  }
  for (const [stream, call] of calls) assert.deepEqual(concat(call.got), call.body, `stream ${stream}`);
  const { held, pending, counters } = client.shared;
  assert.deepEqual([held.usedBytes, pending.usedBytes, counters.openStreams], [0, 0, 0]);
}
