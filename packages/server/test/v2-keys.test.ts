/** The v2 API's reads and writes on a member in memory; v2-model.test.ts has the random ones. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Member } from "@quorate/member";
import {
  AlarmType,
  fromUtf8,
  KeyValue,
  KVService,
  LeaseService,
  MaintenanceService,
} from "@quorate/proto";
import { serviceTable } from "@quorate/services";
import {
  cleanPath,
  decodeNode,
  encodeNode,
  goString,
  goTime,
  nodeKey,
  pathOfKey,
  subtree,
  without,
} from "@quorate/v2/testing";
import { callAs } from "./support/users.ts";
import { startV2, V2Client } from "./support/v2.ts";
import { get as getV3, put as putV3, type World } from "./support/world.ts";

let world: World;
let member: Member;
let v2: V2Client;

before(async () => {
  ({ world, member, v2 } = await startV2());
});

after(() => world.stopAll());

test("a path and its key: children and all below are ranges, and no other key is a node's", () => {
  assert.equal(nodeKey(["foo"]), "/v2/keys//foo");
  assert.equal(nodeKey(["a", "b", "c"]), "/v2/keys/a/b//c");
  assert.deepEqual(subtree(["a"]), { key: "/v2/keys/a/", rangeEnd: "/v2/keys/a0" });
  for (const path of [["a"], ["a", "b"], ["a\0", "\xff", "."]])
    assert.deepEqual(pathOfKey(nodeKey(path)), path);
  for (const key of ["/v2/keys", "/v2/keys/", "/v2/keys//", "/v2/keys///", "/v2/keys/a//", "/x"])
    assert.equal(pathOfKey(key), undefined, key);
  assert.deepEqual(cleanPath("//a/./b/../c/"), ["a", "c"]);
  assert.deepEqual(cleanPath("/../.."), []);
  const range = { key: "c", rangeEnd: "f" };
  assert.deepEqual(without(range, ["e", "a", "z"]), [
    { key: "c", rangeEnd: "e" },
    { key: "e\0", rangeEnd: "f" },
  ]);
});

test("strings and times as Go writes them", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["a/b", '"a/b"'],
    ['<&>"\\\n\t\x01\x7f', '"\\u003c\\u0026\\u003e\\"\\\\\\n\\t\\u0001\x7f"'],
    ["\xc3\xa9\xf0\x9f\x98\x80", '"é😀"'],
    ["\xe2\x80\xa8\xe2\x80\xa9", '"\\u2028\\u2029"'],
    ["\xff\xc3(\xed\xa0\x80\xc0\x80\xf4\x90\x80\x80", `"\\ufffd\\ufffd(${"\\ufffd".repeat(9)}"`],
  ];
  for (const [bytes, json] of cases) assert.equal(goString(bytes), json);
  assert.equal(goTime(Date.UTC(2026, 0, 1, 0, 0, 20, 0)), "2026-01-01T00:00:20Z");
  assert.equal(goTime(Date.UTC(2026, 0, 1, 0, 0, 0, 120)), "2026-01-01T00:00:00.12Z");
});

test("responses of writes and reads, byte for byte", async () => {
  const first = member.store.mvcc.currentRevision + 1;
  const set = await v2.put("/r/f", { value: "<é>" });
  const node = `{"key":"/r/f","value":"\\u003cé\\u003e","modifiedIndex":${first},"createdIndex":${first}}`;
  assert.equal(set.text, `{"action":"set","node":${node}}\n`);
  assert.equal(set.status, 201);
  const again = await v2.put("/r/f", { value: "", prevExist: true });
  const updated = `{"key":"/r/f","value":"","modifiedIndex":${first + 1},"createdIndex":${first}}`;
  assert.equal(again.text, `{"action":"update","node":${updated},"prevNode":${node}}\n`);
  const list = await v2.get("/r");
  const directory = `"modifiedIndex":${first},"createdIndex":${first}`;
  const text = `{"action":"get","node":{"key":"/r","dir":true,"nodes":[${updated}],${directory}}}\n`;
  assert.equal(list.text, text);
  assert.deepEqual(list.headers, {
    "content-type": "application/json",
    "x-etcd-cluster-id": list.headers["x-etcd-cluster-id"],
    "x-etcd-index": String(first + 1),
    "x-raft-index": String(member.commitIndex),
    "x-raft-term": String(member.term),
  });
  const silent = await v2.put("/r/f", { value: "x", noValueOnSuccess: true });
  assert.equal(silent.text, '{"action":"set"}\n');
});

test("a TTL is a lease: refresh keeps the value, and the leases before are ended", async () => {
  await v2.put("/ttl/f", { value: "kept", ttl: 100 });
  const refreshed = await v2.put("/ttl/f", { ttl: 200, refresh: true });
  assert.equal(refreshed.json.node.value, "kept");
  assert.equal(refreshed.json.node.ttl, 200);
  assert.equal(refreshed.json.prevNode.ttl, 100);
  await world.run(1000);
  assert.equal((await v2.get("/ttl/f")).json.node.ttl, 199);
  assert.equal(member.store.lessor.count, 1);
  await v2.put("/ttl/d", { dir: true, ttl: 500 });
  await v2.put("/ttl/d/e/f", { value: "x", ttl: 600 });
  // It is refused, so its lease goes too.
  assert.equal((await v2.put("/ttl/d/e", { ttl: 100, value: "x" })).status, 403);
  await v2.delete("/ttl", { recursive: true });
  await world.run(100);
  assert.equal(member.store.lessor.count, 0);
});

test("a directory ends with all that is below it, in one revision", async () => {
  await v2.put("/end/d", { dir: true, ttl: 5 });
  for (const name of ["a", "b/c", "b/d"]) await v2.put(`/end/d/${name}`, { value: "x" });
  await v2.put("/end/d/long", { value: "x", ttl: 1000 });
  const before = member.store.mvcc.currentRevision;
  await world.until(() => member.store.mvcc.currentRevision > before);
  assert.equal(member.store.mvcc.currentRevision, before + 1);
  assert.equal((await v2.get("/end", { recursive: true })).json.node.nodes, undefined);
  assert.equal(await world.settled(getV3(member, "/v2/keys/end/d/b//c")), undefined);
  await world.run(3000);
  assert.equal(member.store.mvcc.currentRevision, before + 1);
});

test("what a program of v3 writes and deletes there makes no node that cannot be used", async () => {
  await v2.put("/v3/dir/deep/f", { value: "x" });
  await world.settled(putV3(member, "/v2/keys/v3//plain", "file set"));
  const plain = await v2.get("/v3/plain");
  assert.equal(plain.json.node.value, "file set");
  const key = fromUtf8("/v2/keys/v3//dir");
  await world.settled(callAs(member, undefined, KVService.methods.DeleteRange, { key }));
  assert.equal((await v2.get("/v3/dir/deep/f")).json.cause, "/v3/dir");
  // What was left below does not come back with the directory.
  assert.equal((await v2.put("/v3/dir/other", { value: "y" })).status, 201);
  const { nodes } = (await v2.get("/v3", { recursive: true })).json.node;
  assert.deepEqual(
    nodes.map((node: { key: string; nodes?: unknown[] }) => [node.key, node.nodes?.length ?? 0]),
    [
      ["/v3/dir", 1],
      ["/v3/plain", 0],
    ],
  );
});

test("the record of a node: what was encoded is decoded, and other bytes are a file", () => {
  const kv = (value: Uint8Array) => ({ key: fromUtf8("/v2/keys//a"), value, modRevision: 9 });
  const encoded = encodeNode({
    isDir: false,
    action: "update",
    value: "a\nb",
    createdIndex: 3,
    ttlSeconds: 5,
    expiresMs: 1000,
    isRefresh: true,
  });
  const node = decodeNode(KeyValue.encode(kv(encoded)));
  assert.deepEqual([node.value, node.createdIndex, node.modifiedIndex], ["a\nb", 3, 9]);
  assert.deepEqual([node.ttlSeconds, node.expiresMs, node.isRefresh], [5, 1000, true]);
  for (const text of ["", "file", "file set", "file what\nx", `dir ${"x".repeat(300)}\n`]) {
    const other = decodeNode(KeyValue.encode(kv(fromUtf8(text))));
    assert.deepEqual([other.isDir, other.value, other.createdIndex], [false, text, 9]);
  }
});

test("a full store refuses writes and takes deletions", async () => {
  await v2.put("/full", { value: "x", ttl: 1000 });
  const alarm = { action: 1, memberID: member.id, alarm: AlarmType.NOSPACE };
  await world.settled(callAs(member, undefined, MaintenanceService.methods.Alarm, alarm));
  const refused = await v2.put("/full", { value: "y" });
  assert.deepEqual([refused.status, refused.json.errorCode], [500, 300]);
  assert.equal(refused.json.cause, "etcdserver: mvcc: database space exceeded");
  assert.equal((await v2.delete("/full", { prevValue: "x" })).status, 200);
  const off = { ...alarm, action: 2 };
  await world.settled(callAs(member, undefined, MaintenanceService.methods.Alarm, off));
});

test("many writers: no update is lost, and a loop of comparisons ends", async () => {
  await v2.put("/many", { value: "0" });
  const writes = Array.from({ length: 50 }, (_, i) =>
    v2.put("/many", { value: i, prevExist: true }),
  );
  const statuses = new Set((await Promise.all(writes)).map(({ status }) => status));
  assert.deepEqual([...statuses], [200]);
  const posts = await Promise.all(Array.from({ length: 50 }, () => v2.post("/q", { value: "x" })));
  const nodes = posts.map(({ json }) => json.node);
  nodes.sort((a, b) => a.createdIndex - b.createdIndex);
  const names = nodes.map(({ key }) => key);
  assert.deepEqual(names, [...names].sort());
  assert.equal(new Set(names).size, 50);
});

test("writes of one node, and in one directory, are planned behind each other", async () => {
  let plans = 0;
  const table = serviceTable(member);
  const { path } = KVService.methods.Txn;
  const txn = table.unary.get(path)!;
  const unary = new Map(table.unary).set(path, (bytes, context) => {
    plans++;
    return txn(bytes, context);
  });
  const client = new V2Client(world, member, { services: { ...table, unary } });
  await client.put("/counter", { value: "0" });
  const updates = Array.from({ length: 40 }, (_, i) =>
    i % 2 === 0
      ? client.put("/counter", { value: i + 1, prevExist: true })
      : client.put("/counter", { value: i + 1, prevValue: i }),
  );
  const nodes = (await Promise.all(updates)).map(({ json }) => json);
  for (const [i, { node, prevNode }] of nodes.entries()) {
    assert.deepEqual([node.value, prevNode.value], [String(i + 1), String(i)]);
    if (i > 0) assert.equal(prevNode.modifiedIndex, nodes[i - 1].node.modifiedIndex);
  }
  await Promise.all(
    Array.from({ length: 40 }, () => client.post("/jobs", { value: "x", ttl: 60 })),
  );
  assert.equal(plans, 1 + 40 + 40);
  // One that comes in between costs those behind it a second plan, and no update.
  const mixed = Array.from({ length: 30 }, (_, i) =>
    i === 10
      ? putV3(member, "/v2/keys//counter", "by a program of v3")
      : client.put("/counter", { value: i, prevExist: true }),
  );
  await Promise.all(mixed);
  assert.ok(plans <= 81 + 3 * 30, `${plans} plans`);
  const failing = Array.from({ length: 20 }, () =>
    client.put("/counter", { value: 1, prevValue: 2 }),
  );
  for (const { json } of await Promise.all(failing)) assert.equal(json.errorCode, 101);
});

test("members, machines, statistics, and the users of v2 that are not served", async () => {
  const members = await v2.send("GET", "/v2/members");
  const [own] = members.json.members;
  assert.deepEqual(Object.keys(own), ["id", "name", "peerURLs", "clientURLs"]);
  assert.deepEqual((await v2.send("GET", "/v2/members/leader")).json, own);
  const [url] = own.clientURLs;
  assert.equal((await v2.send("GET", "/v2/machines")).text, url);
  assert.equal((await v2.send("GET", "/v2/members/x")).status, 404);
  const json = { "content-type": "application/json" };
  const post = (body: string, headers: Readonly<Record<string, string>> = json) =>
    v2.send("POST", "/v2/members", "", body, headers);
  assert.equal((await post("{}")).status, 400);
  assert.equal((await post("{")).status, 400);
  assert.equal((await post('{"peerURLs":["nonsense"]}')).status, 400);
  assert.equal((await post("{}", { "content-type": "text/plain" })).status, 415);
  const taken = await post(JSON.stringify({ peerURLs: own.peerURLs }));
  assert.deepEqual([taken.status, taken.json.message], [409, "membership: peerURL exists"]);
  assert.equal((await v2.send("DELETE", "/v2/members")).status, 405);
  const none = await v2.send("DELETE", "/v2/members/1234");
  assert.deepEqual([none.status, none.json.message], [404, "No such member: 1234"]);
  const self = (await v2.send("GET", "/v2/stats/self")).json;
  assert.deepEqual([self.id, self.state], [own.id, "StateLeader"]);
  assert.equal((await v2.send("GET", "/v2/stats/leader")).json.leader, own.id);
  assert.ok((await v2.send("GET", "/v2/stats/store")).json.setsSuccess > 0);
  assert.deepEqual((await v2.send("GET", "/v2/auth/enable")).json, { enabled: false });
  assert.equal((await v2.send("PUT", "/v2/auth/users/u", "", "{}")).status, 403);
  assert.equal((await v2.send("GET", "/v2/none")).status, 404);
});

test("a lease of v3 that has no directory ends alone", async () => {
  const { LeaseGrant } = LeaseService.methods;
  await world.settled(callAs(member, undefined, LeaseGrant, { ID: 77n, TTL: 5 }));
  const put = { key: fromUtf8("/v2/keys//leased"), value: fromUtf8("x"), lease: 77n };
  await world.settled(callAs(member, undefined, KVService.methods.Put, put));
  assert.equal((await v2.get("/leased")).status, 200);
  await world.run(8000);
  assert.equal((await v2.get("/leased")).status, 404);
});
