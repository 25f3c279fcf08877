/**
 * Entries that take many turns of the event loop to apply: what goes on in between, and what ends
 * in between. Each turn takes a millisecond of the manual clock, and each slice looks at one key,
 * so that a delete of 2,000 keys takes two seconds: longer than an election timeout.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Member } from "@quorate/member";
import type { ApplyLimits, FaultPoint } from "@quorate/member/testing";
import {
  DeleteRangeRequest,
  DeleteRangeResponse,
  errorOf,
  fromUtf8,
  KVService,
  LeaseGrantRequest,
  LeaseRevokeRequest,
  LeaseService,
  PutRequest,
  RangeRequest,
  RangeResponse,
  TxnRequest,
} from "@quorate/proto";
import { MAX_PENDING_OPS } from "@quorate/store";
import { call, get, type Node, put, World } from "./support/world.ts";

const KEYS = 2000;
/** Keys in one transaction, while the store is filled. */
const TXN_KEYS = 100;
const EACH_KEY: ApplyLimits = {
  maxSliceMs: Number.POSITIVE_INFINITY,
  maxSliceSteps: 1,
  stepKeys: 1,
};
const RANGE = { key: fromUtf8("k"), rangeEnd: fromUtf8("l") };
const keyOf = (i: number): string => `k${String(i).padStart(4, "0")}`;

async function started(size: number, flags: readonly string[] = []): Promise<World> {
  const world = new World(size, [
    "--election-timeout",
    "1000",
    "--heartbeat-interval",
    "100",
    ...flags,
  ]);
  world.turnMs = 1;
  // Fast while it is filled.
  await world.startAll();
  return world;
}

/**
 * Fills the store, all keys on the lease 7, and starts the members again, which apply key by key
 * from then on.
 */
async function filled(
  size: number,
  flags: readonly string[] = [],
  slow: (node: Node) => boolean = () => true,
  turnMs = 1,
): Promise<World> {
  const world = await started(size, flags);
  const leader = world.leader()!.member!;
  await world.settled(
    call(
      leader,
      LeaseService.methods.LeaseGrant.path,
      LeaseGrantRequest.encode({ ID: 7n, TTL: 3600 }),
    ),
  );
  for (let i = 0; i < KEYS; i += TXN_KEYS) {
    const success = Array.from({ length: TXN_KEYS }, (_, n) => ({
      request: {
        case: "requestPut" as const,
        value: PutRequest.create({ key: fromUtf8(keyOf(i + n)), value: fromUtf8("v"), lease: 7n }),
      },
    }));
    await world.settled(call(leader, KVService.methods.Txn.path, TxnRequest.encode({ success })));
  }
  await world.until(() => world.nodes.every((node) => node.member!.store.mvcc.keyCount === KEYS));
  await world.stopAll();
  world.turnMs = turnMs;
  for (const node of world.nodes) if (slow(node)) node.applyLimits = EACH_KEY;
  for (const node of world.nodes) await world.start(node);
  await world.until(() => world.leader() !== undefined);
  await world.settled(Promise.all(world.nodes.map((node) => node.member!.ready)));
  return world;
}

const deleteAll = (member: Member): Promise<Uint8Array> =>
  call(member, KVService.methods.DeleteRange.path, DeleteRangeRequest.encode(RANGE));

async function count(
  member: Member,
  serializable: boolean,
): Promise<{ count: number; revision: number }> {
  const bytes = await call(
    member,
    KVService.methods.Range.path,
    RangeRequest.encode({ ...RANGE, countOnly: true, serializable }),
  );
  const { count, header } = RangeResponse.decode(bytes);
  return { count, revision: header!.revision };
}

/** Moves time on until a member has passed the point between two slices so many times. */
async function inTheMiddle(world: World, node: Node, slices = 300): Promise<void> {
  let passes = 0;
  node.passes = (point) => {
    if (point === "between-apply-slices") passes++;
  };
  await world.until(() => passes >= slices);
  node.passes = undefined;
}

/** All members are at one index with equal bytes, and have these keys. */
async function agree(world: World, keys: number): Promise<void> {
  await world.until(() => world.leader() !== undefined);
  const target = world.leader()!.member!.commitIndex;
  await world.until(() => world.nodes.every((node) => (node.member?.appliedIndex ?? 0) >= target));
  const hashes = new Set<string>();
  for (const { member } of world.nodes) {
    assert.equal(member!.store.mvcc.keyCount, keys);
    const { hash, revision } = await world.settled(member!.store.mvcc.hashKV(0));
    hashes.add(`${hash} at ${revision}, ${await world.settled(member!.store.mvcc.hash())}`);
  }
  assert.equal(hashes.size, 1, [...hashes].join("; "));
}

test("while a large delete is applied: heartbeats, reads of the state before it, appends; what follows it waits for it", async () => {
  const world = await filled(3);
  const leader = world.leader()!;
  const member = leader.member!;
  const { term } = member;
  const { revision } = member.store.mvcc.view;
  const order: string[] = [];
  const deleted = deleteAll(member).then((bytes) => {
    order.push("delete");
    return DeleteRangeResponse.decode(bytes);
  });
  await inTheMiddle(world, leader);
  const applied = member.appliedIndex;
  // Reads that need no quorum are answered now.
  assert.deepEqual(await world.settled(count(member, true)), { count: KEYS, revision });
  assert.equal(
    await world.settled(get(member, keyOf(0), true)),
    "v",
    "a key that is deleted already by the entry in progress",
  );
  const linearizable = count(member, false).then((answer) => {
    order.push("read");
    return answer;
  });
  const written = put(member, "other", "1").then(() => order.push("put"));
  // The put is appended and committed beside the entry in progress.
  const committed = member.commitIndex;
  await world.until(() => member.commitIndex > committed);
  assert.deepEqual([member.appliedIndex, order], [applied, []]);
  // Longer than an election timeout without a change of the leader.
  await world.run(1200);
  assert.deepEqual([world.leader(), member.term, order], [leader, term, []]);
  assert.deepEqual(await world.settled(count(member, true)), { count: KEYS, revision });
  await world.settled(written);
  assert.equal((await deleted).deleted, KEYS);
  assert.equal((await linearizable).count, 0);
  assert.equal(order[0], "delete");
  assert.deepEqual([member.term, world.leader()], [term, leader]);
  await agree(world, 1);
  await world.stopAll();
});

test("a lease with many keys is revoked at one revision, in slices", async () => {
  const world = await filled(3);
  const leader = world.leader()!;
  const member = leader.member!;
  const { revision } = member.store.mvcc.view;
  const revoked = call(
    member,
    LeaseService.methods.LeaseRevoke.path,
    LeaseRevokeRequest.encode({ ID: 7n }),
  );
  await inTheMiddle(world, leader, 2500);
  assert.equal(member.store.lessor.keysOf(7n).length, KEYS);
  assert.deepEqual(await world.settled(count(member, true)), { count: KEYS, revision });
  await world.settled(revoked);
  assert.equal(member.store.lessor.get(7n), undefined);
  assert.equal(member.store.mvcc.currentRevision, revision + 1);
  await agree(world, 0);
  await world.stopAll();
});

test("a revocation that takes longer than a request may wait is answered all the same", async () => {
  // 2,000 keys are sorted and deleted, one a turn: some 12 s, and a request waits for 7.
  const world = await filled(1, [], () => true, 3);
  const { member } = world.nodes[0];
  const beganMs = world.clock.monotonicMs();
  const revoked = call(
    member!,
    LeaseService.methods.LeaseRevoke.path,
    LeaseRevokeRequest.encode({ ID: 7n }),
  );
  const behind = put(member!, "behind", "1");
  await assert.rejects(world.settled(behind), { message: errorOf("Timeout").message });
  await world.settled(revoked);
  assert.ok(world.clock.monotonicMs() - beganMs > 7000);
  await world.until(() => member!.store.mvcc.keyCount === 1);
  await world.stopAll();
});

const POINTS: readonly FaultPoint[] = [
  "between-apply-slices",
  "before-backend-flush",
  "after-backend-flush",
  "before-send",
  "after-wal-sync",
];
for (const point of POINTS) {
  for (const role of ["leader", "follower"] as const) {
    test(`crash of the ${role} ${point} while it applies a large delete: the entry is replayed whole`, async () => {
      const world = await filled(3);
      const leader = world.leader()!;
      const victim = role === "leader" ? leader : world.nodes.find((node) => node !== leader)!;
      deleteAll(leader.member!).catch(() => {});
      await inTheMiddle(world, victim);
      // Something for the log, the network and the store's batch.
      put(leader.member!, "other", "1").catch(() => {});
      victim.crashAt = point;
      // A batch of the store needs changes: those of an entry that is finished.
      await world.until(() => victim.ended !== undefined);
      victim.disk.crash(world.random.fork(point));
      const member = await world.start(victim);
      assert.ok(
        [0, KEYS].includes(
          [...Array(KEYS).keys()].filter((i) => member.store.mvcc.view.get(keyOf(i)) !== undefined)
            .length,
        ),
      );
      await world.until(
        () => world.leader() !== undefined && world.leader()!.member!.store.mvcc.keyCount < KEYS,
      );
      await world.settled(put(world.leader()!.member!, "after", "2"));
      const { keyCount } = world.leader()!.member!.store.mvcc;
      // The other put may have been lost with its proposer.
      assert.ok(keyCount === 1 || keyCount === 2, `${keyCount}`);
      await agree(world, keyCount);
      await world.stopAll();
    });
  }
}

test("the leader is cut off while it applies a large delete: another leads, and all apply it", async () => {
  const world = await filled(3);
  const old = world.leader()!;
  deleteAll(old.member!).catch(() => {});
  await inTheMiddle(world, old);
  world.cutOff.add(old.member!.id);
  await world.until(() => world.leader() !== undefined && world.leader() !== old);
  await world.settled(put(world.leader()!.member!, "other", "1"));
  world.cutOff.clear();
  await agree(world, 1);
  await world.stopAll();
});

test("a member is stopped while it applies a large delete: it ends at once, and replays the entry", async () => {
  const world = await filled(1);
  const node = world.nodes[0];
  const member = node.member!;
  const applied = member.appliedIndex;
  const refused = assert.rejects(deleteAll(member));
  await inTheMiddle(world, node);
  await world.settled(member.stop());
  await refused;
  node.applyLimits = undefined;
  const again = await world.start(node);
  assert.ok(again.store.position.index >= applied);
  await world.until(() => again.store.mvcc.keyCount === 0);
  await world.stopAll();
});

test("a snapshot is asked of a leader that applies a large delete: it is of the state before", async () => {
  const world = await filled(3, ["--snapshot-count", "10", "--snapshot-catchup-entries", "1"]);
  const leader = world.leader()!;
  const away = world.nodes.find((node) => node !== leader)!;
  world.cutOff.add(away.member!.id);
  for (let i = 0; i < 30; i++) await world.settled(put(leader.member!, `other${i}`, "1"));
  const deleted = deleteAll(leader.member!);
  await inTheMiddle(world, leader);
  const { index } = leader.member!.store.position;
  world.cutOff.clear();
  await world.until(() => away.member!.appliedIndex >= index);
  assert.equal(
    away.member!.store.mvcc.keyCount,
    KEYS + 30,
    "the follower has the snapshot, and not the entry",
  );
  assert.equal(leader.member!.store.position.index, index, "the leader is still in the middle");
  await world.settled(deleted);
  await agree(world, 30);
  await world.stopAll();
});

test("a snapshot is installed on a member in the middle of an entry: it takes the place of both", async () => {
  let slow: Node | undefined;
  const world = await filled(
    3,
    ["--snapshot-count", "10", "--snapshot-catchup-entries", "1"],
    (node) => {
      slow ??= node;
      return node === slow;
    },
  );
  // The leader applies at full speed.
  if (world.leader() === slow) {
    await world.settled(slow!.member!.handOver());
    await world.until(() => world.leader() !== undefined && world.leader() !== slow);
  }
  const leader = world.leader()!;
  const deleted = deleteAll(leader.member!);
  await inTheMiddle(world, slow!);
  await world.settled(deleted);
  const before = slow!.member!.appliedIndex;
  world.cutOff.add(slow!.member!.id);
  for (let i = 0; i < 30; i++) await world.settled(put(leader.member!, `other${i}`, "1"));
  world.cutOff.clear();
  const points: FaultPoint[] = [];
  slow!.passes = (point) => points.push(point);
  await world.until(() => points.includes("after-snapshot-install"));
  assert.ok(
    points.indexOf("between-apply-slices") >= 0,
    "it was in the middle when the snapshot came",
  );
  assert.equal(
    points.slice(points.indexOf("before-snapshot-install")).includes("between-apply-slices"),
    false,
    "nothing goes on in the old store",
  );
  assert.ok(slow!.member!.appliedIndex > before + 1);
  await agree(world, 30);
  await world.stopAll();
});

test("a crowd of large puts goes into the log over several turns", async () => {
  const world = await started(1);
  const node = world.nodes[0];
  const value = "x".repeat(1024 * 1024);
  let appends = 0;
  node.passes = (point) => {
    if (point === "before-wal-append") appends++;
  };
  const puts = Promise.all(
    Array.from({ length: 24 }, (_, i) => put(node.member!, `large${i}`, value)),
  );
  await world.settled(puts);
  // Four batches of a megabyte each, and what comes before it is noticed that this is enough.
  assert.ok(appends >= 5, `${appends} appends for 24 MiB`);
  assert.equal(node.member!.store.mvcc.keyCount, 24);
  await world.stopAll();
});

test("a leader whose store takes long to write a batch goes on leading and logging, and applies when it can", async () => {
  const world = await started(3);
  const leader = world.leader()!;
  const member = leader.member!;
  const { term } = member;
  leader.writeMs = 4000;
  const fill = (from: number): Promise<Uint8Array> => {
    const success = Array.from({ length: TXN_KEYS }, (_, n) => ({
      request: {
        case: "requestPut" as const,
        value: PutRequest.create({ key: fromUtf8(`f${from + n}`), value: fromUtf8("v") }),
      },
    }));
    return call(member, KVService.methods.Txn.path, TxnRequest.encode({ success }));
  };
  const batch = (number: number): Promise<unknown> =>
    Promise.all(
      Array.from({ length: MAX_PENDING_OPS / TXN_KEYS }, (_, i) =>
        fill(number * MAX_PENDING_OPS + i * TXN_KEYS),
      ),
    );
  // The first batch is on its way, the second is full, and the third has to wait.
  await world.settled(batch(0));
  await world.settled(batch(1));
  await world.until(() => member.store.isFull);
  const filled = batch(2);
  const applied = member.appliedIndex;
  const written = put(member, "late", "1");
  await world.run(2000);
  assert.deepEqual([world.leader(), member.term, member.appliedIndex], [leader, term, applied]);
  leader.writeMs = 2;
  await world.settled(filled);
  await world.settled(written);
  await agree(world, 3 * MAX_PENDING_OPS + 1);
  assert.equal(member.term, term);
  await world.stopAll();
});
