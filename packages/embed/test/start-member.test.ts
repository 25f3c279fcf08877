/** Members in the process of a program. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "@quorate/client/node";
import { LeaseService, toUtf8 } from "@quorate/proto";
import type { RunningMember } from "../node/launch.ts";
import { startMember } from "../node/start-member.ts";

function scratchDir(): string {
  return mkdtempSync(join(tmpdir(), "quorate-embed-test-"));
}

test("a member alone: keys, changes, and a directory that goes with it", async () => {
  const member = await startMember();
  const client = connect({ endpoints: member.endpoints });
  await member.ready;
  const { header } = await client.put("greeting", "hello");
  await client.put("greeting", "again");
  await client.delete("greeting");
  const watch = client.watch("greeting", { revision: header.revision, prevKv: true });
  const seen: string[] = [];
  for await (const { kind, kv, prevKv } of watch.changes()) {
    seen.push(
      `${kind} ${toUtf8(kv.value)} after ${prevKv === undefined ? "" : toUtf8(prevKv.value)}`,
    );
    if (kind === "delete") break;
  }
  assert.deepEqual(seen, ["put hello after ", "put again after hello", "delete  after again"]);
  client.close();
  assert.ok(existsSync(member.dataDir));
  await Promise.all([member.stop(), member.stop()]);
  await member.ended;
  assert.ok(!existsSync(member.dataDir));
});

test("a watch of history that was compacted ends with etcd's error", async () => {
  await using member = await startMember();
  const client = connect({ endpoints: member.endpoints });
  for (const value of ["1", "2", "3"]) await client.put("k", value);
  await client.compact(3, { physical: true });
  const { value } = { value: client.watch("k", { revision: 1 }).changes() };
  await assert.rejects(value.next(), (error: Error & { code?: string; cause?: unknown }) => {
    assert.equal(error.code, "Compacted");
    assert.match(String(error.cause), /still there is 3/);
    return true;
  });
  client.close();
});

test("a directory that was given is kept, with its data", async () => {
  const dataDir = scratchDir();
  try {
    for (const expected of [0, 1]) {
      await using member = await startMember({ dataDir, flags: ["--snapshot-count=1000"] });
      const client = connect({ endpoints: member.endpoints });
      assert.equal((await client.get("kept")).count, expected);
      await client.put("kept", "yes");
      client.close();
    }
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});

test("three members in one process are a cluster, and survive the end of one", async () => {
  const dir = scratchDir();
  const peers = ["a", "b", "c"].map((name) => `${name}=unix://${join(dir, `${name}.peer`)}`);
  const members: RunningMember[] = [];
  try {
    members.push(
      ...(await Promise.all(
        peers.map((peer) => {
          const [name = "", url = ""] = peer.split("=");
          return startMember({
            dataDir: join(dir, name),
            flags: [
              `--name=${name}`,
              `--initial-cluster=${peers.join(",")}`,
              `--listen-peer-urls=${url}`,
              `--initial-advertise-peer-urls=${url}`,
              "--heartbeat-interval=20",
              "--election-timeout=200",
            ],
          });
        }),
      )),
    );
    await Promise.all(members.map((member) => member.ready));
    const client = connect({ endpoints: members.flatMap((member) => member.endpoints) });
    await client.put("k", "v");
    await members[0].stop();
    assert.equal((await client.get("k")).count, 1);
    client.close();
  } finally {
    await Promise.all(members.map((member) => member.stop()));
    rmSync(dir, { recursive: true });
  }
});

test("a private member listens on a socket, and no name is left of it", async () => {
  const member = await startMember({ isPrivate: true });
  const [endpoint = ""] = member.endpoints;
  const path = endpoint.slice("unix://".length);
  assert.ok(endpoint.startsWith("unix://") && existsSync(path), endpoint);
  const client = connect({ endpoints: member.endpoints });
  await client.put("k", "v");
  client.close();
  await member.stop();
  assert.ok(!existsSync(path));
});

test("a directory that another member has open is refused", async () => {
  await using member = await startMember();
  await assert.rejects(startMember({ dataDir: member.dataDir }), (error: Error) => {
    assert.ok(error.message.includes(member.dataDir), error.message);
    return true;
  });
});

test("flags that no member starts with are refused, and leave nothing", async () => {
  await assert.rejects(startMember({ flags: ["--hartbeat-interval=10"] }), {
    code: "BadFlag",
    message: /did you mean --heartbeat-interval\?/,
  });
  await assert.rejects(startMember({ flags: ["--version"] }), { code: "NothingToRun" });
});

test("an address that is taken is an error of the start", async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const address = other.address();
  const port = typeof address === "object" ? address?.port : 0;
  const url = `http://127.0.0.1:${port}`;
  const flags = [`--listen-client-urls=${url}`, `--advertise-client-urls=${url}`];
  await assert.rejects(startMember({ flags }), /in use/);
  other.close();
});

test("a member that is removed from its cluster ends, and does not start again", async () => {
  const dir = scratchDir();
  const peers = ["a", "b"].map((name) => `${name}=unix://${join(dir, `${name}.peer`)}`);
  const start = (peer: string) => {
    const [name = "", url = ""] = peer.split("=");
    return startMember({
      dataDir: join(dir, name),
      flags: [
        `--name=${name}`,
        `--initial-cluster=${peers.join(",")}`,
        `--listen-peer-urls=${url}`,
        `--initial-advertise-peer-urls=${url}`,
        "--heartbeat-interval=20",
        "--election-timeout=200",
        "--strict-reconfig-check=false",
      ],
    });
  };
  const [first, second] = (await Promise.all(peers.map(start))) as [RunningMember, RunningMember];
  const client = connect({ endpoints: first.endpoints });
  const { members: listed } = await client.memberList();
  await client.memberRemove(listed.find((one) => one.name === "b")!.ID);
  await second.ended;
  await second.stop();
  await assert.rejects(start(peers[1]), /has been permanently removed from the cluster/);
  // All is closed: the directory and the addresses are free for who comes next.
  assert.ok(!existsSync(join(dir, "b.peer")));
  await assert.rejects(start(peers[1]), /has been permanently removed from the cluster/);
  client.close();
  await first.stop();
  rmSync(dir, { recursive: true });
});

test("wrong options of a start are named", async () => {
  for (const [options, message] of [
    [
      { dataDirectory: "d" },
      /^startMember: unknown option dataDirectory: there are dataDir, config, flags,/,
    ],
    [{ dataDir: 1 }, "startMember: dataDir must be a string, not the number 1"],
    [{ flags: "--name=a" }, /^startMember: flags must be an array of strings, not the string/],
    [{ isPrivate: "yes" }, /^startMember: isPrivate must be true or false/],
    [{ logger: { info() {} } }, /^startMember: logger must be a Logger, with debug, info, /],
  ] as const)
    await assert.rejects(startMember(options as object), { name: "TypeError", message });
});

test("a member that stops ends the streams of its leases, and does not wait for them", async () => {
  const member = await startMember();
  const client = connect({ endpoints: member.endpoints });
  const { ID } = await client.leases.grant(60);
  const stream = await client.stream(LeaseService.methods.LeaseKeepAlive);
  stream.send({ ID });
  const responses = stream[Symbol.asyncIterator]();
  assert.equal((await responses.next()).value?.TTL, 60);
  const ended = assert.rejects(responses.next(), /etcdserver: server stopped/);
  await member.stop();
  // After the grace its connection would have been cut instead.
  await ended;
  client.close();
});
