/** Backups in memory, made from the model's history without a cluster. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { baseName, SegmentWriter } from "@quorate/backup";
import { type BoltRecord, boltOutput } from "@quorate/bolt";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import { fromUtf8, leasepb, RangeRequest, raftpb } from "@quorate/proto";
import { applyRange, encodeRevision, type NewCluster, type Store } from "@quorate/store";
import { KvModel, type ModelState, toModelKeys } from "./kv-model.ts";
import { SeededRandom } from "./random.ts";

export const DIR = "/backup";
export const START_MS = Date.UTC(2026, 0, 1);
export const cluster: NewCluster = {
  members: [
    { id: 7n, name: "seven", peerUrls: ["http://10.0.0.7:2380"], clientUrls: [], isLearner: false },
  ],
  position: { index: 1, term: 1, confState: raftpb.ConfState.create({ voters: [7n] }) },
};

export interface Backup {
  readonly disk: MemoryDisk;
  readonly keyspaces: MemoryKeyspaceOpener;
  readonly model: KvModel;
}

export function emptyBackup(seed: number): Backup {
  const disk = new MemoryDisk();
  disk.makeDir(DIR);
  disk.syncDir("/");
  return {
    disk,
    keyspaces: new MemoryKeyspaceOpener(disk),
    model: new KvModel(new SeededRandom(seed)),
  };
}

/** The time that a revision is recorded at. */
export const timeOf = (revision: number): number => START_MS + revision * 1000;

/** A base at the model's revision. */
export async function addBase({ disk, model }: Backup): Promise<void> {
  const records: BoltRecord[] = [];
  for (let revision = 2; revision <= model.revision; revision++) {
    for (const [sub, { deleted, record }] of model.changesOf(revision).entries())
      records.push([encodeRevision(revision, sub, deleted), record]);
  }
  const leases = [...model.at(model.revision).leases].map(([ID, TTL]): BoltRecord => {
    const key = Buffer.alloc(8);
    key.writeBigInt64BE(ID);
    return [new Uint8Array(key), leasepb.Lease.encode({ ID, TTL, RemainingTTL: 0 })];
  });
  leases.sort(([a], [b]) => Buffer.compare(a, b));
  const only = (some: readonly BoltRecord[]) =>
    async function* () {
      yield some;
    };
  const output = await boltOutput([
    { name: "key", scan: only(records) },
    { name: "lease", scan: only(leases) },
    { name: "meta", scan: only([[fromUtf8("term"), new Uint8Array(8)]]) },
  ]);
  const hash = createHash("sha256");
  const file = disk.open(`${DIR}/${baseName(model.revision, timeOf(model.revision))}`, "create");
  let at = 0;
  for await (const chunk of output.chunks()) {
    file.write([chunk], at);
    hash.update(chunk);
    at += chunk.length;
  }
  file.write([hash.digest()], at);
  file.dataSyncNow();
  file.close();
  disk.syncDir(DIR);
}

/** Makes the model go on for so many requests, recording them into a new segment as a run does. */
export function record(
  { disk, model }: Backup,
  number: number,
  steps: number,
  clusterId = 77n,
): void {
  const head = {
    kind: "head",
    clusterId,
    revision: model.revision,
    timeMs: timeOf(model.revision),
  } as const;
  const writer = SegmentWriter.create(disk, DIR, number, head);
  let known = model.at(model.revision).leases;
  writer.append({ kind: "leases", timeMs: timeOf(model.revision), all: true, leases: known });
  for (let i = 0; i < steps; i++) {
    const before = model.revision;
    const { revision } = model.step();
    const { leases } = model.at(revision);
    const granted = new Map([...leases].filter(([id]) => !known.has(id)));
    const gone = new Map([...known.keys()].filter((id) => !leases.has(id)).map((id) => [id, 0]));
    const timeMs = timeOf(revision);
    if (granted.size > 0) writer.append({ kind: "leases", timeMs, all: false, leases: granted });
    if (revision > before)
      writer.append({ kind: "changes", timeMs, revision, changes: model.changesOf(revision) });
    if (gone.size > 0) writer.append({ kind: "leases", timeMs, all: false, leases: gone });
    known = leases;
  }
  writer.close();
}

/** The keys of a store at a revision, as the model has them. */
export function keysAt(store: Store, revision: number): ReturnType<typeof toModelKeys> {
  const all = { key: new Uint8Array(1), rangeEnd: new Uint8Array(1), revision };
  return toModelKeys(applyRange(store.mvcc, RangeRequest.create(all)).kvs);
}

/** The store has what the model had, at its newest revision and at others. */
export function equalsModel(
  store: Store,
  model: { at(revision: number): ModelState },
  revisions: readonly number[],
): void {
  const newest = store.mvcc.currentRevision;
  for (const revision of [...revisions, newest]) {
    assert.deepEqual(
      keysAt(store, revision),
      model.at(revision).keys,
      `the keys at ${revision} of ${newest}`,
    );
  }
  assert.deepEqual(
    new Map([...store.lessor.all()].map(({ id, ttlSeconds }) => [id, ttlSeconds])),
    model.at(newest).leases,
  );
}
