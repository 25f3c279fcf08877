/**
 * `quoratectl auth can-i` against a cluster: its verdict is the cluster's own, operation by
 * operation, and it names the role.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { quoratectl } from "@quorate/ctl";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { runInProcess } from "../support/ctl-io.ts";
import { quorate } from "../support/executables.ts";

describe("auth can-i", () => {
  let cluster: TestCluster;
  const ctl = (line: string) =>
    runInProcess(quoratectl, [`--endpoints=${cluster.endpoints[0]}`, ...line.split(" ")]);
  const root = (line: string) => ctl(`${line} --user root:pw`);

  before(async () => {
    cluster = await startCluster({ executable: quorate, size: 1 });
    for (const line of [
      "user add root:pw",
      "user add ann:pw",
      "user add bob:pw",
      "role add reader",
      "role add writer",
      "role grant-permission reader read p/ --prefix",
      "role grant-permission writer readwrite p/m p/z",
      "role grant-permission writer write q",
      "user grant-role ann reader",
      "user grant-role ann writer",
    ]) {
      const { code, stderr } = await ctl(line);
      assert.equal(code, 0, `${line}: ${stderr}`);
    }
  });
  after(() => cluster?.destroy());

  test("before authentication is enabled the verdict comes with a warning", async () => {
    const { code, stdout, stderr } = await ctl("auth can-i ann put p/a");
    assert.equal(code, 1);
    assert.equal(
      stdout,
      'no\nno role of ann: WRITE on "p/a"\n' +
        'role reader: READ on every key with prefix "p/", which does not allow WRITE\n',
    );
    assert.match(stderr, /^Warning: authentication is not enabled/);
    assert.equal((await ctl("auth enable")).code, 0);
  });

  test("roles that a token lists are judged without a user", async () => {
    const denied = await root("auth can-i --roles reader,absent put p/n");
    assert.deepEqual(denied.code, 1);
    assert.match(denied.stdout, /^no\nno role of a token with the roles reader, absent: WRITE/);
    const allowed = await root("auth can-i --roles=reader,writer put p/n --prev-kv");
    assert.deepEqual([allowed.code, allowed.stdout.split("\n")[0]], [0, "yes"]);
    assert.match((await root("auth can-i --roles=root delete x")).stdout, /^yes\nrole root/);
    assert.equal((await root("auth can-i --roles=reader ann put p/n")).code, 128);
  });

  test("the verdict is what the cluster does", async () => {
    for (const [question, call] of [
      ["get p/a", "get p/a"],
      ["get p/ --prefix", "get p/ --prefix"],
      ["get p/a p/zz", "get p/a p/zz"],
      ["get o p/zz", "get o p/zz"],
      ["get p/ --from-key", "get p/ --from-key"],
      ["get q", "get q"],
      ["put q", "put q v"],
      ["put q --prev-kv", "put q v --prev-kv"],
      ["put p/m --prev-kv", "put p/m v --prev-kv"],
      ["put p/a", "put p/a v"],
      ["delete p/n p/y", "del p/n p/y --range"],
      ["delete p/ --prefix", "del p/ --prefix"],
    ] as const) {
      for (const user of question === "get q" ? ["ann", "bob"] : ["ann"]) {
        const asked = await root(`auth can-i ${user} ${question}`);
        const did = await ctl(`${call} --user ${user}:pw`);
        assert.equal(asked.code, did.code, `${user} ${question}: ${asked.stdout} ${did.stderr}`);
        assert.match(asked.stdout, did.code === 0 ? /^yes\nrole / : /^no\n/);
        assert.equal(asked.stderr, "");
      }
    }
  });

  test("a user may ask about themselves, root may everything, JSON is for scripts", async () => {
    const own = await ctl("auth can-i bob watch x --user bob:pw");
    assert.deepEqual([own.code, own.stdout.split("\n")[1]], [1, "user bob has no role"]);
    const { stdout } = await root("auth can-i root delete x -w json");
    assert.deepEqual(JSON.parse(stdout), {
      user: "root",
      allowed: true,
      authEnabled: true,
      reasons: ["role root: everything"],
    });
  });

  test("mistakes", async () => {
    for (const [line, code, message] of [
      ["auth can-i bob get", 128, /requires user name, operation/],
      ["auth can-i bob read k", 128, /unknown operation: read/],
      ["auth can-i bob put k --prefix", 128, /give no range/],
      ["auth can-i bob get k l --prefix", 128, /unexpected endkey argument/],
      ["auth can-i carol get k", 1, /^Error: etcdserver: user name not found$/m],
      ["auth can-i bob get k -w table", 4, /table not supported as output format/],
    ] as const) {
      const result = await root(line);
      assert.equal(result.code, code, line);
      assert.match(result.stderr, message);
    }
  });

  test("a grant that is wider than it looks is warned of, and granted", async () => {
    const { code, stdout, stderr } = await root("role grant-permission reader read app --prefix");
    assert.deepEqual([code, stdout], [0, "Role reader updated\n"]);
    assert.match(stderr, /^Warning: the grant covers every key with prefix "app": "app2" is one/);
  });
});
