/** Members in memory, on threads of their own, and what they tell. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { connect } from "@quorate/client/node";
import { AlarmType, MaintenanceService, toUtf8 } from "@quorate/proto";
import { launch, newMemory } from "../node/launch.ts";
import { startMember } from "../node/start-member.ts";

const scratch = mkdtempSync(join(tmpdir(), "quorate-memory-test-"));
// What members would make in a temporary directory is here.
process.env["TMPDIR"] = scratch;
after(() => rmSync(scratch, { recursive: true }));

test("members in memory: several in a process, apart, and no file of them", async () => {
  const one = await startMember({ dataDir: ":memory:" });
  const other = await startMember({ dataDir: ":memory:" });
  const client = connect({ endpoints: one.endpoints });
  await client.put("k", "v");
  assert.equal((await client.get("k")).count, 1);
  await using own = { client: other.client(), [Symbol.asyncDispose]: () => other.stop() };
  assert.equal((await own.client.get("k")).count, 0);
  assert.equal(one.dataDir, ":memory:");
  assert.deepEqual(readdirSync(scratch), []);
  client.close();
  await one.stop();
  const again = await startMember({ dataDir: ":memory:" });
  assert.equal((await again.client().get("k")).count, 0);
  await again.stop();
});

test("a member in memory has a quota", async () => {
  await using member = await startMember({ dataDir: ":memory:" });
  const text = await (await fetch(`${member.endpoints[0]}/metrics`)).text();
  assert.match(text, /^etcd_server_quota_backend_bytes 2\.?68435456(e\+08)?$/m);
});

test("a member in memory ends when its files take more than they may", async () => {
  const memory = newMemory({ capacityBytes: 24 * 1024 * 1024 });
  const member = await launch({ dataDir: ":memory:" }, { memory });
  const client = member.client();
  const value = new Uint8Array(1024 * 1024);
  let hasEnded = false;
  const ended = member.ended.catch(() => {
    hasEnded = true;
  });
  for (let i = 0; i < 64 && !hasEnded; i++)
    await Promise.race([client.put("k", value).catch(() => {}), ended]);
  await assert.rejects(member.ended, /no space left on the disk/);
  client.close();
});

test("a member in memory makes no certificates", async () => {
  const config = {
    "listen-client-urls": "https://127.0.0.1:0",
    "advertise-client-urls": "https://127.0.0.1:1",
    "client-transport-security": { "auto-tls": true },
  };
  await assert.rejects(startMember({ dataDir: ":memory:", config }), {
    name: "StartError",
    code: "NeedsDirectory",
  });
});

test("a configuration is an object in the form of the file, with the file's errors", async () => {
  await using member = await startMember({
    dataDir: ":memory:",
    config: {
      name: "alone",
      "max-txn-ops": 3,
      "auto-compaction-retention": "1h",
      "socket-options": { "reuse-port": false },
    },
  });
  const client = member.client();
  assert.equal((await client.memberList()).members[0].name, "alone");
  for (const [config, message] of [
    [
      { "hartbeat-interval": 5 },
      'config: unknown key "hartbeat-interval" (did you mean "heartbeat-interval"?)',
    ],
    [{ "max-txn-ops": "many" }, /^config: invalid value "many" for max-txn-ops: parse error/],
    [
      { "client-transport-security": true },
      "config: invalid client-transport-security: expected nested keys",
    ],
    [{ "max-txn-ops": 0 }, "--max-txn-ops must be >0"],
  ] as const)
    await assert.rejects(startMember({ config: config as object }), {
      name: "ConfigError",
      message,
    });
  await assert.rejects(startMember({ config: {}, flags: [] }), /config or flags, not both/);
});

test("a client in the process: calls, errors, watches, sessions, and the end", async () => {
  const member = await startMember({ dataDir: ":memory:" });
  const client = member.client({ timeoutMs: 60_000 });
  const { header } = await client.put("k", "1");
  const watch = client.watch("k", { revision: header.revision }).changes();
  assert.equal((await watch.next()).value?.kind, "put");
  await client.delete("k");
  assert.equal((await watch.next()).value?.kind, "delete");
  await assert.rejects(client.get("k", { revision: 99 }), { code: "FutureRev" });
  const session = await client.session({ ttlSeconds: 30 });
  await client.put("held", "v", { lease: session.lease });
  await session.close();
  assert.equal((await client.get("held")).count, 0);
  assert.equal((await client.status(member.endpoints[0])).leader !== 0n, true);
  await assert.rejects(client.status("http://127.0.0.1:1"), /reaches its member alone/);
  const early = new AbortController();
  const aborted = client.get("k", { signal: early.signal });
  early.abort();
  await assert.rejects(aborted, { grpcCode: 1, message: "context canceled" });
  const next = watch.next();
  next.catch(() => {});
  const hasty = member.client({ timeoutMs: 100 });
  await member.stop();
  await assert.rejects(hasty.put("k", "2"), { name: "ClientError" });
  client.close();
  await assert.rejects(client.put("k", "2"), /the client is closed/);
});

test("what a client in the process gets is its own", async () => {
  await using member = await startMember({ dataDir: ":memory:" });
  const client = member.client();
  const { header } = await client.put("k", "value");
  const { kvs } = await client.get("k");
  kvs[0].value.fill(0);
  for await (const { kv } of client.watch("k", { revision: header.revision }).changes()) {
    assert.equal(toUtf8(kv.value), "value");
    kv.value.fill(0);
    break;
  }
  assert.equal(toUtf8((await client.get("k")).kvs[0].value), "value");
});

test("a client in the process is who it says", async () => {
  await using member = await startMember({ dataDir: ":memory:", config: { "bcrypt-cost": 4 } });
  const client = member.client();
  await client.auth.userAdd("root", "secret");
  await client.auth.roleAdd("root");
  await client.auth.userGrantRole("root", "root");
  await client.auth.enable();
  await assert.rejects(client.put("k", "v"), /user name is empty/);
  const root = member.client({ auth: { name: "root", password: "secret" } });
  await root.put("k", "v");
  await root.auth.disable();
});

test("events: the leader, alarms, the end", async () => {
  const member = await startMember({ dataDir: ":memory:" });
  const told: string[] = [];
  member.events.on("alarms", (alarms) => told.push(alarms.map(({ alarm }) => alarm).join()));
  member.events.on("closed", (error) => told.push(`closed ${error}`));
  const client = member.client();

  const { members } = await client.memberList();
  const memberID = members[0].ID;
  const { Alarm } = MaintenanceService.methods;
  const raise = { action: 1, memberID, alarm: AlarmType.NOSPACE };
  await client.call(Alarm, raise, false);
  await client.alarmDisarm({ memberID, alarm: AlarmType.NOSPACE });
  await member.stop();
  assert.deepEqual(told, [`${AlarmType.NOSPACE}`, "", "closed undefined"]);
});

test("a member on its own thread answers while the program holds its loop", async () => {
  await using member = await startMember({ dataDir: ":memory:", ownThread: true });
  let isReady = false;
  member.events.once("ready", () => {
    isReady = true;
  });
  await member.ready;
  assert.ok(isReady);
  const ask = `fetch("${member.endpoints[0]}/health").then((r) => r.text()).then(console.log)`;
  // The thread of this test waits for the other process and does nothing else.
  const text = execFileSync(process.execPath, ["-e", ask], { encoding: "utf8", timeout: 120_000 });
  assert.match(text, /"health":"true"/);
  const client = member.client();
  await client.put("k", "v");
  client.close();
});

test("a thread hands over errors, lines of its log and its end", async () => {
  const wrong = { ownThread: true, config: { "max-txn-ops": 0 } };
  await assert.rejects(startMember(wrong), { name: "ConfigError", code: "Contradiction" });
  const lines: string[] = [];
  const note = (msg: string) => void lines.push(msg);
  const logger = { debug: note, info: note, warn: note, error: note, child: () => logger };
  const member = await startMember({ dataDir: ":memory:", ownThread: true, logger });
  const closed = new Promise((resolve) => member.events.once("closed", () => resolve("closed")));
  await Promise.all([member.stop(), member.stop()]);
  assert.equal(await closed, "closed");
  await member.ended;
  assert.ok(lines.includes("ready to serve client requests"), lines.join("\n"));
});
