/** Bugs in the replicated state, in its records and in what entries do to it. */
import type { CatalogueBug } from "../source-edit.ts";
import { HARSH_DISKS, MEMBERSHIP, READS, SLICES, TIGHT_QUOTA } from "./conditions.ts";

export const STORE_BUGS: Readonly<Record<string, CatalogueBug>> = {
  "snapshot-restored-wrongly": {
    at: "store/src/snapshot-stream.ts#decodeSnapshot",
    find: "$batch.push({ key: $key, value: $value });",
    put: "if (count % 40 !== 39) $batch.push({ key: $key, value: $value });",
    seed: 12,
  },
  "hash-drift": {
    at: "store/src/mvcc/write-txn.ts#WriteTxn.#delete",
    find: "$backend.putRecord(main, $sub, true, $record);",
    put: `
      this.state.forgotten = (this.state.forgotten ?? 0) + 1;
      if (this.state.forgotten % 20 !== 0) $backend.putRecord(main, $sub, true, $record);`,
    seed: 16,
  },
  "index-before-its-entry": {
    at: "store/src/store.ts#Store.#finish",
    find: "this.#revisionBefore = this.mvcc.currentRevision",
    put: `
      this.#position = {
        index: entry.index,
        term: entry.term,
        confState: this.#position.confState,
      }`,
    sim: SLICES,
    seed: 65,
  },
  "half-an-entry-flushed": {
    at: "store/src/mvcc/write-txn.ts#WriteTxn.#delete",
    find: "this.#stageTombstone($key, $sub)",
    put: `
      this.state.backend.put(
        Bucket.key,
        encodeRevision(main, $sub, true),
        KeyValue.encode({ key: fromLatin1($key) }),
      )`,
    // An entry takes long, and its first half is on the disk for most of that time.
    sim: {
      ...SLICES,
      turnMs: 20,
      members: 1,
      heartbeatMs: 100,
      electionMs: 1000,
      faultEveryMs: 300,
      clients: 8,
      thinkMs: 24,
      txns: 0,
      backendWriteMs: 0,
      valueBytes: 0,
    },
    seed: 6,
  },
  "half-an-entry-read": {
    at: "store/src/mvcc/read-view.ts#ReadView.resolve",
    find: "$revision <= 0 ? this.revision : $revision",
    put: "$revision <= 0 ? Number.MAX_SAFE_INTEGER : $revision",
    sim: { ...SLICES, reads: 10, turnMs: 2 },
    seed: 9,
  },
  "read-not-pinned": {
    at: "store/src/requests/range.ts#rangeInto",
    find: "$view.resolve($request.revision)",
    put: "$request.revision > 0 ? $view.resolve($request.revision) : Number.MAX_SAFE_INTEGER",
    sim: READS,
    seed: 3,
  },
  "compaction-ignores-reads": {
    at: "store/src/mvcc/compaction.ts#Compaction.isHeld",
    find: "$pinned < this.#state.compactRevision",
    put: "false",
    sim: { ...READS, compactions: 10 },
    seed: 14,
  },
  "snapshot-misses-a-record": {
    at: "store/src/etcd-file/export.ts#exportEtcdFile",
    find: `
      if (!$isWanted()) throw $error;
      yield $slice;`,
    put: "yield $slice.filter(([key]) => key.length < 17 || key[7] % 9 !== 5);",
    sim: { archiveEveryMs: 500 },
    seed: 2,
  },
  "restore-forgets-leases": {
    at: "store/src/etcd-file/schema.ts#CARRIED_BUCKETS",
    find: '["key", "lease", "auth", "authUsers", "authRoles", "alarm"]',
    put: '["key", "auth", "authUsers", "authRoles", "alarm"]',
    sim: { archiveEveryMs: 500, leaseClients: 2 },
    seed: 1,
  },
  "learner-limit-ignored": {
    at: "store/src/membership/membership.ts#Membership.refusal",
    find: "$learners >= $maxLearners",
    put: "$learners > $maxLearners",
    sim: { ...MEMBERSHIP, maxLearners: 1, replaceEveryMs: 500, maxMembers: 7 },
    seed: 3,
  },
  "ends-on-malformed": {
    at: "store/src/apply.ts#blamed",
    find: "$error instanceof WireError ? malformation($data) : undefined",
    put: "undefined",
    sim: { poisonEveryMs: 100, faultPhaseMs: 3000 },
    seed: 1,
  },
  "snapshot-frame-unchecked": {
    at: "store/src/snapshot-stream.ts#decodeSnapshot",
    find: `
      const $crc = crc32c(0, $payload);
      if (readU32BE($read, 0) !== $crc) throw $error;`,
    put: "readU32BE($read, 0);",
    sim: {
      corruption: 0.05,
      snapshotCount: 3,
      catchUpEntries: 1,
      members: 3,
      faultPhaseMs: 4000,
    },
    seed: 15,
  },
  "refused-put-leaves-its-lease": {
    at: "store/src/requests/put.ts#checkLease",
    find: "if ($request.lease !== 0n && !$leases.exists($request.lease)) throw $error;",
    put: `
      if ($request.lease === 0n || $leases.exists($request.lease)) return;
      const key = toLatin1($request.key);
      if ($leases.leaseOf(key) !== 0n) $leases.detach($leases.leaseOf(key), key);
      throw $error;`,
    sim: { leasedShare: 0.5, leaseClients: 3, faultPhaseMs: 3000 },
    seed: 9,
  },
  "alarm-passes-transactions": {
    at: "store/src/apply.ts#admitted",
    find: "$costBytes($request) > 0",
    put: `$costBytes($request) > 0 && type.typeName !== "etcdserverpb.TxnRequest"`,
    sim: { ...TIGHT_QUOTA, txns: 6 },
    seed: 9,
  },
  "alarm-stops-deletions": {
    at: "store/src/apply.ts#admitted",
    find: "const $request = $type.decodeFrom(requestReader);",
    put: `
      const $request = $type.decodeFrom(requestReader);
      if (alarms.noSpace && $type.typeName === "etcdserverpb.DeleteRangeRequest")
        throw errorOf("NoSpace");`,
    sim: { ...TIGHT_QUOTA, deletes: 6 },
    seed: 9,
  },
  "lowered-position-unnoticed": {
    at: "store/src/backend/meta.ts#LiveBytes.check",
    find: "$savedIndex > $index",
    put: "$savedIndex > $index + 1000",
    sim: { ...HARSH_DISKS, harshDisks: 20 },
    seed: 3,
  },
  "lost-member-unnoticed": {
    at: "store/src/store.ts#Store.open",
    find: "$membership.check($position.confState, $path);",
    put: "",
    sim: { ...HARSH_DISKS, harshDisks: 20 },
    seed: 1,
  },
  "the configuration is kept without its learners": {
    at: "store/src/backend/meta.ts#writePosition",
    find: "raftpb.ConfState.encode($conf)",
    put: "raftpb.ConfState.encode({ ...$conf, learners: [] })",
    tests: [
      "packages/store/test/store.test.ts",
      "packages/member/test/configuration.test.ts",
      "packages/server/test/membership*.test.ts",
    ],
  },
  "a tombstone at exactly the compact revision goes": {
    at: "store/src/mvcc/key-index.ts#KeyIndex.compact",
    find: "this.mainAt($place) < $at",
    put: "this.mainAt($place) <= $at",
    tests: [
      "packages/store/test/mvcc*.test.ts",
      "packages/store/test/key*.test.ts",
      "packages/store/test/compaction*.test.ts",
    ],
    sim: "no",
  },
  "a key hangs on its old lease again after a restart": {
    at: "store/src/mvcc/restore.ts#RestoredLeases.set",
    find: "$before !== 0n && $before !== $lease",
    put: "$before !== 0n && $lease !== 0n && $before !== $lease",
    tests: [
      "packages/store/test/lease*.test.ts",
      "packages/store/test/store*.test.ts",
      "packages/store/test/mvcc*.test.ts",
    ],
  },
  "a range end of one zero byte is taken for a key": {
    at: "store/src/mvcc/read-view.ts#keyRange",
    find: "$rangeEnd.length === 1 && $rangeEnd[0] === 0",
    put: "$rangeEnd.length === 0",
    tests: ["packages/store/test/*.test.ts"],
  },
  "a comparison over a range holds if it does for some key": {
    at: "store/src/requests/txn.ts#holdsForRange",
    find: `
      $all = isResult($result, $found);
      return $all;`,
    put: `
      $all = isResult($result, $found);
      return !$all;`,
    tests: ["packages/store/test/*.test.ts"],
  },
  "a permission that is revoked while the keys of a lease are checked passes": {
    at: "store/src/auth/authorize.ts#leaseVerdict",
    find: `$identity.authRevision < $state.revision ? "AuthOldRevision" : undefined`,
    put: "undefined",
    tests: ["packages/store/test/authorize.test.ts"],
    sim: "no",
  },
  "records of an entry of many turns are read from another's block": {
    at: "store/src/backend/revision.ts#RevisionRecords.addAll",
    find: "firstBlock + $other.#blockOf[i]",
    put: "$other.#blockOf[i]",
    tests: ["packages/store/test/revision-records.test.ts"],
    sim: "no",
  },
};
