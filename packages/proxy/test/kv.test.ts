/** Reads and writes through the proxy: the cache, retries, namespaces. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "@quorate/host/testing";
import {
  DeleteRangeRequest,
  fromUtf8,
  KeyValue,
  PutRequest,
  RangeRequest,
  RangeResponse,
  TxnRequest,
  toUtf8,
} from "@quorate/proto";
import { MAX_CACHED_RESPONSES, Namespace, RangeCache, Upstream } from "@quorate/proxy";
import { MAX_CACHED_BYTES, MAX_CACHED_RESPONSE_BYTES } from "../src/kv/range-cache.ts";
import { MAX_PENDING_CALLS, SILENT_MEMBER_MS } from "../src/upstream/upstream.ts";
import { type Metadata, World } from "./support/world.ts";

const bytes = fromUtf8;
const RANGE = "/etcdserverpb.KV/Range";
const PUT = "/etcdserverpb.KV/Put";

async function get(
  world: World,
  key: string,
  options: Partial<RangeRequest> = {},
  metadata: Metadata = {},
): Promise<string> {
  const request = RangeRequest.encode({ key: bytes(key), ...options });
  const { kvs } = RangeResponse.decode(await world.call(RANGE, request, metadata));
  return kvs.map((pair) => toUtf8(KeyValue.decode(pair).value)).join();
}

const put = (world: World, key: string, value: string): Promise<Uint8Array> =>
  world.call(PUT, PutRequest.encode({ key: bytes(key), value: bytes(value) }));
const reads = (world: World): number => world.cluster.calls.filter((one) => one === "Range").length;

test("serializable reads come from the cache, until a write through the proxy", async () => {
  const world = new World();
  await put(world, "k", "1");
  assert.equal(await get(world, "k"), "1");
  assert.equal(await get(world, "k", { serializable: true }), "1");
  assert.equal(await get(world, "k", { serializable: true }), "1");
  assert.equal(reads(world), 1);
  assert.equal(world.metrics.cacheHits.value, 2);
  await put(world, "k", "2");
  assert.equal(await get(world, "k", { serializable: true }), "2");
  assert.equal(await get(world, "k"), "2", "a linearizable read is never from the cache");
  assert.equal(reads(world), 3);
});

test("a cached response is for its own identity, and not for long", async () => {
  const world = new World();
  await put(world, "k", "secret");
  world.cluster.forbidden.set("mallory", "k");
  const serializable = { serializable: true };
  assert.equal(await get(world, "k", serializable, { token: "alice" }), "secret");
  await assert.rejects(get(world, "k", serializable, { token: "mallory" }), {
    message: "etcdserver: permission denied",
  });
  world.cluster.forbidden.set("alice", "k");
  assert.equal(await get(world, "k", serializable, { token: "alice" }), "secret");
  await world.settle(5100);
  await assert.rejects(get(world, "k", serializable, { token: "alice" }));
});

test("what a write overtakes is not cached", () => {
  const cache = new RangeCache();
  const point = RangeRequest.create({ key: bytes("k") });
  const range = RangeRequest.create({ key: bytes("a"), rangeEnd: bytes("z") });
  const overtaken = [cache.begin("1", point, 0), cache.begin("2", range, 0)];
  cache.invalidate({ key: "k", end: "" });
  for (const start of overtaken) cache.add(start, bytes("old"));
  assert.equal(cache.size, 0);
  const other = cache.begin("3", RangeRequest.create({ key: bytes("other") }), 0);
  cache.invalidate({ key: "k", end: "" });
  cache.add(other, bytes("kept"));
  assert.equal(cache.size, 1);
});

test("ranges, deletions and transactions drop what they touch", () => {
  const cache = new RangeCache();
  const add = (name: string, key: string, rangeEnd = "") => {
    const request = RangeRequest.create({ key: bytes(key), rangeEnd: bytes(rangeEnd) });
    cache.add(cache.begin(name, request, 0), bytes(name));
    return () => cache.get(cache.begin(name, request, 0)) !== undefined;
  };
  const [a, c, bToD, fromX] = [
    add("a", "a"),
    add("c", "c"),
    add("b-d", "b", "d"),
    add("x", "x", "\0"),
  ];
  cache.invalidate({ key: "c", end: "" });
  assert.deepEqual([a(), c(), bToD(), fromX()], [true, false, false, true]);
  cache.invalidate({ key: "y", end: "z" });
  assert.deepEqual([a(), fromX()], [true, false]);
  cache.invalidate({ key: "a", end: "\0" });
  assert.equal(a(), false);
});

test("the cache is bounded in responses and bytes, and forgets compacted revisions", () => {
  const cache = new RangeCache();
  const start = (i: number, revision = 0) =>
    cache.begin(`${i}`, RangeRequest.create({ key: bytes(`${i}`), revision }), 0);
  for (let i = 0; i < MAX_CACHED_RESPONSES + 10; i++) cache.add(start(i), bytes("v"));
  assert.equal(cache.size, MAX_CACHED_RESPONSES);
  const large = new Uint8Array(MAX_CACHED_RESPONSE_BYTES);
  for (let i = 0; i < 70; i++) cache.add(start(i), large);
  assert.ok(cache.sizeBytes <= MAX_CACHED_BYTES);
  cache.add(start(9999), new Uint8Array(MAX_CACHED_RESPONSE_BYTES + 1));
  assert.equal(cache.get(start(9999)), undefined);
  cache.add(start(5, 7), bytes("old"));
  cache.compact(8);
  assert.equal(cache.get(start(5, 7)), "compacted");
});

test("a read is made again at the next member, a write only if it was not sent", async () => {
  const world = new World();
  await put(world, "k", "1");
  world.members[0].kill();
  world.members[0].isDown = true;
  assert.equal(await get(world, "k"), "1");
  await put(world, "k", "2");
  for (const member of world.members) {
    member.kill();
    member.isDown = true;
  }
  await assert.rejects(put(world, "k", "3"), { code: 14, message: "connection refused" });
  await assert.rejects(get(world, "k"), { code: 14 });
});

test("a member that is silent while a call waits in vain is left, one that was heard of is not", async () => {
  const { clock, members, upstream } = new World();
  const rules = { path: RANGE, isRepeatable: true };
  const connection = await members[0].connect();
  const waitInVain = async (waitMs: number): Promise<void> => {
    // Nothing of it arrives: the member is paused.
    const never = { ...members[0], ready: connection } as unknown as (typeof members)[0];
    let cancel = () => {};
    const held = new Upstream([never, members[1]], clock);
    const call = held.call(rules, new Uint8Array(0), {
      metadata: [],
      onCancel: (listener) => {
        cancel = listener;
      },
    });
    clock.advance(waitMs);
    cancel();
    await assert.rejects(call, { code: 1 });
    assert.equal(held.channel === members[1], waitMs >= SILENT_MEMBER_MS, `after ${waitMs} ms`);
  };
  clock.advance(3_600_000);
  await waitInVain(SILENT_MEMBER_MS - 1);
  await waitInVain(SILENT_MEMBER_MS);
  assert.equal(upstream.channel, members[0]);
});

test("calls that wait for the cluster are bounded, and so is the length of a request", async () => {
  const silent = {
    endpoint: "m:1",
    ready: undefined,
    close: () => {},
    connect: () => new Promise<never>(() => {}),
  };
  const upstream = new Upstream([silent], new ManualClock(), 0, 100);
  const rules = { path: RANGE, isRepeatable: true };
  const call = (sizeBytes: number) =>
    upstream.call(rules, new Uint8Array(sizeBytes), { metadata: [] });
  await assert.rejects(call(101), {
    code: 8,
    message: "trying to send message larger than max (101 vs. 100)",
  });
  for (let i = 0; i < MAX_PENDING_CALLS; i++) void call(1);
  await assert.rejects(call(1), {
    code: 8,
    message: "more than 65536 calls wait for the cluster",
  });
});

test("a namespace: its keys alone, in every kind of request", async () => {
  const world = new World({ namespace: "app/" });
  await put(world, "k", "1");
  world.cluster.put("other/k", bytes("x"));
  world.cluster.put("app/l", bytes("2"));
  assert.equal(world.cluster.history[0].key, "app/k");
  const everything = { key: bytes("\0"), rangeEnd: bytes("\0") };
  assert.equal(await get(world, "\0", everything), "1,2");
  await assert.rejects(put(world, "", "x"), { message: "etcdserver: key is not provided" });
  const stream = world.watch();
  stream.create("\0", { rangeEnd: bytes("\0") });
  await world.settle();
  world.cluster.put("app/m", bytes("3"));
  world.cluster.put("b", bytes("4"));
  await world.settle();
  assert.deepEqual(stream.events(), ["m=3"]);
  await assert.rejects(world.call(PUT, Uint8Array.of(0xff)), {
    code: 13,
    message: /^grpc: error unmarshalling request/,
  });
});

test("a namespace goes through transactions in transactions", () => {
  const namespace = new Namespace("p/");
  const inner = TxnRequest.create({
    success: [{ request: { case: "requestPut", value: PutRequest.create({ key: bytes("a") }) } }],
  });
  const changed = TxnRequest.decode(
    namespace.txnRequest(
      TxnRequest.encode({
        failure: [
          { request: { case: "requestTxn", value: inner } },
          {
            request: {
              case: "requestDeleteRange",
              value: DeleteRangeRequest.create({ key: bytes("a"), rangeEnd: bytes("\0") }),
            },
          },
        ],
      }),
    ),
  );
  const [txn, deletion] = changed.failure.map(({ request }) => request!);
  assert.equal(txn.case, "requestTxn");
  assert.deepEqual(JSON.stringify(keysOf(txn.value as TxnRequest)), '["p/a"]');
  assert.equal(toUtf8((deletion.value as DeleteRangeRequest).rangeEnd), "p0");
  assert.deepEqual(new Namespace("\xff").range(bytes("a"), bytes("\0")).rangeEnd.length > 0, true);
});

function keysOf(txn: TxnRequest): string[] {
  return txn.success.map(({ request }) => toUtf8((request!.value as PutRequest).key));
}
