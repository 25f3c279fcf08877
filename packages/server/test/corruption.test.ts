/**
 * Members that differ: how it is found, which member the alarm names, and a member that rebuilds
 * its store.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Member } from "@quorate/member";
import { MEMBER_CALLER } from "@quorate/member";
import {
  AlarmRequest,
  AlarmRequest_AlarmAction,
  AlarmType,
  CompactionRequest,
  DeleteRangeRequest,
  fromLatin1,
  fromUtf8,
  HashKVRequest,
  HashKVResponse,
  idToHex,
  KeyValue,
  LeaseLeasesRequest,
  RangeRequest,
  toUtf8,
} from "@quorate/proto";
import { LocalClient } from "@quorate/services/testing";
import { memberHealth } from "../src/http/health.ts";
import { call, get, type Node, put, textOf, World } from "./support/world.ts";

const CHECK = ["--corrupt-check-time", "2s"];

async function started(size: number, flags: readonly string[]): Promise<World> {
  const world = new World(size, flags);
  await world.startAll();
  for (let i = 0; i < 20; i++)
    await world.settled(put(world.leader()!.member!, `k${i % 5}`, `value ${i}`));
  await world.until(() =>
    world.nodes.every(({ member }) => member!.store.mvcc.currentRevision === 21),
  );
  return world;
}

async function stop(world: World, node: Node): Promise<void> {
  await world.settled(node.member!.stop());
  node.member = undefined;
}

/**
 * Changes one record of a stopped member's store to another that is as valid and as long: the last
 * value of k4. No checksum and no count of this member shows it.
 */
async function damage(world: World, node: Node, value = "VALUE 19"): Promise<void> {
  const keyspace = await node.keyspaces.open("/data/member/store/db", { create: false });
  const key = fromLatin1(`k${"\0".repeat(7)}\x15_${"\0".repeat(8)}`);
  const record = KeyValue.decode(keyspace.get(key)!);
  assert.equal(toUtf8(record.value), "value 19");
  await world.settled(
    keyspace.write([{ key, value: KeyValue.encode({ ...record, value: fromUtf8(value) }) }]),
  );
  await world.settled(keyspace.close());
}

const followersOf = (world: World) => world.nodes.filter((node) => node !== world.leader());
const corrupt = (member: Member) =>
  member.store.alarms.list(AlarmType.CORRUPT).map(({ memberId }) => idToHex(memberId));

async function hashOf(world: World, member: Member): Promise<number> {
  const bytes = await world.settled(
    call(member, "/etcdserverpb.Maintenance/HashKV", HashKVRequest.encode({})),
  );
  return HashKVResponse.decode(bytes).hash;
}

async function damagedFollower(world: World): Promise<Node> {
  const [node] = followersOf(world);
  await stop(world, node);
  await damage(world, node);
  await world.start(node);
  return node;
}

test("equal members: nothing is raised, whatever is written and compacted meanwhile", async () => {
  const world = await started(3, [
    ...CHECK,
    "--feature-gates",
    "CompactHashCheck=true",
    "--compact-hash-check-time",
    "1s",
  ]);
  for (let i = 0; i < 300; i++) {
    const member = world.nodes[i % 3].member!;
    await world.settled(put(member, `k${i % 7}`, `${i}`));
    if (i % 60 === 59) {
      const bytes = CompactionRequest.encode({ revision: member.store.mvcc.currentRevision - 10 });
      await world.settled(call(member, "/etcdserverpb.KV/Compact", bytes));
    }
    await world.run(40);
  }
  for (const { member } of world.nodes) assert.equal(member!.store.alarms.any, false);
  await world.stopAll();
});

test("a follower that differs is named by the leader's check, and everything is refused", async () => {
  const world = await started(3, CHECK);
  const odd = await damagedFollower(world);
  assert.equal(
    await world.settled(get(odd.member!, "k4")),
    "VALUE 19",
    "no member has noticed yet",
  );
  await world.until(() => world.nodes.every(({ member }) => member!.store.alarms.corrupt));
  const leader = world.leader()!.member!;
  assert.deepEqual(corrupt(leader), [idToHex(odd.member!.id)]);
  for (const { member } of world.nodes) {
    await assert.rejects(world.settled(put(member!, "a", "b")), { message: textOf("Corrupt") });
    const remove = DeleteRangeRequest.encode({ key: fromUtf8("k0") });
    await assert.rejects(world.settled(call(member!, "/etcdserverpb.KV/DeleteRange", remove)), {
      message: textOf("Corrupt"),
    });
    assert.equal(await world.settled(get(member!, "k3")), "value 18");
  }
  await world.stopAll();
});

test("a leader that differs is named too: the majority is right", async () => {
  const world = await started(3, CHECK);
  const [first, second] = followersOf(world);
  const old = world.leader()!;
  // It comes back with the longest log, and the others step aside.
  await stop(world, old);
  await damage(world, old);
  await world.start(old);
  await world.until(() => world.leader() !== undefined);
  while (world.leader() !== old) {
    await world.settled(world.leader()!.member!.leadership.move(old.member!.id));
    await world.until(() => world.leader() !== undefined);
  }
  await world.until(() => [first, second].every(({ member }) => member!.store.alarms.corrupt));
  assert.deepEqual(corrupt(first.member!), [idToHex(old.member!.id)]);
  await world.stopAll();
});

test("where no hash is that of a majority the alarm names no member", async () => {
  const world = await started(3, [...CHECK, "--self-heal"]);
  const nodes = followersOf(world);
  // One after the other, each with a value of its own.
  for (const [i, node] of nodes.entries()) {
    await stop(world, node);
    await damage(world, node, `value ${i}${i}`);
  }
  for (const node of nodes) await world.start(node);
  await world.until(() => world.nodes.every(({ member }) => member!.store.alarms.corrupt));
  assert.deepEqual(corrupt(nodes[0].member!), ["0"]);
  await world.run(5000);
  assert.equal(
    new Set(await Promise.all(world.nodes.map(({ member }) => hashOf(world, member!)))).size,
    3,
    "no member rebuilds its store on a guess",
  );
  await world.stopAll();
});

test("--self-heal: a second member that differs while the first mends itself is mended once the alarms are ended", async () => {
  const world = await started(3, [...CHECK, "--self-heal"]);
  const [first, second] = followersOf(world) as [Node, Node];
  await stop(world, first);
  await damage(world, first);
  await world.start(first);
  const place = `k${"\0".repeat(7)}\x15_${"\0".repeat(8)}`;
  const newestOf = (node: Node) =>
    toUtf8(KeyValue.decode(node.keyspaces.values("/data/member/store/db")!.get(place)!).value);
  // The copy has come, and was not compared with the others yet: it is no witness for anybody.
  await world.until(() => first.member!.corruption.isHealing && newestOf(first) === "value 19");
  const record = KeyValue.decode(second.keyspaces.values("/data/member/store/db")!.get(place)!);
  second.keyspaces.alter(
    "/data/member/store/db",
    place,
    KeyValue.encode({ ...record, value: fromUtf8("VALUE 19") }),
  );
  await world.until(() => corrupt(world.leader()!.member!).includes("0"));
  await world.run(10_000);
  assert.deepEqual(
    corrupt(world.leader()!.member!).sort(),
    ["0", idToHex(first.member!.id)].sort(),
    "no member rebuilds its store on a guess",
  );
  assert.equal(first.member!.corruption.isHealing, true);
  // What 'alarm disarm' sends.
  for (const { memberId } of world.leader()!.member!.store.alarms.list(AlarmType.CORRUPT)) {
    const end = {
      action: AlarmRequest_AlarmAction.DEACTIVATE,
      memberID: memberId,
      alarm: AlarmType.CORRUPT,
    };
    await world.settled(
      call(world.leader()!.member!, "/etcdserverpb.Maintenance/Alarm", AlarmRequest.encode(end)),
    );
  }
  await world.until(() => newestOf(second) === "value 19");
  const isWell = ({ member }: Node) => !member!.store.alarms.any && !member!.corruption.isHealing;
  await world.until(() => world.nodes.every(isWell));
  for (const node of world.nodes) await world.settled(put(node.member!, "after", node.name));
  await world.run(5000);
  assert.equal(
    new Set(await Promise.all(world.nodes.map(({ member }) => hashOf(world, member!)))).size,
    1,
  );
  for (const { member } of world.nodes) assert.equal(member!.store.alarms.any, false);
  await world.stopAll();
});

test("after a compaction its revision is compared", async () => {
  const world = await started(3, [
    "--feature-gates",
    "CompactHashCheck=true",
    "--compact-hash-check-time",
    "1s",
  ]);
  const odd = await damagedFollower(world);
  await world.run(3000);
  assert.equal(odd.member!.store.alarms.any, false, "nothing was compacted");
  await world.settled(put(odd.member!, "after", "x"));
  await world.settled(
    call(odd.member!, "/etcdserverpb.KV/Compact", CompactionRequest.encode({ revision: 21 })),
  );
  await world.until(() => world.nodes.every(({ member }) => member!.store.alarms.corrupt));
  assert.deepEqual(corrupt(odd.member!), [idToHex(odd.member!.id)]);
  await world.stopAll();
});

test("a member that differs does not start with the gate InitialCorruptCheck; one that is equal does", async () => {
  const world = await started(3, ["--feature-gates", "InitialCorruptCheck=true"]);
  const [node] = followersOf(world);
  await stop(world, node);
  await world.start(node);
  await stop(world, node);
  await damage(world, node);
  await assert.rejects(world.start(node), /^Error: [0-9a-f]+ found data inconsistency with peers$/);
  await world.stopAll();
});

for (const how of ["the leader's check", "its own check at start"] as const) {
  test(`--self-heal: a member that ${how} has found rebuilds its store, and the operator has nothing to do`, async () => {
    const flags =
      how === "the leader's check" ? CHECK : ["--feature-gates", "InitialCorruptCheck=true"];
    const world = await started(3, [...flags, "--self-heal", "--snapshot-count", "1000"]);
    const odd = await damagedFollower(world);
    const member = odd.member!;
    await world.until(() => member.corruption.isHealing);
    // It serves no reads until it is like the others.
    const read = get(member, "k4", true);
    const ranged = new LocalClient(member, MEMBER_CALLER).range(
      RangeRequest.create({ key: fromUtf8("k4") }),
    );
    const leases = call(member, "/etcdserverpb.Lease/LeaseLeases", LeaseLeasesRequest.encode({}));
    let isListed = false;
    leases.then(() => {
      isListed = true;
    });
    await world.run(1);
    assert.equal(isListed, false);
    await world.until(() => !member.corruption.isHealing);
    assert.equal(await world.settled(read), "value 19");
    assert.equal(toUtf8((await world.settled(ranged)).kvs[0].value), "value 19");
    await world.settled(leases);
    await world.until(() => world.nodes.every((node) => !node.member!.store.alarms.any));
    for (const node of world.nodes) await world.settled(put(node.member!, "after", node.name));
    await world.run(100);
    assert.equal(
      new Set(await Promise.all(world.nodes.map((node) => hashOf(world, node.member!)))).size,
      1,
    );
    // What it has now is on its disk, and goes with its log.
    await stop(world, odd);
    const again = await world.start(odd);
    await world.until(() => again.appliedIndex >= world.leader()!.member!.appliedIndex);
    assert.equal(await world.settled(get(again, "k4", true)), "value 19");
    assert.equal(await hashOf(world, again), await hashOf(world, world.leader()!.member!));
    await world.stopAll();
  });
}

test("--self-heal: a member that rebuilds its store reports in its health that it serves no reads", async () => {
  const world = await started(3, ["--feature-gates", "InitialCorruptCheck=true", "--self-heal"]);
  const odd = await damagedFollower(world);
  const member = odd.member!;
  const health = memberHealth(member);
  await world.until(() => member.corruption.isHealing);
  assert.equal(
    member.store.alarms.any,
    false,
    "it knows of itself that it differs, and the alarm is not raised yet",
  );
  assert.deepEqual(health.alarms(), ["CORRUPT"]);
  for (const serializable of [true, false])
    await assert.rejects(health.read({ serializable }), { message: textOf("Corrupt") });
  await world.until(() => member.store.alarms.any);
  assert.deepEqual(health.alarms(), ["CORRUPT"], "once");
  await world.until(() => !member.corruption.isHealing && !member.store.alarms.any);
  assert.deepEqual(health.alarms(), []);
  await world.settled(health.read({ serializable: false }));
  await world.stopAll();
});

test("--self-heal: a member that is stopped meanwhile waits for nothing, and serves nothing of what it has", async () => {
  // The leader does not send its store, or cannot be asked for it.
  for (const how of ["silent", "cut off"] as const) {
    const world = await started(3, [...CHECK, "--self-heal"]);
    const odd = await damagedFollower(world);
    const member = odd.member!;
    if (how === "silent") {
      const { listener } = odd.request!;
      listener.snapshotReceived = () => new Promise(() => {});
    }
    await world.until(() => member.corruption.isHealing);
    if (how === "cut off") world.cutOff.add(member.id);
    await world.run(5000);
    assert.equal(member.corruption.isHealing, true);
    const read = assert.rejects(get(member, "k4", true), { message: textOf("Stopped") });
    const startMs = world.clock.monotonicMs();
    await stop(world, odd);
    assert.ok(world.clock.monotonicMs() - startMs < 1000, how);
    await world.settled(read);
    await world.stopAll();
    const dueMs = world.clock.nextDueMs() ?? 0;
    assert.ok(
      dueMs - world.clock.monotonicMs() <= 0,
      `${how}: a timer is left that is due at ${dueMs} ms`,
    );
  }
});

test("--self-heal: a leader that differs hands over first", async () => {
  const world = await started(3, [...CHECK, "--self-heal"]);
  const old = world.leader()!;
  await stop(world, old);
  await damage(world, old);
  await world.start(old);
  await world.until(() => world.leader() !== undefined);
  while (world.leader() !== old) {
    await world.settled(world.leader()!.member!.leadership.move(old.member!.id));
    await world.until(() => world.leader() !== undefined);
  }
  await world.until(() => old.member!.corruption.isHealing);
  await world.until(() => !old.member!.corruption.isHealing && !old.member!.store.alarms.any);
  assert.equal(await world.settled(get(old.member!, "k4", true)), "value 19");
  assert.notEqual(world.leader(), old);
  await world.stopAll();
});

test("--self-heal: a crash in the middle leaves a member that tries again", async () => {
  for (const point of ["before-snapshot-install", "after-snapshot-install"] as const) {
    const world = await started(3, [...CHECK, "--self-heal"]);
    const odd = await damagedFollower(world);
    odd.crashAt = point;
    await world.until(() => odd.ended !== undefined);
    odd.disk.crash(world.random.fork(point));
    const member = await world.start(odd);
    await world.until(
      () =>
        !member.corruption.isHealing &&
        !member.store.alarms.any &&
        !world.leader()!.member!.store.alarms.any,
    );
    assert.equal(await hashOf(world, member), await hashOf(world, world.leader()!.member!), point);
    await world.stopAll();
  }
});

test("the peer port answers etcd's question for a hash, and says what is wrong with another", async () => {
  const world = await started(3, []);
  const [asking, asked] = world.nodes;
  const url = asked.member!.config.advertisePeerUrls[0].text;
  const ask = async (body: string) => {
    const { status, body: answer } = await world.settled(
      world.callPeer(asking, url, "/members/hashkv", fromUtf8(body)),
    );
    return `${status} ${toUtf8(answer)}`;
  };
  const hash = await hashOf(world, asked.member!);
  assert.equal(
    await ask('{"revision":0}'),
    `200 {"header":{"revision":21},"hash":${hash},"compact_revision":-1,"hash_revision":21}`,
  );
  assert.match(await ask('{"revision":7}'), /^200 .*"hash_revision":7\}$/);
  assert.equal(await ask('{"revision":100}'), "400 mvcc: required revision is a future revision\n");
  for (const body of ["", "nonsense", '{"revision":"7"}'])
    assert.equal(await ask(body), "400 error unmarshalling request\n");
  await world.stopAll();
});
