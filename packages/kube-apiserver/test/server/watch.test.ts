import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { MemoryExchange } from "@quorate/host/testing";
import { metaProtobuf } from "@quorate/kube-storage";
import { until } from "../../../../test/support/until.ts";
import {
  MAX_SHARED_FRAME_BYTES,
  MAX_SHARED_FRAMES,
  SharedFrames,
} from "../../src/handlers/watch-frames.ts";
import { ApiWorld, CONFIG_MAPS } from "../support/api-world.ts";

let world: ApiWorld;
const tasks: (() => Promise<void>)[] = [];
before(async () => {
  world = await ApiWorld.open({ after: (task) => void tasks.push(task) });
});
after(async () => {
  for (const task of tasks) await task();
});

interface Event {
  readonly type: string;
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects of it is what it checks
  readonly object: any;
}

function eventsOf(exchange: MemoryExchange): Event[] {
  return exchange.text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

/** "ADDED name", or the type alone. */
const shown = ({ type, object }: Event): string => `${type} ${object.metadata?.name ?? ""}`.trim();

async function untilEvents(exchange: MemoryExchange, count: number): Promise<string[]> {
  await until("the server has done it", () => eventsOf(exchange).length >= count);
  return eventsOf(exchange).map(shown);
}

describe("watch", () => {
  it("sends present objects first, then changes, as lines of JSON", async () => {
    await world.configMap("w1", {}, { labels: { watch: "a" } });
    const exchange = world.start(`${CONFIG_MAPS}?watch=1&labelSelector=watch%3Da`);
    assert.deepEqual(await untilEvents(exchange, 1), ["ADDED w1"]);
    assert.equal(exchange.headers["content-type"], "application/json");
    const patch = { "content-type": "application/merge-patch+json" };
    const target = `${CONFIG_MAPS}/w1`;
    await world.ok(target, { method: "PATCH", headers: patch, body: { data: { a: "1" } } });
    await world.ok(target, { method: "DELETE" });
    assert.deepEqual(await untilEvents(exchange, 3), ["ADDED w1", "MODIFIED w1", "DELETED w1"]);
    exchange.leave();
    await until("the server has done it", () => world.plane.server.openRequests === 0);
  });

  it("goes on from a revision, and reports one that is gone", async (t) => {
    const made = await world.configMap("from", {}, { labels: { watch: "b" } });
    await world.configMap("from2", {}, { labels: { watch: "b" } });
    const from = made.metadata.resourceVersion;
    const query = `watch=1&labelSelector=watch%3Db&resourceVersion=${from}`;
    const exchange = world.start(`${CONFIG_MAPS}?${query}&timeoutSeconds=1`);
    assert.deepEqual(await untilEvents(exchange, 1), ["ADDED from2"]);
    await exchange.done;
    assert.equal(exchange.state, "ended");
    // A server that starts later does not know the changes before a compaction.
    await world.cluster.compact(Number(from));
    const later = await ApiWorld.open(t, {}, world.cluster);
    const gone = later.start(`${CONFIG_MAPS}?watch=1&resourceVersion=1&timeoutSeconds=3`);
    await gone.done;
    const [error] = eventsOf(gone);
    assert.deepEqual([gone.status, error.type], [200, "ERROR"]);
    assert.deepEqual([error.object.code, error.object.reason], [410, "Expired"]);
  });

  it("sends initial events and the bookmark that ends them", async () => {
    const query =
      "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    const exchange = world.start(`${CONFIG_MAPS}?${query}&labelSelector=watch%3Db`);
    assert.deepEqual(await untilEvents(exchange, 3), ["ADDED from", "ADDED from2", "BOOKMARK"]);
    const { annotations } = eventsOf(exchange)[2].object.metadata;
    assert.equal(annotations["k8s.io/initial-events-end"], "true");
    exchange.leave();
  });

  it("sends rows of a Table, the columns with the first", async () => {
    const headers = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" };
    const exchange = world.start(`${CONFIG_MAPS}?watch=1&labelSelector=watch%3Db`, { headers });
    await untilEvents(exchange, 2);
    const [one, two] = eventsOf(exchange);
    assert.equal(one.object.kind, "Table");
    assert.equal(one.object.columnDefinitions[0].name, "Name");
    assert.deepEqual([two.object.columnDefinitions, two.object.rows[0].cells[0]], [null, "from2"]);
    exchange.leave();
  });

  it("sends protobuf frames", async () => {
    const headers = { accept: "application/vnd.kubernetes.protobuf" };
    const exchange = world.start(`${CONFIG_MAPS}?watch=1&labelSelector=watch%3Db`, { headers });
    await until("the server has done it", () => exchange.pieces.length >= 2);
    const type = "application/vnd.kubernetes.protobuf;stream=watch";
    assert.equal(exchange.headers["content-type"], type);
    const [frame] = exchange.pieces;
    assert.equal(new DataView(frame.buffer, frame.byteOffset).getUint32(0), frame.length - 4);
    assert.equal(Buffer.from(frame.subarray(6, 11)).toString(), "ADDED");
    const start = Buffer.from(frame).indexOf("k8s\0");
    assert.equal(metaProtobuf.unwrap(frame.subarray(start)).kind, "ConfigMap");
    exchange.leave();
    const yaml = await world.request(`${CONFIG_MAPS}?watch=1`, {
      headers: { accept: "application/yaml" },
    });
    assert.equal(yaml.status, 406);
  });

  it("takes the deprecated paths", async () => {
    const path = "/api/v1/watch/namespaces/default/configmaps";
    const all = world.start(`${path}?labelSelector=watch%3Db`);
    assert.deepEqual(await untilEvents(all, 2), ["ADDED from", "ADDED from2"]);
    all.leave();
    const one = world.start(`${path}/from`);
    assert.deepEqual(await untilEvents(one, 1), ["ADDED from"]);
    one.leave();
  });

  it("pauses while the client does not read", async () => {
    const exchange = world.start(`${CONFIG_MAPS}?watch=1&labelSelector=watch%3Dslow`);
    await until("the server has done it", () => exchange.status === 200);
    exchange.sendBudgetBytes = 1;
    exchange.bufferedBytes = 2;
    for (const name of ["s1", "s2", "s3"])
      await world.configMap(name, {}, { labels: { watch: "slow" } });
    assert.deepEqual(await untilEvents(exchange, 1), ["ADDED s1"]);
    for (let i = 0; i < 20; i++) await new Promise(setImmediate);
    assert.equal(eventsOf(exchange).length, 1, "the others wait");
    exchange.bufferedBytes = 0;
    exchange.listener.drained?.();
    assert.deepEqual(await untilEvents(exchange, 3), ["ADDED s1", "ADDED s2", "ADDED s3"]);
    exchange.leave();
  });

  it("encodes an event once for all watches", async () => {
    const [a, b] = [1, 2].map(() =>
      world.start(`${CONFIG_MAPS}?watch=1&labelSelector=watch%3Dshared`),
    );
    await until("the server has done it", () => a.status === 200 && b.status === 200);
    await world.configMap("shared", {}, { labels: { watch: "shared" } });
    await Promise.all([untilEvents(a, 1), untilEvents(b, 1)]);
    assert.equal(a.pieces[0], b.pieces[0]);
    a.leave();
    b.leave();
  });

  it("ends when the server stops", async (t) => {
    const other = await ApiWorld.open(t);
    const exchange = other.start(`${CONFIG_MAPS}?watch=1`);
    await until("the server has done it", () => other.plane.server.watches.count === 1);
    other.plane.beginStop();
    assert.equal((await other.request("/readyz")).status, 500);
    assert.equal((await other.request("/livez")).status, 200);
    other.plane.endWatches();
    await exchange.done;
    assert.equal(exchange.state, "ended");
  });
});

describe("shared frames", () => {
  const eventOf = (name: string, sizeBytes: number) => {
    const json = new Uint8Array(sizeBytes);
    const object = { key: name, resourceVersion: 1, object: () => ({}) as never, json: () => json };
    return { type: "ADDED", object } as const;
  };

  it("are bounded by count and by bytes", () => {
    const frames = new SharedFrames();
    const first = eventOf("first", 10);
    const kept = frames.jsonFrame(first);
    assert.equal(frames.jsonFrame(first), kept);
    for (let i = 0; i < MAX_SHARED_FRAMES; i++) frames.jsonFrame(eventOf(`${i}`, 10));
    assert.notEqual(frames.jsonFrame(first), kept, "more than so many frames are not kept");
    const again = frames.jsonFrame(first);
    frames.jsonFrame(eventOf("large", MAX_SHARED_FRAME_BYTES));
    assert.notEqual(frames.jsonFrame(first), again, "more bytes are not kept");
  });
});
