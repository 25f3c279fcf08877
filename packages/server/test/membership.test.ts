import assert from "node:assert/strict";
import { test } from "node:test";
import type { Member } from "@quorate/member";
import { MAX_WAITING_CHANGES } from "@quorate/member/testing";
import {
  ClusterService,
  ElectionService,
  idToHex,
  LeaseService,
  MaintenanceService,
  MemberAddRequest,
  MemberAddResponse,
  MemberPromoteRequest,
  MemberUpdateRequest,
  MoveLeaderRequest,
  WatchService,
} from "@quorate/proto";
import { openStream } from "./support/leases.ts";
import { HEALTHY_MS, healthyWorld, list, remove } from "./support/membership.ts";
import { call, get, type Node, put, textOf, World } from "./support/world.ts";

const { MemberAdd, MemberPromote, MemberUpdate } = ClusterService.methods;
const { MoveLeader } = MaintenanceService.methods;

const add = async (world: World, member: Member, peerUrl: string, isLearner = false) =>
  MemberAddResponse.decode(
    await world.settled(
      call(member, MemberAdd.path, MemberAddRequest.encode({ peerURLs: [peerUrl], isLearner })),
    ),
  );
const promote = (world: World, member: Member, id: bigint) =>
  world.settled(call(member, MemberPromote.path, MemberPromoteRequest.encode({ ID: id })));
const update = (world: World, member: Member, id: bigint, peerURLs: string[]) =>
  world.settled(call(member, MemberUpdate.path, MemberUpdateRequest.encode({ ID: id, peerURLs })));
const moveLeader = (world: World, member: Member, targetID: bigint) =>
  world.settled(call(member, MoveLeader.path, MoveLeaderRequest.encode({ targetID })));

/** Adds a machine to the world and to the cluster, and starts it; resolves when it serves. */
async function grow(world: World, isLearner: boolean): Promise<Node> {
  const node = world.addNode([]);
  const via = world.leader()!.member!;
  const { member, members } = await add(world, via, node.peerUrl, isLearner);
  const pairs = members.map(
    (one) => `${one.ID === member!.ID ? node.name : one.name}=${one.peerURLs[0]}`,
  );
  node.flags = ["--initial-cluster", pairs.join(","), "--initial-cluster-state", "existing"];
  const started = await world.start(node);
  assert.equal(started.id, member!.ID);
  assert.equal(started.clusterId, via.clusterId);
  await world.settled(started.ready);
  return node;
}

function followerOf(world: World): Node {
  return world.nodes.find((node) => node.member !== undefined && node !== world.leader())!;
}

test("a voter is added, joins with the data there is, and counts for the quorum", async () => {
  const world = await healthyWorld(3);
  await world.settled(put(world.leader()!.member!, "k", "before"));
  const node = await grow(world, false);
  await world.until(() => node.member!.leader !== 0n);
  assert.equal(await world.settled(get(node.member!, "k")), "before");
  assert.equal((await list(world, node.member!)).length, 4);
  assert.ok(
    (await list(world, node.member!, false)).every((one) => one.name !== "" && !one.isLearner),
  );
  // Three of four are a quorum only with the new one.
  const away = followerOf(world);
  world.cutOff.add(away.member!.id);
  await world.settled(put(world.leader()!.member!, "k", "after"));
  assert.equal(await world.settled(get(node.member!, "k")), "after");
  // It starts again from what it has, whatever its flags say.
  await world.settled(node.member!.stop());
  const again = await world.start(node);
  await world.settled(again.ready);
  assert.equal(await world.settled(get(again, "k")), "after");
  await world.stopAll();
});

test("a learner does not vote, is promoted when it has caught up, by any member, and is a voter then", async () => {
  const world = await healthyWorld(3, [
    "--snapshot-count",
    "10",
    "--snapshot-catchup-entries",
    "5",
  ]);
  for (let i = 0; i < 30; i++)
    await world.settled(put(world.leader()!.member!, `k${i % 7}`, `v${i}`));
  const leader = world.leader()!.member!;
  const node = world.addNode([]);
  const { member, members } = await add(world, leader, node.peerUrl, true);
  const id = member!.ID;
  assert.equal(member!.isLearner, true);
  for (const via of world.nodes.slice(0, 3)) {
    await assert.rejects(promote(world, via.member!, id), {
      message: textOf("MemberLearnerNotReady"),
      code: 9,
    });
  }
  const another = add(world, leader, "http://127.0.0.1:9", true);
  await assert.rejects(another, { message: textOf("TooManyLearners"), code: 9 });
  const pairs = members.map((one) => `${one.ID === id ? node.name : one.name}=${one.peerURLs[0]}`);
  node.flags = ["--initial-cluster", pairs.join(","), "--initial-cluster-state", "existing"];
  const learner = await world.start(node);
  await world.settled(learner.ready);
  assert.equal(learner.isLearner, true);
  assert.equal(await world.settled(get(learner, "k1", true)), "v29");
  await assert.rejects(list(world, learner), { message: textOf("NotSupportedForLearner") });
  for (const { path } of [
    WatchService.methods.Watch,
    LeaseService.methods.LeaseKeepAlive,
    ElectionService.methods.Observe,
  ]) {
    assert.throws(
      () => openStream(learner, path),
      { message: textOf("NotSupportedForLearner"), code: 9 },
      path,
    );
  }
  await promote(world, followerOf(world).member!, id);
  await world.until(() => !learner.isLearner);
  assert.equal(await world.settled(get(learner, "k1")), "v29");
  await assert.rejects(promote(world, leader, id), {
    message: textOf("MemberNotLearner"),
    code: 9,
  });
  await assert.rejects(promote(world, leader, 42n), { message: textOf("MemberNotFound"), code: 5 });
  await world.stopAll();
});

test("changes that do not fit are refused with etcd's errors", async () => {
  const world = new World(3);
  await world.startAll();
  const leader = world.leader()!.member!;
  const other = followerOf(world).member!;
  await assert.rejects(add(world, leader, "http://127.0.0.1:9"), {
    message: textOf("Unhealthy"),
    code: 14,
  });
  await world.run(HEALTHY_MS);
  await assert.rejects(add(world, leader, "no url"), { message: textOf("MemberBadURLs"), code: 3 });
  await assert.rejects(add(world, leader, "http://127.0.0.1:9/path"), {
    message: textOf("MemberBadURLs"),
    code: 3,
  });
  await assert.rejects(add(world, other, world.nodes[1].peerUrl), {
    message: textOf("PeerURLExist"),
    code: 9,
  });
  await assert.rejects(remove(world, other, 42n), { message: textOf("MemberNotFound"), code: 5 });
  await assert.rejects(update(world, leader, 42n, ["http://127.0.0.1:9"]), {
    message: textOf("MemberNotFound"),
    code: 5,
  });
  await assert.rejects(
    update(world, leader, leader.id, [world.nodes.find((n) => n.member !== leader)!.peerUrl]),
    {
      message: textOf("PeerURLExist"),
    },
  );
  await assert.rejects(update(world, leader, leader.id, []), { message: textOf("MemberBadURLs") });
  // One is down: the others may not become fewer, but the one that is down may go.
  const [down, left] = world.nodes.filter((node) => node.member !== leader);
  world.cutOff.add(down.member!.id);
  await world.run(10);
  await assert.rejects(remove(world, leader, left.member!.id), {
    message: textOf("Unhealthy"),
    code: 14,
  });
  await assert.rejects(add(world, leader, "http://127.0.0.1:9"), {
    message: textOf("Unhealthy"),
    code: 14,
  });
  await remove(world, leader, down.member!.id);
  assert.equal((await list(world, leader)).length, 2);
  await world.stopAll();
});

test("members that were added and never started stand in the way of more changes; without the strict check they do not", async () => {
  for (const strict of [true, false]) {
    const world = await healthyWorld(1, [`--strict-reconfig-check=${strict}`]);
    const leader = world.leader()!.member!;
    if (strict) {
      const { member } = await add(world, leader, "http://127.0.0.1:9", true);
      await assert.rejects(remove(world, leader, leader.id), {
        message: textOf("MemberNotEnoughStarted"),
        code: 9,
      });
      await remove(world, leader, member!.ID);
      assert.equal((await list(world, leader)).length, 1);
    } else {
      await assert.rejects(remove(world, leader, leader.id), {
        message: textOf("MemberNotEnoughStarted"),
      });
    }
    await world.stopAll();
  }
  const world = await healthyWorld(2);
  const leader = world.leader()!.member!;
  const { member } = await add(world, leader, "http://127.0.0.1:9");
  // 2 of 4 would not be enough.
  await assert.rejects(add(world, leader, "http://127.0.0.1:10"), {
    message: textOf("MemberNotEnoughStarted"),
  });
  await remove(world, leader, member!.ID);
  await world.stopAll();
});

test("the leader is removed through itself: it hands over, ends without an error, and cannot come back with its data", async () => {
  const world = await healthyWorld(3);
  const old = world.leader()!;
  const { id } = old.member!;
  await world.settled(put(old.member!, "k", "v"));
  await remove(world, old.member!, id);
  await world.until(() => old.ended !== undefined);
  assert.equal(old.ended!.error, undefined);
  await world.until(() => world.leader() !== undefined && world.leader() !== old);
  const leader = world.leader()!.member!;
  assert.equal(await world.settled(get(leader, "k")), "v");
  assert.equal((await list(world, leader)).length, 2);
  await assert.rejects(
    world.start(old),
    /permanently removed from the cluster; its data in \/data cannot be used/,
  );
  await world.stopAll();
});

test("leadership moves to the voter that is named, by the leader alone", async () => {
  const world = await healthyWorld(3);
  const leader = world.leader()!.member!;
  const [one, two] = world.nodes
    .filter((node) => node.member !== leader)
    .map((node) => node.member!);
  await assert.rejects(moveLeader(world, one, two.id), { message: textOf("NotLeader"), code: 9 });
  await assert.rejects(moveLeader(world, leader, 42n), {
    message: textOf("BadLeaderTransferee"),
    code: 9,
  });
  await moveLeader(world, leader, two.id);
  assert.equal(leader.leader, two.id);
  await world.until(() => two.isLeader && world.leader()?.member === two);
  world.cutOff.add(one.id);
  const stuck = moveLeader(world, two, one.id);
  await assert.rejects(stuck, {
    message: "etcdserver: request timed out, leader transfer took too long",
    code: 2,
  });
  await world.settled(put(two, "k", "still leads"));
  await world.stopAll();
});

test("changes at the same time through all members are carried out one after the other", async () => {
  const world = await healthyWorld(3);
  const urls = [20001, 20002, 20003].map((port) => `http://127.0.0.1:${port}`);
  const results = await world.settled(
    Promise.allSettled(
      urls.map((peerUrl, i) =>
        call(
          world.nodes[i].member!,
          MemberAdd.path,
          MemberAddRequest.encode({ peerURLs: [peerUrl], isLearner: true }),
        ),
      ),
    ),
  );
  // One learner is allowed at a time: one of them went through, the others were refused for it.
  assert.deepEqual(results.map((one) => one.status).sort(), ["fulfilled", "rejected", "rejected"]);
  for (const one of results)
    if (one.status === "rejected") assert.equal(one.reason.message, textOf("TooManyLearners"));
  const updates = world.nodes.map((node, i) => {
    const request = MemberUpdateRequest.encode({
      ID: node.member!.id,
      peerURLs: [node.peerUrl, `http://127.0.0.1:${21000 + i}`],
    });
    return call(world.leader()!.member!, MemberUpdate.path, request);
  });
  await world.settled(Promise.all(updates));
  for (const node of world.nodes) {
    const members = await list(world, node.member!);
    assert.deepEqual(
      members.filter((one) => one.name !== "").map((one) => one.peerURLs.length),
      [2, 2, 2],
    );
  }
  await world.stopAll();
});

test("a member that joins is refused where its flags do not fit the cluster, with what to do", async () => {
  const world = await healthyWorld(3);
  const existing = world.nodes.map((node) => `${node.name}=${node.peerUrl}`);
  const node = world.addNode([]);
  const start = (cluster: readonly string[]) => {
    node.flags = ["--initial-cluster", cluster.join(","), "--initial-cluster-state", "existing"];
    return world.start(node);
  };
  const self = `${node.name}=${node.peerUrl}`;
  await assert.rejects(
    start([...existing, self]),
    /member count is unequal: the cluster has 3, --initial-cluster names 4; .*member add/,
  );
  await assert.rejects(
    start([self]),
    /cannot fetch cluster info from peer urls.*names no other member/,
  );
  await assert.rejects(
    start(["gone=http://127.0.0.1:1", self]),
    /could not retrieve cluster information.*asked: http:\/\/127.0.0.1:1/,
  );
  await assert.rejects(start(existing), /couldn't find local name "m3" in the initial cluster/);
  const { member } = await add(world, world.leader()!.member!, "http://127.0.0.1:9");
  await assert.rejects(
    start([...existing, self]),
    new RegExp(`no match found for existing member \\(${idToHex(member!.ID)}`),
  );
  // Added as it is, it is let in; with its data lost afterwards it is not, under either state.
  await remove(world, world.leader()!.member!, member!.ID);
  await add(world, world.leader()!.member!, node.peerUrl);
  const joined = await start([...existing, self]);
  await world.settled(joined.ready);
  await world.settled(joined.stop());
  node.disk.rename("/data", "/lost");
  await assert.rejects(
    start([...existing, self]),
    /has been started before as "m3", and its data is not in \/data.*remove the member/,
  );
  const first = world.nodes[0];
  await world.settled(first.member!.stop());
  first.member = undefined;
  first.disk.rename("/data", "/lost");
  await assert.rejects(
    world.start(first),
    /has already been bootstrapped, and its data is not in \/data/,
  );
  await world.stopAll();
});

test("a joining member crashes at its first start, before and after it has heard anything: it begins again", async () => {
  const world = await healthyWorld(3);
  for (const point of [
    "before-wal-append",
    "after-wal-append",
    "before-apply",
    "after-apply",
    "before-backend-flush",
  ] as const) {
    const node = world.addNode([]);
    const { member, members } = await add(world, world.leader()!.member!, node.peerUrl);
    const pairs = members.map(
      (one) => `${one.ID === member!.ID ? node.name : one.name}=${one.peerURLs[0]}`,
    );
    node.flags = ["--initial-cluster", pairs.join(","), "--initial-cluster-state", "existing"];
    node.crashAt = point;
    await world.start(node);
    await world.until(() => node.ended !== undefined);
    node.disk.crash(world.random.fork(point));
    const again = await world.start(node);
    await world.settled(again.ready);
    await world.settled(put(again, point, "v"));
    await remove(world, world.leader()!.member!, again.id);
    await world.until(() => node.ended !== undefined);
  }
  await world.stopAll();
});

test("more changes than may wait are refused", async () => {
  const world = await healthyWorld(3);
  const leader = world.leader()!.member!;
  for (const node of world.nodes) if (node.member !== leader) world.cutOff.add(node.member!.id);
  const request = MemberUpdateRequest.encode({ ID: leader.id, peerURLs: ["http://127.0.0.1:9"] });
  const waiting = Array.from({ length: MAX_WAITING_CHANGES }, () =>
    call(leader, MemberUpdate.path, request).catch(() => undefined),
  );
  await assert.rejects(call(leader, MemberUpdate.path, request), {
    message: textOf("TooManyRequests"),
    code: 8,
  });
  await world.settled(Promise.all(waiting));
  world.cutOff.clear();
  await world.until(() => world.leader() !== undefined);
  await update(world, world.leader()!.member!, leader.id, ["http://127.0.0.1:9"]);
  await world.stopAll();
});

test("with a minority dead a learner is added, promoted, and the dead one removed; a voter is refused as in etcd", async () => {
  for (const [size, deadCount] of [
    [3, 1],
    [5, 2],
  ] as const) {
    const world = await healthyWorld(size);
    const dead = world.nodes.filter((node) => node !== world.leader()).slice(0, deadCount);
    const deadIds = dead.map((node) => node.member!.id);
    for (const id of deadIds) world.cutOff.add(id);
    await world.run(HEALTHY_MS);
    const leader = world.leader()!.member!;
    // A new voter would count for the quorum before it is there: 2 of 4 and 3 of 6 are none.
    await assert.rejects(add(world, leader, "http://127.0.0.1:9"), {
      message: textOf("Unhealthy"),
      code: 14,
    });
    for (const id of deadIds) {
      const node = await grow(world, true);
      await promote(world, leader, node.member!.id);
      await remove(world, leader, id);
      await world.settled(put(leader, "k", `without ${id}`));
    }
    const members = await list(world, leader);
    assert.equal(members.length, size);
    assert.ok(members.every((one) => !one.isLearner && !deadIds.includes(one.ID)));
    await world.stopAll();
  }
});

test("a learner that died after it had caught up is not promoted where that would end the quorum", async () => {
  const world = await healthyWorld(3);
  const leader = world.leader()!.member!;
  const dead = followerOf(world).member!;
  const learner = (await grow(world, true)).member!;
  await world.run(HEALTHY_MS);
  world.cutOff.add(dead.id);
  world.cutOff.add(learner.id);
  await world.run(10);
  await assert.rejects(promote(world, leader, learner.id), {
    message: textOf("Unhealthy"),
    code: 14,
  });
  await world.settled(put(leader, "k", "still serving"));
  world.cutOff.delete(learner.id);
  await world.until(() => !learner.isLearner || leader.isLeader);
  await world.run(HEALTHY_MS);
  await promote(world, leader, learner.id);
  await world.settled(put(leader, "k", "three of four"));
  await world.stopAll();
});

test("without a quorum of healthy links no learner is added", async () => {
  const world = new World(3);
  await world.startAll();
  await assert.rejects(add(world, world.leader()!.member!, "http://127.0.0.1:9", true), {
    message: textOf("Unhealthy"),
    code: 14,
  });
  await world.stopAll();
});
