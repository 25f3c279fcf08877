/**
 * The commands of the guide to etcd that docs/evidence/guide-coverage.md lists, with the results
 * that the guide shows. Times, sizes, versions and terms differ; what a script may rely on is
 * compared.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { quoratectl } from "@quorate/ctl";
import { type TestCluster, withCluster } from "../support/cluster.ts";
import { LiveRun } from "../support/ctl-io.ts";
import { runQuoratectl, tlsClientFlags } from "../support/quoratectl.ts";

/** The single member of the guide: its ids follow from these URLs and the default token. */
const SINGLE = [
  "--name=default",
  "--initial-cluster=default=http://localhost:12380",
  "--initial-advertise-peer-urls=http://localhost:12380",
  "--advertise-client-urls=http://localhost:12379",
  "--initial-cluster-token=etcd-cluster",
  `--quota-backend-bytes=${16 * 1024 * 1024}`,
  "--quota-auto-disarm=false",
];

type Ctl = (...args: string[]) => Promise<string>;

/** Runs commands that must succeed, and returns what they print. */
function ctlOf(cluster: TestCluster): { ctl: Ctl; refused: Ctl } {
  const run = (args: readonly string[]) =>
    runQuoratectl([cluster.members[0].clientUrl], [...tlsClientFlags(cluster), ...args]);
  return {
    ctl: async (...args) => {
      const { code, stdout, stderr } = await run(args);
      assert.equal(code, 0, `${args.join(" ").slice(0, 200)}: ${stderr}`);
      return stdout;
    },
    refused: async (...args) => {
      const { code, stderr } = await run(args);
      assert.equal(code, 1, `${args.join(" ").slice(0, 200)} succeeded`);
      return stderr.trimEnd().split("\n").at(-1)!;
    },
  };
}

/** What a watch prints until it has shown `last`. */
async function watched(cluster: TestCluster, last: string, ...args: string[]): Promise<string> {
  const endpoint = `--endpoints=${cluster.members[0].clientUrl}`;
  const watch = new LiveRun(quoratectl, [endpoint, "watch", ...args]);
  await watch.until((stdout) => stdout.endsWith(last));
  return (await watch.stop()).stdout;
}

async function keysAndRevisions(cluster: TestCluster): Promise<void> {
  const { ctl } = ctlOf(cluster);
  assert.match(
    await ctl("member", "list", "--write-out=table"),
    / c9ac9fc89eae9cf7 . started . default . http:\/\/localhost:12380 . http:\/\/localhost:12379 . +false /,
  );
  assert.equal(await ctl("put", "/k1", "v1"), "OK\n");
  assert.equal(await ctl("put", "/k2", "v2"), "OK\n");
  assert.equal(await ctl("get", "--prefix", "/"), "/k1\nv1\n/k2\nv2\n");
  assert.equal(await ctl("get", "--prefix", "/", "--keys-only"), "/k1\n\n/k2\n\n");
  assert.deepEqual(JSON.parse(await ctl("get", "/k1", "--write-out=json")).kvs, [
    { key: "L2sx", create_revision: 2, mod_revision: 2, version: 1, value: "djE=" },
  ]);
  assert.equal(await ctl("put", "/k1", "v1.1"), "OK\n");
  for (const value of ["v1", "v2", "v3", "v4"]) assert.equal(await ctl("put", "/k", value), "OK\n");
  assert.match(await ctl("get", "/k", "-wjson"), /"revision":8,.*"mod_revision":8,"version":4/);
  assert.equal(
    await watched(cluster, "v4\n", "--prefix", "/", "--rev", "4"),
    "PUT\n/k1\nv1.1\nPUT\n/k\nv1\nPUT\n/k\nv2\nPUT\n/k\nv3\nPUT\n/k\nv4\n",
  );
  assert.match(await ctl("get", "--prefix", "/", "--keys-only", "--debug"), /^\/k\n\n\/k1\n\n/m);
  assert.equal(await ctl("get", "/k", "--rev=0"), "/k\nv4\n");
  assert.equal(await ctl("get", "/k", "--rev=5"), "/k\nv1\n");
  assert.equal(await ctl("get", "/k", "--rev=6"), "/k\nv2\n");
}

async function space(cluster: TestCluster): Promise<void> {
  const { ctl, refused } = ctlOf(cluster);
  const full = "Error: etcdserver: mvcc: database space exceeded";
  assert.equal(await ctl("alarm", "list"), "");
  assert.equal(await ctl("put", "k", "v1"), "OK\n");
  const large = "x".repeat(1024 * 1024);
  let puts = 0;
  while ((await runQuoratectl([cluster.members[0].clientUrl], ["put", "key", large])).code === 0)
    assert.ok(++puts < 20, "the quota of 16 MiB stops no put");
  assert.ok(puts >= 14, `${puts} puts of 1 MiB fit into 16 MiB`);
  assert.equal(await ctl("get", "k"), "k\nv1\n");
  assert.match(await refused("put", "k", "v2"), new RegExp(full));
  assert.equal(await ctl("alarm", "list"), "memberID:14532165781622267127 alarm:NOSPACE\n");
  assert.match(await ctl("endpoint", "status", "-wtable"), /alarm:NOSPACE/);
  assert.match(await ctl("defrag"), /^Finished defragmenting etcd member\[/);
  assert.match(await refused("put", "k", "v2"), new RegExp(full));
  const { header } = JSON.parse(await ctl("get", "key", "-wjson"));
  assert.equal(
    await ctl("compact", `${header.revision}`),
    `compacted revision ${header.revision}\n`,
  );
  assert.match(await ctl("defrag"), /^Finished defragmenting etcd member\[/);
  assert.match(await refused("put", "k", "v2"), new RegExp(full));
  assert.equal(await ctl("alarm", "disarm"), "memberID:14532165781622267127 alarm:NOSPACE\n");
  assert.equal(await ctl("alarm", "list"), "");
  assert.equal(await ctl("put", "k", "v2"), "OK\n");
}

test("the single member: keys, revisions, watches; a full store and the way out", async () => {
  await withCluster({ size: 1, flags: SINGLE }, async (cluster) => {
    await keysAndRevisions(cluster);
    await space(cluster);
  });
});

test("three members with certificates: members, a key, status, no connection without them", async () => {
  await withCluster({ size: 3, tls: true }, async (cluster) => {
    const { ctl } = ctlOf(cluster);
    const { members } = JSON.parse(await ctl("member", "list", "-wjson"));
    assert.equal(members.length, 3);
    for (const { clientURLs, peerURLs } of members)
      for (const url of [...clientURLs, ...peerURLs]) assert.match(url, /^https:/);
    assert.equal(await ctl("put", "k", "v1"), "OK\n");
    assert.equal(await ctl("put", "k", "v2"), "OK\n");
    assert.match(await ctl("get", "k", "-wjson"), /"revision":3,.*"mod_revision":3,"version":2/);
    assert.match(await ctl("endpoint", "status", "-wtable"), / https:\S+ . [0-9a-f]+ . /);
    const bare = await runQuoratectl(
      [cluster.members[0].clientUrl],
      ["get", "k", "--command-timeout=2s"],
    );
    assert.equal(bare.code, 1);
  });
});
