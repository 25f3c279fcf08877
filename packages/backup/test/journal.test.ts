/**
 * The journal of a backup over crashes: the next run continues behind whatever a crash leaves,
 * without a gap.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  chainFor,
  followState,
  MAX_LEASES_PER_RECORD,
  MAX_SEGMENT_BYTES,
  readCatalog,
  readSegment,
  rebuild,
} from "@quorate/backup";
import { SeededRandom } from "@quorate/host";
import { fromUtf8, KeyValue } from "@quorate/proto";
import { Store } from "@quorate/store";
import {
  addBase,
  type Backup,
  cluster,
  DIR,
  emptyBackup,
  equalsModel,
  timeOf,
} from "../../../test/support/memory-backup.ts";
import { Journal } from "../src/journal.ts";

const FIRST = `${DIR}/segment-00000001.qbk`;
const CLUSTER = 77n;

const journalOf = ({ disk, model }: Backup): Journal =>
  new Journal(disk, DIR, () => timeOf(model.revision));

/** Records the model's changes between two revisions. */
function recordTo({ model }: Backup, journal: Journal, last: number, after = (): void => {}): void {
  while (journal.last < last) {
    const revision = journal.last + 1;
    const { leases } = model.at(revision);
    const granted = [...leases].filter(([id]) => !journal.leases.has(id));
    const gone = [...journal.leases.keys()]
      .filter((id) => !leases.has(id))
      .map((id): [bigint, number] => [id, 0]);
    journal.appendLeases(new Map(granted));
    after();
    journal.appendRevision(timeOf(revision), revision, model.changesOf(revision));
    after();
    journal.appendLeases(new Map(gone));
    after();
  }
}

/** A base and the journal of a first run. */
async function firstRun(
  seed: number,
  revisions: number,
): Promise<{ backup: Backup; journal: Journal; base: number }> {
  const backup = emptyBackup(seed);
  for (let i = 0; i < 10; i++) backup.model.step();
  await addBase(backup);
  const base = backup.model.revision;
  while (backup.model.revision < base + revisions) backup.model.step();
  const journal = journalOf(backup);
  await journal.begin({ clusterId: CLUSTER, revision: base, leases: backup.model.at(base).leases });
  return { backup, journal, base };
}

/**
 * A second run continues from the state on disk; then all is rebuilt. Returns the revision where it
 * continued.
 */
async function goesOn(backup: Backup, base: number): Promise<number> {
  const { disk, model, keyspaces } = backup;
  const state = followState(disk, readCatalog(disk, DIR));
  const journal = journalOf(backup);
  const start = state ?? { clusterId: CLUSTER, revision: base, leases: model.at(base).leases };
  await journal.begin(start);
  recordTo(backup, journal, model.revision);
  await journal.close();
  const chain = chainFor(readCatalog(disk, DIR), model.revision);
  assert.equal(chain.base.revision, base);
  disk.remove("/rebuilt");
  disk.makeDir("/rebuilt");
  await rebuild(
    { disk, keyspaces },
    chain,
    { revision: model.revision },
    { storeDir: "/rebuilt", cluster },
  );
  const store = await Store.open(keyspaces, "/rebuilt");
  assert.equal(store.mvcc.currentRevision, model.revision);
  equalsModel(store, model, [base, start.revision]);
  await store.close({ flush: false });
  return start.revision;
}

describe("a journal", () => {
  test("killed at each boundary of a write and within each, it continues behind the last complete record", async () => {
    const { backup, journal, base } = await firstRun(1, 25);
    const ends = [backup.disk.stat(FIRST)!.sizeBytes];
    const revisions = [base];
    recordTo(backup, journal, backup.model.revision, () => {
      const { sizeBytes } = backup.disk.stat(FIRST)!;
      if (sizeBytes === ends.at(-1)) return;
      ends.push(sizeBytes);
      revisions.push(journal.last);
    });
    await journal.close();
    const whole = backup.disk.readAll(FIRST).slice();
    assert.ok(whole.length > ends.at(-1)!, "its last record covers all bytes");
    const cuts = ends.flatMap((end, i) => [
      end - 1,
      end,
      end + 1,
      Math.floor((end + (ends[i + 1] ?? end)) / 2),
    ]);
    for (const cut of [...cuts, 0, 5, 8, 20].filter((at) => at <= whole.length)) {
      for (const path of readCatalog(backup.disk, DIR).segments.map((segment) => segment.path))
        backup.disk.remove(path);
      backup.disk.remove(FIRST);
      backup.disk.install(FIRST, whole.subarray(0, cut));
      const expected = revisions[ends.filter((end) => end <= cut).length - 1] ?? base;
      assert.equal(await goesOn(backup, base), expected, `cut at ${cut} of ${whole.length}`);
    }
  });

  test("a crash of the machine loses no synced record", async () => {
    const random = new SeededRandom(7n);
    for (let round = 0; round < 25; round++) {
      const { backup, journal, base } = await firstRun(round, 30);
      const synced = base + random.below(20);
      recordTo(backup, journal, synced);
      await journal.sync();
      recordTo(backup, journal, synced + random.below(10));
      backup.disk.crash(random);
      assert.ok((await goesOn(backup, base)) >= synced, `round ${round}`);
    }
  });

  test("a segment is durable before the next one begins, and a failed one is not written again", async () => {
    const { backup, journal, base } = await firstRun(3, 12);
    recordTo(backup, journal, base + 3);
    let syncs = 0;
    backup.disk.fault = ({ kind, path }) => {
      if (kind === "sync" && path === FIRST) syncs++;
      return kind === "write" && path.endsWith("2.qbk") ? "NoSpace" : undefined;
    };
    await assert.rejects(
      journal.begin({ clusterId: CLUSTER, revision: base + 3, leases: journal.leases }),
      { code: "NoSpace" },
    );
    assert.equal(syncs, 1);
    await journal.close();
    await journal.close();
    assert.equal(syncs, 1);
    backup.disk.fault = undefined;
    assert.equal(await goesOn(backup, base), base + 3);
  });

  test("a failed sync is not retried", async () => {
    const { backup, journal, base } = await firstRun(4, 12);
    recordTo(backup, journal, base + 3);
    let syncs = 0;
    backup.disk.fault = ({ kind }) => {
      if (kind !== "sync") return undefined;
      syncs++;
      return "Io";
    };
    await assert.rejects(journal.sync(), { code: "Io" });
    await journal.close();
    assert.equal(syncs, 1);
  });

  test("a full segment is followed by the next, and a long list of leases takes several records", async () => {
    const { backup, journal, base } = await firstRun(5, 1);
    journal.appendLeases(
      new Map(Array.from({ length: MAX_LEASES_PER_RECORD + 1 }, (_, i) => [BigInt(1000 + i), 60])),
    );
    const big = { key: fromUtf8("k"), value: new Uint8Array(MAX_SEGMENT_BYTES / 2) };
    for (let i = 1; i <= 3; i++) {
      const record = KeyValue.encode(KeyValue.create({ ...big, modRevision: base + i }));
      journal.appendRevision(0, base + i, [{ deleted: false, record }]);
      await journal.rollIfFull();
    }
    await journal.close();
    const { segments } = readCatalog(backup.disk, DIR);
    assert.deepEqual(
      segments.map(({ follows, last }) => [follows, last]),
      [
        [base, base + 2],
        [base + 2, base + 3],
      ],
    );
    for (const { path } of segments) {
      const counts = [...readSegment(backup.disk, path)].flatMap((record) =>
        record.kind === "leases" ? [record.leases.size] : [],
      );
      assert.ok(counts.includes(MAX_LEASES_PER_RECORD), `${path}: ${counts}`);
      assert.ok(Math.max(...counts) <= MAX_LEASES_PER_RECORD, `${path}: ${counts}`);
    }
  });
});
