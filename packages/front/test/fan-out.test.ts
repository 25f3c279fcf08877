/** Messages that many streams get: what arrives, in which order, and what a bad one does. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { GrpcCode } from "@quorate/proto";
import type { CommonMessage, StreamCall } from "@quorate/rpc";
import { MAX_MESSAGES, MAX_TARGETS_BYTES } from "../src/fan-out.ts";
import { MemberServices } from "../src/member-services.ts";
import { MAX_OWN_BYTES, ToFront, WINDOW_BYTES } from "../src/protocol.ts";
import { RingError, RingWriter, ringMemory } from "../src/ring.ts";
import { Client, Context, start } from "./started-twin.ts";

const PATH = "/a/Watch";

/** Streams of one front-end: the member's ends of them, and the clients'. */
async function open(count: number, seed = 1n, ringBytes?: number) {
  const calls: StreamCall[] = [];
  const drained: number[] = [];
  const started = start(
    {
      stream: {
        [PATH]: (call) => {
          const index = calls.push(call) - 1;
          return { drained: () => void drained.push(index) };
        },
      },
      deps: ringBytes === undefined ? {} : { ringBytes },
    },
    seed,
  );
  const handler = started.twin.services.stream.get(PATH)!;
  const clients: Client[] = [];
  const listeners = [];
  for (let i = 0; i < count; i++) {
    clients.push(new Client(PATH));
    listeners.push(handler(clients[i]));
    // One after the other, so that both lists have one order.
    await started.settle();
  }
  return { ...started, calls, clients, listeners, drained };
}

function commonOf(before: Uint8Array, ...after: Uint8Array[]): CommonMessage {
  const sizeBytes = [before, ...after].reduce((size, { length }) => size + length, 0);
  return { before, after, sizeBytes };
}

const joined = ({ before, after }: CommonMessage, own: Uint8Array): Uint8Array =>
  new Uint8Array(Buffer.concat([before, own, ...after]));

/** Bytes that were ever written into a ring (the head of src/ring.ts). */
const writtenBytes = (memory: SharedArrayBuffer): number => new Int32Array(memory)[0];

test("each stream gets what it was sent, in order, however messages are shared", async () => {
  for (let seed = 1n; seed <= 30n; seed++) {
    const random = new SeededRandom(seed);
    const bytes = (most: number) => {
      const some = new Uint8Array(random.below(most));
      for (let i = 0; i < some.length; i++) some[i] = random.below(256);
      return some;
    };
    const { calls, clients, settle, errors, frontErrors } = await open(12, seed, 128 * 1024);
    const due: Uint8Array[][] = calls.map(() => []);
    const ended = new Set<number>();
    for (let turn = 0; turn < 6; turn++) {
      const messages = Array.from({ length: 1 + random.below(4) }, () =>
        commonOf(bytes(20), bytes(400), bytes(random.below(8) === 0 ? 60_000 : 30)),
      );
      for (let i = 0; i < 60; i++) {
        const index = random.below(calls.length);
        const own = bytes(12);
        if (ended.has(index)) assert.equal(calls[index].sendCommon!(messages[0], own), false);
        else if (random.below(100) === 0) {
          calls[index].end({ code: GrpcCode.Aborted, message: "enough" });
          ended.add(index);
        } else if (random.below(4) === 0) {
          calls[index].send(own);
          due[index].push(own);
        } else {
          const message = messages[random.below(messages.length)];
          calls[index].sendCommon!(message, own);
          due[index].push(joined(message, own));
        }
      }
      if (random.below(2) === 0) await settle();
    }
    await settle();
    for (const [index, client] of clients.entries()) {
      assert.deepEqual(client.messages, due[index], `stream ${index} of seed ${seed}`);
      assert.equal(client.ending?.code, ended.has(index) ? GrpcCode.Aborted : undefined);
    }
    assert.deepEqual([...errors, ...frontErrors], []);
  }
});

test("a message goes into the ring once, but for the streams' own parts", async () => {
  const count = 100;
  const { twin, calls, clients, settle } = await open(count);
  const message = commonOf(new Uint8Array(30), new Uint8Array(20_000));
  const before = writtenBytes(twin.toFront);
  for (const [i, call] of calls.entries()) assert.ok(call.sendCommon!(message, Uint8Array.of(i)));
  await settle();
  const written = writtenBytes(twin.toFront) - before;
  assert.ok(written < message.sizeBytes + 20 * count, `${written} bytes`);
  for (const [i, { messages }] of clients.entries())
    assert.deepEqual(messages, [joined(message, Uint8Array.of(i))]);
});

test("more messages and more targets than may wait are written before the turn ends", async () => {
  const { calls, clients, settle, errors } = await open(2);
  const messages = Array.from({ length: MAX_MESSAGES + 10 }, (_, i) => commonOf(Uint8Array.of(i)));
  const own = new Uint8Array(MAX_OWN_BYTES).fill(7);
  for (const message of messages) calls[0].sendCommon!(message, own);
  const count = 10 + Math.ceil(MAX_TARGETS_BYTES / own.length);
  for (let i = 0; i < count; i++) calls[1].sendCommon!(messages[0], own);
  // A part that is too long for a target goes as a message of its own.
  const long = new Uint8Array(MAX_OWN_BYTES + 1).fill(8);
  calls[1].sendCommon!(messages[1], long);
  await settle();
  assert.deepEqual(
    clients[0].messages,
    messages.map((message) => joined(message, own)),
  );
  assert.deepEqual(clients[1].messages, [
    ...Array.from({ length: count }, () => joined(messages[0], own)),
    joined(messages[1], long),
  ]);
  assert.deepEqual(errors, []);
});

test("a client that does not read has its own stream stopped, and no other", async () => {
  const { calls, clients, listeners, drained, settle } = await open(3);
  clients[1].isReading = false;
  const own = Uint8Array.of(1);
  let sent = 0;
  for (let isOpen = true; isOpen; sent++) {
    const message = commonOf(Uint8Array.of(2), new Uint8Array(100_000));
    isOpen = calls[1].sendCommon!(message, own);
    for (const index of [0, 2]) assert.ok(calls[index].sendCommon!(message, own));
    await settle();
  }
  assert.ok(sent * 100_000 <= WINDOW_BYTES + 100_000 && sent > 5, `${sent} messages`);
  assert.ok(calls[1].bufferedBytes > WINDOW_BYTES);
  for (const index of [0, 2]) assert.ok(calls[index].bufferedBytes < WINDOW_BYTES / 2);
  clients[1].isReading = true;
  listeners[1].drained!();
  await settle();
  assert.deepEqual(drained, [1]);
  assert.equal(calls[1].bufferedBytes, 0);
});

test("a client that has gone gets nothing more of a message for many", async () => {
  const { calls, clients, listeners, settle, errors, frontErrors } = await open(3);
  const message = commonOf(Uint8Array.of(2), Uint8Array.of(3));
  for (const call of calls) call.sendCommon!(message, Uint8Array.of(1));
  listeners[1].cancelled!();
  await settle();
  assert.deepEqual(
    clients.map(({ messages }) => messages.length),
    [1, 0, 1],
  );
  assert.deepEqual([...errors, ...frontErrors], []);
});

test("a front-end that is sent a common message that cannot be breaks its link", async () => {
  const target = (call: number, length: number): number[] => [call, 0, 0, 0, length];
  const cases: readonly [name: string, detail: number, value: number, payload: number[]][] = [
    ["right", 1, 5, [...target(1, 0), 7, 8]],
    ["more bytes of targets than there are", 0, 100, target(1, 0)],
    ["more bytes before than there are", 100, 5, target(1, 0)],
    ["a target that is cut", 0, 3, [1, 0, 0]],
    ["a part that goes beyond the targets", 0, 5, [...target(1, 9), ...new Array<number>(20)]],
    ["a call that is not there", 0, 5, target(77, 0)],
    ["a call that is no stream", 0, 5, target(2, 0)],
  ];
  for (const [name, detail, value, payload] of cases) {
    const isRight = name === "right";
    const inbound = ringMemory();
    const errors: Error[] = [];
    const front = new MemberServices(
      { inbound, outbound: ringMemory() },
      { methods: { unary: ["/a/Wait"], stream: [PATH] }, fields: [] },
      {
        clock: new ManualClock(),
        wake: () => {},
        atTurnsEnd: (task) => task(),
        nextTurn: (task) => task(),
        broken: (error) => void errors.push(error),
      },
    );
    // Call 1 is a stream, call 2 is none.
    front.services.stream.get(PATH)!(new Client(PATH));
    void front.services.unary.get("/a/Wait")!(new Uint8Array(0), new Context("/a/Wait"));
    const writer = new RingWriter(inbound);
    const head = { kind: ToFront.Common, detail, call: 0, value, timeMs: 0 };
    writer.write(head, Uint8Array.from(payload), payload.length, true);
    writer.publish();
    front.woken();
    assert.equal(errors.length, isRight ? 0 : 1, name);
    assert.ok(isRight || errors[0] instanceof RingError, String(errors[0]?.stack));
  }
});
