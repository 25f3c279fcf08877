/** Waits of the v2 API on a member in memory: history, order, streams, hidden nodes, bounds. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { MemoryExchange } from "@quorate/host/testing";
import type { Member } from "@quorate/member";
import { Event, fromUtf8, KeyValue, KVService, WatchResponse, WatchService } from "@quorate/proto";
import type { StreamHandler } from "@quorate/rpc";
import { serviceTable } from "@quorate/services";
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

const index = () => member.store.mvcc.currentRevision;

/** The events that a wait has shown. */
function events(exchange: MemoryExchange): { action: string; key: string }[] {
  return exchange.text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const { action, node } = JSON.parse(line);
      return { action, key: node.key };
    });
}

test("a wait sends its head at once, and ends with the first event", async () => {
  const wait = v2.wait("/w/f");
  await world.run(10);
  assert.deepEqual(
    [wait.status, wait.state, wait.headers["x-etcd-index"]],
    [200, "started", String(index())],
  );
  await v2.put("/w/other", { value: "x" });
  await v2.put("/w/f", { value: "1" });
  await v2.put("/w/f", { value: "2" });
  await world.run(10);
  assert.equal(wait.state, "ended");
  assert.deepEqual(events(wait), [{ action: "set", key: "/w/f" }]);
});

test("a stream goes on, in order, one event for each index; refreshes and hidden nodes wake none", async () => {
  const wait = v2.wait("/s", { recursive: true, stream: true });
  await world.run(10);
  await v2.put("/s/a", { value: "1", ttl: 100 });
  await v2.put("/s/a", { ttl: 100, refresh: true });
  await v2.put("/s/_hidden/x", { value: "1" });
  await v2.post("/s/q", { value: "1" });
  await v2.put("/s/a", { value: "2", prevExist: true });
  await v2.put("/s/a", { value: "3", prevValue: "2" });
  await v2.delete("/s/a", { prevValue: "3" });
  await v2.put("/s/b", { dir: true });
  await v2.delete("/s/b", { dir: true });
  await v2.delete("/s", { recursive: true });
  await v2.put("/s", { value: "a file now" });
  await world.run(100);
  assert.deepEqual(
    events(wait).map(({ action, key }) => `${action} ${key.replace(/\d{20}/, "N")}`),
    [
      "set /s/a",
      "create /s/q/N",
      "update /s/a",
      "compareAndSwap /s/a",
      "compareAndDelete /s/a",
      "set /s/b",
      "delete /s/b",
      "delete /s",
      "set /s",
    ],
  );
  assert.equal(wait.state, "started");
  wait.listener.aborted?.();
});

test("waitIndex answers from the history, and waits for an index to come", async () => {
  const first = index() + 1;
  for (const value of ["1", "2", "3"]) await v2.put("/h/f", { value });
  for (const [from, value] of [
    [1, "1"],
    [first, "1"],
    [first + 1, "2"],
    [first + 2, "3"],
  ] as const) {
    const { json, headers } = await v2.get("/h", { wait: true, recursive: true, waitIndex: from });
    const expected = from === 1 ? undefined : value;
    if (expected !== undefined) assert.equal(json.node.value, expected);
    assert.equal(headers["x-etcd-index"], String(index()));
  }
  const later = v2.wait("/h/f", { waitIndex: index() + 2 });
  await v2.put("/h/f", { value: "4" });
  await world.run(20);
  assert.equal(later.text, "");
  await v2.put("/h/f", { value: "5" });
  await world.run(20);
  assert.match(later.text, /"value":"5"/);
});

test("hidden: a wait for the node itself, or in its directory, sees it", async () => {
  const waits = [v2.wait("/x/_h/f"), v2.wait("/x/_h", { recursive: true })];
  const blind = v2.wait("/x", { recursive: true });
  await world.run(10);
  await v2.put("/x/_h/f", { value: "1" });
  await world.run(50);
  for (const wait of waits) assert.deepEqual(events(wait), [{ action: "set", key: "/x/_h/f" }]);
  assert.equal(blind.text, "");
  blind.listener.aborted?.();
});

test("a directory that is deleted or ends wakes those who wait below it", async () => {
  for (const action of ["delete", "expire"]) {
    await v2.put("/up", { dir: true, ttl: action === "expire" ? 5 : undefined });
    await v2.put("/up/a/b", { value: "1" });
    const waits = [v2.wait("/up/a/b"), v2.wait("/up/a", { recursive: true }), v2.wait("/up")];
    await world.run(10);
    if (action === "delete") await v2.delete("/up", { recursive: true });
    await world.until(() => waits.every(({ state }) => state === "ended"));
    for (const wait of waits) assert.deepEqual(events(wait), [{ action, key: "/up" }]);
  }
});

test("an explicit deletion of a node with a TTL is none of its end", async () => {
  const from = index() + 1;
  await v2.put("/why", { value: "1", ttl: 100 });
  await v2.delete("/why");
  const { json } = await v2.get("/why", { wait: true, waitIndex: from + 1 });
  assert.equal(json.action, "delete");
  assert.equal(json.prevNode.value, "1");
});

test("history that was compacted: 401 with v2's body, and the index to go on from", async () => {
  for (const value of ["1", "2", "3"]) await v2.put("/c", { value });
  const revision = index() - 1;
  const request = { revision, physical: true };
  await world.settled(callAs(member, undefined, KVService.methods.Compact, request));
  const gone = await v2.get("/c", { wait: true, waitIndex: revision });
  assert.equal(gone.status, 400);
  assert.deepEqual(gone.json, {
    errorCode: 401,
    message: "The event in requested index is outdated and cleared",
    cause: `the requested history has been cleared [${revision + 1}/${revision}]`,
    index: index(),
  });
  assert.equal(gone.headers["x-etcd-index"], String(index()));
  const kept = await v2.get("/c", { wait: true, waitIndex: revision + 1 });
  assert.equal(kept.json.prevNode.value, "2");
});

test("wait with quorum is a read, and wait with PUT is refused, as in etcd", async () => {
  await v2.put("/q", { value: "1" });
  assert.equal((await v2.get("/q", { wait: true, quorum: true })).json.action, "get");
  const refused = await v2.put("/q", { value: "1", wait: true });
  assert.equal(refused.json.errorCode, 209);
});

test("a client that does not read holds no more than the budget of its watch", async () => {
  const slow = v2.open("GET", "/v2/keys/slow", "wait=true&stream=true");
  slow.sendBudgetBytes = 0;
  slow.bufferedBytes = 1 << 30;
  await world.run(10);
  for (let i = 0; i < 20; i++) await v2.put("/slow", { value: String(i) });
  await world.run(50);
  const sent = slow.pieces.length;
  assert.ok(sent < 20, `${sent} pieces`);
  slow.sendBudgetBytes = Number.POSITIVE_INFINITY;
  slow.bufferedBytes = 0;
  slow.listener.drained?.();
  await world.run(200);
  assert.equal(events(slow).length, 20);
  slow.listener.aborted?.();
});

test("waits of one connection, and of all, are bounded, and end with it", async () => {
  const limits = { maxConnectionWaits: 20, maxWaits: 30 };
  const one = new V2Client(world, member, { limits });
  const from = (peerAddress: string, count: number) => {
    one.peerAddress = peerAddress;
    return Array.from({ length: count }, () => one.wait("/bound"));
  };
  const refused = async (peerAddress: string) => {
    one.peerAddress = peerAddress;
    const { status, json } = await one.get("/bound", { wait: true });
    assert.deepEqual([status, json.cause], [500, "too many waits"]);
  };
  const waits = from("127.0.0.1:1", 20);
  await refused("127.0.0.1:1");
  waits.push(...from("127.0.0.1:2", 10));
  await refused("127.0.0.1:3");
  await world.run(10);
  assert.ok(waits.every(({ status }) => status === 200));
  waits.pop()!.listener.aborted?.();
  const other = one.wait("/bound");
  await world.run(10);
  assert.equal(other.status, 200);
  for (const wait of [other, ...waits]) wait.listener.aborted?.();
  await world.run(10);
  assert.equal((await one.send("GET", "/v2/stats/store")).json.watchers, 0);
  assert.equal(member.watches.feed.watcherCount, 0);
});

test("a wait whose one watch never catches up holds a bounded number of revisions", async () => {
  const table = serviceTable(member);
  const created = { header: member.header(1), created: true };
  const event = (modRevision: number) => ({
    header: member.header(modRevision),
    events: [
      Event.encode({
        type: 0,
        kv: KeyValue.encode({ key: fromUtf8("/v2/keys/held//f"), modRevision }),
        prevKv: undefined,
      }),
    ],
  });
  let sent = 0;
  const Watch: StreamHandler = (call) => ({
    message: () => {
      if (sent === 0 || sent === 1) call.send(WatchResponse.encode(created));
      if (++sent !== 2) return;
      for (let i = 2; i < 20; i++) call.send(WatchResponse.encode(event(i)));
    },
  });
  const services = { ...table, stream: new Map([[WatchService.methods.Watch.path, Watch]]) };
  const client = new V2Client(world, member, { services, limits: { maxHeldRevisions: 10 } });
  const wait = client.wait("/held", { recursive: true, stream: true });
  await world.run(100);
  assert.deepEqual([wait.status, wait.state, wait.text], [200, "ended", ""]);
});
