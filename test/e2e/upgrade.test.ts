/**
 * Data of earlier releases, which this one opens, and data of a later one, which it refuses. The
 * fixture is a member's directory after a SIGKILL: 35 revisions with a compaction, a deletion, a
 * transaction, a lease, users and a role, two snapshots of the log.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { levelKeyspaces } from "@quorate/host/node";
import { fromUtf8, writeU64BE } from "@quorate/proto";
import { STORAGE_VERSION } from "@quorate/store";
import { withCluster } from "../support/cluster.ts";
import { runQuoratectl } from "../support/quoratectl.ts";

const FIXTURE = fileURLToPath(
  new URL("../../packages/server/test/fixtures/data-0.1.0-storage-0.tar.gz", import.meta.url),
);
/** HashKV of the fixture, as the release that wrote it computed it. */
const HASH = 3_695_246_421;
const KEY = fromUtf8("mquorate_storage_version");

async function versionIn(store: string, write?: number): Promise<Uint8Array | undefined> {
  const keyspace = await levelKeyspaces.open(store, { create: false });
  try {
    if (write !== undefined) {
      const value = new Uint8Array(8);
      writeU64BE(value, write);
      await keyspace.write([{ key: KEY, value }]);
    }
    return keyspace.get(KEY);
  } finally {
    await keyspace.close();
  }
}

test("data of 0.1.0 is opened and upgraded; data of a later release is refused unchanged", async () => {
  await withCluster({ size: 1 }, async ({ dir, members: [member] }) => {
    await member.kill();
    const data = `${dir}/earlier`;
    const store = `${data}/member/store/db`;
    mkdirSync(data, { mode: 0o700 });
    execFileSync("tar", ["-xzf", FIXTURE, "-C", data]);
    const ctl = async (...args: string[]) => {
      const { code, stdout, stderr } = await runQuoratectl([member.clientUrl], args);
      assert.equal(code, 0, stderr);
      return stdout;
    };
    assert.equal(await versionIn(store), undefined);

    member.start([`--data-dir=${data}`]);
    await member.waitReady();
    const [{ HashKV: hashed }] = JSON.parse(await ctl("endpoint", "hashkv", "--rev=35", "-w=json"));
    assert.deepEqual([hashed.hash, hashed.compact_revision], [HASH, 20]);
    assert.match(
      await ctl("get", "", "--prefix", "-w=simple"),
      /^key0\nvalue28\n[\s\S]*txn\nyes\n$/,
    );
    assert.match(await ctl("lease", "list"), /6a6ca2059ad30823/);
    await ctl("put", "written", "now");
    await ctl("auth", "enable");
    const user = await runQuoratectl([member.clientUrl], ["get", "key1", "--user=reader:word"]);
    assert.equal(user.stdout, "key1\nvalue29\n");
    assert.equal((await member.terminate()).code, 0);
    assert.equal((await versionIn(store))?.at(-1), STORAGE_VERSION);

    await versionIn(store, STORAGE_VERSION + 1);
    member.start([`--data-dir=${data}`]);
    assert.notEqual((await member.exited).code, 0);
    const line = /the data has storage version \d+, and this release reads up to \d+[^"]*/;
    const [message] = line.exec(member.log()) ?? [""];
    assert.match(
      message,
      /a later release has written it\. Nothing was changed\. Start the member/,
    );
    assert.match(message, /quoratectl member remove/);
    assert.equal((await versionIn(store))?.at(-1), STORAGE_VERSION + 1);
  });
});
