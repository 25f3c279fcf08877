/** Bugs in logs, disks and restored members. */
import type { CatalogueBug } from "../source-edit.ts";
import { HARSH_DISKS } from "./conditions.ts";

const WAL_TESTS = ["packages/wal/test/*.test.ts"];

export const DISK_BUGS: Readonly<Record<string, CatalogueBug>> = {
  "restore-not-synced": {
    at: "backup/src/new-member.ts#makeMember",
    find: "for (const $dir of [$storeDir, $memberDir, $dataDir, parentOf($dataDir)]) $disk.syncDir($dir);",
    put: "",
    sim: { archiveEveryMs: 500, restores: true },
    seed: 1,
  },
  "failed-sync-taken-for-durable": {
    at: "wal/src/opening.ts#reopenLog",
    find: "$end.durableBytes",
    put: "$end.offset",
    tests: WAL_TESTS,
    // What a failed sync left is lost where nothing is written behind it in the same sector.
    sim: { ...HARSH_DISKS, valueBytes: 3000, syncMs: 2 },
    seed: 5,
  },
  "flip-taken-for-tear": {
    at: "wal/src/tear.ts#judgeTail",
    find: "!hasTornSector($file, $offset, $stop)",
    put: "false",
    tests: WAL_TESTS,
    sim: HARSH_DISKS,
    seed: 5,
  },
  "log-waits-for-its-reader": {
    at: "host/src/log-output.ts#LogOutput.#writeAll",
    find: "return false;",
    put: "continue;",
    seed: 1,
  },
  "a segment is left for the next one without a sync": {
    at: "wal/src/wal.ts#Wal.#cut",
    find: `
      $old.truncate(this.#offset);
      this.#syncFileNow($old);`,
    put: "$old.truncate(this.#offset);",
    tests: WAL_TESTS,
  },
  "a new segment begins without the state": {
    at: "wal/src/wal.ts#Wal.#cut",
    find: `
      if (this.#hardState)
        this.#encoder.record(RecordType.State, raftpb.HardState.encode(this.#hardState));`,
    put: "",
    tests: WAL_TESTS,
    sim: "no",
  },
  "a sync of the segment before counts for one of the same length": {
    at: "wal/src/wal.ts#Wal.#sync",
    find: "$running.file === this.#tail && $running.lengthBytes === this.#offset",
    put: "$running.lengthBytes === this.#offset",
    tests: ["packages/wal/test/syncs.test.ts"],
    sim: "no",
  },
};
