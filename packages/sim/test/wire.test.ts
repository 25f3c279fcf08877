/** The connections between simulated members: what is cut, changed or mixed up on them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import type { TransportRequest } from "@quorate/member";
import { raftpb } from "@quorate/proto";
import { freshSeed } from "../../../test/support/fresh-seed.ts";
import { Process } from "../src/base/scheduler.ts";
import type { Station } from "../src/sim-transport.ts";
import { cutAtRandom } from "../src/wire/cuts.ts";
import { type Sent, Wire } from "../src/wire/wire.ts";
import { damage } from "../src/wire/wires.ts";

const SEEDS = [20_261_122, freshSeed()];

function stationOf(name: string, memberId: bigint): Station {
  const request = { memberId } as TransportRequest;
  return { name, isEtcd: false, process: new Process(name), request, urls: [], heard: new Map() };
}

function wireOf(accepts = true, isReturn = false): Wire {
  return new Wire(
    { from: stationOf("m0", 1n), target: stationOf("m1", 2n), kind: "bulk", isReturn },
    () => accepts,
  );
}

function messagesOf(random: SeededRandom, firstIndex: number): Sent[] {
  return Array.from({ length: 1 + random.below(4) }, (_, i) => {
    const data = new Uint8Array(random.below(random.below(8) === 0 ? 90_000 : 700)).map(() =>
      random.below(256),
    );
    const entries = [{ term: 2, index: firstIndex + i, type: 0, data }];
    const message = raftpb.Message.create({
      type: raftpb.MessageType.MsgApp,
      from: 1n,
      to: 2n,
      index: firstIndex + i,
      entries,
    });
    return { message, encoded: raftpb.Message.encode(message) };
  });
}

for (const seed of SEEDS) {
  test(`messages come as they were sent, wherever their bytes are cut, seed ${seed}`, () => {
    for (let run = 0; run < 30; run++) {
      const random = new SeededRandom(BigInt(seed + run));
      const wire = wireOf(true, run % 2 === 1);
      const sent: number[] = [];
      const came: number[] = [];
      for (let write = 0; write < 20; write++) {
        const messages = messagesOf(random, 100 * write);
        sent.push(...messages.map(({ message }) => message.index));
        for (const piece of cutAtRandom(wire.write(messages).bytes, random)) {
          const read = wire.read(piece.slice());
          assert.equal(read.isDamaged, false);
          came.push(...read.messages.map((message) => message.index));
        }
      }
      assert.deepEqual(came, sent);
    }
  });

  test(`a byte that changes where the frames have a check ends the connection, and what came before is good, seed ${seed}`, () => {
    let bare = 0;
    for (let run = 0; run < 100; run++) {
      const random = new SeededRandom(BigInt(seed + run));
      const wire = wireOf();
      const before = messagesOf(random, 0);
      assert.equal(wire.read(wire.write(before).bytes).messages.length, before.length);
      const { bytes, headAt } = wire.write(messagesOf(random, 100));
      const { isSealed } = damage(bytes, headAt, random);
      if (isSealed) continue;
      bare++;
      const came = cutAtRandom(bytes, random).flatMap((piece) =>
        wire.isOver ? [] : wire.read(piece.slice()).messages,
      );
      assert.equal(came.length, 0);
      assert.equal(wire.isOver, true, `run ${run}`);
    }
    assert.ok(bare > 20);
  });
}

test("a message that differs from what was sent is a violation, and so is one that changes later", () => {
  const random = new SeededRandom(7n);
  const changed = wireOf();
  const { bytes } = changed.write(messagesOf(random, 5));
  bytes[bytes.length - 1] ^= 1;
  assert.throws(() => changed.read(bytes), /WIRE-1: .* differs from what was sent/);

  const later = wireOf();
  later.read(later.write(messagesOf(random, 1)).bytes);
  const first = later.write(messagesOf(random, 5)).bytes;
  const second = later.write(messagesOf(random, 50)).bytes;
  // The beginning of the second write comes with the first one, and waits in the reader.
  const both = new Uint8Array(first.length + 30);
  both.set(first);
  both.set(second.subarray(0, 30), first.length);
  later.read(both);
  both[first.length - 1] ^= 1;
  assert.throws(() => later.read(second.slice(30)), /WIRE-1: .* has changed since/);
});

test("a sender that is turned away delivers nothing", () => {
  const wire = wireOf(false);
  const { messages, isDamaged } = wire.read(wire.write(messagesOf(new SeededRandom(1n), 5)).bytes);
  assert.deepEqual([messages.length, isDamaged, wire.isOver], [0, false, true]);
});
