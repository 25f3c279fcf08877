/**
 * Clients that others wrote, against a member with users and roles: they log in, renew a token that
 * is not accepted any more, and see PermissionDenied.
 */

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { connect } from "@quorate/client/node";
import { AuthService } from "@quorate/proto";
import { Etcd3 } from "etcd3";
import { AuthClient, enableAuth, PASSWORD } from "../support/auth.ts";
import { endsWith } from "../support/children.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { findProgram, skipWithoutEtcdctl } from "../support/executables.ts";
import { until } from "../support/until.ts";
import { PYTHON, skipWithoutPython } from "./python/program.ts";

describe("clients of others log in", () => {
  let cluster: TestCluster;
  let root: AuthClient;
  const passwordIs = (password: string) =>
    root.call(AuthService.methods.UserChangePassword, { name: "ann", password });

  before(async () => {
    cluster = await startCluster({ size: 1, flags: ["--bcrypt-cost=4"] });
    root = new AuthClient(cluster.members[0].clientAddress);
    await enableAuth(root, { ann: [["app/", "app0", "readwrite"]] });
    await root.login("root");
  });
  after(async () => {
    root?.close();
    await cluster?.destroy();
  });

  test("npm's etcd3", async () => {
    const open = (password: string) =>
      new Etcd3({ hosts: cluster.endpoints[0], auth: { username: "ann", password } });
    const client = open(PASSWORD);
    try {
      await client.put("app/npm").value("1");
      assert.equal(await client.get("app/npm").string(), "1");
      await assert.rejects(async () => client.put("other").value("1"), /permission denied/);
      // A new password ends the tokens that were made with the one before.
      await passwordIs(PASSWORD);
      assert.equal(await client.get("app/npm").string(), "1");
    } finally {
      client.close();
    }
    const unknown = open("wrong");
    await assert.rejects(unknown.get("app/npm").string(), /authentication failed/);
    unknown.close();
  });

  test("npm's etcd3 and our own client log in again at a member that was started again", async () => {
    const auth = { username: "ann", password: PASSWORD };
    const theirs = new Etcd3({ hosts: cluster.endpoints[0], auth });
    const endpoints = cluster.endpoints;
    const ours = connect({ endpoints, auth: { name: "ann", password: PASSWORD } });
    try {
      await theirs.put("app/again").value("1");
      await ours.put("app/again", "2");
      const [member] = cluster.members;
      await member.kill();
      member.start();
      await member.waitReady();
      await root.login("root");
      await until("npm's client is connected again", async () => {
        try {
          return (await theirs.get("app/again").string()) === "2";
        } catch (error) {
          // A call may still meet the connection that has gone.
          assert.doesNotMatch((error as Error).message, /token|permission|user/);
          return false;
        }
      });
      await ours.put("app/again", "3");
      await assert.rejects(ours.get("other"), /permission denied/);
    } finally {
      theirs.close();
      ours.close();
    }
  });

  test("our own client logs in again when its token is not accepted any more", async () => {
    const { endpoints } = cluster;
    let password = PASSWORD;
    const auth = {
      name: "ann",
      get password() {
        return password;
      },
    };
    const client = connect({ endpoints, auth });
    try {
      await client.put("app/own", "1");
      await passwordIs("another");
      await assert.rejects(client.put("app/own", "2"), /authentication failed/);
      password = "another";
      await client.put("app/own", "2");
      await passwordIs(PASSWORD);
      password = PASSWORD;
      await client.put("app/own", "3");
      await assert.rejects(client.get("other"), /permission denied/);
    } finally {
      client.close();
    }
  });

  test("Python's etcd3", { skip: skipWithoutPython() }, async () => {
    // It sends a token over TLS alone.
    const secure = await startCluster({ size: 1, tls: true, flags: ["--bcrypt-cost=4"] });
    const { clientAddress } = secure.members[0];
    const admin = new AuthClient(clientAddress, secure.identity);
    try {
      await enableAuth(admin, { ann: [["app/", "app0", "readwrite"]] });
      await admin.login("root");
      const { ca, client, clientKey } = secure.certs!;
      const [, port] = clientAddress.split(":") as [string, string];
      const script = join(import.meta.dirname, "python", "auth.py");
      const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1" };
      const child = endsWith(spawn(PYTHON, [script, port, ca, client, clientKey], { env }));
      let [printed, errors] = ["", ""];
      let isChanged = false;
      child.stdout.on("data", (piece: Buffer) => {
        printed += piece.toString();
        if (isChanged || !/^wrong /m.test(printed)) return;
        isChanged = true;
        const request = { name: "ann", password: "other" };
        const changed = admin.call(AuthService.methods.UserChangePassword, request);
        void changed.then(() => child.stdin.write("\n"));
      });
      child.stderr.on("data", (piece: Buffer) => {
        errors += piece.toString();
      });
      await once(child, "close");
      assert.match(printed, /^renewed 1$/m, errors);
      assert.match(printed, /^denied PERMISSION_DENIED$/m);
      assert.match(printed, /^wrong (?!OK)/m);
    } finally {
      admin.close();
      await secure.destroy();
    }
  });

  test("etcdctl", { skip: skipWithoutEtcdctl }, () => {
    const etcdctl = (...args: string[]): string => {
      const common = [`--endpoints=${cluster.endpoints[0]}`, `--user=ann:${PASSWORD}`];
      const env = { ...process.env, ETCDCTL_API: "3" };
      return execFileSync(findProgram("etcdctl")!, [...common, ...args], {
        encoding: "utf8",
        env,
        stdio: ["ignore", "pipe", "pipe"],
      });
    };
    assert.equal(etcdctl("put", "app/ctl", "1"), "OK\n");
    assert.equal(etcdctl("get", "app/ctl"), "app/ctl\n1\n");
    assert.equal(etcdctl("user", "get", "ann"), "User: ann\nRoles: ann\n");
    assert.throws(() => etcdctl("put", "other", "1"), /etcdserver: permission denied/);
    assert.throws(() => etcdctl("get", "x", "--user=ann:wrong"), /authentication failed/);
  });
});
