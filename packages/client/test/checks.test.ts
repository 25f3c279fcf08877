/** What a program may pass, and that a wrong value is refused with its name before it is sent. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../node/connect.ts";
import { workQueue } from "../node/work-queue.ts";
import { Barrier } from "../src/barrier.ts";
import { Cache } from "../src/cache.ts";
import type { Client } from "../src/client.ts";
import { text } from "../src/codec.ts";
import { addTo } from "../src/counter.ts";
import { campaign, electedLeader, observeElection } from "../src/election.ts";
import { lockNamed } from "../src/lock.ts";
import { getStream } from "../src/range-stream.ts";
import { compareLease, compareValue, compareVersion, opPut, prefixEnd } from "../src/requests.ts";
import { readLock, writeLock } from "../src/rw-lock.ts";
import { semaphorePermit } from "../src/semaphore.ts";
import type { Session } from "../src/session.ts";

// Nothing listens there, and nothing is asked: a check comes first.
const client = connect({ endpoints: ["http://127.0.0.1:1"], timeoutMs: 1 });
/** As programs in JavaScript see it. */
// biome-ignore lint/suspicious/noExplicitAny: wrong types are the subject
const any = (value: unknown): any => value;
const c = any(client);
const session = { lease: 1n } as Session;
const signal = new AbortController().signal;

const notBytes = (call: string, name: string, shown: string) =>
  `${call}: ${name} must be a string or a Uint8Array, not ${shown}`;

/** A call, and the message of its TypeError. */
const REFUSED: readonly (readonly [call: () => unknown, message: string | RegExp])[] = [
  [() => c.put("k", 5), notBytes("put", "value", "the number 5")],
  [() => c.put("k", {}), notBytes("put", "value", "an object (Object)")],
  [() => c.put("k", true), notBytes("put", "value", "true")],
  [() => c.put("k", null), notBytes("put", "value", "null")],
  [() => c.put("k"), notBytes("put", "value", "undefined")],
  [() => c.put("k", [1]), notBytes("put", "value", "an array")],
  [() => c.put("k", 5n), notBytes("put", "value", "the bigint 5n")],
  [() => c.put(undefined, "v"), notBytes("put", "key", "undefined")],
  [
    () => c.put("k", "v", { leese: 1n }),
    "put: unknown option leese: there are lease, prevKv, ignoreValue, ignoreLease, signal, timeoutMs, repeat",
  ],
  [
    () => c.put("k", "v", { lease: 1 }),
    "put: lease must be a bigint, such as 0n, not the number 1",
  ],
  [() => c.put("k", "v", 1n), "put: options must be an object, not the bigint 1n"],
  [() => c.put("k", "v", { toString: true }), /^put: unknown option toString: /],
  [() => c.get(7), notBytes("get", "key", "the number 7")],
  [() => c.get("k", { prefix: 1 }), "get: prefix must be true or false, not the number 1"],
  [
    () => c.get("k", { limit: "1" }),
    'get: limit must be an integer up to 2^53, not the string "1"',
  ],
  [() => c.get("k", { revision: 1.5 }), /^get: revision must be an integer/],
  [() => c.get("k", { sortBy: "size" }), /^get: sortBy must be "key" or .*not the string "size"$/],
  [
    () => c.get("k", { order: "up" }),
    'get: order must be "ascend" or "descend", not the string "up"',
  ],
  [() => c.get("k", { rangeEnd: 1 }), notBytes("get", "rangeEnd", "the number 1")],
  [() => c.delete("k", { limit: 1 }), /^delete: unknown option limit: /],
  [() => c.delete(null), notBytes("delete", "key", "null")],
  [
    () => c.txn({ compares: [] }),
    "txn: unknown option compares: there are compare, success, failure",
  ],
  [() => c.txn(undefined), "txn: options must be an object, not undefined"],
  [
    () => c.txn({ compare: compareVersion("k", "=", 0) }),
    /^txn: compare must be an array of comparisons, such as compareVersion\(\) returns, not an obj/,
  ],
  [
    () => c.txn({ success: ["put"] }),
    /^txn: success must be an array of operations, such as opPut/,
  ],
  [() => opPut("k", any(1)), notBytes("put", "value", "the number 1")],
  [
    () => compareVersion("k", any("=="), 0),
    'compareVersion: comparison must be "=" or "!=" or "<" or ">", not the string "=="',
  ],
  [() => compareVersion("k", "=", any(1n)), /^compareVersion: version must be an integer/],
  [() => compareValue("k", "=", any(1)), notBytes("compareValue", "value", "the number 1")],
  [() => compareLease("k", "=", any(1)), /^compareLease: lease must be a bigint/],
  [() => prefixEnd(any(1)), notBytes("prefixEnd", "prefix", "the number 1")],
  [() => c.watch("k", { prefx: true }), /^watch: unknown option prefx: /],
  [() => c.watch({}), notBytes("watch", "key", "an object (Object)")],
  [() => c.watch("k", { onBreak: 1 }), "watch: onBreak must be a function, not the number 1"],
  [() => getStream(client, "k", any({ pages: 1 })).next(), /^get: unknown option pages: /],
  [
    () => getStream(client, "k", { timeoutMs: -1 }).next(),
    /^getStream: timeoutMs must be a number/,
  ],
  [() => c.compact("1"), /^compact: revision must be an integer/],
  [() => c.compact(1, { fast: true }), /^compact: unknown option fast: there are physical, /],
  [() => c.memberList({ linearizable: 1 }), /^memberList: linearizable must be true or false/],
  [
    () => c.memberAdd("http://a:1"),
    /^memberAdd: peerURLs must be an array of strings, not the str/,
  ],
  [
    () => c.memberAdd([], { learner: true }),
    /^memberAdd: unknown option learner: there are isLearner, /,
  ],
  [() => c.memberRemove(1), /^memberRemove: id must be a bigint from 0n to /],
  [() => c.memberPromote("1"), /^memberPromote: id must be a bigint/],
  [() => c.memberUpdate(1n), /^memberUpdate: peerURLs must be an array of strings, not undefined/],
  [() => c.moveLeader("a:1", -1n), /^moveLeader: targetID must be a bigint from 0n/],
  [() => c.status(), "status: endpoint must be a string, not undefined"],
  [() => c.defragment(1), /^defragment: endpoint must be a string/],
  [() => c.hash(), /^hash: endpoint must be a string/],
  [() => c.hashKv("a:1", "0"), /^hashKv: revision must be an integer/],
  [() => c.snapshot(1).next(), /^snapshot: endpoint must be a string/],
  [() => c.downgrade("go", "3.6"), /^downgrade: action must be "validate" or "enable" or "cancel"/],
  [() => c.alarmDisarm({ member: 1n }), /^alarmDisarm: unknown option member: /],
  [() => c.session({ ttl: 1 }), /^session: unknown option ttl: there are ttlSeconds, /],
  [() => c.session({ ttlSeconds: "1" }), /^session: ttlSeconds must be an integer/],
  [() => c.leases.grant("60"), /^grant: ttlSeconds must be an integer/],
  [() => c.leases.grant(60, 1), /^grant: id must be a bigint/],
  [() => c.leases.revoke(1), /^revoke: id must be a bigint/],
  [() => c.leases.timeToLive(1n, { key: true }), /^timeToLive: unknown option key: there are keys/],
  [() => c.leases.keepAliveOnce(1), /^keepAliveOnce: id must be a bigint/],
  [() => c.leases.keepAlive(1n, {}), /^keepAlive: onRenewed must be a function/],
  [() => c.auth.userAdd(1), "userAdd: name must be a string, not the number 1"],
  [() => c.auth.userAdd("u", 1), "userAdd: password must be a string, not the number 1"],
  [() => c.auth.userChangePassword("u"), /^userChangePassword: password must be a string/],
  [() => c.auth.userGrantRole("u"), /^userGrantRole: role must be a string/],
  [() => c.auth.userRevokeRole(), /^userRevokeRole: name must be a string/],
  [() => c.auth.userDelete(), /^userDelete: name must be a string/],
  [() => c.auth.userGet(), /^userGet: name must be a string/],
  [() => c.auth.roleAdd(), /^roleAdd: name must be a string/],
  [() => c.auth.roleGet(), /^roleGet: role must be a string/],
  [() => c.auth.roleDelete(), /^roleDelete: role must be a string/],
  [() => c.auth.roleGrantPermission("r", { perm: 1 }), /^roleGrantPermission: unknown option perm/],
  [
    () => c.auth.roleRevokePermission("r", 1, ""),
    notBytes("roleRevokePermission", "key", "the number 1"),
  ],
  [() => lockNamed(client, session, any(1)), /^lockNamed: name must be a string/],
  [
    () => lockNamed(client, session, "l", { signal: any(1) }),
    /^lock: signal must be an AbortSignal/,
  ],
  [() => electedLeader(client, any(1)), /^electedLeader: name must be a string/],
  [() => campaign(client, session, "e", any(1)), /^campaign: value must be a string/],
  [
    () => observeElection(client, any(1), { signal }).next(),
    /^observeElection: name must be a string/,
  ],
  [() => c.getEach("k", { pages: 1 }).next(), /^get: unknown option pages: /],
  [() => c.follow("k", { revision: 1 }).next(), /^follow: unknown option revision: /],
  [() => c.namespace(1, text), "namespace: prefix must be a string, not the number 1"],
  [() => c.namespace("n/", text).get(1), "get: key must be a string, not the number 1"],
  [() => c.transaction(() => {}, { attempts: 1 }), /^transaction: unknown option attempts: /],
  [() => readLock(client, session, any(1)), /^readLock: name must be a string/],
  [() => writeLock(client, session, any(1)), /^writeLock: name must be a string/],
  [
    () => semaphorePermit(client, session, "s", any("2")),
    /^semaphorePermit: permits must be an integer/,
  ],
  [() => new Barrier(client, any(1)), /^barrier: key must be a string/],
  [() => workQueue(client, any(1)), /^workQueue: name must be a string/],
  [() => addTo(client, "k", any("1")), /^addTo: amount must be an integer/],
  [() => Cache.open(client, "k", { maxBytes: -1 }), /^cache: maxBytes must be a number that is/],
  [() => c.call({}, "x", true), /^call: request must be an object/],
  [() => c.get("k", { timeoutMs: -1 }), /^get: timeoutMs must be a number that is not negative/],
  [() => c.put("k", "v", { signal: {} }), /^put: signal must be an AbortSignal, not an object/],
  [() => c.txn({}, { repeat: 1 }), /^txn: repeat must be true or false, not the number 1/],
  [() => c.watch("k", { signal: 1 }), /^watch: signal must be an AbortSignal/],
  [() => c.leases.keepAlive(1n, undefined, { repeat: true }), /^keepAlive: unknown option repeat/],
  [
    () => connect(any({ endpoint: "a:1" })),
    /^connect: unknown option endpoint: there are endpoints, /,
  ],
  [
    () => connect(any({ endpoints: "a:1" })),
    /^connect: endpoints must be an array of strings, not the str/,
  ],
  [() => connect({ endpoints: ["a:1"], timeoutMs: -5 }), /^connect: timeoutMs must be a number/],
  [
    () => connect({ endpoints: ["a:1"], timeoutMs: Number.NaN }),
    /^connect: timeoutMs must be a numb/,
  ],
  [
    () => connect(any({ endpoints: ["a:1"], tls: { caFile: "x" } })),
    /^connect: tls: unknown option caFile/,
  ],
  [
    () => connect(any({ endpoints: ["a:1"], auth: { user: "u" } })),
    /^connect: auth: unknown option user/,
  ],
];

test("a wrong value or option is a TypeError that names it, and nothing is sent", async () => {
  for (const [call, message] of REFUSED)
    await assert.rejects(async () => call(), { name: "TypeError", message }, String(call));
});

/** Methods that take no parameters, are the base of others, or are made by the client itself. */
const WITHOUT = new Set([
  "constructor",
  "close",
  "login",
  "enable",
  "disable",
  "list",
  "alarmList",
]);

test("every method of the client that takes parameters is among them", () => {
  const text = REFUSED.map(([call]) => String(call)).join("\n");
  for (const target of [client, client.leases, client.auth]) {
    const names = Object.getOwnPropertyNames(Object.getPrototypeOf(target));
    for (const name of names) {
      const { value } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(target), name)!;
      if (typeof value !== "function" || WITHOUT.has(name) || /List$|status/.test(name)) continue;
      // Opens any stream, of a method that the caller names.
      if (name === "stream") continue;
      assert.ok(text.includes(`.${name}(`), name);
    }
  }
});

test("what is right passes: bytes, empty texts, absent and undefined options", async () => {
  const unreached = { name: "ClientError" };
  for (const call of [
    () => client.put("", ""),
    () => client.put(new Uint8Array(1), Buffer.from("v"), { lease: any(undefined) }),
    () => client.get("k", { limit: 0, sortBy: "mod", order: "descend" }),
    () => client.txn({}),
  ])
    await assert.rejects(call(), unreached);
});

test.after(() => (client as Client).close());
