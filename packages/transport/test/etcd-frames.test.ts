import assert from "node:assert/strict";
import { describe, it, test } from "node:test";
import { raftpb } from "@quorate/proto";
import fc from "fast-check";
import {
  ETCD_STREAMS,
  type EtcdStream,
  encodeWithLength,
  etcdDecoder,
  etcdEncoder,
  SnapshotBodyReader,
} from "../src/etcd-frames.ts";
import { FrameError, MAX_MESSAGE_ENTRIES } from "../src/frames.ts";

const { MsgApp, MsgHeartbeat } = raftpb.MessageType;
const IDS = { from: 7n, to: 8n };

const plain = (messages: readonly raftpb.Message[]): string[] =>
  messages.map((message) => Buffer.from(raftpb.Message.encode(message)).toString("hex"));

function decoded(
  stream: EtcdStream,
  bytes: Uint8Array,
  cuts: readonly number[] = [bytes.length],
  maxMessageBytes = 1 << 20,
): raftpb.Message[] {
  const decoder = etcdDecoder(stream, IDS, maxMessageBytes);
  const messages: raftpb.Message[] = [];
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const cut = cuts[i % cuts.length]!;
    decoder.take(bytes.slice(at, at + cut), (message) => messages.push(message));
    at += cut;
  }
  return messages;
}

/** Appends of a leader: most follow the one before, some begin elsewhere. */
const appends = fc
  .array(
    fc.record({
      jump: fc.integer({ min: 0, max: 9 }),
      sizes: fc.array(fc.integer({ min: 0, max: 300 }), { maxLength: 4 }),
    }),
    { maxLength: 20 },
  )
  .map((steps) => {
    let index = 0;
    let term = 1;
    return steps.map(({ jump, sizes }) => {
      let logTerm = term;
      if (jump > 7) term++;
      else if (jump === 7) index += 3;
      else logTerm = term;
      const entries = sizes.map((size, i) =>
        raftpb.Entry.create({ term, index: index + i + 1, data: new Uint8Array(size).fill(i) }),
      );
      const message = { ...IDS, type: MsgApp, term, logTerm, index, entries, commit: index };
      index += sizes.length;
      return raftpb.Message.create(message);
    });
  });

describe("etcd's streams", () => {
  for (const stream of ETCD_STREAMS) {
    it(`${stream}: what was written comes back, however it is cut`, () => {
      const cuts = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1 });
      fc.assert(
        fc.property(appends, cuts, (messages, some) => {
          const encoder = etcdEncoder(stream);
          const parts = messages.flatMap((one) => [encoder.alive(), encoder.encode(one)]);
          const bytes = Buffer.concat(parts);
          assert.deepEqual(plain(decoded(stream, bytes, some)), plain(messages));
        }),
        { seed: 31, numRuns: 200 },
      );
    });

    it(`${stream}: strange bytes are a FrameError or nothing`, () => {
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
          try {
            decoded(stream, bytes, [3], 100);
          } catch (error) {
            assert.ok(error instanceof FrameError, String(error));
          }
        }),
        { seed: 32, numRuns: 500 },
      );
    });
  }

  it("an append that follows the one before is written without its sender and place", () => {
    const encoder = etcdEncoder("msgapp");
    const entry = (index: number) => raftpb.Entry.create({ term: 2, index });
    const append = (index: number, logTerm: number) =>
      raftpb.Message.create({
        ...IDS,
        type: MsgApp,
        term: 2,
        logTerm,
        index,
        entries: [entry(index + 1)],
        commit: 5,
      });
    assert.equal(encoder.encode(append(3, 1))[0], 2);
    const following = Buffer.from(encoder.encode(append(4, 2)));
    const encoded = Buffer.from(raftpb.Entry.encode(entry(5)));
    const u64 = (value: number) => Buffer.from(value.toString(16).padStart(16, "0"), "hex");
    assert.deepEqual(
      following,
      Buffer.concat([Buffer.from([1]), u64(1), u64(encoded.length), encoded, u64(5)]),
    );
    assert.equal(encoder.encode(append(9, 2))[0], 2, "an append after a gap is whole");
  });

  it("lengths and counts beyond the bounds are refused before anything is kept", () => {
    const huge = Buffer.from("0000000040000000", "hex");
    const unsafe = Buffer.from("ffffffffffffffff", "hex");
    for (const length of [huge, unsafe]) {
      assert.throws(() => decoded("message", length), FrameError);
      for (const kind of [1, 2])
        assert.throws(() => decoded("msgapp", Buffer.concat([Buffer.from([kind]), length])));
    }
    const many = Buffer.alloc(9);
    many[0] = 1;
    many.writeUInt32BE(MAX_MESSAGE_ENTRIES + 1, 5);
    assert.throws(() => decoded("msgapp", many), /more than 32768 entries/);
    assert.throws(() => decoded("msgapp", Buffer.from([3])), /kind 3/);
  });

  it("entries that are long together are refused", () => {
    const encoder = etcdEncoder("msgapp");
    const entries = Array.from({ length: 3 }, (_, i) =>
      raftpb.Entry.create({ term: 1, index: i + 1, data: new Uint8Array(400) }),
    );
    const first = raftpb.Message.create({ ...IDS, type: MsgApp, term: 1, logTerm: 1 });
    const bytes = Buffer.concat([
      encoder.encode(first),
      encoder.encode({ ...first, entries, commit: 0 }),
    ]);
    assert.equal(bytes[bytes.indexOf(1, encoder.alive().length)], 1);
    assert.throws(() => decoded("msgapp", bytes, [50], 1000), /more than 1000 bytes/);
  });

  it("a message without sender and receiver says that the link is alive", () => {
    const alive = raftpb.Message.create({ type: MsgHeartbeat });
    assert.deepEqual(decoded("message", encodeWithLength(alive)), []);
  });
});

test("a snapshot's body is its message, and then bytes as they come", () => {
  const message = raftpb.Message.create({ ...IDS, type: raftpb.MessageType.MsgSnap });
  const head = Buffer.from(encodeWithLength(message));
  for (const cut of [1, 5, head.length, head.length + 2, 100]) {
    const body = Buffer.concat([head, Buffer.from("database")]);
    const reader = new SnapshotBodyReader(1000);
    const parts: Buffer[] = [];
    for (let at = 0; at < body.length; at += cut) {
      reader.push(body.subarray(at, at + cut));
      for (let part = reader.take(); part !== undefined; part = reader.take())
        parts.push(Buffer.from(part));
    }
    assert.equal(reader.hasMessage, true);
    assert.deepEqual(parts[0], head.subarray(8));
    assert.equal(Buffer.concat(parts.slice(1)).toString(), "database");
  }
  const long = new SnapshotBodyReader(10);
  long.push(Buffer.from("000000000000000b", "hex"));
  assert.throws(() => long.take(), FrameError);
});
