/** Requests of the v2 API that no honest client sends, and what one that asks too much gets. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Member } from "@quorate/member";
import { fromUtf8, KVService, LeaseService, PutRequest, TxnResponse } from "@quorate/proto";
import { serviceTable } from "@quorate/services";
import {
  encodeNode,
  MAX_FORM_FIELDS,
  MAX_MEMBER_BODY_BYTES,
  MAX_PATH_BYTES,
  MAX_PATH_NAMES,
  MAX_PLANS,
  MAX_REVOKED_LEASES,
} from "@quorate/v2/testing";
import { callAs } from "./support/users.ts";
import { startV2, V2Client } from "./support/v2.ts";
import type { World } from "./support/world.ts";

let world: World;
let member: Member;
let v2: V2Client;

before(async () => {
  ({ world, member, v2 } = await startV2());
});

after(() => world.stopAll());

/** Query of a GET or form of a PUT, and the error that it gets. */
const BAD_FORMS: readonly (readonly [method: string, form: string, code: number, cause: string])[] =
  [
    ["GET", "recursive=maybe", 209, 'invalid value for "recursive"'],
    ["GET", "waitIndex=-1", 203, 'invalid value for "waitIndex"'],
    ["GET", "waitIndex=18446744073709551616", 203, 'invalid value for "waitIndex"'],
    ["GET", "a=%zz", 210, 'invalid URL escape "%zz"'],
    ["GET", "a=%", 210, 'invalid URL escape "%"'],
    ["GET", "a=1;b=2", 210, "invalid semicolon separator in query"],
    ["PUT", "prevIndex=1e3", 203, 'invalid value for "prevIndex"'],
    ["PUT", "prevValue=", 201, '"prevValue" cannot be empty'],
    ["PUT", "ttl=-1", 202, 'invalid value for "ttl"'],
    ["PUT", "ttl=9000000001", 202, 'invalid value for "ttl"'],
    ["PUT", "ttl=99999999999999999999999", 202, 'invalid value for "ttl"'],
    ["PUT", "prevExist=x", 209, "invalid value for prevExist"],
    ["PUT", "refresh=true", 212, "No TTL value set"],
    ["PUT", "refresh=true&ttl=5&value=x", 211, "A value was provided on a refresh"],
    ["PUT", "&".repeat(MAX_FORM_FIELDS), 210, `more than ${MAX_FORM_FIELDS} fields`],
  ];

test("forms that are not well formed get etcd's error, and change nothing", async () => {
  const before = member.store.mvcc.currentRevision;
  for (const [method, form, code, cause] of BAD_FORMS) {
    const isGet = method === "GET";
    const answer = await v2.send(method, "/v2/keys/x", isGet ? form : "", isGet ? "" : form);
    const { errorCode, cause: actual, index } = answer.json;
    assert.deepEqual([errorCode, actual, index], [code, cause, 0], form.slice(0, 40));
    assert.equal(answer.status, 400);
  }
  assert.equal(member.store.mvcc.currentRevision, before);
});

test("paths: those that are not clean are redirected, those that are none are refused", async () => {
  const redirects: readonly (readonly [string, string])[] = [
    ["/v2/keys//a", "/v2/keys/a?x=1"],
    ["/v2/keys/../members", "/v2/members?x=1"],
    ["/v2/keys/%2e%2e/%2e%2e/etc", "/etc?x=1"],
    ["/v2/keys/a/./b/", "/v2/keys/a/b/?x=1"],
    ["/v2/keys/a%2F%2Fb%00", "/v2/keys/a/b%00?x=1"],
  ];
  for (const [path, location] of redirects) {
    const answer = await v2.send("GET", path, "x=1");
    assert.deepEqual([answer.status, answer.headers["location"]], [301, location], path);
  }
  for (const path of ["/v2/keys/%", "/v2/keys/%4", "/v2/keys/%zz"])
    assert.equal((await v2.send("GET", path)).status, 400, path);
  assert.equal((await v2.send("PATCH", "/v2/keys/a")).status, 405);
});

test("names of any bytes are keys; a path has a bounded length and depth", async () => {
  for (const name of [
    "%00",
    "%ff%fe",
    "a%2e%2e",
    "%0A",
    "%E2%80%A8",
    "..%5c",
    "%25zz",
    "%3Cb%3E",
  ]) {
    assert.equal((await v2.put(`/bytes/${name}`, { value: name })).status, 201, name);
    assert.equal((await v2.get(`/bytes/${name}`)).json.node.value, name);
  }
  assert.equal((await v2.get("/bytes")).json.node.nodes.length, 8);
  const deep = "/d".repeat(MAX_PATH_NAMES);
  assert.equal((await v2.put(deep, { value: "x" })).status, 201);
  assert.equal((await v2.get(deep)).json.node.value, "x");
  assert.match((await v2.put(`${deep}/d`, { value: "x" })).json.cause, /more than 50 names/);
  const long = `/${"n".repeat(MAX_PATH_BYTES)}`;
  assert.match((await v2.put(long, { value: "x" })).json.cause, /longer than 4096 bytes/);
  assert.equal((await v2.delete("/d", { recursive: true })).status, 200);
});

test("bodies: one too long is refused early, one that no budget holds too", async () => {
  const body = "a".repeat(MAX_MEMBER_BODY_BYTES + 1);
  assert.equal((await v2.send("POST", "/v2/members", "", body)).status, 413);
  const most = member.config.maxRequestBytes;
  const tooLong = await v2.send("PUT", "/v2/keys/x", "", "a".repeat(4 * most));
  assert.equal(tooLong.status, 413);
  const tooLarge = await v2.put("/x", { value: "x".repeat(most + 1) });
  assert.equal(tooLarge.json.cause, "etcdserver: request is too large");
  const held = v2.begin("PUT", "/v2/keys/y");
  held.holdBudgetBytes = 10;
  held.listener.data?.(new Uint8Array(11));
  held.listener.ended?.();
  assert.equal(held.status, 503);
});

test("a client that goes away in the middle leaves nothing behind", async () => {
  const early = v2.begin("PUT", "/v2/keys/gone");
  early.listener.data?.(fromUtf8("value=x"));
  early.listener.aborted?.();
  await world.run(20);
  assert.equal((await v2.get("/gone")).status, 404);
  const late = v2.open("PUT", "/v2/keys/gone", "", "value=x");
  late.listener.aborted?.();
  await world.run(20);
  assert.notEqual(late.state, "open");
  const wait = v2.wait("/gone");
  wait.listener.aborted?.();
  await world.run(20);
  assert.equal(member.watches.feed.watcherCount, 0);
});

test("a large directory is listed in pages, up to a bound", async () => {
  await v2.put("/large", { dir: true });
  const names = Array.from({ length: 3000 }, (_, i) => String(i).padStart(6, "0"));
  await fill("/large", names);
  const { nodes } = (await v2.get("/large")).json.node;
  assert.equal(nodes.length, 3000);
  assert.equal(nodes[2999].key, "/large/002999");
  for (const limits of [{ maxListedNodes: 2999 }, { maxListedBytes: 100_000 }]) {
    const bounded = new V2Client(world, member, { limits });
    const refused = await bounded.get("/large", { recursive: true });
    assert.deepEqual([refused.status, refused.json.errorCode], [500, 300]);
    assert.match(refused.json.cause, /the directory has more than/);
  }
  const held = v2.begin("GET", "/v2/keys/large");
  held.holdBudgetBytes = 50_000;
  held.listener.ended?.();
  await world.settled(held.done);
  assert.match(held.text, /"lists that are being read hold too much memory"/);
  // A client that does not read gets no more than what waits for it already.
  const slow = v2.begin("GET", "/v2/keys/large");
  slow.sendBudgetBytes = 1;
  slow.bufferedBytes = 1;
  slow.listener.ended?.();
  await world.run(100);
  assert.equal(slow.pieces.length, 1);
  slow.bufferedBytes = 0;
  slow.listener.drained?.();
  await world.settled(slow.done);
  assert.equal(JSON.parse(slow.text).node.nodes.length, 3000);
  const gone = v2.begin("GET", "/v2/keys/large");
  gone.sendBudgetBytes = 0;
  gone.listener.ended?.();
  await world.run(100);
  gone.listener.aborted?.();
  await world.run(10);
  assert.deepEqual([gone.pieces.length, gone.state], [1, "started"]);
  assert.equal((await v2.delete("/large", { recursive: true })).status, 200);
});

/** Puts nodes in a directory by v3, a hundred in a transaction. */
async function fill(directory: string, names: readonly string[], leases: readonly bigint[] = []) {
  const value = encodeNode({ isDir: false, action: "set", value: "x" });
  for (let from = 0; from < names.length; from += 100) {
    const success = names.slice(from, from + 100).map((name, i) => {
      const key = fromUtf8(`/v2/keys${directory}//${name}`);
      const put = PutRequest.create({ key, value, lease: leases[from + i] ?? 0n });
      return { request: { case: "requestPut" as const, value: put } };
    });
    await world.settled(callAs(member, undefined, KVService.methods.Txn, { success }));
  }
}

test("POST passes over names that are taken, up to a bound", async () => {
  await v2.put("/taken", { dir: true });
  const first = member.store.mvcc.currentRevision + 1;
  const names = Array.from({ length: 1200 }, (_, i) => String(first + i).padStart(20, "0"));
  await fill("/taken", names.slice(0, 100));
  const { node } = (await v2.post("/taken", { value: "x" })).json;
  assert.equal(node.key, `/taken/${String(first + 100).padStart(20, "0")}`);
  await fill("/taken", names.slice(101));
  assert.equal((await v2.post("/taken", { value: "x" })).json.errorCode, 105);
});

test("a deletion revokes a bounded number of leases", async () => {
  await v2.put("/leases", { dir: true });
  const ids = Array.from({ length: MAX_REVOKED_LEASES + 1 }, (_, i) => BigInt(1000 + i));
  const { LeaseGrant } = LeaseService.methods;
  const grants = ids.map((ID) => callAs(member, undefined, LeaseGrant, { ID, TTL: 1000 }));
  await world.settled(Promise.all(grants));
  await fill("/leases", ids.map(String), ids);
  await v2.delete("/leases", { recursive: true });
  await world.run(100);
  assert.equal(member.store.lessor.count, 1);
});

test("a write that others always overtake ends after a bounded number of plans", async () => {
  const table = serviceTable(member);
  const { path } = KVService.methods.Txn;
  let tries = 0;
  const unary = new Map(table.unary).set(path, () => {
    tries++;
    return TxnResponse.encode({ header: member.header(1), succeeded: false, responses: [] });
  });
  const client = new V2Client(world, member, { services: { ...table, unary } });
  const { json } = await client.put("/overtaken", { value: "x" });
  assert.deepEqual([json.errorCode, json.cause], [300, "too many concurrent changes of the key"]);
  assert.equal(tries, MAX_PLANS);
});
