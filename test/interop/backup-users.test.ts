/**
 * A continuous backup has users and roles as they changed behind its base snapshot: of the member
 * that is rebuilt from it, with the passwords of the base.
 * @slow
 */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { AuthService, fromUtf8, KVService } from "@quorate/proto";
import { AuthClient, addressOf, enableAuth, grantOf, PASSWORD } from "../support/auth.ts";
import { withCluster } from "../support/cluster.ts";
import { ourTool, restoreFlags } from "../support/snapshots.ts";

const { Range, Put } = KVService.methods;
const { RoleAdd, UserAdd, UserChangePassword, UserDelete, UserGrantRole, UserList } =
  AuthService.methods;
const b = fromUtf8;

test("users and roles that change behind the base are rebuilt; new users need a password", async () => {
  await withCluster({ size: 1, flags: ["--bcrypt-cost=4"] }, async (cluster) => {
    const { members, endpoints, dir } = cluster;
    const [member] = members;
    const backup = join(dir, "backup");
    const run = async (credential: string): Promise<string> => {
      const flags = [`--to=${backup}`, "--once", "--interval=0"];
      const target = [`--endpoints=${endpoints[0]}`, `--user=${credential}:${PASSWORD}`];
      const { code, stderr, stdout } = await ourTool(
        "quoratectl",
        ...target,
        "backup",
        "run",
        ...flags,
      );
      assert.equal(code, 0, stderr);
      return stdout;
    };
    const client = new AuthClient(addressOf(endpoints[0]));
    await enableAuth(client, { ann: [["ann/", "ann0", "readwrite"]], bob: [] });
    await client.login("root");
    await client.call(Put, { key: b("ann/k"), value: b("1") });
    await run("root");
    const { header } = await client.call(Put, { key: b("other"), value: b("1") });

    // All of it is behind the base: a role, its permission, a user that goes and one that comes.
    await client.call(RoleAdd, { name: "reader" });
    await client.call(...grantOf("reader", ["other", "", "read"]));
    await client.call(UserGrantRole, { user: "ann", role: "reader" });
    await client.call(UserDelete, { name: "bob" });
    await client.call(UserAdd, { name: "eve", password: PASSWORD });
    await client.call(UserGrantRole, { user: "eve", role: "reader" });
    await client.call(Put, { key: b("ann/k"), value: b("2") });
    await run("root");
    client.close();

    /** A member that is made from the backup as of a point, and a client of it. */
    const rebuilt = async (...at: string[]): Promise<[AuthClient, warning: string]> => {
      await member.kill();
      rmSync(member.options.dataDir, { recursive: true, force: true });
      const target = restoreFlags(member);
      const made = await ourTool("quorateutl", "backup", "restore", backup, ...at, ...target);
      assert.equal(made.code, 0, made.stderr);
      member.start();
      await member.waitReady();
      return [new AuthClient(addressOf(endpoints[0])), made.stderr];
    };
    const [now, warning] = await rebuilt();
    assert.match(warning, /came after the base snapshot, so their passwords are unknown: eve;/);
    assert.equal(
      (await now.try(Range, { key: b("other") })).text,
      "etcdserver: user name is empty",
    );
    await now.login("ann");
    assert.equal((await now.call(Range, { key: b("other") })).kvs.length, 1);
    assert.equal((await now.try(Put, { key: b("other"), value: b("2") })).code, 7);
    for (const password of [PASSWORD, ""])
      await assert.rejects(now.login("eve", password), /authentication failed/);
    await now.login("root");
    assert.deepEqual((await now.call(UserList, {})).users, ["ann", "eve", "root"]);
    await now.call(UserChangePassword, { name: "eve", password: "new" });
    await now.login("eve", "new");
    assert.equal((await now.call(Range, { key: b("other") })).kvs.length, 1);
    now.close();

    // As of a revision before the change: as the base has them.
    const [before] = await rebuilt(`--at=${header!.revision}`);
    await before.login("root");
    assert.deepEqual((await before.call(UserList, {})).users, ["ann", "bob", "root"]);
    await before.login("ann");
    assert.equal((await before.try(Range, { key: b("other") })).code, 7);
    before.close();
  });
});
