import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "@quorate/host";
import type { FaultPoint } from "@quorate/member/testing";
import { fromUtf8, MaintenanceService, MoveLeaderRequest, PutRequest } from "@quorate/proto";
import { Crash, call, get, put, textOf, World } from "./support/world.ts";

test("one member: what was acknowledged is there after a stop, and after a crash", async () => {
  const world = new World(1);
  await world.startAll();
  const node = world.nodes[0];
  for (let i = 0; i < 20; i++) await world.settled(put(node.member!, `k${i}`, `v${i}`));
  await world.settled(node.member!.stop());

  let member = await world.start(node);
  await world.settled(member.ready);
  assert.equal(await world.settled(get(member, "k19")), "v19");
  await world.settled(put(member, "late", "1"));
  // A crash before the backend's next batch: the log has it.
  node.crashAt = "before-backend-flush";
  await world.until(() => node.ended !== undefined);
  assert.ok(node.ended!.error instanceof Crash);
  node.disk.crash(world.random.fork("crash"));

  member = await world.start(node);
  await world.settled(member.ready);
  assert.equal(await world.settled(get(member, "late")), "1");
  assert.equal(await world.settled(get(member, "k0")), "v0");
  assert.equal(member.store.mvcc.currentRevision, 22);
  await world.stopAll();
});

test("three members: any of them takes writes and linearizable reads", async () => {
  const world = new World(3);
  await world.startAll();
  for (const node of world.nodes) {
    await world.settled(put(node.member!, "k", node.name));
    for (const reader of world.nodes)
      assert.equal(await world.settled(get(reader.member!, "k")), node.name);
  }
  await world.stopAll();
});

test("the leader is cut off: the others go on, its own clients get an error, and it comes back as a follower", async () => {
  const world = new World(3);
  await world.startAll();
  const old = world.leader()!;
  world.cutOff.add(old.member!.id);
  const stuck = put(old.member!, "k", "lost").then(
    () => "taken",
    (error: Error) => error.message,
  );
  await world.until(() => world.leader() !== undefined && world.leader() !== old);
  await world.settled(put(world.leader()!.member!, "k", "kept"));
  // Which of etcd's time-out texts it gets depends on what the member saw of leaders meanwhile;
  // that it gets one does not.
  assert.match(await world.settled(stuck), /^etcdserver: request timed out/);
  world.cutOff.clear();
  await world.until(() => old.member!.leader === world.leader()?.member?.id);
  assert.equal(await world.settled(get(old.member!, "k")), "kept");
  await world.stopAll();
});

test("the leader dies with puts of followers in flight: they end soon after the new leader's entries are applied", async () => {
  const world = new World(3);
  await world.startAll();
  const old = world.leader()!;
  const followers = world.nodes.filter((node) => node !== old);
  world.cutOff.add(old.member!.id);
  const startedMs = world.clock.monotonicMs();
  const ends = followers.map((node, i) =>
    put(node.member!, `k${i}`, "lost").then(
      () => "taken",
      (error: Error) => error.message,
    ),
  );
  await world.until(() => followers.some(({ member }) => member!.isLeader));
  // Puts that come later are taken meanwhile.
  await world.settled(put(followers[0].member!, "later", "kept"));
  const results = await world.settled(Promise.all(ends));
  assert.deepEqual(
    results,
    followers.map(() => textOf("TimeoutDueToLeaderFail")),
  );
  // Two election timeouts at most until there is a leader, one more, and 100 ms: not seven.
  const tookMs = world.clock.monotonicMs() - startedMs;
  assert.ok(tookMs <= 3100, `${tookMs} ms`);
  assert.equal(await world.settled(get(followers[1].member!, "k0")), undefined);
  await world.stopAll();
});

test("leadership moves with puts of followers in flight: none is taken twice, and none waits for long", async () => {
  const world = new World(3);
  await world.startAll();
  const ends: string[] = [];
  const puts: Promise<unknown>[] = [];
  for (let i = 0; i < 100; i++) {
    const leader = world.leader();
    const target = world.nodes.find((node) => node !== leader)!.member!;
    const move = MoveLeaderRequest.encode({ targetID: target.id });
    if (i % 20 === 10 && leader !== undefined)
      call(leader.member!, MaintenanceService.methods.MoveLeader.path, move).catch(() => {});
    for (const node of world.nodes)
      puts.push(
        put(node.member!, `${node.name} ${i}`, "v").then(
          () => ends.push("taken"),
          (error: Error) => ends.push(error.message),
        ),
      );
    await world.run(1);
  }
  await world.run(2500);
  assert.equal(ends.length, puts.length, "all have ended");
  const taken = ends.filter((end) => end === "taken").length;
  assert.deepEqual(
    [...new Set(ends)].sort(),
    [textOf("TimeoutDueToLeaderFail"), "taken"].sort(),
    "a leader that hands over drops what others pass to it",
  );
  const { currentRevision } = world.nodes[0].member!.store.mvcc;
  assert.equal(currentRevision, taken + 1);
  await world.stopAll();
});

test("without a leader: writes and linearizable reads time out, serializable reads go on, hasleader is refused at once", async () => {
  const world = new World(3);
  await world.startAll();
  const alone = world.nodes[0];
  await world.settled(put(alone.member!, "k", "v"));
  for (const node of world.nodes.slice(1)) world.cutOff.add(node.member!.id);
  await world.until(() => alone.member!.leader === 0n);
  assert.equal(await world.settled(get(alone.member!, "k", true)), "v");
  await assert.rejects(world.settled(put(alone.member!, "k", "w")), { message: textOf("Timeout") });
  await assert.rejects(world.settled(get(alone.member!, "k")), { message: textOf("Timeout") });
  const withLeader = call(
    alone.member!,
    "/etcdserverpb.KV/Put",
    PutRequest.encode({ key: fromUtf8("k") }),
    { hasleader: "true" },
  );
  await assert.rejects(world.settled(withLeader), { message: textOf("NoLeader"), code: 14 });
  await world.stopAll();
});

test("a member that the log does not reach any more gets the store, and serves it", async () => {
  const world = new World(3, ["--snapshot-count", "10", "--snapshot-catchup-entries", "5"]);
  await world.startAll();
  const leader = world.leader()!;
  const away = world.nodes.find((node) => node !== leader)!;
  world.cutOff.add(away.member!.id);
  for (let i = 0; i < 60; i++) await world.settled(put(leader.member!, `k${i % 7}`, `v${i}`));
  world.cutOff.clear();
  await world.until(() => away.member!.appliedIndex >= leader.member!.appliedIndex);
  assert.equal(await world.settled(get(away.member!, "k3")), "v59");
  const hashes = await world.settled(
    Promise.all(world.nodes.map((node) => node.member!.store.mvcc.hashKV(0))),
  );
  assert.deepEqual(new Set(hashes.map((one) => one.hash)).size, 1);
  // And it starts again from what it was given.
  await world.settled(away.member!.stop());
  const member = await world.start(away);
  await world.settled(member.ready);
  assert.equal(await world.settled(get(member, "k3")), "v59");
  await world.stopAll();
});

const POINTS: readonly FaultPoint[] = [
  "before-wal-append",
  "after-wal-append",
  "after-wal-sync",
  "before-send",
  "before-apply",
  "after-apply",
  "before-backend-flush",
  "after-backend-flush",
  "before-snapshot-mark",
  "after-snapshot-mark",
  "before-log-release",
];

for (const point of POINTS) {
  test(`crash of the leader ${point}: nothing acknowledged is lost, and it comes back`, async () => {
    const world = new World(
      3,
      ["--snapshot-count", "10", "--snapshot-catchup-entries", "5"],
      BigInt(POINTS.indexOf(point) + 1),
    );
    await world.startAll();
    const acknowledged = new Map<string, string>();
    const victim = world.leader()!;
    let i = 0;
    const write = async () => {
      const key = `k${i % 5}`;
      const value = `v${i++}`;
      await world.until(() => world.leader() !== undefined);
      const done = put(world.leader()!.member!, key, value).then(
        () => acknowledged.set(key, value),
        // Not acknowledged: it may or may not be there, so the key's next write decides.
        () => acknowledged.delete(key),
      );
      await world.settled(done);
    };
    for (let n = 0; n < 15; n++) await write();
    victim.crashAt = point;
    while (victim.ended === undefined) await write();
    victim.disk.crash(world.random.fork(point));
    for (let n = 0; n < 15; n++) await write();
    await world.start(victim);
    for (let n = 0; n < 15; n++) await write();
    await world.until(() => world.leader() !== undefined);
    const target = world.leader()!.member!.appliedIndex;
    await world.until(() =>
      world.nodes.every((node) => (node.member?.appliedIndex ?? 0) >= target),
    );
    for (const node of world.nodes) {
      for (const [key, value] of acknowledged)
        assert.equal(await world.settled(get(node.member!, key)), value, `${node.name} ${key}`);
    }
    await world.stopAll();
  });
}

for (const point of [
  "before-snapshot-save",
  "before-snapshot-install",
  "after-snapshot-install",
] as const) {
  test(`crash ${point}: the member comes back and gets its store`, async () => {
    const world = new World(3, ["--snapshot-count", "10", "--snapshot-catchup-entries", "5"]);
    await world.startAll();
    const leader = world.leader()!;
    const away = world.nodes.find((node) => node !== leader)!;
    world.cutOff.add(away.member!.id);
    for (let i = 0; i < 60; i++) await world.settled(put(leader.member!, `k${i % 7}`, `v${i}`));
    away.crashAt = point;
    world.cutOff.clear();
    await world.until(() => away.ended !== undefined);
    away.disk.crash(world.random.fork(point));
    const member = await world.start(away);
    await world.until(() => member.appliedIndex >= leader.member!.appliedIndex);
    assert.equal(await world.settled(get(member, "k3")), "v59");
    await world.stopAll();
  });
}

test("a store or a log that is missing, or does not fit the other, is refused with what to do", async () => {
  const world = new World(1);
  await world.startAll();
  const node = world.nodes[0];
  await world.settled(put(node.member!, "k", "v"));
  await world.settled(node.member!.stop());

  // The store without its log.
  node.disk.rename("/data/member/wal", "/data/member/away");
  await assert.rejects(
    world.start(node),
    /holds a store, but there is no log in \/data\/member\/wal.*move its data directory away/s,
  );
  node.disk.rename("/data/member/away", "/data/member/wal");

  // A log that has lost its end.
  const before = node.disk.readAll("/data/member/wal/0000000000000000-0000000000000000.wal");
  const member = await world.start(node);
  await world.settled(member.ready);
  for (let i = 0; i < 5; i++) await world.settled(put(member, `k${i}`, "v"));
  await world.settled(member.stop());
  node.disk.replace("/data/member/wal/0000000000000000-0000000000000000.wal", before);
  await assert.rejects(
    world.start(node),
    /the store in .* is at index \d+, and the log in .* ends at \d+: the log has lost entries/,
  );
});

test("another member's data directory is refused, and a new name is a warning", async () => {
  const world = new World(3);
  await world.startAll();
  const [one, two] = world.nodes;
  await world.run(1000);
  await world.settled(one.member!.stop());
  await world.settled(world.nodes[2].member!.stop());
  const flags = one.flags;
  one.flags = [...flags, "--name", two.name];
  await assert.rejects(
    world.start(one),
    new RegExp(
      `the data directory /data is that of the member ${one.name} \\([0-9a-f]+\\), and --name is ${two.name}, which is another ` +
        "member of its cluster \\([0-9a-f]+\\): give --data-dir and --name of the same member",
    ),
  );
  const warnings: string[] = [];
  one.flags = [...flags, "--name", "renamed"];
  const renamed = await world.start(one, {
    ...silentLogger,
    child: () => silentLogger,
    warn: (message) => warnings.push(message),
  });
  await world.until(() => renamed.leader !== 0n);
  await world.until(() => renamed.store.membership.member(renamed.id)?.name === "renamed");
  assert.deepEqual(
    warnings.filter((line) => line.includes("another name")),
    ["the data directory is that of a member with another name, which is renamed"],
  );
  await world.settled(renamed.stop());
  await world.settled(two.member!.stop());
});

test("etcd's own data directory is recognised and left alone", async () => {
  const world = new World(1);
  const node = world.nodes[0];
  node.disk.makeDir("/data/member/snap");
  node.disk.open("/data/member/snap/db", "create").close();
  const before = node.disk.list("/data/member");
  await assert.rejects(world.start(node), /\/data is a data directory of etcd itself/);
  assert.deepEqual(node.disk.list("/data/member"), before);
});
