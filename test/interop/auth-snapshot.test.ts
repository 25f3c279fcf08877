/**
 * Users and roles go from etcd to Quorate and back, in snapshots and in backups: the same
 * passwords, permissions and history, by the same hash.
 */
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { baseName } from "@quorate/backup";
import { AuthService, fromUtf8, KVService, MaintenanceService } from "@quorate/proto";
import { AuthClient, enableAuth, PASSWORD } from "../support/auth.ts";
import { type TestCluster, withCluster } from "../support/cluster.ts";
import { etcdctlFor } from "../support/etcdctl.ts";
import { etcd, quorate, skipWithoutEtcd, skipWithoutEtcdctl } from "../support/executables.ts";
import {
  ETCDCTL_3,
  etcdRestores,
  type Output,
  ourTool,
  restoreFlags,
  runProgram,
} from "../support/snapshots.ts";

const { Range, Put } = KVService.methods;
const { UserGet, UserChangePassword, RoleGet } = AuthService.methods;
const b = fromUtf8;
const asRoot = `root:${PASSWORD}`;

/** What a cluster holds of users and keys, asked for by those that may. */
async function stateOf(cluster: TestCluster, annsPassword: string): Promise<object> {
  const client = new AuthClient(cluster.endpoints[0].replace("http://", ""));
  try {
    const anonymous = await client.try(Range, { key: b("ann/k") });
    assert.equal(anonymous.text, "etcdserver: user name is empty");
    await assert.rejects(client.login("ann", "wrong"), /invalid user ID or password/);
    await assert.rejects(client.login("cert", ""), /password was given for no password user/);
    await client.login("ann", annsPassword);
    const read = await client.call(Range, { key: b("ann/k") });
    assert.equal(read.kvs.length, 1);
    assert.equal((await client.try(Range, { key: b("other") })).code, 7);
    await client.login("root");
    const { roles } = await client.call(UserGet, { name: "ann" });
    const { perm } = await client.call(RoleGet, { role: "ann" });
    const { hash, compactRevision } = await client.call(MaintenanceService.methods.HashKV, {
      revision: 0,
    });
    return { roles, perm, hash, compactRevision };
  } finally {
    client.close();
  }
}

/** Makes what `restore` makes the member's only data, and starts it. */
async function startFrom(
  { members: [member] }: TestCluster,
  restore: (flags: readonly string[]) => Promise<Output>,
): Promise<void> {
  await member.kill();
  rmSync(member.options.dataDir, { recursive: true, force: true });
  const { code, stderr } = await restore(restoreFlags(member));
  assert.equal(code, 0, stderr);
  member.start();
  await member.waitReady();
}

test("users, passwords, roles and keys go from etcd to Quorate and back", {
  skip: skipWithoutEtcd || skipWithoutEtcdctl,
}, async () => {
  const options = { size: 1, flags: ["--bcrypt-cost=4"] };
  await withCluster({ ...options, executable: quorate }, (ours) =>
    withCluster({ ...options, executable: etcd! }, async (theirs) => {
      const inEtcd = new AuthClient(theirs.endpoints[0].replace("http://", ""));
      await inEtcd.call(AuthService.methods.UserAdd, {
        name: "cert",
        options: { noPassword: true },
      });
      await enableAuth(inEtcd, {
        ann: [
          ["ann/", "ann0", "readwrite"],
          ["z", "\0", "read"],
        ],
      });
      await inEtcd.login("root");
      for (const key of ["ann/k", "other"]) {
        for (const value of ["1", "2"]) await inEtcd.call(Put, { key: b(key), value: b(value) });
      }
      inEtcd.close();
      const original = await stateOf(theirs, PASSWORD);
      const saved = join(ours.dir, "auth.db");
      const save = await etcdctlFor(theirs)(["--user", asRoot, "snapshot", "save", saved]);
      assert.equal(save.code, 0, save.stderr);

      await startFrom(ours, (flags) =>
        ourTool("quorateutl", "snapshot", "restore", saved, ...flags),
      );
      assert.deepEqual(await stateOf(ours, PASSWORD), original);
      // A backup's base is such a snapshot.
      const backup = join(ours.dir, "backup");
      mkdirSync(backup);
      copyFileSync(saved, join(backup, baseName(5, 1_700_000_000_000)));
      await startFrom(ours, (flags) =>
        ourTool("quorateutl", "backup", "restore", backup, ...flags),
      );
      assert.deepEqual(await stateOf(ours, PASSWORD), original);

      const inOurs = new AuthClient(ours.endpoints[0].replace("http://", ""));
      await inOurs.login("root");
      await inOurs.call(UserChangePassword, { name: "ann", password: "another" });
      await inOurs.call(Put, { key: b("ann/k"), value: b("3") });
      inOurs.close();
      const changed = await stateOf(ours, "another");
      const back = join(ours.dir, "back.db");
      const again = await ourTool(
        "quoratectl",
        `--endpoints=${ours.endpoints[0]}`,
        `--user=${asRoot}`,
        "snapshot",
        "save",
        back,
      );
      assert.equal(again.code, 0, again.stderr);
      await startFrom(theirs, (flags) =>
        runProgram([...etcdRestores, "snapshot", "restore", back, ...flags], ETCDCTL_3),
      );
      assert.deepEqual(await stateOf(theirs, "another"), changed);
    }),
  );
});
