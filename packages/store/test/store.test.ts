/**
 * Whole stores under random logs: the same on every member, and after every crash exactly the state
 * at the index they say.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type KeyspaceOpener, SeededRandom } from "@quorate/host";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import { fromLatin1, fromUtf8, raftpb, TxnRequest } from "@quorate/proto";
import { Store } from "../src/store.ts";
import { Prng } from "./mvcc-history.ts";
import { addMember, applyEntry, Log, member, randomLog, removeMember } from "./store-log.ts";

const DIR = "/store";

interface World {
  readonly disk: MemoryDisk;
  readonly keyspaces: MemoryKeyspaceOpener;
}

function world(): World {
  const disk = new MemoryDisk();
  disk.makeDir(DIR);
  disk.syncDir("/");
  return { disk, keyspaces: new MemoryKeyspaceOpener(disk) };
}

/** What two stores at one index must agree on. */
async function stateOf(store: Store): Promise<unknown> {
  return {
    position: store.position,
    hash: await store.mvcc.hashKV(0),
    keys: store.mvcc.keyCount,
    members: store.membership.members(),
    removed: [1n, 2n, 3n, 4n, 5n, 6n].filter((id) => store.membership.isRemoved(id)),
    version: store.membership.clusterVersion,
  };
}

async function openStore(keyspaces: KeyspaceOpener): Promise<Store> {
  return Store.open(keyspaces, DIR);
}

/** The state after each entry, by index. */
async function statesOf(log: Log): Promise<{ states: unknown[]; answers: unknown[] }> {
  const store = await openStore(world().keyspaces);
  const states = [await stateOf(store)];
  const answers: unknown[] = [undefined];
  for (const entry of log.entries) {
    answers.push(applyEntry(store, entry));
    states.push(await stateOf(store));
  }
  await store.close({ flush: true });
  return { states, answers };
}

for (const seed of [1, 2, 3]) {
  test(`after every crash a store is the state at some index, and replays to the same answers (seed ${seed})`, async () => {
    const log = randomLog(seed, 300);
    const { states, answers } = await statesOf(log);
    const { disk, keyspaces } = world();
    const prng = new Prng(seed);
    let durable = 0;
    let crashes = 0;
    for (;;) {
      let store = await openStore(keyspaces);
      const from = store.position.index;
      assert.ok(from >= durable, `what was flushed is there: ${from}, ${durable}`);
      assert.deepEqual(await stateOf(store), states[from]);
      const runs = 1 + prng.below(40);
      for (let i = 0; i < runs && store.position.index < log.entries.length; i++) {
        const entry = log.entries[store.position.index];
        assert.deepEqual(applyEntry(store, entry), answers[entry.index]);
        if (prng.chance(50)) store.mvcc.compactStep(1 + prng.below(3));
        const act = prng.below(100);
        if (act < 15) durable = await store.flush();
        // Its process is dead when this one fails.
        else if (act < 30) store.flush().catch(() => {});
      }
      if (store.position.index === log.entries.length) {
        await store.close({ flush: true });
        store = await openStore(keyspaces);
        assert.deepEqual(await stateOf(store), states[log.entries.length]);
        await store.close({ flush: false });
        break;
      }
      if (prng.chance(30)) {
        await store.close({ flush: prng.chance(50) });
        continue;
      }
      disk.syncDir(DIR);
      // A batch may be anywhere on its way.
      for (let turns = prng.below(6); turns > 0; turns--) await undefined;
      disk.crash(new SeededRandom(BigInt(seed * 1000 + crashes++)));
    }
    assert.ok(crashes > 3, `${crashes} crashes`);
  });
}

test("the same log produces the same bytes in all buckets, however the flushes and the steps of compaction fall", async () => {
  const log = randomLog(11, 250);
  const hashes: number[] = [];
  for (const seed of [1, 2, 3]) {
    const prng = new Prng(seed);
    const store = await openStore(world().keyspaces);
    for (const entry of log.entries) {
      applyEntry(store, entry);
      if (prng.chance(10 * seed)) store.mvcc.compactStep(prng.below(4) + 1);
      if (prng.chance(10 * seed)) await store.flush();
    }
    while (!store.mvcc.compactStep(10)) await store.flush();
    hashes.push(await store.mvcc.hash());
    await store.close({ flush: true });
  }
  assert.equal(new Set(hashes).size, 1, `${hashes}`);
});

test("random logs reach every kind of entry and of answer", () => {
  const kinds = new Set<string>();
  for (const entry of randomLog(1, 300).entries)
    kinds.add(`${entry.type} ${entry.data.length > 0}`);
  assert.deepEqual([...kinds].sort(), ["0 false", "0 true", "1 true"]);
});

test("STORE-3: an entry out of turn stops the store", async () => {
  const log = new Log();
  for (let i = 0; i < 4; i++) log.put("a", `${i}`);
  const store = await openStore(world().keyspaces);
  store.apply(log.entries[0]);
  store.apply(log.entries[1]);
  assert.throws(() => store.apply(log.entries[1]), { code: "STORE-3" });
  assert.throws(() => store.apply(log.entries[3]), { code: "STORE-3" });
  assert.throws(() => store.applyConfChange(log.entries[3], undefined, raftpb.ConfState.create()), {
    message: /^STORE-3: /,
  });
  assert.equal(store.mvcc.currentRevision, 3);
  await store.close({ flush: true });
});

test("an empty entry moves the position alone, and the next batch carries it", async () => {
  const { keyspaces } = world();
  const log = new Log();
  log.put("a", "1");
  log.empty();
  let store = await openStore(keyspaces);
  for (const entry of log.entries) assert.deepEqual(applyEntry(store, entry) === undefined, false);
  assert.equal(await store.flush(), 2);
  await store.close({ flush: false });
  store = await openStore(keyspaces);
  assert.deepEqual(store.position, { index: 2, term: 2, confState: raftpb.ConfState.create() });
  assert.equal(store.mvcc.currentRevision, 2);
  await store.close({ flush: false });
});

test("close without flush drops what was not flushed", async () => {
  const { keyspaces } = world();
  const log = new Log();
  log.put("a", "1");
  log.put("a", "2");
  let store = await openStore(keyspaces);
  store.apply(log.entries[0]);
  await store.flush();
  store.apply(log.entries[1]);
  await store.close({ flush: false });
  store = await openStore(keyspaces);
  assert.equal(store.position.index, 1);
  await store.close({ flush: true });
});

test("the configuration in force is kept with the index", async () => {
  const { keyspaces } = world();
  const log = new Log();
  log.change(addMember(member(1n)));
  log.change(addMember(member(2n)));
  let store = await openStore(keyspaces);
  for (const entry of log.entries) applyEntry(store, entry);
  await store.close({ flush: true });
  store = await openStore(keyspaces);
  assert.deepEqual(store.position.confState.voters, [1n, 2n]);
  assert.deepEqual(store.membership.members(), [member(1n), member(2n)]);
  await store.close({ flush: true });
});

test("a request of a kind that this version does not know stops the store: to pass it over would let members differ", async () => {
  const log = new Log();
  log.data(Uint8Array.of(0xc2, 0xbb, 0x01, 0x00));
  const store = await openStore(world().keyspaces);
  assert.throws(() => store.apply(log.entries[0]), /upgrade this one/);
  assert.equal(store.position.index, 0);
  await store.close({ flush: false });
});

test("an error is an answer: it moves the position and nothing else", async () => {
  const log = new Log();
  log.put("a", "1");
  const put = {
    key: fromLatin1("b"),
    value: fromLatin1(""),
    lease: 0n,
    prevKv: false,
    ignoreValue: true,
    ignoreLease: false,
  };
  log.request({
    txn: TxnRequest.encode({ success: [{ request: { case: "requestPut", value: put } }] }),
  });
  const store = await openStore(world().keyspaces);
  store.apply(log.entries[0]);
  const before = await store.mvcc.hashKV(0);
  const { error, response, requestId } = store.apply(log.entries[1]);
  assert.deepEqual([error?.code, response, requestId], ["KeyNotFound", undefined, 2n]);
  assert.equal(store.position.index, 2);
  assert.deepEqual(await store.mvcc.hashKV(0), before);
  await store.close({ flush: true });
});

/** Takes records out of a store's file, as a defect or a bad disk might. */
async function without(keyspaces: MemoryKeyspaceOpener, keys: readonly string[]): Promise<void> {
  const keyspace = await keyspaces.open(`${DIR}/db`, { create: false });
  await keyspace.write(keys.map((key) => ({ key: fromUtf8(key), value: undefined })));
  await keyspace.close();
}

for (const [what, keys] of [
  ["the index", ["mconsistent_index"]],
  ["the term", ["mterm"]],
  ["the configuration", ["mconfState"]],
  ["the whole position", ["mconsistent_index", "mterm", "mconfState"]],
] as const) {
  test(`${what} missing beside data is damage`, async () => {
    const { keyspaces } = world();
    const log = new Log();
    log.put("a", "1");
    const store = await openStore(keyspaces);
    store.apply(log.entries[0]);
    await store.close({ flush: true });
    await without(keyspaces, keys);
    await assert.rejects(openStore(keyspaces), {
      code: "Damaged",
      path: `${DIR}/db`,
      place: "bucket meta",
    });
  });
}

test("a member's record that is missing, or that the configuration does not name, is damage", async () => {
  const { keyspaces } = world();
  const log = new Log();
  for (const id of [1n, 2n]) log.change(addMember(member(id)));
  log.change(addMember(member(3n, true)));
  log.change(removeMember(2n));
  const store = await openStore(keyspaces);
  for (const entry of log.entries) applyEntry(store, entry);
  await store.close({ flush: true });
  const opened = await openStore(keyspaces);
  assert.deepEqual(
    opened.membership.members().map(({ id }) => id),
    [1n, 3n],
  );
  await opened.close({ flush: false });
  const learner = "M3";
  const keyspace = await keyspaces.open(`${DIR}/db`, { create: false });
  const record = keyspace.get(fromUtf8(learner));
  assert.ok(record !== undefined);
  await keyspace.write([{ key: fromUtf8("M9"), value: record }]);
  await keyspace.close();
  const damage = (id: string) => ({
    code: "Damaged",
    path: `${DIR}/db`,
    place: `bucket members, key ${id}`,
  });
  await assert.rejects(openStore(keyspaces), damage("9"));
  await without(keyspaces, ["M9", learner]);
  await assert.rejects(openStore(keyspaces), damage("3"));
});
