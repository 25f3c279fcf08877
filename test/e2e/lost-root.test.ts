/**
 * The password of root is lost: the procedure of docs/guide/users-and-roles.md, on three members.
 */
import assert from "node:assert/strict";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { quoratectl, quorateutl } from "@quorate/ctl";
import { withCluster } from "../support/cluster.ts";
import { runInProcess } from "../support/ctl-io.ts";
import { runQuoratectl } from "../support/quoratectl.ts";

test("root's password is lost: users, roles and keys stay, and root gets a new one", async () => {
  await withCluster({ size: 3 }, async (cluster) => {
    const ctl = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await runQuoratectl(cluster.endpoints, [
        "--command-timeout=30s",
        ...args,
      ]);
      return code === 0 ? stdout : stderr;
    };
    const utl = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await runInProcess(quorateutl, args);
      assert.equal(code, 0, stderr);
      return stdout;
    };
    for (const command of [
      ["user", "add", "root:lost"],
      ["user", "add", "ann:hers"],
      ["role", "add", "reader"],
      ["role", "grant-permission", "reader", "read", "k"],
      ["user", "grant-role", "root", "root"],
      ["user", "grant-role", "ann", "reader"],
      ["put", "k", "v"],
      ["auth", "enable"],
    ])
      assert.doesNotMatch(await ctl(...command), /Error/, command.join(" "));
    assert.match(await ctl("get", "k"), /user name is empty/);

    for (const member of cluster.members) await member.terminate();
    const applied: number[] = [];
    for (const { options } of cluster.members)
      applied.push(JSON.parse(await utl("status", options.dataDir, "-w", "json")).appliedIndex);
    const newest = cluster.members[applied.indexOf(Math.max(...applied))];
    const file = join(cluster.dir, "store.db");
    const saved = await utl("snapshot", "save", newest.options.dataDir, file);
    assert.match(saved, /^Snapshot saved at .*: revision 2, 1 keys, applied index \d+\n$/);
    assert.match(await utl("snapshot", "status", file), /^[0-9a-f]+, 2, 1, .*, 3\.7\.0\n$/);
    const all = cluster.members.map(({ name, options }) => `${name}=${options.peerUrl}`).join(",");
    for (const { name, options } of cluster.members) {
      renameSync(options.dataDir, `${options.dataDir}.old`);
      await utl(
        "snapshot",
        "restore",
        file,
        "--disable-auth",
        "--initial-cluster-token",
        "again",
        "--name",
        name,
        "--data-dir",
        options.dataDir,
        "--initial-cluster",
        all,
        "--initial-advertise-peer-urls",
        options.peerUrl,
      );
    }
    for (const member of cluster.members) member.start();
    await cluster.waitReady();

    const passwd = await runInProcess(
      quoratectl,
      [
        `--endpoints=${cluster.endpoints.join(",")}`,
        "--command-timeout=30s",
        "user",
        "passwd",
        "root",
        "--interactive=false",
      ],
      { input: "new\n" },
    );
    assert.equal(passwd.stdout, "Password updated\n", passwd.stderr);
    assert.equal(await ctl("auth", "enable"), "Authentication Enabled\n");
    assert.match(await ctl("get", "k"), /user name is empty/);
    assert.match(await ctl("--user=root:lost", "get", "k"), /authentication failed/);
    assert.equal(await ctl("--user=root:new", "get", "k"), "k\nv\n");
    assert.equal(await ctl("--user=ann:hers", "get", "k"), "k\nv\n");
    assert.match(await ctl("--user=ann:hers", "put", "k", "w"), /permission denied/);
    const hashes = await ctl("--user=root:new", "endpoint", "hashkv", "-w", "json");
    const found = (JSON.parse(hashes) as { HashKV: { hash: number } }[]).map(
      ({ HashKV }) => HashKV.hash,
    );
    assert.deepEqual([found.length, new Set(found).size], [3, 1]);
  });
});
