/**
 * Clusters of members of etcd and of Quorate: either joins the other, leads, sends and takes
 * snapshots, and all have the same history after each step.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ClusterService,
  fromLatin1,
  KVService,
  LeaseService,
  MaintenanceService,
} from "@quorate/proto";
import { AuthClient, enableAuth, grantOf } from "../support/auth.ts";
import { assertEqualHashes, leaderOf, statusOf, withClient } from "../support/checks.ts";
import type { TestClient } from "../support/client.ts";
import { type TestCluster, withCluster } from "../support/cluster.ts";
import {
  type Executable,
  etcdNewest,
  etcdOf,
  memberUnderTest,
  skipWithoutEtcdNewest,
} from "../support/executables.ts";
import type { TestMember } from "../support/member.ts";
import { SeededRandom, seedOf } from "../support/random.ts";
import { clientOf, sendHistory } from "../support/snapshots.ts";
import { until } from "../support/until.ts";

const LIMIT_MS = 60_000;

/** A log that is so short that a new member needs a snapshot. */
const ETCD_FLAGS: Readonly<Record<string, readonly string[]>> = {
  "3.5": ["--snapshot-count=40", "--experimental-snapshot-catchup-entries=5"],
  "3.6": ["--snapshot-count=40", "--snapshot-catchup-entries=5"],
  "3.7": ["--snapshot-count=40", "--snapshot-catchup-entries=5"],
};
const QUORATE_FLAGS = ["--snapshot-count=40", "--snapshot-catchup-entries=5"];

async function idOf(cluster: TestCluster, member: TestMember): Promise<bigint> {
  return (await statusOf(cluster, member)).header!.memberId;
}

/** Changes the membership; it is refused while members have not been connected for long. */
async function changed<T>(
  cluster: TestCluster,
  member: TestMember,
  change: (client: TestClient) => Promise<T>,
): Promise<T> {
  const results: T[] = [];
  await until("the membership changes", () =>
    withClient(cluster, member, (client) =>
      change(client).then(
        (result) => results.push(result) > 0,
        (error: unknown) => {
          if (/unhealthy cluster|can only promote a learner/.test(String(error))) return false;
          throw error;
        },
      ),
    ),
  );
  return results[0]!;
}

/** Adds a member of a program as a learner, and waits until it has caught up. */
async function join(
  cluster: TestCluster,
  name: string,
  executable: Executable,
  flags: readonly string[],
): Promise<TestMember> {
  const member = await cluster.prepareMember(name, { executable, flags });
  const { options } = member;
  const leader = await leaderOf(cluster);
  const request = { peerURLs: [options.peerUrl], isLearner: true };
  const { members } = await changed(cluster, leader, (client) =>
    client.call(ClusterService.methods.MemberAdd, request),
  );
  const nameOf = (url: string) =>
    [...cluster.members, member].find(({ options }) => options.peerUrl === url)?.name;
  const initial = members.map(({ peerURLs: [url] }) => `${nameOf(url)}=${url}`);
  cluster.members.push(member);
  member.start([`--initial-cluster=${initial.join(",")}`, "--initial-cluster-state=existing"]);
  await until(`${name} has caught up`, async () => {
    assert.ok(member.isRunning, member.logTail());
    const mine = await statusOf(cluster, member).catch(() => undefined);
    const theirs = await statusOf(cluster, leader);
    return mine !== undefined && mine.raftAppliedIndex >= theirs.raftAppliedIndex;
  });
  return member;
}

async function promote(cluster: TestCluster, member: TestMember): Promise<void> {
  const id = await idOf(cluster, member);
  await changed(cluster, cluster.members[0]!, (client) =>
    client.call(ClusterService.methods.MemberPromote, { ID: id }),
  );
}

async function lead(cluster: TestCluster, member: TestMember): Promise<void> {
  const leader = await leaderOf(cluster);
  if (leader === member) return;
  const targetID = await idOf(cluster, member);
  await withClient(cluster, leader, (client) =>
    client.call(MaintenanceService.methods.MoveLeader, { targetID }),
  );
  assert.equal(await leaderOf(cluster), member);
}

/** Writes by way of each member; a lease is made, renewed and asked for at another. */
async function work(cluster: TestCluster, round: string): Promise<void> {
  const [first, ...others] = cluster.members;
  const ID = BigInt(Math.floor(Math.random() * 1e9) + 1);
  await withClient(cluster, first, (client) =>
    client.call(LeaseService.methods.LeaseGrant, { ID, TTL: 600 }),
  );
  for (const member of cluster.members) {
    await withClient(cluster, member, async (client) => {
      for (let i = 0; i < 30; i++) {
        const key = fromLatin1(`${round}/${member.name}/${i % 10}`);
        await client.call(KVService.methods.Put, { key, value: fromLatin1(`${i}`), lease: ID });
      }
    });
  }
  for (const member of [first, ...others]) {
    await withClient(cluster, member, async (client) => {
      const { TTL } = await client.callStream(LeaseService.methods.LeaseKeepAlive, { ID });
      assert.equal(TTL, 600, `${member.name} renews the lease`);
      const { grantedTTL, keys } = await client.call(LeaseService.methods.LeaseTimeToLive, {
        ID,
        keys: true,
      });
      assert.deepEqual([grantedTTL, keys.length], [600, 10 * cluster.members.length]);
    });
  }
  await assertEqualHashes(cluster);
  const { header } = await statusOf(cluster, first);
  await withClient(cluster, others[0] ?? first, (client) =>
    client.call(KVService.methods.Compact, { revision: header!.revision - 3, physical: true }),
  );
  await assertEqualHashes(cluster);
}

for (const release of ["3.5", "3.6", "3.7"] as const) {
  const theirs = release === "3.7" ? etcdNewest : etcdOf(release);
  const skip = theirs === undefined && `etcd ${release} is not installed`;
  const tls = release === "3.7";
  test(`Quorate joins etcd ${release}${tls ? " over mutual TLS" : ""}, leads it, and is joined`, {
    skip,
  }, async (t) => {
    const seed = seedOf(30);
    t.diagnostic(`seed ${seed} (QUORATE_SEED)`);
    const flags = ETCD_FLAGS[release]!;
    const options = { executable: theirs!, size: 1, flags, tls };
    await withCluster(options, async (cluster) => {
      const client = clientOf(cluster);
      await sendHistory(client, new SeededRandom(seed), 120);
      client.close();
      const ours = await join(cluster, "ours", memberUnderTest, QUORATE_FLAGS);
      await promote(cluster, ours);
      await assertEqualHashes(cluster);
      await work(cluster, "etcd leads");
      await lead(cluster, ours);
      await work(cluster, "ours leads");
      const second = await join(cluster, "theirs", theirs!, flags);
      await promote(cluster, second);
      await assertEqualHashes(cluster);
      await work(cluster, "ours leads three");
      // The leader dies; a member of etcd leads, and ours catches up.
      await ours.kill();
      cluster.members.splice(cluster.members.indexOf(ours), 1);
      await leaderOf(cluster);
      await work(cluster, "ours is down");
      ours.start();
      cluster.members.push(ours);
      await ours.waitReady(LIMIT_MS);
      await work(cluster, "etcd leads three");
      // Two of ours and one of theirs.
      const third = await join(cluster, "more", memberUnderTest, QUORATE_FLAGS);
      await promote(cluster, third);
      const [old] = cluster.members;
      const id = await idOf(cluster, old!);
      await lead(cluster, third);
      await changed(cluster, third, (one) =>
        one.call(ClusterService.methods.MemberRemove, { ID: id }),
      );
      await old!.kill();
      cluster.members.shift();
      await work(cluster, "two of ours");
    });
  });
}

test("users of a mixed cluster: what etcd applies whoever asks is applied by all", {
  skip: skipWithoutEtcdNewest,
}, async () => {
  const flags = ETCD_FLAGS["3.7"]!;
  await withCluster({ executable: etcdNewest!, size: 1, flags }, async (cluster) => {
    const ours = await join(cluster, "ours", memberUnderTest, QUORATE_FLAGS);
    await promote(cluster, ours);
    const [theirs] = cluster.members;
    const clients = [theirs!, ours].map((member) => new AuthClient(member.clientAddress));
    const [atEtcd, atOurs] = clients as [AuthClient, AuthClient];
    const { Put, Compact, Range } = KVService.methods;
    const { LeaseGrant, LeaseRevoke } = LeaseService.methods;
    const { HashKV } = MaintenanceService.methods;
    try {
      await enableAuth(atEtcd, {
        ann: [
          ["a", "c", "readwrite"],
          ["a", "e", "read"],
        ],
      });
      for (const client of clients) await client.login("root");
      // For a range that the role has, behind another one of its key: etcd adds a second one.
      await atOurs.call(...grantOf("ann", ["a", "e", "write"]));
      await atOurs.login("ann");
      await atEtcd.login("ann");
      for (const client of clients)
        await client.call(Put, { key: fromLatin1("d"), value: fromLatin1("1") });
      // A token of one is one of the other.
      for (const [one, other] of [clients, clients.toReversed()]) {
        const { code, text } = await one!.try(Range, { key: fromLatin1("d") }, other!.token);
        assert.equal(code, 0, text);
      }
      await atOurs.call(Range, { key: fromLatin1("d") });
      // Where etcd lets users without the role root, or nobody, have something done, all have it.
      const { header } = await atEtcd.call(Put, { key: fromLatin1("a"), value: fromLatin1("2") });
      await atEtcd.try(Compact, { revision: header!.revision });
      await atEtcd.try(LeaseGrant, { ID: 6n, TTL: 60 }, "");
      assert.match((await atOurs.try(Compact, { revision: 1 })).text, /permission denied/);
      assert.notEqual((await atOurs.try(LeaseGrant, { ID: 4n, TTL: 60 }, "")).code, 0);
      const { ID } = await atEtcd.call(LeaseGrant, { ID: 5n, TTL: 1 });
      await atOurs.call(Put, { key: fromLatin1("b"), value: fromLatin1("3"), lease: ID });
      await atEtcd.call(LeaseRevoke, { ID });
      const hashes = await Promise.all(
        clients.map(async (client) => {
          await client.login("root");
          // Linearizable: all before it is applied.
          await client.call(Range, { key: fromLatin1("a") });
          const { hash, compactRevision } = await client.call(HashKV, {});
          const { leases } = await client.call(LeaseService.methods.LeaseLeases, {});
          return { hash, compactRevision, leases: leases.map((one) => one.ID) };
        }),
      );
      assert.deepEqual(hashes[0], hashes[1]);
    } finally {
      for (const client of clients) client.close();
    }
  });
});
