/** The v2 API of three members in memory, while their leader changes. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Member } from "@quorate/member";
import { V2Client } from "./support/v2.ts";
import { type Node, World } from "./support/world.ts";

let world: World;

before(async () => {
  world = new World(3);
  await world.startAll();
});

after(() => world.stopAll());

function follower(leader: Node): Node {
  return world.nodes.find((node) => node !== leader)!;
}

test("a directory whose TTL ends while no member leads ends at once, under the next leader", async () => {
  const old = world.leader()!;
  const other = follower(old).member!;
  const client = new V2Client(world, other);
  await client.put("/d", { dir: true, ttl: 5 });
  for (const name of ["a", "b/c", "b/d"]) await client.put(`/d/${name}`, { value: "x" });
  await world.run(50);
  const wait = client.wait("/d/b/c");
  const before = other.store.mvcc.currentRevision;
  world.cutOff.add(old.member!.id);
  // In no revision is a part of it gone.
  const seen = new Set<string>();
  const look = (member: Member): boolean => {
    const { mvcc } = member.store;
    const there = ["/v2/keys//d", "/v2/keys/d//a", "/v2/keys/d/b//c"].map(
      (key) => mvcc.view.get(key) !== undefined,
    );
    seen.add(there.join(" "));
    return there.every((one) => !one);
  };
  await world.until(() => look(other));
  assert.deepEqual([...seen], ["true true true", "false false false"]);
  assert.equal(other.store.mvcc.currentRevision, before + 1);
  await world.run(50);
  assert.match(wait.text, /^\{"action":"expire","node":\{"key":"\/d","dir":true/);
  world.cutOff.clear();
  await world.until(() => old.member!.store.mvcc.view.get("/v2/keys/d//a") === undefined);
});

test("a member without a leader refuses writes with v2's error, and serves what it has", async () => {
  const leader = world.leader()!;
  const alone = follower(leader).member!;
  const client = new V2Client(world, alone);
  assert.equal((await client.put("/kept", { value: "1" })).status, 201);
  world.cutOff.add(alone.id);
  await world.run(3000);
  assert.equal((await client.get("/kept")).json.node.value, "1");
  const refused = await client.put("/kept", { value: "2" });
  assert.deepEqual([refused.status, refused.json.errorCode], [500, 300]);
  assert.match(refused.json.cause, /^etcdserver: /);
  assert.equal((await client.get("/kept", { quorum: true })).json.errorCode, 300);
  assert.equal((await client.get("/none", { quorum: true })).json.errorCode, 300);
  world.cutOff.clear();
  await world.until(() => alone.leader !== 0n);
  assert.equal((await client.put("/kept", { value: "3" })).status, 200);
});

test("writers of two members: a comparison holds for one of them, and no update is lost", async () => {
  const clients = world.nodes.slice(0, 2).map((node) => new V2Client(world, node.member!));
  const { json } = await clients[0].put("/race", { value: "0" });
  const prevIndex = json.node.modifiedIndex as number;
  const racing = clients.map((client) => client.put("/race", { value: "x", prevIndex }));
  const statuses = (await Promise.all(racing)).map(({ status }) => status);
  assert.deepEqual(statuses.toSorted(), [200, 412]);
  const creations = clients.map((client) => client.put("/new", { value: "x", prevExist: false }));
  const created = (await Promise.all(creations)).map(({ status }) => status);
  assert.deepEqual(created.toSorted(), [201, 412]);
  const updates = Array.from({ length: 20 }, (_, i) =>
    clients[i % 2].put("/race", { value: String(i), prevExist: true }),
  );
  const indexes = (await Promise.all(updates)).map(({ json: { node, prevNode } }) => [
    prevNode.modifiedIndex,
    node.modifiedIndex,
  ]);
  indexes.sort(([, a], [, b]) => a - b);
  for (let i = 1; i < indexes.length; i++) assert.equal(indexes[i][0], indexes[i - 1][1]);
});
