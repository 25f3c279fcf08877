/**
 * KV.RangeStream on a member: its parts are the range's response, at one revision; a slow reader
 * holds no more than a part; what etcd refuses is refused.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Member } from "@quorate/member";
import {
  AuthService,
  CompactionRequest,
  DeleteRangeRequest,
  fromUtf8,
  KVService,
  LeaseGrantRequest,
  LeaseService,
  PutRequest,
  RangeRequest,
  RangeResponse,
  RangeStreamResponse,
  toLatin1,
} from "@quorate/proto";
import type { Status, StreamListener } from "@quorate/rpc";
import { serviceTable } from "@quorate/services";
import { MAX_CHUNK_REQUESTS, nextChunkKeys } from "@quorate/services/testing";
import { ClientCall, withToken } from "./support/client-call.ts";
import { callAs, enableAuth, login } from "./support/users.ts";
import { call, put, World } from "./support/world.ts";

const { Range, RangeStream, Put, DeleteRange, Compact } = KVService.methods;
const MAX_REQUEST_BYTES = 4096;
const ALL = { key: new Uint8Array(1), rangeEnd: new Uint8Array(1) };

/** A call that takes so many messages before it says that it is full. */
class RangeCall extends ClientCall {
  readonly listener: StreamListener;

  constructor(member: Member, capacity = Number.POSITIVE_INFINITY, token?: string) {
    super(RangeStream.path, withToken(token));
    this.capacity = capacity;
    this.listener = serviceTable(member).stream.get(RangeStream.path)!(this);
  }

  ask(request: Partial<RangeRequest>): this {
    this.listener.message!(RangeRequest.encode(RangeRequest.create(request)).slice());
    this.listener.halfClosed!();
    return this;
  }

  get responses(): RangeResponse[] {
    return this.messages.map((part) => RangeStreamResponse.decode(part).rangeResponse!);
  }
}

/** The parts as proto.Merge joins them. */
function merged(parts: readonly RangeResponse[]): RangeResponse {
  const [last] = parts.slice(-1);
  return { ...last, kvs: parts.flatMap(({ kvs }) => kvs) };
}

const text = (response: RangeResponse): string =>
  JSON.stringify(response, (_key, value) =>
    value instanceof Uint8Array
      ? toLatin1(value)
      : typeof value === "bigint"
        ? String(value)
        : value,
  );

const keyOf = (i: number): string => `k${String(i).padStart(4, "0")}`;

describe("a member with keys of many sizes", () => {
  const world = new World(1, ["--max-request-bytes", String(MAX_REQUEST_BYTES)]);
  const pick = <T>(choices: readonly T[]): T => choices[world.random.below(choices.length)];
  let member: Member;

  before(async () => {
    await world.startAll();
    member = world.leader()!.member!;
    const grant = LeaseGrantRequest.encode({ ID: 7n, TTL: 3600 });
    await world.settled(call(member, LeaseService.methods.LeaseGrant.path, grant));
    for (let i = 0; i < 400; i++) {
      const value = fromUtf8("v".repeat(pick([0, 1, 50, 200, 700, 3000])));
      const lease = i % 9 === 0 ? 7n : 0n;
      const request = PutRequest.encode(
        PutRequest.create({ key: fromUtf8(keyOf(i % 300)), value, lease }),
      );
      await world.settled(call(member, Put.path, request));
    }
    const gone = DeleteRangeRequest.create({ key: fromUtf8("k01"), rangeEnd: fromUtf8("k0105") });
    await world.settled(call(member, DeleteRange.path, DeleteRangeRequest.encode(gone)));
  });

  after(() => world.stopAll());

  const stream = async (request: Partial<RangeRequest>): Promise<RangeCall> => {
    const one = new RangeCall(member).ask(request);
    await world.until(() => one.ended !== undefined);
    return one;
  };

  test("its parts, joined, are what Range returns, for random requests", async () => {
    const { random } = world;
    let parts = 0;
    for (let i = 0; i < 150; i++) {
      const from = random.below(320);
      const key = fromUtf8(pick(["", "k", keyOf(from)]) || "\0");
      const rangeEnd = pick([
        new Uint8Array(0),
        new Uint8Array(1),
        fromUtf8(keyOf(from + random.below(300))),
      ]);
      const sortOrder = pick([0, 1]);
      const request = RangeRequest.create({
        key,
        rangeEnd,
        limit: pick([0, 0, 1, 9, 10, 11, 50, 290, 1000, -1]),
        revision: pick([0, 0, 250, member.store.mvcc.currentRevision]),
        keysOnly: random.below(4) === 0,
        countOnly: random.below(8) === 0,
        serializable: random.below(2) === 0,
        sortOrder,
        // A target without an order sorts, and comes in one part.
        sortTarget: sortOrder === 0 ? pick([0, 0, 0, 1, 2, 3, 4]) : 0,
      });
      const expected = await world.settled(
        call(member, Range.path, RangeRequest.encode(request).slice()),
      );
      const { responses, ended } = await stream(request);
      assert.equal(ended, "ok");
      assert.equal(
        text(merged(responses)),
        text(RangeResponse.decode(expected)),
        text(request as never),
      );
      for (const { header, more, count, kvs } of responses.slice(0, -1)) {
        assert.deepEqual([header, more, count], [undefined, false, 0]);
        assert.ok(kvs.length > 0);
      }
      parts = Math.max(parts, responses.length);
    }
    assert.ok(parts > 20, `at most ${parts} parts`);
  });

  test("parts come near the size of a request, and end at twice of it", async () => {
    const { messages: parts, responses } = await stream(ALL);
    assert.deepEqual(
      responses.slice(0, 1).map(({ kvs }) => kvs.length <= 10),
      [true],
    );
    const limit = MAX_CHUNK_REQUESTS * MAX_REQUEST_BYTES + 3000 + 100;
    assert.ok(parts.every(({ length }) => length <= limit));
    const near = parts.filter(({ length }) => length >= MAX_REQUEST_BYTES / 2);
    assert.ok(near.length > parts.length / 2, `${near.length} of ${parts.length}`);
  });

  test("a slow reader is sent nothing until it is drained, and one that goes away ends it", async () => {
    const one = new RangeCall(member, 2).ask(ALL);
    await world.run(20);
    assert.equal(one.messages.length, 2);
    one.capacity = 1;
    one.listener.drained!();
    await world.run(20);
    assert.equal(one.messages.length, 3);
    one.listener.cancelled!();
    await world.run(20);
    assert.deepEqual([one.messages.length, one.ended], [3, undefined]);
    assert.equal(member.slices.memory.totalBytes, 0);
  });

  test("all parts have the revision of the first, also in the header", async () => {
    const before = await stream(ALL);
    const one = new RangeCall(member, 1).ask(ALL);
    await world.run(20);
    for (let i = 0; i < 300; i += 7) await world.settled(put(member, keyOf(i), "later"));
    await world.settled(put(member, "zzz", "later"));
    one.capacity = Number.POSITIVE_INFINITY;
    one.listener.drained!();
    await world.until(() => one.ended !== undefined);
    assert.equal(text(merged(one.responses)), text(merged(before.responses)));
  });

  test("a compaction beyond that revision is not held back, and ends it", async () => {
    const one = new RangeCall(member, 1).ask(ALL);
    await world.run(20);
    await world.settled(put(member, keyOf(0), "newer"));
    const revision = member.store.mvcc.currentRevision;
    const compaction = CompactionRequest.encode({ revision, physical: false });
    await world.settled(call(member, Compact.path, compaction));
    one.listener.drained!();
    await world.until(() => one.ended !== undefined);
    assert.match((one.ended as Status).message, /required revision has been compacted/);
    const late = await stream({ ...ALL, revision: revision + 1 });
    assert.match((late.ended as Status).message, /required revision is a future revision/);
    assert.equal(late.messages.length, 0);
  });

  test("what etcd refuses is refused in its words", () => {
    const refused = (request: Partial<RangeRequest>): unknown => {
      const one = new RangeCall(member);
      try {
        one.ask({ ...ALL, ...request });
      } catch (error) {
        const { code, message } = error as Status;
        return [code, message];
      }
      return one.ended;
    };
    const sorted = [12, "RangeStream does not support custom sort orders"];
    const filtered = [12, "RangeStream does not support revision filters"];
    assert.deepEqual(refused({ sortOrder: 2 }), sorted);
    assert.deepEqual(refused({ sortOrder: 1, sortTarget: 3 }), sorted);
    for (const filter of [
      "minModRevision",
      "maxModRevision",
      "minCreateRevision",
      "maxCreateRevision",
    ])
      assert.deepEqual(refused({ [filter]: 3 }), filtered);
    assert.deepEqual(refused({ key: new Uint8Array(0) }), [3, "etcdserver: key is not provided"]);
    assert.deepEqual(refused({ sortOrder: 9 as never }), [3, "etcdserver: invalid sort option"]);
  });

  test("bytes that are no request, two requests and none are refused", () => {
    assert.throws(() => new RangeCall(member).listener.message!(Uint8Array.of(8)), {
      code: 13,
      message: /^grpc: error unmarshalling request/,
    });
    const two = new RangeCall(member, 1).ask(ALL);
    assert.throws(() => two.ask(ALL), /more than one message/);
    const none = new RangeCall(member);
    none.listener.halfClosed!();
    assert.deepEqual((none.ended as Status).code, 13);
  });
});

test("permission is needed, and one that is withdrawn ends what runs", async () => {
  const world = new World(1, ["--max-request-bytes", String(MAX_REQUEST_BYTES)]);
  await world.startAll();
  const member = world.leader()!.member!;
  for (let i = 0; i < 30; i++) await world.settled(put(member, `ann/${i}`, "v".repeat(900)));
  const root = await enableAuth(world, member, "ann", "bob");
  const range = { key: fromUtf8("ann/"), rangeEnd: fromUtf8("ann0") };
  const ended = async (one: RangeCall): Promise<string> => {
    await world.until(() => one.ended !== undefined);
    return (one.ended as Status).message ?? "ok";
  };
  const denied = "etcdserver: permission denied";
  const [ann, bob] = [
    await world.settled(login(member, "ann")),
    await world.settled(login(member, "bob")),
  ];
  assert.equal(await ended(new RangeCall(member, 99, bob).ask(range)), denied);
  assert.match(await ended(new RangeCall(member, 99).ask(range)), /user name is empty/);
  assert.equal(await ended(new RangeCall(member, 99, ann).ask(range)), "ok");
  const running = new RangeCall(member, 1, ann).ask(range);
  await world.until(() => running.messages.length === 1);
  const { RoleRevokePermission } = AuthService.methods;
  const revoked = { role: "ann", ...range };
  await world.settled(callAs(member, root, RoleRevokePermission, revoked));
  running.listener.drained!();
  assert.equal(await ended(running), denied);
  assert.equal(running.messages.length, 1);
  await world.stopAll();
});

test("the keys of the next part double below half of the target, and halve above twice of it", () => {
  const target = 1000;
  assert.deepEqual(
    [0, 499, 500, 2000, 2001].map((bytes) => nextChunkKeys(10, bytes, target)),
    [20, 20, 10, 10, 5],
  );
  assert.equal(nextChunkKeys(1, 9000, target), 1);
});
