/** Which calls are sent again after a failure that leaves open whether they were executed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { GrpcCode } from "@quorate/proto";
import type { CallOptions } from "../src/call-options.ts";
import { Client } from "../src/client.ts";
import { Endpoints } from "../src/endpoints.ts";
import { Failover } from "../src/failover.ts";
import { type Link, LinkError } from "../src/link.ts";
import { opGet, opPut } from "../src/requests.ts";

/** A client whose every call is sent and then lost, and how often each method was sent. */
function losing(): { client: Client; sent: string[] } {
  const sent: string[] = [];
  const link: Link = {
    endpoint: "e",
    async call(path) {
      sent.push(path);
      throw new LinkError(GrpcCode.Unavailable, "connection dropped", true);
    },
    stream: () => assert.fail("no stream is needed"),
    close: () => {},
  };
  let nowMs = 0;
  const clock = {
    nowMs: () => nowMs,
    async sleep(delayMs: number) {
      nowMs += delayMs;
    },
  };
  const limits = { timeoutMs: 100, dialTimeoutMs: 10, maxPendingCalls: 1, prefersLeader: false };
  const circuit = { failures: 3, openMs: 1000 };
  const endpoints = new Endpoints([link], clock, { first: 0, circuit });
  const timer = { after: () => () => {} };
  return {
    client: new Client(new Failover(endpoints, limits, clock), () => link, undefined, timer),
    sent,
  };
}

type Call = (client: Client, options?: CallOptions) => Promise<unknown>;

const WRITES: Readonly<Record<string, Call>> = {
  put: (client, options) => client.put("k", "v", options),
  delete: (client, options) => client.delete("k", options),
  txn: (client, options) => client.txn({ success: [opGet("k"), opPut("k", "v")] }, options),
  compact: (client, options) => client.compact(1, options),
  memberAdd: (client, options) => client.memberAdd(["http://a:1"], options),
  memberRemove: (client, options) => client.memberRemove(1n, options),
  memberUpdate: (client, options) => client.memberUpdate(1n, ["http://a:1"], options),
  memberPromote: (client, options) => client.memberPromote(1n, options),
  moveLeader: (client, options) => client.moveLeader("e", 1n, options),
  alarmDisarm: (client, options) => client.alarmDisarm({ memberID: 1n, alarm: 1 }, options),
  defragment: (client, options) => client.defragment("e", options),
  downgrade: (client, options) => client.downgrade("enable", "3.6", options),
  "leases.grant": (client, options) => client.leases.grant(60, 0n, options),
  "leases.revoke": (client, options) => client.leases.revoke(1n, options),
  "auth.enable": (client, options) => client.auth.enable(options),
  "auth.disable": (client, options) => client.auth.disable(options),
  "auth.userAdd": (client, options) => client.auth.userAdd("u", "p", options),
  "auth.userDelete": (client, options) => client.auth.userDelete("u", options),
  "auth.userChangePassword": (client, options) => client.auth.userChangePassword("u", "p", options),
  "auth.userGrantRole": (client, options) => client.auth.userGrantRole("u", "r", options),
  "auth.userRevokeRole": (client, options) => client.auth.userRevokeRole("u", "r", options),
  "auth.roleAdd": (client, options) => client.auth.roleAdd("r", options),
  "auth.roleDelete": (client, options) => client.auth.roleDelete("r", options),
  "auth.roleGrantPermission": (client, options) =>
    client.auth.roleGrantPermission("r", { permType: 0, key: KEY, rangeEnd: KEY }, options),
  "auth.roleRevokePermission": (client, options) =>
    client.auth.roleRevokePermission("r", KEY, KEY, options),
};

const READS: Readonly<Record<string, Call>> = {
  get: (client, options) => client.get("k", options),
  "txn that reads": (client, options) => client.txn({ success: [opGet("k")] }, options),
  memberList: (client, options) => client.memberList(options),
  status: (client, options) => client.status("e", options),
  alarmList: (client, options) => client.alarmList(options),
  hash: (client, options) => client.hash("e", options),
  hashKv: (client, options) => client.hashKv("e", 0, options),
  "leases.timeToLive": (client, options) => client.leases.timeToLive(1n, options),
  "leases.list": (client, options) => client.leases.list(options),
  "auth.status": (client, options) => client.auth.status(options),
  "auth.userGet": (client, options) => client.auth.userGet("u", options),
  "auth.userList": (client, options) => client.auth.userList(options),
  "auth.roleGet": (client, options) => client.auth.roleGet("r", options),
  "auth.roleList": (client, options) => client.auth.roleList(options),
};

/** Methods that send no request of their own, or through one of those above. */
const OTHERS = new Set([
  "constructor",
  "login",
  "watch",
  "session",
  "call",
  "snapshot",
  "stream",
  "transaction",
  "namespace",
  "getEach",
  "follow",
]);
const STREAMS = new Set(["leases.constructor", "auth.constructor", "leases.keepAlive"]);

const KEY = Uint8Array.of(1);

/** How often the calls of a table are sent. */
async function times(calls: Readonly<Record<string, Call>>, options?: CallOptions) {
  const counts: [name: string, count: number][] = [];
  for (const [name, call] of Object.entries(calls)) {
    const { client, sent } = losing();
    await assert.rejects(call(client, options), { name: "ClientError", mayHaveHappened: true });
    counts.push([name, sent.length]);
  }
  return counts;
}

test("a write of unknown outcome is not sent again", async () => {
  for (const [name, count] of await times(WRITES)) assert.equal(count, 1, name);
});

test("it is sent again where the program asks for that", async () => {
  for (const [name, count] of await times(WRITES, { repeat: true })) assert.equal(count, 3, name);
});

test("a read is sent again, unless the program asks for once", async () => {
  for (const [name, count] of await times(READS)) assert.equal(count, 3, name);
  for (const [name, count] of await times(READS, { repeat: false })) assert.equal(count, 1, name);
});

test("the tables have every call", () => {
  const { client } = losing();
  const names = (target: object, prefix = "") =>
    Object.getOwnPropertyNames(Object.getPrototypeOf(target)).map((name) => prefix + name);
  const all = [
    ...names(client),
    ...names(client.leases, "leases."),
    ...names(client.auth, "auth."),
  ];
  const missing = all.filter(
    (name) => !(name in WRITES || name in READS || OTHERS.has(name) || STREAMS.has(name)),
  );
  assert.deepEqual(missing, ["timeoutMs", "close", "leases.keepAliveOnce"]);
});
