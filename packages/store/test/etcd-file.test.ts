/**
 * The state as etcd's snapshot file, and a store made out of one: the same history, with a new
 * membership; damage is refused.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { BoltDamageError, BoltFile, type BoltRecord, boltOutput } from "@quorate/bolt";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import {
  AlarmType,
  CompactionRequest,
  concat,
  DeleteRangeRequest,
  fromLatin1,
  fromUtf8,
  KeyValue,
  LeaseGrantRequest,
  PutRequest,
  raftpb,
  toUtf8,
} from "@quorate/proto";
import { encodeRevision } from "../src/backend/revision.ts";
import { hasChecksum, verifyChecksum } from "../src/etcd-file/checksum.ts";
import { type EtcdSnapshot, SnapshotAbandonedError } from "../src/etcd-file/export.ts";
import { importEtcdFile, type NewCluster } from "../src/etcd-file/import.ts";
import { EtcdFileError } from "../src/etcd-file/schema.ts";
import { etcdFileRevision, etcdFileStatus } from "../src/etcd-file/status.ts";
import { Store } from "../src/store.ts";
import { addMember, applyEntry, Log, member, randomLog, removeMember } from "./store-log.ts";

const DIR = "/store";
const FILE = "/snap.db";

const cluster: NewCluster = {
  members: [{ ...member(7n), name: "seven" }],
  position: { index: 1, term: 1, confState: raftpb.ConfState.create({ voters: [7n] }) },
};

function world(): { disk: MemoryDisk; keyspaces: MemoryKeyspaceOpener } {
  const disk = new MemoryDisk();
  disk.makeDir(DIR);
  return { disk, keyspaces: new MemoryKeyspaceOpener(disk) };
}

/** A store with a random history, leases with and without keys, and a member that is gone. */
async function storeWithAll(): Promise<Store> {
  const log = randomLog(11, 300);
  log.change(addMember(member(90n)));
  log.change(removeMember(90n));
  for (const id of [5n, -6n, 7n])
    log.request({ leaseGrant: LeaseGrantRequest.encode({ ID: id, TTL: 100 }) });
  log.request({
    put: PutRequest.encode({ key: fromUtf8("leased"), value: fromUtf8("1"), lease: -6n }),
  });
  const store = await Store.open(world().keyspaces, DIR);
  for (const entry of log.entries) applyEntry(store, entry);
  return store;
}

async function write(disk: MemoryDisk, snapshot: EtcdSnapshot): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of snapshot.chunks()) chunks.push(chunk);
  await snapshot.close();
  return writeBytes(disk, concat(chunks));
}

function writeBytes(disk: MemoryDisk, bytes: Uint8Array): Uint8Array {
  disk.remove(FILE);
  const file = disk.open(FILE, "create");
  file.write([bytes], 0);
  file.close();
  return bytes;
}

async function writeBuckets(
  disk: MemoryDisk,
  buckets: Readonly<Record<string, readonly BoltRecord[]>>,
): Promise<void> {
  const scan = (records: readonly BoltRecord[]) =>
    async function* () {
      yield records;
    };
  const output = await boltOutput(
    Object.entries(buckets).map(([name, records]) => ({ name, scan: scan(records) })),
  );
  const chunks: Uint8Array[] = [];
  for await (const chunk of output.chunks()) chunks.push(chunk);
  writeBytes(disk, concat(chunks));
}

describe("a store as etcd's file, and a store out of it", () => {
  test("has the same history, leases and hash, and the members that it is made for", async () => {
    const store = await storeWithAll();
    const { disk, keyspaces } = world();
    const snapshot = await store.etcdSnapshot("3.7.0");
    const bytes = await write(disk, snapshot);
    assert.equal(bytes.length, snapshot.databaseBytes + 32);
    assert.ok(hasChecksum(bytes.length));
    let reported = 0;
    verifyChecksum(disk, FILE, (read) => {
      reported = read;
    });
    assert.equal(reported, snapshot.databaseBytes);

    const steps: number[] = [];
    await importEtcdFile({ disk, keyspaces }, FILE, DIR, cluster, {
      onProgress: (done, total) => steps.push(done / total),
    });
    assert.equal(steps.at(-1), 1);
    assert.deepEqual(
      steps,
      [...steps].sort((a, b) => a - b),
    );
    const made = await Store.open(keyspaces, DIR);
    assert.deepEqual(made.position, cluster.position);
    assert.deepEqual(made.membership.members(), cluster.members);
    assert.equal(made.membership.isRemoved(90n), false);
    assert.equal(made.membership.clusterVersion, undefined);
    assert.equal(made.mvcc.currentRevision, store.mvcc.currentRevision);
    assert.equal(made.mvcc.compactRevision, store.mvcc.compactRevision);
    assert.deepEqual(await made.mvcc.hashKV(0), await store.mvcc.hashKV(0));
    assert.deepEqual(
      [...made.lessor.all()].map(({ id, ttlSeconds }) => [id, ttlSeconds]).length,
      store.lessor.count,
    );
    assert.deepEqual(made.lessor.keysOf(-6n), ["leased"]);
    const status = etcdFileStatus(disk, FILE);
    assert.deepEqual(
      [status.revision, status.keys, status.sizeBytes, status.version],
      [store.mvcc.currentRevision, store.mvcc.keyCount, snapshot.databaseBytes, "3.7.0"],
    );
    await made.close({ flush: false });
    await store.close({ flush: true });
  });

  test("a large one is not measured: the pages for its counted records suffice, while entries and a compaction go on", async () => {
    const log = new Log();
    const value = "v".repeat(9000);
    log.request({ leaseGrant: LeaseGrantRequest.encode({ ID: 5n, TTL: 9000 }) });
    for (let i = 0; i < 700; i++) log.put(`k${i % 50}`, value.slice(0, 5000 + 5 * (i % 800)));
    log.request({ deleteRange: DeleteRangeRequest.encode({ key: fromUtf8("k7") }) });
    const before = log.entries.length;
    log.request({ compaction: CompactionRequest.encode({ revision: 300 }) });
    for (let i = 0; i < 90; i++) log.put(`later${i}`, value);
    const store = await Store.open(world().keyspaces, DIR);
    for (const entry of log.entries.slice(0, before)) applyEntry(store, entry);
    for (const [entries, steps] of [
      [log.entries.slice(before), 40],
      [[], 1000],
    ] as const) {
      // What is applied while the snapshot is taken is in it or not, with its records counted.
      const taken = store.etcdSnapshot("3.7.0");
      for (const entry of entries) applyEntry(store, entry);
      store.mvcc.compactStep(steps);
      const { disk, keyspaces } = world();
      const bytes = await write(disk, await taken);
      assert.ok(bytes.length > 4 << 20, `${bytes.length} bytes`);
      await importEtcdFile({ disk, keyspaces }, FILE, DIR, cluster, {});
      const made = await Store.open(keyspaces, DIR);
      if (entries.length === 0)
        assert.deepEqual(await made.mvcc.hashKV(0), await store.mvcc.hashKV(0));
      await made.close({ flush: false });
    }
    await store.close({ flush: true });
  });

  test("the file says what etcd reads of the log: JSON, big-endian numbers, and no cluster version", async () => {
    const store = await storeWithAll();
    const { disk } = world();
    await write(disk, await store.etcdSnapshot("3.7.0"));
    const file = BoltFile.open(disk, FILE);
    assert.deepEqual(file.bucketNames, [
      "alarm",
      "auth",
      "authRoles",
      "authUsers",
      "cluster",
      "key",
      "lease",
      "members",
      "members_removed",
      "meta",
    ]);
    const meta = new Map(
      [...file.records("meta")].flat().map(([key, value]) => [toUtf8(key), value]),
    );
    const { voters, learners } = store.position.confState;
    const lists = [
      ...(voters.length > 0 ? [`"voters":[${voters.join()}]`] : []),
      ...(learners.length > 0 ? [`"learners":[${learners.join()}]`] : []),
    ];
    assert.equal(toUtf8(meta.get("confState")!), `{${[...lists, '"auto_leave":false'].join()}}`);
    assert.equal(
      Buffer.from(meta.get("consistent_index")!).readBigUInt64BE(),
      BigInt(store.position.index),
    );
    assert.equal(toUtf8(meta.get("storageVersion")!), "3.7.0");
    assert.ok(
      [...meta.keys()].every((name) => !name.startsWith("quorate_")),
      "names that etcd does not know stay here",
    );
    assert.deepEqual([...file.records("cluster")].flat(), []);
    file.close();
    await store.close({ flush: true });
  });

  test("what is applied while it is measured and sent is not in it, and compaction may go on", async () => {
    const log = randomLog(5, 200);
    const store = await Store.open(world().keyspaces, DIR);
    for (const entry of log.entries) applyEntry(store, entry);
    const { disk, keyspaces } = world();
    const expected = await store.mvcc.hashKV(0);
    const snapshot = await store.etcdSnapshot("3.7.0");
    const before = log.entries.length;
    for (let i = 0; i < 50; i++) log.put(`later${i}`, "x".repeat(5000));
    for (const entry of log.entries.slice(before)) applyEntry(store, entry);
    await store.flush();
    await write(disk, snapshot);
    await importEtcdFile({ disk, keyspaces }, FILE, DIR, cluster);
    const made = await Store.open(keyspaces, DIR);
    assert.equal((await made.mvcc.hashKV(0)).hash, expected.hash);
    await made.close({ flush: false });
    await store.close({ flush: true });
  });

  test("measuring ends when the caller has left", async () => {
    const store = await storeWithAll();
    await assert.rejects(
      store.etcdSnapshot("3.7.0", () => false),
      SnapshotAbandonedError,
    );
    await store.close({ flush: true });
  });

  test("a raised revision declares all before it compacted", async () => {
    const store = await storeWithAll();
    const { disk, keyspaces } = world();
    await write(disk, await store.etcdSnapshot("3.7.0"));
    await importEtcdFile({ disk, keyspaces }, FILE, DIR, cluster, { bumpRevision: 1000 });
    const made = await Store.open(keyspaces, DIR);
    assert.equal(made.mvcc.currentRevision, store.mvcc.currentRevision + 1000);
    assert.equal(made.mvcc.compactRevision, made.mvcc.currentRevision);
    assert.equal(made.mvcc.keyCount, store.mvcc.keyCount);
    await made.close({ flush: false });
    await store.close({ flush: true });
  });

  test("the empty record that etcdutl raises the revision with is no key", async () => {
    const { disk, keyspaces } = world();
    const kv = KeyValue.encode({
      key: fromUtf8("a"),
      value: fromUtf8("1"),
      createRevision: 2,
      modRevision: 2,
      version: 1,
      lease: 0n,
    });
    await writeBuckets(disk, {
      key: [
        [encodeRevision(2, 0, false), kv],
        [encodeRevision(1002, 0, false), new Uint8Array(0)],
      ],
      meta: [[fromUtf8("scheduledCompactRev"), encodeRevision(1002, 0, false)]],
    });
    await importEtcdFile({ disk, keyspaces }, FILE, DIR, cluster);
    const made = await Store.open(keyspaces, DIR);
    assert.deepEqual([made.mvcc.currentRevision, made.mvcc.keyCount], [1002, 1]);
    await made.close({ flush: false });
  });
});

describe("files that are refused", () => {
  test("cut short, changed, without a checksum", async () => {
    const store = await storeWithAll();
    const { disk } = world();
    const good = await write(disk, await store.etcdSnapshot("3.7.0"));
    await store.close({ flush: true });
    for (const cut of [1, 32, 4096, good.length - 100]) {
      writeBytes(disk, good.subarray(0, good.length - cut));
      assert.throws(() => verifyChecksum(disk, FILE), EtcdFileError, `${cut} bytes cut off`);
    }
    writeBytes(disk, good.subarray(0, good.length - 512));
    assert.throws(
      () => verifyChecksum(disk, FILE),
      /^EtcdFileError: expected sha256 [0-9a-f]{64}, got [0-9a-f]{64}: \/snap\.db: its bytes were changed, or the checksum at byte \d+/,
    );
    const flipped = good.slice();
    flipped[9000] ^= 1;
    writeBytes(disk, flipped);
    assert.throws(() => verifyChecksum(disk, FILE), /its bytes were changed/);
    writeBytes(disk, good.subarray(0, -32));
    assert.throws(() => verifyChecksum(disk, FILE), /which needs --skip-hash-check/);
  });

  test("another program's database, a key that is not a revision, a damaged page: nothing is left behind", async () => {
    const { disk, keyspaces } = world();
    const attempt = () => importEtcdFile({ disk, keyspaces }, FILE, DIR, cluster);
    await writeBuckets(disk, { users: [] });
    await assert.rejects(
      attempt(),
      /not one of etcd: it has the buckets users, and must have "key" and "meta"/,
    );
    await writeBuckets(disk, { key: [[fromLatin1("x"), fromLatin1("y")]], meta: [] });
    await assert.rejects(attempt(), /bucket key, key 78: the key is not a revision/);
    assert.throws(() => etcdFileStatus(disk, FILE), /not a revision/);
    await writeBuckets(disk, {
      key: [],
      meta: [[fromUtf8("scheduledCompactRev"), fromLatin1("no")]],
    });
    await assert.rejects(attempt(), /scheduledCompactRev: 6e6f is not a revision/);
    await writeBuckets(disk, {
      key: [[encodeRevision(2, 0, false), fromLatin1("no record")]],
      meta: [],
    });
    assert.throws(() => etcdFileStatus(disk, FILE), /the record does not decode/);
    // Changes that follow need its records read.
    const later = { changes: () => [], leases: () => new Map<bigint, number>() };
    await assert.rejects(importEtcdFile({ disk, keyspaces }, FILE, DIR, cluster, { later }), {
      name: "EtcdFileError",
      message: /\/.*: bucket key, key 00000000000000025f0000000000000000: mvccpb.KeyValue: /,
    });
    const bytes = disk.readAll(FILE).slice();
    bytes[4096 * 3 + 8] = 77;
    writeBytes(disk, bytes);
    await assert.rejects(attempt(), BoltDamageError);
    assert.deepEqual(disk.list(DIR), []);
  });
});

/**
 * Snapshots that etcd wrote, with what its own tools say of them: users, a role, a NOSPACE alarm of
 * member 5, leases, a compaction.
 */
const kept = [
  { name: "etcd-3.4.23", hash: 858627297, sizeBytes: 45056, version: "" },
  { name: "etcd-3.8.0", hash: 3754512416, sizeBytes: 40960, version: "3.8.0" },
];

describe("snapshots of etcd that are kept", () => {
  for (const { name, ...expected } of kept) {
    test(`${name} is read, taken over, and given back`, async () => {
      const { disk, keyspaces } = world();
      writeBytes(
        disk,
        new Uint8Array(
          gunzipSync(readFileSync(join(import.meta.dirname, `fixtures/${name}.db.gz`))),
        ),
      );
      verifyChecksum(disk, FILE);
      assert.deepEqual(etcdFileStatus(disk, FILE), { ...expected, revision: 62, keys: 17 });
      assert.equal(etcdFileRevision(disk, FILE), 62);
      const before = bucketsOf(disk);
      await importEtcdFile({ disk, keyspaces }, FILE, DIR, cluster);
      const store = await Store.open(keyspaces, DIR);
      const { hash, compactRevision } = await store.mvcc.hashKV(0);
      assert.deepEqual([hash, compactRevision], [2190341533, 39]);
      assert.deepEqual(
        store.alarms.list().map(({ memberId, type }) => [memberId, type]),
        [[5n, AlarmType.NOSPACE]],
      );
      await write(disk, await store.etcdSnapshot("3.7.0"));
      await store.close({ flush: false });
      const after = bucketsOf(disk);
      assert.ok(before.get("authUsers")!.length === 2 && before.get("authRoles")!.length > 0);
      for (const bucket of ["key", "lease", "auth", "authUsers", "authRoles", "alarm"]) {
        assert.deepEqual(after.get(bucket), before.get(bucket), bucket);
      }
    });
  }

  function bucketsOf(disk: MemoryDisk): Map<string, BoltRecord[]> {
    const file = BoltFile.open(disk, FILE);
    const buckets = new Map(file.bucketNames.map((name) => [name, [...file.records(name)].flat()]));
    file.close();
    return buckets;
  }
});
