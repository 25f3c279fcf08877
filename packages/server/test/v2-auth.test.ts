/** The v2 API while users and roles are enforced: those of v3, by token or by HTTP basic. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Member } from "@quorate/member";
import { AuthService, fromUtf8, KVService } from "@quorate/proto";
import { serviceTable } from "@quorate/services";
import { Audit } from "../src/audit/audit.ts";
import { servedIdentity } from "../src/audit/settings.ts";
import { lineSink } from "./support/audit-lines.ts";
import { callAs, enableAuth, login, PASSWORD } from "./support/users.ts";
import { V2Client } from "./support/v2.ts";
import { World } from "./support/world.ts";

let world: World;
let member: Member;
let rootToken: string;
let anonymous: V2Client;
let app: V2Client;
let root: V2Client;

const basic = (user: string, password: string): { authorization: string } => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`,
});
const UNAUTHORIZED = {
  errorCode: 110,
  message: "The request requires user authentication",
  cause: "Insufficient credentials",
  index: 0,
};

before(async () => {
  world = new World(1);
  await world.startAll();
  member = world.leader()!.member!;
  anonymous = new V2Client(world, member);
  await anonymous.put("/app/f", { value: "1" });
  await anonymous.put("/other/f", { value: "1" });
  rootToken = await enableAuth(world, member, "app");
  const perm = { permType: 2, key: fromUtf8("/v2/keys/app/"), rangeEnd: fromUtf8("/v2/keys/app0") };
  const { RoleGrantPermission } = AuthService.methods;
  await world.settled(callAs(member, rootToken, RoleGrantPermission, { name: "app", perm }));
  app = new V2Client(world, member, { headers: basic("app", PASSWORD) });
  root = new V2Client(world, member, { headers: { authorization: rootToken } });
});

after(() => world.stopAll());

test("without a user, and with a wrong password: 401, whether the key exists or not", async () => {
  const wrong = new V2Client(world, member, { headers: basic("unknown", "wrong") });
  const garbled = new V2Client(world, member, { headers: { authorization: "Basic !" } });
  const unknown = new V2Client(world, member, { headers: { authorization: "no.such.token" } });
  for (const client of [anonymous, wrong, garbled, unknown]) {
    for (const answer of [
      await client.get("/app/f"),
      await client.get("/app/none"),
      await client.get("/", { recursive: true }),
      await client.get("/app/f", { wait: true }),
      await client.put("/app/f", { value: "2" }),
      await client.put("/app/none", { value: "2", prevExist: true }),
      await client.post("/app", { value: "2" }),
      await client.delete("/app/f"),
      await client.put("/app/f", { value: "2", ttl: 100 }),
    ]) {
      assert.equal(answer.status, 401, answer.text);
      assert.deepEqual(answer.json, UNAUTHORIZED);
    }
    assert.equal((await client.send("DELETE", "/v2/members/1234")).status, 401);
    assert.equal((await client.send("GET", "/v2/members")).status, 401);
    assert.equal((await client.send("GET", "/v2/machines")).status, 401);
  }
  assert.equal(member.store.lessor.count, 0);
});

test("a user has what its role permits, by the prefix of a directory's keys", async () => {
  assert.equal((await app.put("/app/f", { value: "2" })).json.prevNode.value, "1");
  assert.equal((await app.put("/app/deep/er", { value: "x", ttl: 100 })).status, 201);
  assert.equal((await app.post("/app/queue", { value: "x" })).status, 201);
  assert.equal((await app.get("/app", { recursive: true })).json.node.nodes.length, 3);
  assert.equal((await app.get("/app/none")).json.errorCode, 100);
  assert.equal((await app.put("/app/f", { value: "x", prevIndex: 1 })).json.errorCode, 101);
  const wait = app.wait("/app/f");
  await world.run(10);
  await app.delete("/app/f", { prevValue: "2" });
  await world.run(10);
  assert.match(wait.text, /^\{"action":"compareAndDelete"/);
  for (const answer of [
    await app.get("/other/f"),
    await app.get("/other/none"),
    await app.get("/other", { recursive: true }),
    await app.get("/", { recursive: true }),
    await app.get("/other/f", { wait: true }),
    await app.put("/other/f", { value: "2" }),
    await app.put("/other/f", { value: "2", prevExist: false }),
    await app.post("/other", { value: "2" }),
    await app.delete("/other", { recursive: true }),
    await app.put("/new/f", { value: "2" }),
  ])
    assert.deepEqual([answer.status, answer.json], [401, UNAUTHORIZED]);
  const refused = await app.send("DELETE", "/v2/members/1234");
  assert.deepEqual([refused.status, refused.text], [401, '{"message":"Insufficient credentials"}']);
  assert.equal((await root.get("/other/f")).json.node.value, "1");
  assert.equal((await root.get("/", { recursive: true })).status, 200);
});

test("a user that may only write is shown no value, index or existence by a failed comparison", async () => {
  const { RoleAdd, RoleGrantPermission, UserAdd, UserGrantRole } = AuthService.methods;
  const ask = (method: Parameters<typeof callAs>[2], request: object) =>
    world.settled(callAs(member, rootToken, method, request as never));
  await ask(UserAdd, { name: "writer", password: PASSWORD });
  await ask(RoleAdd, { name: "writer" });
  const range = { key: fromUtf8("/v2/keys/box/"), rangeEnd: fromUtf8("/v2/keys/box0") };
  await ask(RoleGrantPermission, { name: "writer", perm: { permType: 1, ...range } });
  await ask(UserGrantRole, { user: "writer", role: "writer" });
  await root.put("/box/f", { value: "secret" });
  const index = (await root.get("/box/f")).json.node.modifiedIndex;
  const writer = new V2Client(world, member, { headers: basic("writer", PASSWORD) });
  for (const answer of [
    await writer.put("/box/f", { value: "x", prevValue: "guess" }),
    await writer.put("/box/f", { value: "x", prevValue: "secret" }),
    await writer.put("/box/f", { value: "x", prevIndex: index }),
    await writer.put("/box/f", { value: "x", prevIndex: index - 1 }),
    await writer.put("/box/f", { value: "x", prevExist: false }),
    await writer.put("/box/none", { value: "x", prevExist: true }),
    await writer.put("/box/f", { value: "x" }),
    await writer.put("/box/f", { dir: true }),
    await writer.put("/box/f/below", { value: "x" }),
    await writer.put("/box/f", { refresh: true, ttl: 100 }),
    await writer.put("/box/none", { refresh: true, ttl: 100 }),
    await writer.post("/box/f", { value: "x" }),
    await writer.delete("/box/f", { prevValue: "guess" }),
    await writer.delete("/box/f", { prevIndex: index - 1 }),
    await writer.delete("/box/f", { prevValue: "secret" }),
    await writer.delete("/box/none"),
    await writer.delete("/box/f", { dir: true }),
    await writer.get("/box/f"),
    await writer.get("/box", { recursive: true }),
    await writer.get("/box/f", { wait: true }),
    await writer.get("/box/f", { wait: true, waitIndex: 1 }),
  ])
    assert.deepEqual([answer.status, answer.json], [401, UNAUTHORIZED]);
  assert.equal((await root.get("/box/f")).json.node.value, "secret");
});

test("a wait for history that is gone says so only to a user that may read there", async () => {
  const { Compact } = KVService.methods;
  const revision = member.store.mvcc.currentRevision;
  await world.settled(callAs(member, rootToken, Compact, { revision }));
  const wait = { wait: true, waitIndex: 2 };
  assert.equal((await root.get("/app/f", wait)).json.errorCode, 401);
  for (const client of [anonymous, app]) {
    const answer = await client.get("/other/f", wait);
    assert.deepEqual([answer.status, answer.json], [401, UNAUTHORIZED]);
  }
});

test("the statistics need a user, as the status of v3 does", async () => {
  const wrong = new V2Client(world, member, { headers: { authorization: "no.such.token" } });
  for (const name of ["self", "leader", "store"]) {
    for (const client of [anonymous, wrong]) {
      const refused = await client.send("GET", `/v2/stats/${name}`);
      assert.deepEqual(
        [refused.status, refused.text],
        [401, '{"message":"Insufficient credentials"}'],
      );
    }
    for (const client of [app, root])
      assert.equal((await client.send("GET", `/v2/stats/${name}`)).status, 200);
  }
});

test("a directory with a TTL ends while users and roles are enforced", async () => {
  await app.put("/app/ends", { dir: true, ttl: 5 });
  await app.put("/app/ends/f", { value: "x" });
  await world.run(8000);
  assert.equal((await app.get("/app/ends")).json.errorCode, 100);
});

test("the audit log has the calls of v3, with the user and the verdict", async () => {
  const lines: Record<string, unknown>[] = [];
  const sink = lineSink((line) => void lines.push(JSON.parse(line)));
  const audit = new Audit(
    { level: "metadata", prefixes: [], readSampling: 1, onFailure: "drop" },
    {
      clock: member.clock,
      sink,
      hashValue: () => "",
      identityOf: (context) => servedIdentity(member.auth.authority, context),
    },
  );
  const services = audit.around(serviceTable(member));
  const audited = new V2Client(world, member, { headers: basic("app", PASSWORD), services });
  await audited.put("/app/audited", { value: "x" });
  await audited.put("/other/audited", { value: "x" });
  await audited.get("/other/f");
  assert.deepEqual(
    lines.map(({ user, method, verdict }) => [user, method, verdict]),
    [
      [undefined, "etcdserverpb.Auth/Authenticate", "ok"],
      ["app", "etcdserverpb.KV/Txn", "ok"],
      ["app", "etcdserverpb.KV/Txn", "denied"],
      ["app", "etcdserverpb.KV/Range", "denied"],
    ],
  );
  assert.ok(!JSON.stringify(lines).includes(PASSWORD));
});

test("a wait whose permission is taken ends; a kept login that has ended is made again", async () => {
  const wait = app.wait("/app/f");
  await world.run(10);
  assert.equal(wait.status, 200);
  const { RoleRevokePermission, RoleGrantPermission, UserChangePassword } = AuthService.methods;
  const range = { key: fromUtf8("/v2/keys/app/"), rangeEnd: fromUtf8("/v2/keys/app0") };
  const admin = (await world.settled(login(member, "root"))) as string;
  await world.settled(callAs(member, admin, RoleRevokePermission, { role: "app", ...range }));
  await world.until(() => wait.state !== "started");
  assert.equal(wait.text, "");
  const perm = { permType: 2, ...range };
  await world.settled(callAs(member, admin, RoleGrantPermission, { name: "app", perm }));
  assert.equal((await app.put("/app/f", { value: "3" })).status, 201);
  const change = { name: "app", password: "another" };
  await world.settled(callAs(member, admin, UserChangePassword, change));
  assert.equal((await app.get("/app/f")).status, 401);
  const renewed = new V2Client(world, member, { headers: basic("app", "another") });
  assert.equal((await renewed.get("/app/f")).json.node.value, "3");
  // The same password, set again, ends the token that is kept.
  await world.settled(callAs(member, admin, UserChangePassword, change));
  assert.equal((await renewed.get("/app/f")).json.node.value, "3");
});
