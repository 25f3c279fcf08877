/**
 * A chain of real proxies with TLS before a member with users: a proxy is a client of another one,
 * tokens go through both, and what one user may read reaches no other.
 */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Client } from "@quorate/client";
import { connect } from "@quorate/client/node";
import { authpb, Event, fromUtf8, KeyValue, toUtf8 } from "@quorate/proto";
import { createAuthority } from "../../scripts/certs.ts";
import { withCluster } from "../support/cluster.ts";
import { startGrpcProxy } from "../support/grpc-proxy.ts";
import { until } from "../support/until.ts";

/** Adds alice and bob, each with a role for its own prefix, and enables authentication. */
async function addUsers({ auth }: Client): Promise<void> {
  for (const name of ["alice", "bob"]) {
    await auth.userAdd(name, "p");
    await auth.roleAdd(name);
    await auth.roleGrantPermission(name, {
      permType: authpb.Permission_Type.READWRITE,
      key: fromUtf8(`${name}/`),
      rangeEnd: fromUtf8(`${name}0`),
    });
    await auth.userGrantRole(name, name);
  }
  await auth.userAdd("root", "p");
  await auth.userGrantRole("root", "root");
  await auth.enable();
}

test("two proxies with TLS, and users whose watches and reads are their own", {
  timeout: 200_000,
}, async (t) => {
  await withCluster({ size: 1 }, async (cluster) => {
    const authority = await createAuthority("proxies");
    const file = (name: string, text: string): string => {
      const path = join(cluster.dir, name);
      writeFileSync(path, text, { mode: 0o600 });
      return path;
    };
    const ca = file("ca.pem", authority.caPem);
    const hosts = ["127.0.0.1"];
    const server = await authority.issue({ commonName: "proxy", hosts, usage: "server" });
    const client = await authority.issue({ commonName: "", hosts: ["proxy"], usage: "client" });
    const inner = await startGrpcProxy(
      t,
      [cluster.members[0].clientAddress],
      [
        `--cert-file=${file("s.pem", server.certPem)}`,
        `--key-file=${file("s.key", server.keyPem)}`,
        `--trusted-ca-file=${ca}`,
      ],
    );
    mkdirSync(join(cluster.dir, "outer"));
    const outer = await startGrpcProxy(
      t,
      [inner],
      [
        `--cacert=${ca}`,
        "--auto-tls",
        `--cert=${file("c.pem", client.certPem)}`,
        `--key=${file("c.key", client.keyPem)}`,
        `--data-dir=${join(cluster.dir, "outer")}`,
      ],
    );
    const as = (name?: string) => {
      const made = connect({
        endpoints: [`https://${outer}`],
        tls: { insecureSkipVerify: true },
        timeoutMs: 60_000,
        ...(name === undefined ? {} : { auth: { name, password: "p" } }),
      });
      t.after(() => made.close());
      return made;
    };
    await addUsers(as());
    const [alice, bob] = [as("alice"), as("bob")];

    const seen: string[] = [];
    const watches = Array.from({ length: 20 }, () => alice.watch("alice/", { prefix: true }));
    const follow = async (watch: (typeof watches)[number]): Promise<void> => {
      for await (const { events } of watch)
        for (const bytes of events)
          seen.push(toUtf8(KeyValue.decode(Event.decode(bytes).kv!).value));
    };
    for (const watch of watches) follow(watch).catch((error: Error) => seen.push(error.message));
    const metrics = async (): Promise<string> =>
      (await fetch(`${cluster.endpoints[0]}/metrics`)).text();
    await until("the watches are there", async () => {
      await alice.put("alice/k", "probe");
      return seen.length >= 20;
    });
    seen.length = 0;
    assert.match(await metrics(), /^etcd_debugging_mvcc_watcher_total 1$/m);
    await alice.put("alice/k", "secret");
    await until("every watch has it", () => seen.filter((one) => one === "secret").length === 20);

    const refused: string[] = [];
    for await (const { cancelReason } of bob.watch("alice/", { prefix: true }))
      refused.push(cancelReason);
    assert.deepEqual(refused, ["etcdserver: permission denied"]);
    const serializable = { serializable: true };
    await alice.get("alice/k", serializable);
    await alice.get("alice/k", serializable);
    await assert.rejects(bob.get("alice/k", serializable), /permission denied/);
    await assert.rejects(as().get("alice/k", serializable), /user name is empty/);
    for (const watch of watches) watch.cancel();
    await until("the shared watch is gone", async () =>
      /^etcd_debugging_mvcc_watcher_total 0$/m.test(await metrics()),
    );
  });
});
