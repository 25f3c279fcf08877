/**
 * A run of a backup against a cluster that the test plays: what ends it, and what is left in its
 * folder.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { baseName, chainsOf, readCatalog, SegmentWriter } from "@quorate/backup";
import type { Client } from "@quorate/client";
import { nodeDisk } from "@quorate/host/node";
import { KVService } from "@quorate/proto";
import { addBase, DIR, emptyBackup } from "../../../../test/support/memory-backup.ts";
import { Recorder } from "../../src/backup/recorder.ts";
import { Exit } from "../../src/io.ts";
import { FakeIo } from "../fake-io.ts";

/** Pauses take a turn of the event loop. */
class QuickIo extends FakeIo {
  override async sleep(): Promise<void> {
    await turn();
  }
}

/** A snapshot file with a few revisions. */
async function snapshotFile(): Promise<{ bytes: Uint8Array; revision: number }> {
  const backup = emptyBackup(1);
  while (backup.model.revision < 5) backup.model.step();
  await addBase(backup);
  const [name] = backup.disk.list(DIR).filter((one) => one.endsWith(".db"));
  return { bytes: backup.disk.readAll(`${DIR}/${name}`), revision: backup.model.revision };
}

const options = (dir: string) => ({
  dir,
  retainMs: 0,
  intervalMs: 0,
  hashIntervalMs: 60_000,
  once: false,
});

async function inFolder(body: (dir: string) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "quorate-recorder-"));
  try {
    await body(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

describe("a run", () => {
  test("of a cluster that compacts everything before it can be followed takes five bases more, and ends with an error", () =>
    inFolder(async (dir) => {
      const { bytes, revision } = await snapshotFile();
      let watches = 0;
      const client = {
        async call(method: { path: string }) {
          if (method === KVService.methods.Range)
            return { header: { clusterId: 9n, revision }, kvs: [] };
          return { leases: [], hash: 1, compactRevision: -1 };
        },
        async *snapshot() {
          yield { blob: bytes, remainingBytes: 0, version: "3.7.0" };
        },
        async stream() {
          watches++;
          return {
            send: () => {},
            cancel: () => {},
            abandon: () => {},
            async *[Symbol.asyncIterator]() {
              yield { canceled: true, compactRevision: revision + 1, cancelReason: "", events: [] };
            },
          };
        },
      };
      const io = new QuickIo();
      const run = new Recorder(
        client as unknown as Client,
        options(dir),
        io,
        new AbortController().signal,
      ).run();
      await assert.rejects(
        run,
        (error: unknown) =>
          error instanceof Exit && /compacts its history faster than/.test(error.message),
      );
      assert.equal(watches, 6);
      assert.equal(io.out.match(/GAP: /g)?.length, 5);
      assert.equal(readdirSync(dir).filter((name) => name.endsWith(".qbk")).length, 6);
    }));

  test("whose files lead nowhere, since one between them is missing, begins with a base", () =>
    inFolder(async (dir) => {
      const { bytes, revision } = await snapshotFile();
      writeFileSync(join(dir, baseName(revision - 2, 0)), "");
      const head = { kind: "head", clusterId: 9n, revision: revision - 1, timeMs: 0 } as const;
      SegmentWriter.create(nodeDisk, dir, 7, head).close();
      const client = {
        call: async () => ({
          header: { clusterId: 9n, revision },
          kvs: [],
          leases: [],
          hash: 1,
          compactRevision: -1,
        }),
        async *snapshot() {
          yield { blob: bytes, remainingBytes: 0, version: "3.7.0" };
        },
      };
      const io = new QuickIo();
      await new Recorder(
        client as unknown as Client,
        { ...options(dir), once: true },
        io,
        new AbortController().signal,
      ).run();
      assert.match(
        io.out,
        new RegExp(`files that lead to revision ${revision - 1} are missing: a new base is taken`),
      );
      const catalog = readCatalog(nodeDisk, dir);
      assert.deepEqual(
        chainsOf(catalog).map(({ base, last }) => [base.revision, last]),
        [
          [revision - 2, revision - 2],
          [revision, revision],
        ],
      );
    }));

  test("that is stopped while the member sends its first base ends at the next message, and leaves no base", () =>
    inFolder(async (dir) => {
      const stop = new AbortController();
      const client = {
        call: async () => ({ header: { clusterId: 9n, revision: 3 }, kvs: [] }),
        async *snapshot() {
          yield { blob: new Uint8Array(100), remainingBytes: 1e9, version: "3.7.0" };
          stop.abort();
          for (;;) yield { blob: new Uint8Array(100), remainingBytes: 1e9, version: "3.7.0" };
        },
      };
      const run = new Recorder(
        client as unknown as Client,
        options(dir),
        new QuickIo(),
        stop.signal,
      ).run();
      await assert.rejects(
        run,
        (error: unknown) =>
          error instanceof Exit &&
          /^stopped before the base snapshot was complete$/.test(error.message),
      );
      assert.deepEqual(
        readdirSync(dir).filter((name) => name !== "lock"),
        [],
      );
    }));
});
