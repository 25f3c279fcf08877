/**
 * quoratectl's commands about users and roles against Quorate and the original etcd: a whole life
 * of them, from the first role to the end of authentication, with what is printed on the way.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { quoratectl } from "@quorate/ctl";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { type ProgramResult, type ProgramWorld, runInProcess } from "../support/ctl-io.ts";
import { type Executable, etcd, quorate, skipWithoutEtcd } from "../support/executables.ts";

for (const executable of [quorate, etcd]) {
  const skip = executable === undefined ? skipWithoutEtcd : false;
  describe(`users and roles, ${executable?.name ?? "etcd"}`, { skip }, () => life(executable!));
}

function life(executable: Executable): void {
  let cluster: TestCluster;
  before(async () => {
    cluster = await startCluster({ executable, size: 1 });
  });
  after(() => cluster?.destroy());

  const ctl = (args: readonly string[], world: ProgramWorld = {}): Promise<ProgramResult> =>
    runInProcess(quoratectl, [`--endpoints=${cluster.endpoints[0]}`, ...args], world);

  /** What a command line prints that succeeds. Words are split at spaces. */
  async function prints(line: string, expected: string, world: ProgramWorld = {}): Promise<void> {
    const { code, stdout, stderr: all } = await ctl(line.split(" "), world);
    // What is said of grants that are wider than they look has a test of its own.
    const stderr = all.replace(/^Warning: the grant .*\n/gm, "");
    assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: expected, stderr: "" }, line);
  }

  async function refuses(
    line: string,
    code: number,
    message: string,
    world: ProgramWorld = {},
  ): Promise<void> {
    const result = await ctl(line.split(" "), world);
    assert.deepEqual(
      [result.code, result.stdout, result.stderr],
      [code, "", `Error: ${message}\n`],
      line,
    );
  }

  /** Answers prompts for passwords. */
  function typing(...answers: readonly string[]): { world: ProgramWorld; prompts: string[] } {
    const prompts: string[] = [];
    const left = [...answers];
    const askPassword = async (prompt: string): Promise<string> => {
      prompts.push(prompt);
      return left.shift()!;
    };
    return { world: { askPassword }, prompts };
  }

  test("roles and what they may do", async () => {
    await prints("role add reader", "Role reader created\n");
    await prints("role grant-permission reader read k", "Role reader updated\n");
    await prints("role grant-permission reader readwrite a c", "Role reader updated\n");
    await prints("role grant-permission reader read p/ --prefix", "Role reader updated\n");
    await prints("role grant-permission reader write z --from-key", "Role reader updated\n");
    await prints(
      "role get reader",
      "Role reader\nKV Read:\n\t[a, c)\n\tk\n\t[p/, p0) (prefix p/)\nKV Write:\n\t[a, c)\n\t[z, <open ended>\n",
    );
    await prints("role list", "reader\n");
    await prints(
      "role revoke-permission reader k",
      "Permission of key k is revoked from role reader\n",
    );
    await prints(
      "role revoke-permission reader a c",
      "Permission of range [a, c) is revoked from role reader\n",
    );
    await prints(
      "role revoke-permission reader z --from-key",
      "Permission of range [z, <open ended> is revoked from role reader\n",
    );
    const { stdout } = await ctl(["role", "get", "reader", "-w", "json"]);
    assert.deepEqual((JSON.parse(stdout) as { perm: unknown }).perm, [
      { key: "cC8=", range_end: "cDA=" },
    ]);
    await prints("role get reader", "Role reader\nKV Read:\n\t[p/, p0) (prefix p/)\nKV Write:\n");
  });

  test("mistakes about roles", async () => {
    await refuses("role add", 128, "role add command requires role name as its argument");
    await refuses("role add reader", 1, "etcdserver: role name already exists");
    await refuses("role delete absent", 1, "etcdserver: role name not found");
    await refuses("role grant-permission reader look k", 128, "invalid permission type: look");
    await refuses(
      "role grant-permission reader read a b --prefix",
      128,
      "unexpected endkey argument with --prefix flag",
    );
    await refuses(
      "role grant-permission reader read a --prefix --from-key",
      128,
      "--from-key and --prefix flags are mutually exclusive",
    );
    await refuses(
      "role revoke-permission reader q",
      1,
      "etcdserver: permission is not granted to the role",
    );
  });

  test("users, with passwords from each place that they can come from", async () => {
    await prints("user add u1:pw1", "User u1 created\n");
    await prints("user add u2 --new-user-password=pw2", "User u2 created\n");
    await prints("user add u3 --interactive=false", "User u3 created\n", { input: "pw3\n" });
    const { world, prompts } = typing("pw4", "pw4");
    await prints("user add u4", "User u4 created\n", world);
    assert.deepEqual(prompts, ["Password of u4: ", "Type password of u4 again for confirmation: "]);
    await prints("user add u5 --no-password", "User u5 created\n");
    await prints("user list", "u1\nu2\nu3\nu4\nu5\n");
    await prints("user grant-role u1 reader", "Role reader is granted to user u1\n");
    await prints("user get u1", "User: u1\nRoles: reader\n");
    await prints(
      "user get u1 --detail",
      "User: u1\n\nRole reader\nKV Read:\n\t[p/, p0) (prefix p/)\nKV Write:\n",
    );
    await prints("user passwd u1 --interactive=false", "Password updated\n", { input: "new1" });
    await prints("user delete u5", "User u5 deleted\n");
    await refuses("user add u9", 128, "given passwords are different", typing("a", "b").world);
    await refuses("user add u9", 128, "empty password", typing("").world);
    await refuses("user add :x", 128, "empty user name is not allowed");
    await refuses("user add u1:x", 1, "etcdserver: user name already exists");
    await refuses(
      "user grant-role u1",
      128,
      "user grant command requires user name and role name as its argument",
    );
    await refuses("user get u1 -w fields", 4, "fields not supported as output format");
  });

  test("authentication: turned on, lived with, turned off", async () => {
    await refuses("auth enable", 1, "etcdserver: root user does not exist");
    await prints("user add root:pw", "User root created\n");
    // The role root is made and given on the way.
    await prints("auth enable", "Authentication Enabled\n");
    await refuses("get p/1", 1, "etcdserver: user name is empty");
    await refuses(
      "get p/1 --user root:wrong",
      2,
      "etcdserver: authentication failed, invalid user ID or password",
    );
    await prints("put p/1 v --user root:pw", "OK\n");
    await prints("put p/1 w --user root --password pw", "OK\n");
    await prints("get p/1", "p/1\nw\n", { env: { ETCDCTL_USER: "u1:new1" } });
    const { world, prompts } = typing("new1");
    await prints("get p/1 --user u1", "p/1\nw\n", world);
    assert.deepEqual(prompts, ["Password: "]);
    await refuses("put p/1 v --user u1:new1", 1, "etcdserver: permission denied");
    await refuses("user add u7:x --user u1:new1", 1, "etcdserver: permission denied");
    await refuses("auth disable", 1, "etcdserver: user name is empty");
    const watch = await ctl(["watch", "q", "--user", "u1:new1"]);
    assert.equal(watch.code, 5);
    assert.match(
      watch.stderr,
      /^watch was canceled \(.*etcdserver: permission denied\)\nError: watch is canceled by the server\n$/,
    );
    await prints("lease list --user root:pw", "found 0 leases\n");
    await prints("lock l true --user root:pw", "");
    await prints(
      "user revoke-role u1 reader --user root:pw",
      "Role reader is revoked from user u1\n",
    );
    await refuses("get p/1 --user u1:new1", 1, "etcdserver: permission denied");
    await prints("role delete reader --user root:pw", "Role reader deleted\n");
    await prints("auth disable --user root:pw", "Authentication Disabled\n");
    await prints("get p/1", "p/1\nw\n");
    await prints("get p/1 --user u1:whatever", "p/1\nw\n");
  });
}
