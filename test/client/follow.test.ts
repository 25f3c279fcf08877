/** Snapshots and changes in one loop, on real members. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { type Client, type Followed, TooManyKeysError, toUtf8 } from "@quorate/client";
import { onEachServer } from "./servers.ts";
import { Way } from "./way.ts";

/** A change in short, such as "put a=1". */
function short(change: Followed): string {
  if (change.kind === "synced") return "synced";
  const { key, value } = change.kv;
  return change.kind === "put" ? `put ${toUtf8(key)}=${toUtf8(value)}` : `delete ${toUtf8(key)}`;
}

/** The next changes, up to this one. */
async function until(changes: AsyncIterator<Followed>, last: string): Promise<string[]> {
  const seen: string[] = [];
  while (seen.at(-1) !== last) {
    const { value, done } = await changes.next();
    if (done === true) assert.fail(`it ended after ${seen.join(", ")}`);
    seen.push(short(value));
  }
  return seen;
}

onEachServer(import.meta.filename, (server) => {
  const ways: Way[] = [];
  after(() => {
    for (const way of ways) way.close();
  });

  async function throughWay(): Promise<{ way: Way; far: Client; near: Client }> {
    const way = await Way.to(server.cluster.endpoints[0]!);
    ways.push(way);
    const far = server.connect({ endpoints: [way.endpoint], timeoutMs: 30_000 });
    return { way, far, near: server.connect() };
  }

  /** Breaks the way, changes keys, and drops the history of the changes. */
  async function compactBehind(way: Way, near: Client, change: () => Promise<unknown>) {
    way.cut();
    await change();
    const { header } = await near.put("other", "");
    await near.compact(header.revision, { physical: true });
    way.mend();
  }

  test("what is there comes first, then each change once, until the signal", async () => {
    const client = server.connect();
    await client.put("f/a", "1");
    await client.put("f/b", "1");
    const stop = new AbortController();
    const changes = client.follow("f/", { prefix: true, signal: stop.signal });
    assert.deepEqual(await until(changes, "synced"), ["put f/a=1", "put f/b=1", "synced"]);
    await client.put("f/a", "2");
    await client.put("f", "not below");
    await client.delete("f/b");
    assert.deepEqual(await until(changes, "delete f/b"), ["put f/a=2", "delete f/b"]);
    const end = changes.next();
    stop.abort();
    assert.equal((await end).done, true);
  });

  test("after a compaction behind its back, only what changed since is yielded", async () => {
    const { way, far, near } = await throughWay();
    for (const key of ["kept", "changed", "deleted"]) await near.put(`c/${key}`, "1");
    const changes = far.follow("c/", { prefix: true });
    await until(changes, "synced");
    await near.put("c/late", "1");
    await until(changes, "put c/late=1");
    const next = changes.next();
    await compactBehind(way, near, async () => {
      await near.put("c/changed", "2");
      await near.put("c/changed", "3");
      await near.put("c/new", "1");
      await near.delete("c/deleted");
      await near.delete("c/late");
      await near.put("c/passing", "1");
      await near.delete("c/passing");
    });
    const first = await next;
    assert.ok(first.done !== true);
    const others = await until(changes, "synced");
    assert.deepEqual([short(first.value), ...others].sort(), [
      "delete c/deleted",
      "delete c/late",
      "put c/changed=3",
      "put c/new=1",
      "synced",
    ]);
    await near.put("c/kept", "2");
    assert.deepEqual(await until(changes, "put c/kept=2"), ["put c/kept=2"]);
    await changes.return(undefined);
  });

  test("without a snapshot only changes come, and a compaction may end the loop", async () => {
    const { way, far, near } = await throughWay();
    await near.put("n/a", "1");
    const changes = far.follow("n/", { prefix: true, snapshot: false, onCompacted: "throw" });
    assert.deepEqual(await until(changes, "synced"), ["synced"]);
    await near.put("n/a", "2");
    assert.deepEqual(await until(changes, "put n/a=2"), ["put n/a=2"]);
    const next = assert.rejects(changes.next(), { code: "Compacted" });
    await compactBehind(way, near, () => near.put("n/a", "3"));
    await next;
  });

  test("a range of more keys than may be held is refused", async () => {
    const client = server.connect();
    for (const key of ["m/a", "m/b", "m/c"]) await client.put(key, "");
    const changes = client.follow("m/", { prefix: true, maxKeys: 2 });
    await assert.rejects(until(changes, "synced"), TooManyKeysError);
  });

  test("any number of records comes one by one, of one revision", async () => {
    const client = server.connect();
    const count = 250;
    for (let i = 0; i < count; i++) await client.put(`e/${String(i).padStart(3, "0")}`, "1");
    const keys: string[] = [];
    for await (const { key, value } of client.getEach("e/", { prefix: true })) {
      // The reader sees none of the changes that are made while it reads.
      if (keys.length === 0) await client.put("e/249", "2");
      assert.equal(toUtf8(value), "1");
      keys.push(toUtf8(key));
    }
    assert.equal(keys.length, count);
    assert.deepEqual(keys, keys.toSorted());
    const stop = new AbortController();
    const read = async () => {
      for await (const _ of client.getEach("e/", { prefix: true, signal: stop.signal }))
        stop.abort();
    };
    await assert.rejects(read, { code: "Canceled" });
  });
});
