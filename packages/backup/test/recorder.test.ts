/** A run of a backup against a fake cluster: what ends it, and what it leaves in its directory. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  BackupError,
  type BackupErrorCode,
  baseName,
  chainsOf,
  readCatalog,
  SegmentWriter,
} from "@quorate/backup";
import type { Client } from "@quorate/client";
import { MemoryDisk } from "@quorate/host/testing";
import { KVService } from "@quorate/proto";
import { addBase, DIR, emptyBackup, START_MS } from "../../../test/support/memory-backup.ts";
import { Recorder, type RecorderDeps } from "../node/recorder.ts";

/** A snapshot file with a few revisions. */
async function snapshotFile(): Promise<{ bytes: Uint8Array; revision: number }> {
  const backup = emptyBackup(1);
  while (backup.model.revision < 5) backup.model.step();
  await addBase(backup);
  const [name] = backup.disk.list(DIR).filter((one) => one.endsWith(".db"));
  return { bytes: backup.disk.readAll(`${DIR}/${name}`), revision: backup.model.revision };
}

const OPTIONS = {
  dir: DIR,
  retainMs: 0,
  intervalMs: 0,
  hashIntervalMs: 60_000,
  once: false,
  mirrorIntervalMs: 1000,
};

/** Dependencies of a run; pauses take one turn of the event loop. */
function setUp(client: object, snapshot: RecorderDeps["saveSnapshot"] | Uint8Array) {
  const disk = new MemoryDisk();
  disk.makeDir(DIR);
  const reports: string[] = [];
  const clock = {
    wallMs: () => START_MS,
    after(_delayMs: number, task: () => void) {
      const immediate = setImmediate(task);
      return { cancel: () => clearImmediate(immediate) };
    },
  };
  const saveSnapshot =
    typeof snapshot === "function"
      ? snapshot
      : async (path: string) => {
          const file = disk.open(path, "create");
          file.write([snapshot], 0);
          await file.dataSync();
          file.close();
          return snapshot.length;
        };
  const deps: RecorderDeps = {
    client: client as Client,
    disk,
    clock: clock as unknown as RecorderDeps["clock"],
    saveSnapshot,
    report: (text) => reports.push(text),
    warn: () => {},
  };
  return { deps, disk, reports };
}

function failsWith(code: BackupErrorCode): (error: unknown) => boolean {
  return (error) => error instanceof BackupError && error.code === code;
}

describe("a run", () => {
  test("of a cluster that compacts everything before it is followed retakes its base five times, then fails", async () => {
    const { bytes, revision } = await snapshotFile();
    let watches = 0;
    const client = {
      async call(method: { path: string }) {
        if (method === KVService.methods.Range) {
          return { header: { clusterId: 9n, revision }, kvs: [] };
        }
        return { leases: [], hash: 1, compactRevision: -1, authRevision: 0 };
      },
      async stream() {
        watches++;
        return {
          send: () => {},
          cancel: () => {},
          abandon: () => {},
          async *[Symbol.asyncIterator]() {
            const compactRevision = revision + 1;
            yield { canceled: true, compactRevision, cancelReason: "", events: [] };
          },
        };
      },
    };
    const { deps, disk, reports } = setUp(client, bytes);
    const run = new Recorder(OPTIONS, deps, new AbortController().signal).run();
    await assert.rejects(run, failsWith("CompactedTooFast"));
    assert.equal(watches, 6);
    assert.equal(reports.filter((text) => text.startsWith("GAP: ")).length, 5);
    assert.equal(disk.list(DIR).filter((name) => name.endsWith(".qbk")).length, 6);
  });

  test("whose files lead to no base, since one between them is missing, begins with a base", async () => {
    const { bytes, revision } = await snapshotFile();
    const client = {
      call: async () => ({
        authRevision: 0,
        header: { clusterId: 9n, revision },
        kvs: [],
        leases: [],
        hash: 1,
        compactRevision: -1,
      }),
    };
    const { deps, disk, reports } = setUp(client, bytes);
    disk.open(`${DIR}/${baseName(revision - 2, 0)}`, "create").close();
    const head = { kind: "head", clusterId: 9n, revision: revision - 1, timeMs: 0 } as const;
    SegmentWriter.create(disk, DIR, 7, head).close();
    await new Recorder(
      { ...OPTIONS, once: true, mirrorIntervalMs: 1000 },
      deps,
      new AbortController().signal,
    ).run();
    const missing = `files that lead to revision ${revision - 1} are missing: taking a new base`;
    assert.ok(reports.includes(missing), reports.join("\n"));
    assert.deepEqual(
      chainsOf(readCatalog(disk, DIR)).map(({ base, last }) => [base.revision, last]),
      [
        [revision - 2, revision - 2],
        [revision, revision],
      ],
    );
  });

  test("that is stopped while it takes its first base leaves no base", async () => {
    const stop = new AbortController();
    const client = {
      call: async () => ({ header: { clusterId: 9n, revision: 3 }, kvs: [], authRevision: 0 }),
    };
    const { deps, disk } = setUp(client, async (_path, signal) => {
      stop.abort();
      signal.throwIfAborted();
      return 0;
    });
    await assert.rejects(new Recorder(OPTIONS, deps, stop.signal).run(), failsWith("Stopped"));
    assert.deepEqual(
      disk.list(DIR).filter((name) => name !== "lock"),
      [],
    );
  });
});
