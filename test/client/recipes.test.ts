/** Locks for many, barriers, queues, counters and caches, on real members. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, test } from "node:test";
import {
  addTo,
  Barrier,
  Cache,
  CacheClosedError,
  CacheFullError,
  json,
  type Lock,
  NotACountError,
  opPut,
  readLock,
  semaphorePermit,
  TooManyKeysError,
  toUtf8,
  workQueue,
  writeLock,
} from "@quorate/client";
import { onEachServer } from "./servers.ts";
import { Way } from "./way.ts";

onEachServer(import.meta.filename, (server) => {
  const ways: Way[] = [];
  after(() => {
    for (const way of ways) way.close();
  });
  const late = { code: "DeadlineExceeded" };
  const soon = { timeoutMs: 100 };

  test("readers hold a lock together, a writer alone, and who comes later waits for it", async () => {
    const client = server.connect();
    await using a = await client.session();
    await using b = await client.session();
    await using c = await client.session();
    const first = await readLock(client, a, "rw");
    const second = await readLock(client, b, "rw");
    await assert.rejects(writeLock(client, c, "rw", soon), late);
    const order: string[] = [];
    const entered = (name: string) => (lock: Lock) => {
      order.push(name);
      return lock;
    };
    const writing = writeLock(client, c, "rw").then(entered("writer"));
    // The writer stands in the queue.
    while ((await client.get("rw/write/", { prefix: true, countOnly: true })).count === 0);
    await first.release();
    const reading = readLock(client, a, "rw").then(entered("reader"));
    while ((await client.get("rw/read/", { prefix: true, countOnly: true })).count < 2);
    assert.deepEqual(order, []);
    await second.release();
    const writer = await writing;
    assert.deepEqual(order, ["writer"]);
    assert.ok(writer.token > second.token);
    await writer.release();
    await (await reading).release();
    assert.deepEqual(order, ["writer", "reader"]);
  });

  test("a semaphore has so many permits, given in order", async () => {
    const client = server.connect();
    const sessions = await Promise.all([1, 2, 3].map(() => client.session()));
    const [a, b] = await Promise.all(
      sessions.slice(0, 2).map((session) => semaphorePermit(client, session, "two", 2)),
    );
    await assert.rejects(semaphorePermit(client, sessions[2]!, "two", 2, soon), late);
    const third = semaphorePermit(client, sessions[2]!, "two", 2);
    await b!.release();
    await (await third).release();
    await a!.release();
    await assert.rejects(semaphorePermit(client, sessions[0]!, "two", 0), RangeError);
    await Promise.all(sessions.map((session) => session.close()));
  });

  test("who comes to a barrier waits until it is gone", async () => {
    const client = server.connect();
    const barrier = new Barrier(client, "gate");
    await barrier.wait();
    assert.deepEqual([await barrier.hold(), await barrier.hold()], [true, false]);
    await assert.rejects(barrier.wait(soon), late);
    const stop = new AbortController();
    const reason = new Error("enough");
    const stopped = assert.rejects(barrier.wait({ signal: stop.signal }), (e) => e === reason);
    stop.abort(reason);
    await stopped;
    const waiting = barrier.wait();
    await barrier.release();
    await waiting;
  });

  test("each value of a queue goes to one of those who take, in order", async () => {
    const client = server.connect();
    const queue = workQueue(client, "jobs", json<number>());
    for (let i = 0; i < 5; i++) await queue.put(i);
    assert.deepEqual([await queue.take(), await queue.take()], [0, 1]);
    const rest = await Promise.all([queue.take(), queue.take(), queue.take()]);
    assert.deepEqual(rest.toSorted(), [2, 3, 4]);
    await assert.rejects(queue.take(soon), late);
    const both = Promise.all([queue.take(), queue.take()]);
    await queue.put(5);
    await queue.put(6);
    assert.deepEqual((await both).toSorted(), [5, 6]);
    assert.equal((await client.get("jobs/", { prefix: true })).count, 0);
  });

  test("no addition to a counter is lost, and what is no count is refused", async () => {
    const client = server.connect();
    const sums = await Promise.all(
      Array.from({ length: 8 }, () => addTo(client, "count", 2, { maxAttempts: 100 })),
    );
    assert.deepEqual(
      sums.toSorted((a, b) => a - b),
      [2, 4, 6, 8, 10, 12, 14, 16],
    );
    assert.equal(await addTo(client, "count", -16), 0);
    await client.put("count", "many");
    await assert.rejects(addTo(client, "count", 1), NotACountError);
    await client.put("count", String(Number.MAX_SAFE_INTEGER));
    await assert.rejects(addTo(client, "count", 1), NotACountError);
  });

  test("a cache has what the range holds, at a revision, and own writes once they are reached", async () => {
    const client = server.connect();
    await client.put("cache/a", "1");
    const cache = await Cache.open(client, "cache/", { prefix: true });
    const value = (key: string) => toUtf8(cache.get(key)?.value ?? new Uint8Array());
    assert.deepEqual([value("cache/a"), cache.size], ["1", 1]);
    const success = [opPut("cache/a", "2"), opPut("cache/b", "2")];
    const { header } = await client.txn({ success });
    await cache.reached(header.revision);
    assert.deepEqual(
      [value("cache/a"), value("cache/b"), cache.revision],
      ["2", "2", header.revision],
    );
    const deleted = await client.delete("cache/a");
    await cache.reached(deleted.header.revision);
    assert.deepEqual([cache.get("cache/a"), [...cache.records()].length], [undefined, 1]);
    await assert.rejects(cache.reached(cache.revision + 1000, soon), late);
    await cache[Symbol.asyncDispose]();
    assert.throws(() => cache.get("cache/b"), CacheClosedError);
  });

  test("a cache is right again after a compaction behind its back", async () => {
    const way = await Way.to(server.cluster.endpoints[0]!);
    ways.push(way);
    const near = server.connect();
    const far = server.connect({ endpoints: [way.endpoint], timeoutMs: 30_000 });
    await near.put("far/gone", "1");
    await near.put("far/new", "1");
    await using cache = await Cache.open(far, "far/", { prefix: true });
    way.cut();
    await near.delete("far/gone");
    const { header } = await near.put("far/new", "2");
    await near.compact(header.revision, { physical: true });
    way.mend();
    await cache.reached(header.revision);
    assert.equal(cache.get("far/gone"), undefined);
    assert.equal(toUtf8(cache.get("far/new")!.value), "2");
  });

  test("a cache is bounded, and says so when it ends", async () => {
    const client = server.connect();
    for (const key of ["big/a", "big/b", "big/c"]) await client.put(key, "x".repeat(100));
    await assert.rejects(
      Cache.open(client, "big/", { prefix: true, maxKeys: 2 }),
      TooManyKeysError,
    );
    await assert.rejects(
      Cache.open(client, "big/", { prefix: true, maxBytes: 300 }),
      CacheFullError,
    );
    const cache = await Cache.open(client, "big/", { prefix: true, maxBytes: 350 });
    await client.put("big/d", "x".repeat(100));
    if (!cache.signal.aborted) await once(cache.signal, "abort");
    assert.throws(() => cache.get("big/a"), CacheFullError);
  });
});
