/** Debian's etcdctl over mutual TLS: what a user of etcd types, and what he is used to read. */
import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { fromUtf8, KVService } from "@quorate/proto";
import { createAuthority } from "../../scripts/certs.ts";
import { type CallError, TestClient } from "../support/client.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { etcdctlFor } from "../support/etcdctl.ts";
import { skipWithoutEtcdctl } from "../support/executables.ts";

describe("etcdctl", { skip: skipWithoutEtcdctl }, () => {
  let cluster: TestCluster;
  let etcdctl: ReturnType<typeof etcdctlFor>;

  before(async () => {
    cluster = await startCluster({ size: 3, tls: true });
    etcdctl = etcdctlFor(cluster);
  });
  afterEach((t) => {
    if ("passed" in t && !t.passed) console.error(cluster?.logTails(15));
  });
  after(async () => {
    await cluster?.destroy();
  });

  /** Standard output of a command that must succeed. */
  async function run(args: string, input?: string): Promise<string> {
    const result = await etcdctl(args.split(" "), input);
    assert.equal(result.code, 0, `etcdctl ${args}: ${result.stderr}`);
    return result.stdout;
  }

  /** The words of a command that must fail. */
  async function fail(args: string, input?: string): Promise<string> {
    const result = await etcdctl(args.split(" "), input);
    assert.notEqual(result.code, 0, `etcdctl ${args} should fail, but says ${result.stdout}`);
    return result.stderr;
  }

  /**
   * Key and value are base64 in etcdctl's JSON; ids and revisions beyond 2^53 do not occur where
   * this reads them.
   */
  // biome-ignore lint/suspicious/noExplicitAny: the assertions say what must be in it
  async function json(args: string): Promise<any> {
    return JSON.parse(await run(`${args} -w json`));
  }

  const text = (base64: string): string => Buffer.from(base64, "base64").toString();

  test("the first put is revision 2, and create_revision, mod_revision and version count as etcd counts", async () => {
    assert.equal(await run("put greeting hello"), "OK\n");
    assert.equal(await run("get greeting"), "greeting\nhello\n");
    const first = await json("get greeting");
    assert.equal(first.header.revision, 2);
    assert.equal(first.count, 1);
    const { key, value, ...counters } = first.kvs[0];
    assert.deepEqual([text(key), text(value)], ["greeting", "hello"]);
    assert.deepEqual(counters, { create_revision: 2, mod_revision: 2, version: 1 });

    await run("put greeting again");
    const second = await json("get greeting");
    const { create_revision, mod_revision, version } = second.kvs[0];
    assert.deepEqual([create_revision, mod_revision, version], [2, 3, 2]);
    assert.equal(await run("get greeting --rev=2 --print-value-only"), "hello\n");
    assert.match(
      await fail("get greeting --rev=1000"),
      /etcdserver: mvcc: required revision is a future revision/,
    );
  });

  test("prefix, range, limit, order, keys only, from key, serializable", async () => {
    for (const [index, name] of ["a/1", "a/2", "a/3", "b/1"].entries())
      await run(`put ${name} v${index}`);
    assert.equal(await run("get a/ --prefix --print-value-only"), "v0\nv1\nv2\n");
    assert.equal(await run("get a/1 a/3 --print-value-only"), "v0\nv1\n");
    assert.equal(await run("get a/ --prefix --limit=2 --print-value-only"), "v0\nv1\n");
    assert.equal(
      await run("get a/ --prefix --order=DESCEND --sort-by=KEY --print-value-only"),
      "v2\nv1\nv0\n",
    );
    assert.equal(await run("get a/ --prefix --keys-only"), "a/1\n\na/2\n\na/3\n\n");
    assert.equal(await run("get a/3 --from-key --limit=2 --print-value-only"), "v2\nv3\n");
    assert.equal(await run("get a/1 --consistency=s --print-value-only"), "v0\n");
  });

  test("del counts what it deletes and returns the pairs with --prev-kv; a new put starts a new generation", async () => {
    await run("put d/1 x");
    await run("put d/2 y");
    assert.equal(await run("del d/1 --prev-kv"), "1\nd/1\nx\n");
    assert.equal(await run("del d/ --prefix"), "1\n");
    assert.equal(await run("del d/ --prefix"), "0\n");
    assert.equal(await run("get d/1"), "");
    await run("put d/1 z");
    const { create_revision, mod_revision, version } = (await json("get d/1")).kvs[0];
    assert.equal(create_revision, mod_revision);
    assert.equal(version, 1);
  });

  test("put: --prev-kv, --ignore-value", async () => {
    await run("put p one");
    assert.equal(await run("put p two --prev-kv"), "OK\np\none\n");
    await run("put p --ignore-value");
    const { version, value } = (await json("get p")).kvs[0];
    assert.equal(version, 3);
    assert.equal(text(value), "two");
    assert.match(await fail("put no-such-key --ignore-value"), /etcdserver: key not found/);
  });

  test("txn takes the branch that its comparisons choose", async () => {
    await run("put t one");
    const question = 'value("t") = "one"\n\nput t two\nget t\n\nput t other\n\n';
    assert.equal(await run("txn", question), "SUCCESS\n\nOK\n\nt\ntwo\n");
    assert.equal(await run("txn", question), "FAILURE\n\nOK\n");
    assert.equal(await run("get t --print-value-only"), "other\n");
    const { mod_revision } = (await json("get t")).kvs[0];
    assert.equal(
      await run(
        "txn",
        `mod("t") = "${mod_revision}"\nversion("t") > "1"\ncreate("missing") = "0"\n\ndel t\n\n\n`,
      ),
      "SUCCESS\n\n1\n",
    );
  });

  test("compact: older revisions are gone, and cannot be compacted again", async () => {
    await run("put c one");
    const { revision } = (await json("put c two")).header;
    assert.equal(await run(`compact ${revision} --physical`), `compacted revision ${revision}\n`);
    assert.match(
      await fail(`get c --rev=${revision - 1}`),
      /etcdserver: mvcc: required revision has been compacted/,
    );
    assert.equal(await run(`get c --rev=${revision} --print-value-only`), "two\n");
    assert.match(
      await fail(`compact ${revision}`),
      /etcdserver: mvcc: required revision has been compacted/,
    );
    assert.match(
      await fail(`compact ${revision + 1000}`),
      /etcdserver: mvcc: required revision is a future revision/,
    );
  });

  test("refusals carry etcd's words", async () => {
    const tooMany = `\n${Array.from({ length: 129 }, (_, index) => `put k${index} v`).join("\n")}\n\n\n`;
    assert.match(await fail("txn", tooMany), /etcdserver: too many operations in txn request/);
    assert.match(
      await fail("txn", "\nput x 1\nput x 2\n\n\n"),
      /etcdserver: duplicate key given in txn request/,
    );
  });

  test("member list", async () => {
    const { members } = await json("member list");
    assert.deepEqual(members.map((one: { name: string }) => one.name).sort(), ["m0", "m1", "m2"]);
    assert.deepEqual(
      members.flatMap((one: { clientURLs: string[] }) => one.clientURLs).sort(),
      [...cluster.endpoints].sort(),
    );
    const table = await run("member list -w table");
    assert.match(
      table,
      /\| +ID +\| STATUS +\| +NAME +\| +PEER ADDRS +\| +CLIENT ADDRS +\| IS LEARNER \|/,
    );
    assert.equal(
      table.match(/\| started \| +m\d \| https:\S+ \| https:\S+ \| +false \|/g)?.length,
      3,
    );
    assert.match(
      await run("member list"),
      /^[0-9a-f]{1,16}, started, m\d, https:\S+, https:\S+, false$/m,
    );
  });

  test("endpoint health, status and hashkv of every member", async () => {
    const health = await etcdctl(["endpoint", "health"]);
    assert.equal(health.code, 0, health.stderr);
    const words = health.stdout + health.stderr;
    for (const endpoint of cluster.endpoints)
      assert.match(
        words,
        new RegExp(`${endpoint} is healthy: successfully committed proposal: took = `),
      );

    const table = await run("endpoint status -w table");
    assert.match(
      table,
      /\| +ENDPOINT +\| +ID +\| VERSION \| DB SIZE \| IS LEADER \| IS LEARNER \|/,
    );
    assert.match(table, /\| RAFT TERM \| RAFT INDEX \| RAFT APPLIED INDEX \| ERRORS \|/);
    assert.equal(table.match(/\| +true +\| +false \|/g)?.length, 1, table);
    assert.equal(table.match(/\| +false +\| +false \|/g)?.length, 2, table);
    const statuses = await json("endpoint status");
    const leaders = new Set(
      statuses.map((one: { Status: { leader: number } }) => one.Status.leader),
    );
    assert.equal(leaders.size, 1);
    for (const { Status: status } of statuses) {
      assert.match(status.version, /^\d+\.\d+\.\d+$/);
      assert.ok(
        status.dbSize > 0 &&
          status.raftTerm >= 2 &&
          status.raftIndex > 10 &&
          status.raftAppliedIndex > 10,
        JSON.stringify(status),
      );
    }

    // A read through each member first: then all have applied everything.
    for (const member of cluster.members) {
      const one = await etcdctlFor(cluster, [member.clientUrl])(["get", "greeting"]);
      assert.equal(one.stdout, "greeting\nagain\n", one.stderr);
    }
    const hashes = await json("endpoint hashkv");
    assert.equal(hashes.length, 3);
    assert.equal(
      new Set(hashes.map((one: { HashKV: { hash: number } }) => one.HashKV.hash)).size,
      1,
      JSON.stringify(hashes),
    );
  });

  test("any member takes writes, and all read them at once", async () => {
    for (const [index, member] of cluster.members.entries()) {
      const wrote = await etcdctlFor(cluster, [member.clientUrl])(["put", `by-${index}`, "x"]);
      assert.equal(wrote.stdout, "OK\n", wrote.stderr);
      for (const other of cluster.members) {
        const read = await etcdctlFor(cluster, [other.clientUrl])([
          "get",
          `by-${index}`,
          "--print-value-only",
        ]);
        assert.equal(read.stdout, "x\n", read.stderr);
      }
    }
  });

  test("no certificate, or one of another authority, and no connection is accepted", async () => {
    const outsider = await createAuthority("unknown");
    const { certPem, keyPem } = await outsider.issue({
      commonName: "client",
      hosts: [],
      usage: "client",
    });
    const { ca } = cluster.identity;
    for (const identity of [{ ca }, { ca, cert: certPem, key: keyPem }]) {
      const client = new TestClient(cluster.members[0].clientAddress, identity);
      await assert.rejects(
        client.call(KVService.methods.Put, { key: fromUtf8("k") }),
        (error: CallError) => error.code === 14,
      );
      client.close();
    }
    const client = new TestClient(cluster.members[0].clientAddress, cluster.identity);
    assert.equal((await client.call(KVService.methods.Range, { key: fromUtf8("k") })).count, 0);
    client.close();
  });
});
