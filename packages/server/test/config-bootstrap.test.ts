import assert from "node:assert/strict";
import { test } from "node:test";
import { detectForeignData, verifyBootstrap, verifyJoin } from "@quorate/member";
import { loadConfig } from "../src/config/load.ts";
import type { ServerConfig } from "../src/config/server-config.ts";

async function config(...argv: string[]): Promise<ServerConfig> {
  const invocation = await loadConfig(argv, {}, () => "");
  assert.equal(invocation.kind, "run");
  return (invocation as { kind: "run"; config: ServerConfig }).config;
}

test("a first start needs the member's own name in the cluster", async () => {
  const absent = await config("--name=a", "--initial-cluster=b=http://h:1");
  const message =
    /^couldn't find local name "a" in the initial cluster configuration; --name must be one of those in --initial-cluster: /;
  await assert.rejects(verifyBootstrap(absent), { message });
  assert.throws(() => verifyJoin(absent), { message });
  await assert.rejects(verifyBootstrap(await config("--initial-cluster=")), {
    message: /couldn't find local name "default"/,
  });
});

test("a first start needs the advertised URLs to be those of the cluster", async () => {
  const both = "--initial-advertise-peer-urls=http://h:1,http://h:2";
  await verifyBootstrap(await config("--name=a"));
  await verifyBootstrap(
    await config(both, "--initial-cluster=default=http://h:2,default=http://h:1,b=http://h:3"),
  );
  await assert.rejects(
    verifyBootstrap(
      await config(
        "--initial-advertise-peer-urls=http://h:1",
        "--initial-cluster=default=http://h:2",
      ),
    ),
    {
      message:
        "--initial-cluster has default=http://h:2 but missing from --initial-advertise-peer-urls=http://h:1",
    },
  );
  await assert.rejects(
    verifyBootstrap(await config(both, "--initial-cluster=default=http://h:1")),
    {
      message:
        "--initial-advertise-peer-urls has http://h:2 but missing from --initial-cluster=default=http://h:1",
    },
  );
  await verifyBootstrap(
    await config(
      "--initial-advertise-peer-urls=http://[::1]:1",
      "--initial-cluster=default=http://[0:0::1]:1",
    ),
  );
});

test("names and addresses of the same host agree once they are resolved", async () => {
  const mixed = await config(
    "--initial-advertise-peer-urls=http://10.0.0.1:1",
    "--initial-cluster=default=http://h:1",
  );
  await verifyBootstrap(mixed, async (host) => (host === "h" ? "10.0.0.1" : host));
  await assert.rejects(
    verifyBootstrap(mixed, async (host) => (host === "h" ? "10.0.0.2" : host)),
    { code: "Contradiction" },
  );
  await assert.rejects(
    verifyBootstrap(mixed, async () => {
      throw new Error("no such host");
    }),
    {
      message:
        "--initial-cluster has default=http://h:1 but missing from --initial-advertise-peer-urls=http://10.0.0.1:1 (no such host)",
    },
  );
});

test("no URL may stand twice in a cluster", async () => {
  const twice = await config(
    "--initial-advertise-peer-urls=http://h:1",
    "--initial-cluster=default=http://h:1,b=http://h:1",
  );
  const message = "initial cluster b=http://h:1,default=http://h:1 has duplicate url http://h:1";
  await assert.rejects(verifyBootstrap(twice), { message });
  assert.throws(() => verifyJoin(twice), { message });
});

test("a joining member's URLs may differ from those in the membership", async () => {
  verifyJoin(
    await config(
      "--initial-advertise-peer-urls=http://h:9",
      "--initial-cluster=default=http://h:1",
      "--initial-cluster-state=existing",
    ),
  );
});

test("a data directory of etcd is recognised by its database, ours is not", () => {
  const disk = (files: Record<string, "file" | "directory">) => ({
    stat: (path: string) =>
      files[path] === undefined ? undefined : { kind: files[path], sizeBytes: 0 },
  });
  assert.match(
    detectForeignData(disk({ "d/member/snap/db": "file" }), "d") ?? "",
    /data directory of etcd itself.*left untouched.*quorateutl adopt d /s,
  );
  assert.match(detectForeignData(disk({ "d/proxy": "directory" }), "d") ?? "", /v2 proxy/);
  assert.match(detectForeignData(disk({ d: "file" }), "d") ?? "", /is a file/);
  assert.match(detectForeignData(disk({ "d/exchange": "file" }), "d") ?? "", /adopt or release/);
  assert.equal(detectForeignData(disk({}), "d"), undefined);
  assert.equal(
    detectForeignData(
      disk({ d: "directory", "d/member/wal": "directory", "d/member/store": "directory" }),
      "d",
    ),
    undefined,
  );
  assert.equal(detectForeignData(disk({ "d/member/snap/db": "directory" }), "d"), undefined);
});
