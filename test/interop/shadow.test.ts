/**
 * A shadow beside three members of etcd: it compares, goes on after kills, finds what was planted
 * in a voter's file, and leaves the cluster as it was.
 * @slow
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ClusterService, fromLatin1, KVService } from "@quorate/proto";
import { AuthClient, CHEAP_LOGINS, enableAuth, PASSWORD } from "../support/auth.ts";
import { leaderOf, withClient } from "../support/checks.ts";
import { type TestCluster, withCluster } from "../support/cluster.ts";
import { etcdNewest, etcdOf, skipWithoutEtcdNewest } from "../support/executables.ts";
import { SeededRandom, seedOf } from "../support/random.ts";
import { randomLoad, TestShadow } from "../support/shadow.ts";
import { clientOf } from "../support/snapshots.ts";

const { Put } = KVService.methods;

async function members(cluster: TestCluster): Promise<string[]> {
  const [first] = cluster.members;
  const { members: all } = await withClient(cluster, first, (client) =>
    client.call(ClusterService.methods.MemberList, { linearizable: true }),
  );
  return all.map(({ name, isLearner, clientURLs }) =>
    isLearner ? `learner ${name} ${clientURLs}` : name,
  );
}

const VOTERS = ["m0", "m1", "m2"];

const executableOf = (release: string) => (release === "3.7" ? etcdNewest : etcdOf(release));

test("a shadow beside three members of etcd 3.7 under load: equal, kills, leaving, a planted difference", {
  skip: skipWithoutEtcdNewest,
}, async (t) => {
  const seed = seedOf(300);
  t.diagnostic(`seed ${seed} (QUORATE_SEED)`);
  await withCluster({ executable: etcdNewest! }, async (cluster) => {
    const first = await TestShadow.of(cluster, "first");
    t.after(() => first.end("SIGKILL"));
    const checked = first.runs("--check");
    assert.equal(checked.code, 0, checked.text);
    assert.match(checked.text, /Nothing is wrong/);
    assert.deepEqual((await members(cluster)).sort(), VOTERS);
    const stop = new AbortController();
    const loaded = randomLoad(
      { endpoints: cluster.endpoints },
      new SeededRandom(seed),
      stop.signal,
      {
        writers: 2,
        pauseMs: 20,
        compactEveryMs: 1500,
        keptRevisions: 5,
      },
    );
    const second = await TestShadow.of(cluster, "second");
    t.after(() => second.end("SIGKILL"));
    const ending = loaded.then(() => {});
    try {
      first.start();
      const grown = await first.reports(
        "equal compactions",
        ({ comparisons, compactions }) => comparisons.equal >= 3 && compactions.equal >= 2,
      );
      assert.match(grown.verdict, /^equal over \d+ revisions, up to \d+$/);
      assert.deepEqual((await members(cluster)).sort(), ["learner first ", ...VOTERS]);
      // Its page, and no port for clients: what it lists are the others alone.
      const page = await fetch(`${first.metricsUrl}/`);
      assert.match(await page.text(), /<p class="verdict equal">equal over \d+ revisions/);
      assert.match(page.headers.get("content-security-policy") ?? "", /^default-src 'none'/);
      const metrics = await (await fetch(`${first.metricsUrl}/metrics`)).text();
      assert.match(metrics, /^quorate_shadow_equal_revisions [1-9]/m);
      assert.equal(
        (await fetch(`${first.metricsUrl}/v3/kv/range`, { method: "POST" })).status,
        404,
      );
      // Another one finds that a learner is there.
      const refused = second.runs("--check");
      assert.equal(refused.code, 1, refused.text);
      assert.match(refused.text, /first .*is a learner/);
      assert.match(refused.text, /member remove [0-9a-f]+/);
      // The leader dies and comes back.
      const leader = await leaderOf(cluster);
      await leader.kill();
      const before = first.report()!.revisions.equalThrough;
      await first.reports("what came after the leader's death", ({ revisions }) => {
        return revisions.equalThrough > before + 50;
      });
      leader.start();
      await leader.waitReady();
      // Its host dies; it goes on from its directory, and a signal has it leave.
      await first.end("SIGKILL");
      assert.equal((await members(cluster)).length, 4);
      const had = first.report()!.revisions.equal;
      first.start();
      await first.reports("more than before", ({ revisions }) => revisions.equal > had + 50);
      assert.equal(await first.end("SIGTERM"), 0, first.output);
      assert.match(first.output, /equal over \d+ revisions.*the learner has left the cluster/);
      assert.deepEqual((await members(cluster)).sort(), VOTERS);
      assert.equal(first.report()!.phase, "left");
      assert.match(first.runs().text, /is of a shadow that has left/);
      // Its host dies for good: another one removes it.
      second.start();
      await second.reports("equal", ({ comparisons }) => comparisons.equal > 0);
      await second.end("SIGKILL");
      const left = second.runs("--leave");
      assert.match(left.text, /The learner [0-9a-f]+ .* has left the cluster/);
      assert.deepEqual((await members(cluster)).sort(), VOTERS);
      assert.match(second.runs("--leave").text, /it has left already/);
    } finally {
      stop.abort();
      await ending;
    }
    assert.ok((await loaded).compactions > 3);
    // A byte of one value changes in a voter's file while it is down.
    const client = clientOf(cluster);
    const value = `planted value ${seed} ${"0123456789".repeat(4)}`;
    const key = fromLatin1("planted/key");
    const { header } = await client.call(Put, { key, value: fromLatin1(value) });
    for (let i = 0; i < 20; i++)
      await client.call(Put, { key: fromLatin1(`later/${i}`), value: fromLatin1(`${i}`) });
    client.close();
    const third = await TestShadow.of(cluster, "third");
    t.after(() => third.end("SIGKILL"));
    third.start();
    await third.reports("equal", ({ comparisons }) => comparisons.equal > 0);
    const leader = await leaderOf(cluster);
    const voter = cluster.members.find((one) => one !== leader)!;
    await voter.terminate();
    const file = join(voter.options.dataDir, "member/snap/db");
    const bytes = readFileSync(file);
    let planted = 0;
    for (let at = bytes.indexOf(value); at >= 0; at = bytes.indexOf(value, at + 1)) {
      bytes[at + 8] = "V".charCodeAt(0);
      planted++;
    }
    assert.ok(planted > 0, "the value is in the file");
    writeFileSync(file, bytes);
    voter.start();
    await voter.waitReady();
    const found = await third.reports("the difference", ({ difference }) => {
      return difference?.key !== undefined;
    });
    assert.equal(found.difference!.member, voter.name);
    assert.equal(found.difference!.key, "planted/key");
    assert.equal(found.difference!.revision, header!.revision);
    assert.match(found.difference!.seen, /^values of \d+ bytes, which differ from byte 8 on$/);
    assert.equal(found.difference!.equalVoters, 2);
    assert.equal(await third.end("SIGTERM"), 1);
    assert.match(third.output, new RegExp(`differs from ${voter.name}: .*key planted/key`));
    assert.deepEqual((await members(cluster)).sort(), VOTERS);
  });
});

for (const release of ["3.5", "3.6", "3.7"])
  test(`a shadow beside etcd ${release} over mutual TLS, with users: equal, and it leaves`, {
    skip: skipWithoutEtcdNewest || (executableOf(release) === undefined && "it is not installed"),
  }, async (t) => {
    await withCluster(
      { executable: executableOf(release)!, tls: true, flags: CHEAP_LOGINS },
      async (cluster) => {
        const { endpoints, identity } = cluster;
        const admin = new AuthClient(cluster.members[0]!.clientAddress, identity);
        await enableAuth(admin, { app: [["load/", "load0", "readwrite"]] });
        const withoutUser = await TestShadow.of(cluster, "stranger", "--user=app:wrong");
        const refused = withoutUser.runs("--check");
        assert.equal(refused.code, 1, refused.text);
        assert.match(refused.text, /authentication failed, invalid user ID or password/);
        const shadow = await TestShadow.of(cluster, "shadow", `--user=root:${PASSWORD}`);
        t.after(() => shadow.end("SIGKILL"));
        const stop = new AbortController();
        const auth = { name: "root", password: PASSWORD };
        const seed = seedOf(301);
        const target = { endpoints, tls: identity, auth };
        const loaded = randomLoad(target, new SeededRandom(seed), stop.signal, {
          writers: 2,
          pauseMs: 20,
          compactEveryMs: 1500,
          keptRevisions: 5,
        });
        try {
          shadow.start();
          const { verdict } = await shadow.reports(
            "equal comparisons, after compactions too",
            ({ comparisons, compactions }) => comparisons.equal >= 3 && compactions.equal >= 2,
          );
          assert.match(verdict, /^equal over \d+ revisions, up to \d+$/);
          assert.equal(await shadow.end("SIGTERM"), 0, shadow.output);
        } finally {
          stop.abort();
          await loaded;
        }
        const { members: left } = await admin.call(ClusterService.methods.MemberList, {});
        assert.deepEqual(left.map(({ name }) => name).sort(), VOTERS);
        admin.close();
      },
    );
  });

/** Replaces a text by one of the same length wherever it is in a file. Returns how often. */
function replaceIn(file: string, text: string, other: string): number {
  const bytes = readFileSync(file);
  let count = 0;
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1), count++)
    bytes.write(other, at, "latin1");
  writeFileSync(file, bytes);
  return count;
}

/** The release of 3.5 that copies the one list of members into the other when it starts. */
const REPAIRED_3_5 = 26;

test("zombie members of etcd 3.5, whose two stores differ, are found before a shadow joins", {
  skip: skipWithoutEtcdNewest || (etcdOf("3.5") === undefined && "etcd 3.5 is not installed"),
}, async (t) => {
  await withCluster({ executable: etcdOf("3.5")! }, async (cluster) => {
    const shadow = await TestShadow.of(cluster, "shadow");
    t.after(() => shadow.end("SIGKILL"));
    const fine = shadow.runs("--check");
    assert.equal(fine.code, 0, fine.text);
    const all = await withClient(cluster, cluster.members[0]!, (client) =>
      client.call(ClusterService.methods.MemberList, {}),
    );
    // The database knows one of the members under another id; the members' other store does not.
    const last = all.members.at(-1)!.ID;
    const zombie = last % 10n === 9n ? last - 1n : last + 1n;
    for (const member of cluster.members) await member.terminate();
    for (const member of cluster.members) {
      const file = join(member.options.dataDir, "member/snap/db");
      const count =
        replaceIn(file, last.toString(), zombie.toString()) +
        replaceIn(file, last.toString(16), zombie.toString(16));
      assert.ok(count > 1, `${last} is in the file`);
      member.start();
    }
    for (const member of cluster.members) await member.waitReady();
    const found = shadow.runs("--check");
    const release = Number(/version 3\.5\.(\d+)/.exec(found.text)?.[1]);
    if (release >= REPAIRED_3_5) {
      assert.equal(found.code, 0, found.text);
      return;
    }
    assert.equal(found.code, 1, found.text);
    assert.match(found.text, /its database and its list of members differ: only there: /);
    assert.match(found.text, new RegExp(zombie.toString(16)));
  });
});
