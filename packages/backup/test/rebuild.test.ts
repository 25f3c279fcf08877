/**
 * Rebuilding from a backup: at any revision and time the store equals the model's, over bases, runs
 * and gaps.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  BackupError,
  chainFor,
  chainsOf,
  prunable,
  readCatalog,
  rebuild,
  SegmentWriter,
  verifyChain,
} from "@quorate/backup";
import { fromUtf8, KeyValue } from "@quorate/proto";
import { Store } from "@quorate/store";
import {
  addBase,
  type Backup,
  cluster,
  DIR,
  emptyBackup,
  equalsModel,
  record,
  timeOf,
} from "../../../test/support/memory-backup.ts";
import { SeededRandom } from "../../../test/support/random.ts";
import { encodeRecord } from "../src/format.ts";

/** Three runs, with a base at the start and another after the second. */
async function backupOf(seed: number): Promise<Backup> {
  const backup = emptyBackup(seed);
  for (let i = 0; i < 40; i++) backup.model.step();
  await addBase(backup);
  record(backup, 1, 120);
  record(backup, 2, 120);
  await addBase(backup);
  record(backup, 3, 80);
  return backup;
}

async function storeAt(
  backup: Backup,
  point: { revision: number } | { timeMs: number },
  chainRevision: number,
): Promise<Store> {
  const storeDir = "/rebuilt";
  backup.disk.remove(storeDir);
  backup.disk.makeDir(storeDir);
  const chain = chainFor(readCatalog(backup.disk, DIR), chainRevision);
  await rebuild(backup, chain, point, { storeDir, cluster });
  return Store.open(backup.keyspaces, storeDir);
}

describe("rebuilding", () => {
  test("at fifty revisions the store equals the model's, with every revision since the base", async () => {
    const backup = await backupOf(3);
    const { model } = backup;
    const first = readCatalog(backup.disk, DIR).bases[0].revision;
    const random = new SeededRandom(99);
    for (let i = 0; i < 50; i++) {
      const revision = first + random.below(model.revision - first + 1);
      const store = await storeAt(backup, { revision }, revision);
      assert.equal(store.mvcc.currentRevision, revision);
      const from = chainFor(readCatalog(backup.disk, DIR), revision).base.revision;
      equalsModel(store, model, [from, from + random.below(revision - from + 1)]);
      await store.close({ flush: false });
    }
  });

  test("at a time the store has the changes recorded until then", async () => {
    const backup = await backupOf(4);
    const revision = readCatalog(backup.disk, DIR).bases[0].revision + 17;
    const store = await storeAt(backup, { timeMs: timeOf(revision) + 500 }, revision);
    assert.equal(store.mvcc.currentRevision, revision);
    equalsModel(store, backup.model, []);
    await store.close({ flush: false });
  });

  test("a time between two runs is refused with the interval and the revisions, not restored to an older state", async () => {
    const backup = emptyBackup(6);
    const { model, disk } = backup;
    for (let i = 0; i < 5; i++) model.step();
    await addBase(backup);
    const [first] = readCatalog(disk, DIR).bases;
    const startMs = first.timeMs;
    /** A run that begins at a time and receives what the model does then a second later. */
    const run = (number: number, beginMs: number, steps: number): void => {
      const revision = model.revision;
      const head = { kind: "head", clusterId: 1n, revision, timeMs: beginMs } as const;
      const writer = SegmentWriter.create(disk, DIR, number, head);
      for (let i = 0; i < steps; i++) model.step();
      for (let at = revision + 1; at <= model.revision; at++)
        writer.append({
          kind: "changes",
          timeMs: beginMs + 1000,
          revision: at,
          changes: model.changesOf(at),
        });
      writer.append({
        kind: "hash",
        timeMs: beginMs + 1500,
        revision: 0,
        compactRevision: 0,
        hash: 0,
      });
      writer.close();
    };
    run(1, startMs + 10, 3);
    const before = model.revision;
    run(2, startMs + 3_600_000, 4);
    const at = (ms: number) => storeAt(backup, { timeMs: startMs + ms }, model.revision);
    for (const ms of [60_000, 3_600_000, 3_600_999])
      await assert.rejects(at(ms), (error: Error) => {
        assert.ok(error instanceof BackupError && error.code === "OutOfRange", String(error));
        const iso = (offset: number) => new Date(startMs + offset).toISOString();
        assert.ok(error.message.includes(`${iso(ms)} is between two runs`), error.message);
        assert.ok(error.message.includes(`made at some time since ${iso(1010)}`), error.message);
        assert.ok(error.message.includes(`--at ${before} is the state`), error.message);
        assert.ok(error.message.includes(`--at ${before + 1} and later`), error.message);
        return true;
      });
    for (const [ms, revision] of [
      [1010, before],
      [3_601_000, model.revision],
    ]) {
      const store = await at(ms);
      assert.equal(store.mvcc.currentRevision, revision);
      await store.close({ flush: false });
    }
  });

  test("a record with a right checksum that is no change is named, with what to do", async () => {
    const make = (revision: number, modRevision: number, key: string) =>
      KeyValue.encode(
        KeyValue.create({ key: fromUtf8(key), modRevision, createRevision: revision }),
      );
    const wrong: [of: (revision: number) => Uint8Array, problem: RegExp][] = [
      [() => new Uint8Array([0xff]), /mvccpb\.KeyValue/],
      [(revision) => make(revision, revision, ""), /a change has no key/],
      [(revision) => make(revision, revision - 1, "k"), /a change of revision \d+ is in revision/],
    ];
    for (const [of, problem] of wrong) {
      const backup = emptyBackup(5);
      const { model, disk } = backup;
      await addBase(backup);
      record(backup, 1, 20);
      const last = model.revision;
      const chain = chainFor(readCatalog(disk, DIR), last);
      const path = `${DIR}/segment-00000001.qbk`;
      const at = disk.stat(path)!.sizeBytes;
      const revision = last + 1;
      const changes = [{ deleted: false, record: of(revision) }];
      const bytes = encodeRecord({ kind: "changes", timeMs: timeOf(revision), revision, changes });
      const file = disk.open(path, "write");
      file.write([bytes], at);
      file.dataSyncNow();
      const isClear = (error: unknown): boolean => {
        assert.ok(error instanceof BackupError && error.code === "Damaged", String(error));
        assert.match(error.message, problem);
        assert.ok(error.message.startsWith(`${path}: damaged at byte ${at}: `), error.message);
        assert.ok(error.message.includes(`truncate -s ${at} ${path}`), error.message);
        return true;
      };
      assert.throws(() => readCatalog(disk, DIR), isClear);
      const target = { storeDir: "/other", cluster };
      disk.makeDir(target.storeDir);
      await assert.rejects(rebuild(backup, chain, { revision }, target), isClear);
      file.truncate(at);
      file.close();
      const store = await storeAt(backup, { revision: last }, last);
      equalsModel(store, model, [last]);
      await store.close({ flush: false });
    }
  });

  test("an unrecorded lease is made for the keys attached to it", async () => {
    const backup = emptyBackup(5);
    const { model, disk } = backup;
    await addBase(backup);
    const writer = SegmentWriter.create(disk, DIR, 1, {
      kind: "head",
      clusterId: 1n,
      revision: 1,
      timeMs: 0,
    });
    for (let i = 0; i < 200; i++) {
      const before = model.revision;
      const { revision } = model.step();
      if (revision > before)
        writer.append({ kind: "changes", timeMs: 0, revision, changes: model.changesOf(revision) });
    }
    writer.close();
    const store = await storeAt(backup, { revision: model.revision }, model.revision);
    const used = new Set(
      [...model.at(model.revision).keys.values()]
        .map(({ lease }) => lease)
        .filter((id) => id !== 0n),
    );
    assert.ok(used.size > 0);
    assert.deepEqual(new Set([...store.lessor.all()].map(({ id }) => id)), used);
    assert.ok([...store.lessor.all()].every(({ ttlSeconds }) => ttlSeconds === 60));
    await store.close({ flush: false });
  });

  test("an error about a missing revision lists the existing ones", async () => {
    const backup = await backupOf(6);
    const catalog = readCatalog(backup.disk, DIR);
    const [first] = catalog.bases;
    assert.throws(
      () => chainFor(catalog, 1),
      new RegExp(
        `revision 1 is not in it; it has the revisions ${first.revision} to ${backup.model.revision}$`,
      ),
    );
    backup.disk.remove(catalog.segments[1].path);
    const gap = readCatalog(backup.disk, DIR);
    const lost = catalog.segments[1].follows + 1;
    assert.throws(() => chainFor(gap, lost), /revisions \d+ to \d+, and \d+ to \d+$/);
    assert.deepEqual(
      chainsOf(gap).map(({ last }) => last),
      [lost - 1, backup.model.revision],
    );
  });
});

describe("verifying", () => {
  const verify = async (backup: Backup) => {
    const results = [];
    const chains = chainsOf(readCatalog(backup.disk, DIR));
    for (const [i, chain] of chains.entries()) {
      results.push(
        await verifyChain(
          backup,
          chain,
          chains[i + 1]?.base.revision ?? chain.last,
          cluster,
          "/scratch",
        ),
      );
    }
    return results;
  };

  /** A segment with the hash of the newest revision, as a member reports it. */
  async function addHash(backup: Backup, wrong: number): Promise<void> {
    const { revision } = backup.model;
    const store = await storeAt(backup, { revision }, revision);
    const { hash, compactRevision } = await store.mvcc.hashKV(0);
    await store.close({ flush: false });
    const writer = SegmentWriter.create(backup.disk, DIR, 9, {
      kind: "head",
      clusterId: 77n,
      revision,
      timeMs: 0,
    });
    writer.append({ kind: "hash", timeMs: 0, revision, compactRevision, hash: hash ^ wrong });
    writer.close();
  }

  test("intact chains, and a hash that is compared", async () => {
    const backup = await backupOf(7);
    await addHash(backup, 0);
    const { bases } = readCatalog(backup.disk, DIR);
    assert.deepEqual(await verify(backup), [
      { from: bases[0].revision, to: bases[1].revision, hashes: 0 },
      { from: bases[1].revision, to: backup.model.revision, hashes: 1 },
    ]);
    assert.equal(backup.disk.stat("/scratch"), undefined);
  });

  test("another hash, and a changed base", async () => {
    const backup = await backupOf(8);
    await addHash(backup, 1);
    await assert.rejects(
      verify(backup),
      /segment-00000009\.qbk: the hash at revision \d+ is \d+, but the cluster reported \d+/,
    );
    const other = await backupOf(8);
    const file = other.disk.open(readCatalog(other.disk, DIR).bases[0].path, "write");
    file.write([new Uint8Array([1])], 20_000);
    file.close();
    await assert.rejects(verify(other), /its bytes were changed/);
    assert.equal(other.disk.stat("/scratch"), undefined);
  });
});

test("pruning keeps the files for any later moment", async () => {
  const backup = await backupOf(10);
  const catalog = readCatalog(backup.disk, DIR);
  const [first, second] = catalog.bases;
  assert.deepEqual(prunable(catalog, first.timeMs - 1), []);
  assert.deepEqual(prunable(catalog, second.timeMs - 1), []);
  const old = prunable(catalog, second.timeMs);
  assert.deepEqual(old, [...catalog.segments.slice(0, 2).map(({ path }) => path), first.path]);
  for (const path of old) backup.disk.remove(path);
  const store = await storeAt(backup, { revision: backup.model.revision }, backup.model.revision);
  equalsModel(store, backup.model, [second.revision]);
  await store.close({ flush: false });
});
