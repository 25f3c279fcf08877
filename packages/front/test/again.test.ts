/** Messages that come again: told by their call alone, many in one record. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { EMPTY } from "@quorate/proto";
import type { StreamCall, StreamListener } from "@quorate/rpc";
import { encodeTexts, MAX_AGAIN_CALLS, MAX_REPEATED_BYTES, ToMember } from "../src/protocol.ts";
import { RingError, RingWriter } from "../src/ring.ts";
import { Client, start } from "./started-twin.ts";

const PATH = "/a/KeepAlive";

interface Stream {
  readonly sender: StreamListener;
  readonly client: Client;
  readonly call: StreamCall;
  /** What the service has got, and its half-close as undefined. */
  readonly got: (Uint8Array | undefined)[];
}

async function open(count: number, seed = 1n) {
  const calls: StreamCall[] = [];
  const got: (Uint8Array | undefined)[][] = [];
  const started = start(
    {
      unary: { "/a/Wait": () => new Promise(() => {}) },
      stream: {
        [PATH]: (call) => {
          const list: (Uint8Array | undefined)[] = [];
          calls.push(call);
          got.push(list);
          return {
            message: (bytes) => void list.push(bytes.slice()),
            halfClosed: () => void list.push(undefined),
          };
        },
      },
    },
    seed,
  );
  const handler = started.twin.services.stream.get(PATH)!;
  const streams: Stream[] = [];
  for (let i = 0; i < count; i++) {
    const client = new Client(PATH);
    const sender = handler(client);
    await started.settle();
    streams.push({ sender, client, call: calls[i], got: got[i] });
  }
  return { ...started, streams };
}

test("messages that come again arrive each time, in order, beside others", async () => {
  for (let seed = 1n; seed <= 20n; seed++) {
    const random = new SeededRandom(seed);
    const { streams, settle, errors, frontErrors } = await open(6, seed);
    const due: (Uint8Array | undefined)[][] = streams.map(() => []);
    const choices = [1, 8, MAX_REPEATED_BYTES, MAX_REPEATED_BYTES + 1].map((size) =>
      new Uint8Array(size).fill(size),
    );
    for (let i = 0; i < 300; i++) {
      const index = random.below(streams.length);
      const { sender, call } = streams[index];
      const message = choices[random.below(100) < 80 ? 1 : random.below(choices.length)];
      sender.message!(message);
      due[index].push(message);
      if (random.below(20) === 0) call.pause();
      if (random.below(10) === 0) call.resume();
      if (random.below(40) === 0) await settle();
    }
    for (const [index, { sender, call }] of streams.entries()) {
      sender.halfClosed!();
      due[index].push(undefined);
      call.resume();
    }
    await settle();
    for (const [index, { got }] of streams.entries()) assert.deepEqual(got, due[index]);
    assert.deepEqual([...errors, ...frontErrors], []);
  }
});

test("messages of many calls that come again are one record", async () => {
  const { twin, streams, settle } = await open(50);
  const message = new Uint8Array(10);
  for (const { sender } of streams) sender.message!(message);
  await settle();
  const written = new Int32Array(twin.toMember)[0];
  for (const { sender } of streams) sender.message!(message);
  await settle();
  assert.equal(new Int32Array(twin.toMember)[0] - written, 24 + 4 * streams.length);
  for (const { got } of streams) assert.deepEqual(got, [message, message]);
});

test("more of them than a record holds are several", async () => {
  const { streams, settle } = await open(1);
  const [{ sender, got }] = streams;
  for (let i = 0; i <= MAX_AGAIN_CALLS + 1; i++) sender.message!(Uint8Array.of(7));
  await settle();
  assert.equal(got.length, MAX_AGAIN_CALLS + 2);
});

test("a client that sends again and again while the service takes nothing is held back", async () => {
  const { streams, settle, errors } = await open(1);
  const [{ sender, client, call, got }] = streams;
  // The front-end is told of it later.
  call.pause();
  let sent = 0;
  for (; !client.isPaused && sent < 100_000; sent++) sender.message!(Uint8Array.of(7));
  assert.ok(client.isPaused);
  assert.deepEqual(got, []);
  call.resume();
  await settle();
  assert.equal(got.length, sent);
  assert.deepEqual(errors, []);
});

test("a front-end that repeats what was not sent breaks its link, and nothing else", async () => {
  const list = (...calls: number[]): Uint8Array => new Uint8Array(Uint32Array.from(calls).buffer);
  const cases: readonly [name: string, calls: Uint8Array, isRight?: boolean][] = [
    ["a call that sent a short message", list(1), true],
    ["a call that has ended, or never was", list(77), true],
    ["part of a number", list(1).subarray(0, 3)],
    ["a call that has sent nothing", list(2)],
    ["a call whose last message was long", list(3)],
    ["a unary call", list(4)],
    ["an exchange", list(5)],
    ["one that may after many that may", list(...new Array<number>(1000).fill(1), 2)],
  ];
  for (const [name, calls, isRight = false] of cases) {
    const { twin, errors, settle } = start({
      unary: { "/a/Wait": () => new Promise(() => {}) },
      stream: { [PATH]: () => ({}) },
      deps: { http: () => ({}) },
    });
    const writer = new RingWriter(twin.toMember);
    const write = (kind: number, call: number, payload: Uint8Array): void => {
      writer.write({ kind, detail: 0, call, value: 0, timeMs: -1 }, payload, payload.length, true);
    };
    write(ToMember.Identity, 0, encodeTexts(["a:1", ...new Array<undefined>(6).fill(undefined)]));
    for (const call of [1, 2, 3]) write(ToMember.Stream, call, EMPTY);
    write(ToMember.Unary, 4, EMPTY);
    write(ToMember.Exchange, 5, encodeTexts(["POST", "/", "", "a:1", ...new Array<string>(5)]));
    write(ToMember.Message, 1, new Uint8Array(MAX_REPEATED_BYTES));
    write(ToMember.Message, 3, new Uint8Array(MAX_REPEATED_BYTES + 1));
    write(ToMember.Again, 0, calls);
    writer.publish();
    twin.served.woken();
    await settle();
    assert.equal(errors.length, isRight ? 0 : 1, `${name}: ${errors[0]?.message}`);
    if (!isRight) assert.ok(errors[0] instanceof RingError, String(errors[0].stack));
    twin.served.close();
    assert.equal(twin.served.openCalls, 0);
  }
});
