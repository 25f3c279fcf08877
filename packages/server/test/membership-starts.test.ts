import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ClusterService,
  DowngradeRequest_DowngradeAction as DowngradeAction,
  DowngradeRequest,
  DowngradeResponse,
  MaintenanceService,
  MemberAddRequest,
  MemberAddResponse,
} from "@quorate/proto";
import { Wal } from "@quorate/wal";
import { healthyWorld } from "./support/membership.ts";
import { call, get, type Node, put, textOf, World } from "./support/world.ts";

const { Downgrade } = MaintenanceService.methods;

/** Adds a machine to the world and a learner to the cluster; it is not started yet. */
async function addLearner(world: World): Promise<Node> {
  const node = world.addNode([]);
  const request = MemberAddRequest.encode({ peerURLs: [node.peerUrl], isLearner: true });
  const answer = await world.settled(
    call(world.leader()!.member!, ClusterService.methods.MemberAdd.path, request),
  );
  const { member, members } = MemberAddResponse.decode(answer);
  const pairs = members.map(
    (one) => `${one.ID === member!.ID ? node.name : one.name}=${one.peerURLs[0]}`,
  );
  node.flags = ["--initial-cluster", pairs.join(","), "--initial-cluster-state", "existing"];
  return node;
}

test("a learner that was started with --auto-promote becomes a voter by itself; another one does not", async () => {
  for (const asks of [true, false]) {
    const world = await healthyWorld(3);
    const node = await addLearner(world);
    if (asks) node.flags = [...node.flags, "--auto-promote"];
    const member = await world.start(node);
    await world.settled(member.ready);
    if (asks) await world.until(() => !member.isLearner);
    await world.run(5000);
    assert.equal(member.isLearner, !asks);
    assert.equal(world.leader()!.member!.store.membership.member(member.id)!.isLearner, !asks);
    await world.stopAll();
  }
});

test("a learner that loses power as soon as the others know its name starts again on its log", async () => {
  const world = await healthyWorld(3);
  const node = await addLearner(world);
  const { id } = await world.start(node);
  // From here on nothing that it writes becomes durable.
  node.syncMs = 1_000_000;
  const { membership } = world.leader()!.member!.store;
  await world.until(() => membership.member(id)!.name === node.name);
  world.cutOff.add(id);
  node.member = undefined;
  node.disk.crash(world.random.fork(node.name));
  world.cutOff.clear();
  node.syncMs = 0;
  const again = await world.start(node);
  assert.equal(again.id, id);
  await world.settled(again.ready);
  await world.settled(put(world.leader()!.member!, "k", "v"));
  await world.until(() => again.appliedIndex === world.leader()!.member!.appliedIndex);
  await world.stopAll();
});

for (const survivorIsLearner of [false, true]) {
  test(`--force-new-cluster: a ${survivorIsLearner ? "learner" : "voter"} that is left alone goes on with all it has`, async () => {
    const world = await healthyWorld(3);
    let survivor = world.nodes.find((node) => node !== world.leader())!;
    if (survivorIsLearner) {
      survivor = await addLearner(world);
      await world.settled((await world.start(survivor)).ready);
    }
    for (let i = 0; i < 20; i++)
      await world.settled(put(world.leader()!.member!, `k${i}`, `v${i}`));
    const { id, clusterId } = survivor.member!;
    await world.until(() => survivor.member!.appliedIndex === world.leader()!.member!.appliedIndex);
    // The last write was acknowledged, but the survivor's log does not say yet that it is
    // committed.
    await world.settled(put(world.leader()!.member!, "last", "kept"));
    for (const node of world.nodes) {
      const { member } = node;
      node.member = undefined;
      if (member !== undefined) world.cutOff.add(member.id);
      node.disk.crash(world.random.fork(node.name));
    }
    world.cutOff.clear();
    survivor.flags = [...survivor.flags, "--force-new-cluster"];
    const alone = await world.start(survivor);
    await world.settled(alone.ready);
    assert.deepEqual([alone.id, alone.clusterId], [id, clusterId]);
    assert.deepEqual(
      alone.store.membership.members().map((member) => [member.id, member.isLearner, member.name]),
      [[id, false, survivor.name]],
    );
    assert.equal(await world.settled(get(alone, "k19")), "v19");
    assert.equal(await world.settled(get(alone, "last")), "kept");
    await world.settled(put(alone, "new", "v"));
    // Given again by mistake it loses nothing, and without it the member is what it was made.
    for (const flags of [survivor.flags, survivor.flags.slice(0, -1)]) {
      await world.settled(survivor.member!.stop());
      survivor.flags = flags;
      const again = await world.start(survivor);
      await world.settled(again.ready);
      assert.equal(await world.settled(get(again, "new")), "v");
      assert.equal(again.store.membership.members().length, 1);
    }
    await world.stopAll();
  });
}

test("the cluster's version is the lowest of its members', and rises when the last of them has risen", async () => {
  const world = new World(3);
  world.nodes[2].serverVersion = "3.6.4";
  await world.startAll();
  await world.until(() => world.leader()!.member!.store.membership.clusterVersion === "3.6.0");
  await world.run(5000);
  for (const node of world.nodes)
    assert.equal(node.member!.store.membership.clusterVersion, "3.6.0");
  world.nodes[2].serverVersion = undefined;
  await world.until(() =>
    world.nodes.every((node) => node.member!.store.membership.clusterVersion === "3.7.0"),
  );
  await world.stopAll();
});

test("a member that is older than the cluster's version stops and says so", async () => {
  const world = new World(1);
  await world.startAll();
  const node = world.nodes[0];
  node.member!.store.membership.setClusterVersion("3.8.0");
  await world.settled(node.member!.stop());
  await world.start(node);
  await world.until(() => node.ended !== undefined);
  assert.match((node.ended!.error as Error).message, /invalid downgrade.*is at 3\.8.*speaks 3\.7/);
});

test("a downgrade is checked as in etcd, and cannot be ordered", async () => {
  const world = new World(1);
  await world.startAll();
  const ask = async (action: number, version: string) => {
    const request = DowngradeRequest.encode({ action, version });
    return DowngradeResponse.decode(
      await world.settled(call(world.nodes[0].member!, Downgrade.path, request)),
    ).version;
  };
  assert.equal(await ask(DowngradeAction.VALIDATE, "3.6"), "3.7");
  assert.equal(await ask(DowngradeAction.VALIDATE, "3.6.0"), "3.7");
  await assert.rejects(ask(DowngradeAction.VALIDATE, "3.5"), {
    message: textOf("InvalidDowngradeTargetVersion"),
    code: 3,
  });
  await assert.rejects(ask(DowngradeAction.VALIDATE, "new"), {
    message: textOf("WrongDowngradeVersionFormat"),
    code: 3,
  });
  await assert.rejects(ask(DowngradeAction.ENABLE, "3.6"), {
    message: textOf("InvalidDowngradeTargetVersion"),
    code: 3,
  });
  assert.equal(await ask(DowngradeAction.CANCEL, ""), "3.7");
  await world.stopAll();
});

test("SRV records name the members of a new cluster, of both services, and one that they do not name is refused", async () => {
  const world = new World(3);
  const asked: string[] = [];
  const ports = () =>
    world.nodes.map((node) => ({ host: "127.0.0.1", port: Number(new URL(node.peerUrl).port) }));
  world.names = {
    async lookupSrv(service, domain) {
      asked.push(`_${service}._tcp.${domain}`);
      if (service !== "etcd-server-blue") throw new Error("no such host");
      return ports().slice(0, 3);
    },
    resolveHost: async (host) => host,
  };
  const flags = ["--discovery-srv", "example.org", "--discovery-srv-name", "blue"];
  for (const node of world.nodes) node.flags = flags;
  await world.startAll();
  assert.deepEqual(
    [...new Set(asked)],
    ["_etcd-server-ssl-blue._tcp.example.org", "_etcd-server-blue._tcp.example.org"],
  );
  await world.settled(put(world.nodes[1].member!, "k", "v"));
  assert.deepEqual(
    world.nodes[0]
      .member!.store.membership.members()
      .map((member) => member.name)
      .sort(),
    ["m0", "m1", "m2"],
  );
  // A start on its data sends no requests.
  asked.length = 0;
  await world.settled(world.nodes[0].member!.stop());
  await world.settled((await world.start(world.nodes[0])).ready);
  assert.deepEqual(asked, []);
  const unlisted = world.addNode(flags);
  await assert.rejects(
    world.start(unlisted),
    /cannot find local etcd member "m3" in SRV records of example.org.*initial-advertise-peer-urls/,
  );
  unlisted.flags = ["--discovery-srv", "example.org"];
  await assert.rejects(
    world.start(unlisted),
    /no members by --discovery-srv=example.org: .*_etcd-server-ssl no such host; .*_etcd-server no such host/,
  );
  await world.stopAll();
});

test("SRV records that no member can be made of are left out or refused, with the reason", async () => {
  const world = new World(1);
  const node = world.nodes[0];
  const port = Number(new URL(node.peerUrl).port);
  const mine = { host: "127.0.0.1", port };
  let records: readonly { host: string; port: number }[] = [];
  const resolved: string[] = [];
  world.names = {
    async lookupSrv(service) {
      if (service !== "etcd-server") throw new Error("no such host");
      return records;
    },
    async resolveHost(host) {
      resolved.push(host);
      return host;
    },
  };
  node.flags = ["--discovery-srv", "example.org"];
  for (const host of [
    "",
    ".",
    "a b",
    "evil/x",
    "u@evil",
    "a\u001b[2Jb",
    "a?b",
    "a#b",
    "-a",
    "a".repeat(254),
    "[::1]",
  ]) {
    records = [{ host, port: 2380 }];
    await assert.rejects(world.start(node), (error: Error) => {
      assert.match(
        error.message,
        /no members by --discovery-srv=example\.org: .*from DNS for etcd-server is no host and port$/,
      );
      assert.ok(!error.message.includes("\u001b"));
      return true;
    });
  }
  records = [{ host: "127.0.0.1", port: 0 }];
  await assert.rejects(world.start(node), /is no host and port/);
  records = Array.from({ length: 65 }, (_, i) => ({ host: `10.0.0.${i}`, port: 2380 }));
  resolved.length = 0;
  await assert.rejects(
    world.start(node),
    /_etcd-server\._tcp\.example\.org has 65 SRV records, more than the 64 that a cluster may have/,
  );
  assert.ok(resolved.length <= 1, "no address is asked for");
  records = [mine, mine];
  await assert.rejects(world.start(node), /duplicate/i);
  const { resolveHost } = world.names;
  world.names.resolveHost = async () => {
    throw new Error("i/o timeout");
  };
  records = [mine];
  await assert.rejects(
    world.start(node),
    /--initial-advertise-peer-urls: cannot resolve the host of http:\/\/127\.0\.0\.1:12380.*timeout/,
  );
  // Good ones count beside bad ones.
  world.names.resolveHost = resolveHost;
  records = [{ host: ".", port: 0 }, mine];
  await world.settled((await world.start(node)).ready);
  await world.stopAll();
});

test("a power failure in the very first write: what is left of the cluster's first members is not taken for all of them", async () => {
  const log = "/data/member/wal";
  const before = new World(3);
  await before.startAll();
  const first = before.nodes.reduce((a, b) => (a.member!.id < b.member!.id ? a : b));
  await before.stopAll();
  const written = Wal.open(
    first.disk,
    log,
    { index: 0, term: 0, confState: undefined },
    { clock: before.clock },
  );
  await written.wal.close();

  for (let left = 1; left <= 3; left++) {
    const world = new World(3);
    const node = world.nodes.find(({ name }) => name === first.name)!;
    for (const directory of ["/data", "/data/member", log])
      if (node.disk.stat(directory) === undefined) node.disk.makeDir(directory);
    const torn = Wal.create(node.disk, log, written.metadata, { clock: world.clock });
    torn.append(undefined, written.entries.slice(0, left));
    await world.settled(torn.sync());
    await world.settled(torn.close());
    const member = await world.start(node);
    await world.run(10_000);
    // With the first of three alone it would have a majority, and lead.
    assert.deepEqual([member.isLeader, member.term], [false, 1], `${left} entries are left`);
    for (const other of world.nodes) if (other !== node) await world.start(other);
    await world.settled(Promise.all(world.nodes.map((one) => one.member!.ready)));
    await world.settled(put(member, "k", "v"));
    for (const one of world.nodes) assert.equal(one.member!.store.membership.members().length, 3);
    await world.stopAll();
  }
});
