/** The space quota on members in memory: who refuses, who raises the alarm, and how it ends. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "@quorate/host";
import { ManualClock, MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import type { Member } from "@quorate/member";
import { Defragmenter, StoreRef } from "@quorate/member/testing";
import { Gauge, Histogram } from "@quorate/metrics";
import {
  AlarmRequest,
  AlarmRequest_AlarmAction,
  AlarmResponse,
  AlarmType,
  CompactionRequest,
  DeleteRangeRequest,
  fromUtf8,
  idToHex,
  LeaseGrantRequest,
  PutRequest,
  StatusResponse,
  TxnRequest,
} from "@quorate/proto";
import { Store } from "@quorate/store";
import { call, get, type Node, put, textOf, World } from "./support/world.ts";

const QUOTA_BYTES = 64 * 1024;
const QUOTA = ["--quota-backend-bytes", `${QUOTA_BYTES}`];
const VALUE = "x".repeat(2000);
const { GET, ACTIVATE, DEACTIVATE } = AlarmRequest_AlarmAction;

async function alarm(
  world: World,
  member: Member,
  action: number,
  memberID = 0n,
  kind: number = AlarmType.NONE,
): Promise<string[]> {
  const bytes = AlarmRequest.encode({ action, memberID, alarm: kind });
  const answer = AlarmResponse.decode(
    await world.settled(call(member, "/etcdserverpb.Maintenance/Alarm", bytes)),
  );
  assert.equal(answer.header?.memberId, member.id);
  return answer.alarms.map((one) => `${idToHex(one.memberID)} ${one.alarm}`);
}

/** The text of the error that a call ends with; "" if it succeeds. */
function errorOf(world: World, answer: Promise<unknown>): Promise<string> {
  return world.settled(
    answer.then(
      () => "",
      (error: Error) => error.message,
    ),
  );
}

/** Overwrites one key until the member refuses; returns how many puts it took. */
async function fill(world: World, member: Member): Promise<number> {
  for (let taken = 0; taken < 1000; taken++) {
    const error = await errorOf(world, put(member, "hot", VALUE));
    if (error === "") continue;
    assert.equal(error, textOf("NoSpace"));
    return taken;
  }
  throw new Error("the quota is never reached");
}

const compact = (member: Member, physical = true) =>
  call(
    member,
    "/etcdserverpb.KV/Compact",
    CompactionRequest.encode({ revision: member.store.mvcc.currentRevision, physical }),
  );

function followerOf(world: World): Node {
  return world.nodes.find((node) => node !== world.leader())!;
}

async function started(size: number, flags: readonly string[]): Promise<World> {
  const world = new World(size, flags);
  await world.startAll();
  return world;
}

test("long keys count for the quota with their place in memory too", async () => {
  const world = await started(1, QUOTA);
  const { member } = world.nodes[0];
  let taken = 0;
  // Half of the quota in records is all of it with the keys of the index.
  for (; taken < 100; taken++) {
    const error = await errorOf(world, put(member!, `${taken}`.padStart(2000, "k"), ""));
    if (error === "") continue;
    assert.equal(error, textOf("NoSpace"));
    break;
  }
  assert.ok(
    member!.store.liveBytes < 0.6 * QUOTA_BYTES,
    `${taken} keys, ${member!.store.liveBytes} bytes`,
  );
  assert.ok(member!.store.quotaBytes > 0.85 * QUOTA_BYTES);
  await world.stopAll();
});

test("a full store: writes are refused everywhere, reads, deletes and compaction go on, and a compaction ends it", async () => {
  const world = await started(3, QUOTA);
  const full = followerOf(world).member!;
  const taken = await fill(world, full);
  assert.ok(taken > 20 && taken <= 32, `${taken} puts of 2,000 bytes`);
  assert.ok(full.store.liveBytes < QUOTA_BYTES);
  await world.run(20);
  for (const { member } of world.nodes) {
    assert.deepEqual(
      await alarm(world, member!, GET),
      [`${idToHex(full.id)} 1`],
      "the member that is full, once",
    );
    assert.equal(await errorOf(world, put(member!, "small", "x")), textOf("NoSpace"));
    const value = PutRequest.create({ key: fromUtf8("small"), value: fromUtf8("x") });
    const growing = TxnRequest.encode({ success: [{ request: { case: "requestPut", value } }] });
    assert.equal(
      await errorOf(world, call(member!, "/etcdserverpb.KV/Txn", growing)),
      textOf("NoSpace"),
    );
    const grant = LeaseGrantRequest.encode({ TTL: 60 });
    assert.equal(
      await errorOf(world, call(member!, "/etcdserverpb.Lease/LeaseGrant", grant)),
      textOf("NoSpace"),
    );
    assert.equal(await world.settled(get(member!, "hot")), VALUE);
    const status = StatusResponse.decode(
      await world.settled(call(member!, "/etcdserverpb.Maintenance/Status", new Uint8Array(0))),
    );
    assert.deepEqual(status.errors, [`memberID:${full.id} alarm:NOSPACE`]);
    assert.equal(status.dbSizeQuota, QUOTA_BYTES);
    assert.equal(status.dbSizeInUse, member!.store.liveBytes);
    // etcd's alerts compare this with the quota: it is never below what the quota counts.
    assert.ok(status.dbSize >= member!.store.quotaBytes, `${status.dbSize} bytes`);
    assert.equal(member!.metrics.alarms.with(idToHex(full.id), "NOSPACE").value, 1);
  }
  await world.settled(
    call(
      full,
      "/etcdserverpb.KV/DeleteRange",
      DeleteRangeRequest.encode({ key: fromUtf8("none") }),
    ),
  );
  // It stays, however long nothing is compacted.
  await world.run(5000);
  assert.equal((await alarm(world, full, GET)).length, 1);
  await world.settled(compact(full));
  await world.until(() => world.nodes.every(({ member }) => !member!.store.alarms.any));
  for (const { member } of world.nodes) {
    assert.equal(await errorOf(world, put(member!, "small", "x")), "");
    assert.equal(member!.metrics.alarms.with(idToHex(full.id), "NOSPACE").value, 0);
  }
  await world.stopAll();
});

test("without --quota-auto-disarm an operator ends the alarm; raised over a full store it comes back", async () => {
  const world = await started(3, [...QUOTA, "--quota-auto-disarm=false"]);
  const member = world.leader()!.member!;
  await fill(world, member);
  assert.deepEqual(await alarm(world, member, DEACTIVATE, member.id, AlarmType.NOSPACE), [
    `${idToHex(member.id)} 1`,
  ]);
  assert.equal(await errorOf(world, put(member, "hot", VALUE)), textOf("NoSpace"));
  assert.equal((await alarm(world, member, GET)).length, 1, "it is as full as before");
  await world.settled(compact(member));
  await world.run(5000);
  assert.equal(await errorOf(world, put(member, "hot", VALUE)), textOf("NoSpace"));
  await alarm(world, member, DEACTIVATE, 0n, AlarmType.NOSPACE);
  assert.equal((await alarm(world, member, GET)).length, 1, "0 is not this member");
  await alarm(world, member, DEACTIVATE, member.id, AlarmType.NOSPACE);
  assert.equal(await errorOf(world, put(member, "hot", VALUE)), "");
  await world.stopAll();
});

test("among members of etcd an operator ends the alarm, whatever --quota-auto-disarm says", async () => {
  const world = new World(1, QUOTA);
  world.nodes[0].followsEtcd = true;
  await world.startAll();
  const member = world.nodes[0].member!;
  await fill(world, member);
  await world.settled(compact(member));
  await world.run(5000);
  assert.equal(await errorOf(world, put(member, "hot", VALUE)), textOf("NoSpace"));
  await alarm(world, member, DEACTIVATE, member.id, AlarmType.NOSPACE);
  assert.equal(await errorOf(world, put(member, "hot", VALUE)), "");
  await world.stopAll();
});

test("a store that compactions never empty raises the alarm, while they run", async () => {
  const slow = ["--compaction-batch-limit", "1", "--compaction-sleep-interval", "1s"];
  const world = await started(1, [...QUOTA, ...slow]);
  const member = world.nodes[0].member!;
  const isAlarmed = (): boolean => member.store.alarms.noSpace;
  for (let i = 0; i < 20; i++) await world.settled(put(member, "hot", VALUE));
  let refusedS = 0;
  for (let second = 0; second < 100 && !isAlarmed(); second++) {
    // What the compaction frees is used up at once, and there is always another compaction.
    await errorOf(world, compact(member, false));
    for (let i = 0; i < 30; i++) {
      const error = await errorOf(world, put(member, "hot", VALUE));
      if (error === "") continue;
      assert.equal(error, textOf("NoSpace"));
      refusedS++;
      break;
    }
    assert.ok(member.store.mvcc.isCompacting || isAlarmed());
    await world.run(1000);
  }
  assert.ok(isAlarmed(), `refused for ${refusedS} s without an alarm`);
  assert.ok(refusedS >= 10, `a compaction had ${refusedS} s to free space`);
  // Nothing is added under the alarm, so the compaction is done one day, and ends it.
  await world.until(() => !isAlarmed());
  assert.ok(!member.store.mvcc.isCompacting);
  assert.equal(await errorOf(world, put(member, "hot", VALUE)), "");
  await world.stopAll();
});

test("an alarm that an operator raised stays until a compaction or the operator ends it", async () => {
  const world = await started(1, QUOTA);
  const member = world.nodes[0].member!;
  await world.settled(put(member, "a", "1"));
  assert.equal((await alarm(world, member, ACTIVATE, 77n, AlarmType.NOSPACE)).length, 1);
  await world.run(3000);
  assert.equal(await errorOf(world, put(member, "a", "2")), textOf("NoSpace"));
  await world.settled(compact(member));
  await world.until(() => !member.store.alarms.any);
  assert.equal(await errorOf(world, put(member, "a", "2")), "");
  await world.stopAll();
});

test("what was on its way when the quota was reached is applied and answered; then the alarm is raised", async () => {
  const world = await started(3, QUOTA);
  const member = world.leader()!.member!;
  const answers = await world.settled(
    Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        put(member, `k${i}`, VALUE).then(
          () => "",
          (error: Error) => error.message,
        ),
      ),
    ),
  );
  assert.deepEqual([...new Set(answers)], [""]);
  assert.ok(member.store.liveBytes > 2 * QUOTA_BYTES);
  await world.until(() => world.nodes.every((node) => node.member!.store.alarms.noSpace));
  assert.equal(await world.settled(get(member, "k99")), VALUE);
  await world.run(5000);
  assert.deepEqual(
    await alarm(world, member, GET),
    [`${idToHex(member.id)} 1`],
    "one alarm is enough",
  );
  // Compaction alone helps only where something is superseded.
  await world.settled(compact(member));
  await world.run(2000);
  assert.equal(member.store.alarms.noSpace, true);
  const all = DeleteRangeRequest.encode({ key: fromUtf8("k"), rangeEnd: fromUtf8("l") });
  await world.settled(call(member, "/etcdserverpb.KV/DeleteRange", all));
  await world.settled(compact(member));
  await world.until(() => !member.store.alarms.any);
  await world.stopAll();
});

test("a follower whose own quota is smaller raises the alarm itself", async () => {
  const world = new World(3);
  const plain = world.config.bind(world);
  world.config = async (node) => ({
    ...(await plain(node)),
    quotaBackendBytes: node === world.nodes[0] ? QUOTA_BYTES : undefined,
  });
  await world.startAll();
  while (world.leader() === world.nodes[0]) {
    await world.settled(world.leader()!.member!.handOver());
    await world.until(() => world.leader() !== undefined);
  }
  const leader = world.leader()!.member!;
  for (let i = 0; i < 40; i++) await world.settled(put(leader, "hot", VALUE));
  const small = world.nodes[0].member!;
  await world.until(() => leader.store.alarms.noSpace);
  assert.deepEqual(await alarm(world, leader, GET), [`${idToHex(small.id)} 1`]);
  await world.stopAll();
});

test("warnings at 80 and 90 percent, once each", async () => {
  const world = await started(1, QUOTA);
  const member = world.nodes[0].member!;
  const seen = new Set<number>();
  for (let i = 0; i < 30; i++) {
    await world.settled(put(member, "hot", VALUE));
    await world.run(600);
    seen.add(member.space.keeper.warningPercent);
    if (member.space.keeper.usedShare < 0.8) assert.equal(member.space.keeper.warningPercent, 0);
    else
      assert.equal(
        member.space.keeper.warningPercent,
        member.space.keeper.usedShare < 0.9 ? 80 : 90,
      );
  }
  assert.deepEqual([...seen], [0, 80, 90]);
  await world.settled(compact(member));
  await world.run(600);
  assert.equal(member.space.keeper.warningPercent, 0);
  await world.stopAll();
});

test("a negative quota is none", async () => {
  const world = await started(1, ["--quota-backend-bytes", "-1"]);
  const member = world.nodes[0].member!;
  for (let i = 0; i < 50; i++) await world.settled(put(member, "hot", VALUE));
  await world.run(1000);
  assert.equal(member.store.alarms.any, false);
  assert.equal(member.space.keeper.usedShare, 0);
  await world.stopAll();
});

test("an alarm is there after a restart, and after a snapshot from the leader", async () => {
  const world = await started(3, [
    ...QUOTA,
    "--snapshot-count",
    "20",
    "--snapshot-catchup-entries",
    "5",
  ]);
  const away = followerOf(world);
  await world.settled(away.member!.stop());
  away.member = undefined;
  const leader = world.leader()!.member!;
  await fill(world, leader);
  for (let i = 0; i < 30; i++) await errorOf(world, put(leader, "refused", "x"));
  const member = await world.start(away);
  await world.until(() => member.store.alarms.noSpace);
  assert.equal(member.metrics.alarms.with(idToHex(leader.id), "NOSPACE").value, 1);
  await world.settled(member.stop());
  const again = await world.start(away);
  assert.equal(again.store.alarms.noSpace, true);
  await world.stopAll();
});

test("calls for defragmentation share it: one at a time, and a next one for all that came meanwhile", async () => {
  const clock = new ManualClock();
  const keyspaces = new MemoryKeyspaceOpener(new MemoryDisk());
  const store = await Store.open(keyspaces, "/store");
  const running: (() => void)[] = [];
  let most = 0;
  store.reclaim = () =>
    new Promise((resolve) => {
      running.push(resolve);
      most = Math.max(most, running.length);
    });
  const metrics = { defragInFlight: new Gauge(), defragDuration: new Histogram([1]) };
  const defragmenter = new Defragmenter({
    store: new StoreRef(store),
    clock,
    logger: silentLogger,
    metrics,
  });
  const done: string[] = [];
  const call = (name: string) => defragmenter.run().then(() => done.push(name));
  const ended = async () => {
    running.shift()!();
    await new Promise((resolve) => setImmediate(resolve));
  };
  const calls = [call("a")];
  assert.equal(metrics.defragInFlight.value, 1);
  calls.push(call("b"), call("c"));
  await ended();
  assert.deepEqual(done, ["a"], "what came while it ran may need more than it did");
  await ended();
  assert.deepEqual(done, ["a", "b", "c"]);
  assert.equal(most, 1);
  assert.equal(metrics.defragDuration.count, 2);
  calls.push(call("d"));
  await ended();
  await Promise.all(calls);
  assert.equal(metrics.defragInFlight.value, 0);
  await store.close({ flush: false });
});
