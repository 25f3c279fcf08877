/** The mirror of a backup's directory in an object store, and the way back. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  BackupError,
  type BackupErrorCode,
  baseName,
  fetchBackup,
  Mirror,
  ObjectStoreError,
} from "@quorate/backup";
import { ManualClock, MemoryDisk } from "@quorate/host/testing";
import { SeededRandom } from "../../../test/support/random.ts";
import { segmentName } from "../src/format.ts";
import { MemoryObjects } from "./memory-objects.ts";

const DIR = "/backup";
const START_MS = Date.UTC(2026, 0, 1);
const NO_BASE = baseName(0, 0);

function write(disk: MemoryDisk, name: string, bytes: Uint8Array): void {
  const path = `${DIR}/${name}`;
  const file = disk.open(path, disk.stat(path) === undefined ? "create" : "write");
  file.write([bytes], file.size());
  file.close();
}

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

function setUp() {
  const disk = new MemoryDisk();
  disk.makeDir(DIR);
  const store = new MemoryObjects();
  const clock = new ManualClock(START_MS);
  const warnings: string[] = [];
  const reports: string[] = [];
  const mirror = (identity = "one"): Mirror =>
    new Mirror(
      {
        disk,
        store,
        clock,
        identity,
        report: (text) => reports.push(text),
        warn: (text) => warnings.push(text),
      },
      DIR,
    );
  return { disk, store, clock, warnings, reports, mirror };
}

function failsWith(code: BackupErrorCode, text: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof BackupError && error.code === code && text.test(error.message);
}

/** The files of a fetch, without the base that it needs. */
async function fetched(store: MemoryObjects): Promise<ReadonlyMap<string, Uint8Array>> {
  const disk = new MemoryDisk();
  const whole = new MemoryObjects();
  whole.objects = new Map([...store.objects, [NO_BASE, bytesOf("")]]);
  await fetchBackup(disk, whole, "/fetched", { progress: () => {} });
  return new Map(
    disk
      .list("/fetched")
      .filter((name) => /^(base|segment)/.test(name) && name !== NO_BASE)
      .map((name) => [name, disk.readAll(`/fetched/${name}`)]),
  );
}

describe("a mirror", () => {
  test("has complete files whole, and the newest segment in pieces until it is complete", async () => {
    const { disk, store, mirror } = setUp();
    const one = mirror();
    await one.begin();
    write(disk, baseName(5, START_MS), bytesOf("base"));
    write(disk, segmentName(1), bytesOf("first"));
    await one.pass(false);
    write(disk, segmentName(1), bytesOf(" second"));
    await one.pass(false);
    await one.pass(false);
    assert.deepEqual([...store.objects.keys()].sort(), [
      "backup.json",
      baseName(5, START_MS),
      "segment-00000001.qbk.0000000000000000",
      "segment-00000001.qbk.0000000000000005",
    ]);
    assert.equal(
      Buffer.from((await fetched(store)).get(segmentName(1))!).toString(),
      "first second",
    );
    write(disk, segmentName(2), bytesOf("third"));
    await one.pass(false);
    assert.deepEqual([...store.objects.keys()].sort(), [
      "backup.json",
      baseName(5, START_MS),
      "segment-00000001.qbk",
      "segment-00000002.qbk.0000000000000000",
    ]);
    await one.pass(true);
    assert.ok(
      store.objects.has("segment-00000002.qbk"),
      "a run that is over leaves all files whole",
    );
    assert.equal(one.uploadedBytes, 4 + 5 + 7 + 12 + 5 + 5);
  });

  test("joins pieces that have become many", async () => {
    const { disk, store, mirror } = setUp();
    const one = mirror();
    await one.begin();
    for (let i = 0; i < 200; i++) {
      write(disk, segmentName(1), bytesOf(`${i},`));
      await one.pass(false);
      assert.ok(store.objects.size <= 66, `${store.objects.size} objects`);
    }
    const text = Buffer.from((await fetched(store)).get(segmentName(1))!).toString();
    assert.equal(text, Array.from({ length: 200 }, (_, i) => `${i},`).join(""));
  });

  test("removes what the run has pruned, and keeps on where it may not", async () => {
    const { disk, store, warnings, mirror } = setUp();
    const one = mirror();
    await one.begin();
    for (const number of [1, 2, 3]) write(disk, segmentName(number), bytesOf(`${number}`));
    await one.pass(false);
    disk.remove(`${DIR}/${segmentName(1)}`);
    await one.pass(false);
    assert.ok(!store.objects.has(segmentName(1)));
    store.before = (operation) => {
      if (operation.startsWith("remove")) throw new ObjectStoreError("Refused", "it", "locked");
    };
    disk.remove(`${DIR}/${segmentName(2)}`);
    write(disk, segmentName(3), bytesOf("more"));
    await one.pass(false);
    await one.pass(true);
    assert.deepEqual(warnings, ["old objects stay: it: locked"]);
    assert.equal(Buffer.from((await fetched(store)).get(segmentName(3))!).toString(), "3more");
  });

  test("goes on after a new start, without uploading again", async () => {
    const { disk, store, mirror } = setUp();
    const one = mirror();
    await one.begin();
    write(disk, segmentName(1), bytesOf("first"));
    write(disk, segmentName(2), bytesOf("second"));
    await one.pass(false);
    const next = mirror("another");
    await next.begin();
    store.log.length = 0;
    await next.pass(false);
    assert.deepEqual(store.log, []);
    write(disk, segmentName(2), bytesOf(" more"));
    write(disk, segmentName(3), bytesOf("third"));
    await next.pass(false);
    assert.deepEqual(store.log, [
      "put segment-00000002.qbk",
      "remove segment-00000002.qbk.0000000000000000",
      "put segment-00000003.qbk.0000000000000000",
    ]);
  });

  test("refuses a place that has another backup, or anything else", async () => {
    const other = setUp();
    await other.mirror("other").begin();
    const { disk, store, mirror } = setUp();
    store.objects.set("backup.json", other.store.objects.get("backup.json")!);
    await assert.rejects(mirror().begin(), failsWith("OtherHistory", /another directory.*prefix/));
    assert.deepEqual(disk.list(DIR), []);
    store.objects.clear();
    store.objects.set("backup.json", bytesOf("QRMSEAL1..."));
    await assert.rejects(
      mirror().begin(),
      (error) => error instanceof ObjectStoreError && /needs its key/.test(error.message),
    );
    store.objects.clear();
    store.objects.set("notes.txt", bytesOf("mine"));
    await assert.rejects(mirror().begin(), failsWith("OtherHistory", /notes\.txt/));
  });

  test("refuses a directory that is behind the store", async () => {
    const { disk, store, mirror } = setUp();
    const one = mirror();
    await one.begin();
    write(disk, segmentName(1), bytesOf("first"));
    await one.pass(false);
    store.objects.set(`${segmentName(2)}.0000000000000000`, bytesOf("of another directory"));
    await assert.rejects(
      mirror().begin(),
      failsWith("OtherHistory", /has segment-00000002\.qbk, which \/backup does not have/),
    );
  });

  test("that the store fails reports it once, and catches up", async () => {
    const { disk, store, clock, warnings, reports, mirror } = setUp();
    const one = mirror();
    await one.begin();
    write(disk, segmentName(1), bytesOf("first"));
    store.before = () => {
      throw new ObjectStoreError("Unavailable", "it", "no route");
    };
    for (let i = 0; i < 3; i++) await one.keepUp();
    assert.deepEqual(warnings, ["the mirror is behind: it: no route"]);
    assert.equal(one.passedMs, 0);
    store.before = () => {};
    clock.advance(4000);
    await one.keepUp();
    await one.keepUp();
    assert.deepEqual(reports, ["the mirror has caught up"]);
    assert.equal(one.passedMs, START_MS + 4000);
  });

  test("a file that is pruned while it is uploaded is left out", async () => {
    const { disk, store, mirror } = setUp();
    const one = mirror();
    await one.begin();
    write(disk, segmentName(1), bytesOf("first"));
    write(disk, segmentName(2), bytesOf("second"));
    store.before = (operation) => {
      if (operation === `put ${segmentName(1)}`) disk.remove(`${DIR}/${segmentName(1)}`);
    };
    await one.pass(false);
    assert.deepEqual([...(await fetched(store)).keys()], [segmentName(2)]);
  });

  test("whatever is cut short, a fetch yields files as they were at some moment", async () => {
    for (let seed = 1; seed <= 12; seed++) {
      const random = new SeededRandom(seed);
      const { disk, store, mirror } = setUp();
      let one = mirror();
      await one.begin();
      write(disk, baseName(1, START_MS), bytesOf("base"));
      const content = new Map<string, string>([[baseName(1, START_MS), "base"]]);
      let number = 0;
      let failAfter = Number.POSITIVE_INFINITY;
      store.before = () => {
        if (failAfter-- <= 0) throw new ObjectStoreError("Unavailable", "it", "cut");
      };
      for (let step = 0; step < 60; step++) {
        const roll = random.below(20);
        if (number === 0 || roll === 0) content.set(segmentName(++number), "");
        if (roll === 1 && number > 2) {
          const old = segmentName(1 + random.below(number - 1));
          disk.remove(`${DIR}/${old}`);
        }
        const name = segmentName(number);
        const more = `${step}.`;
        write(disk, name, bytesOf(more));
        content.set(name, `${content.get(name)}${more}`);
        failAfter = random.below(3) === 0 ? random.below(4) : Number.POSITIVE_INFINITY;
        await one.pass(false).catch((error: unknown) => {
          if (!(error instanceof ObjectStoreError)) throw error;
        });
        failAfter = Number.POSITIVE_INFINITY;
        if (random.below(15) === 0) {
          one = mirror("again");
          await one.begin();
        }
        for (const [file, bytes] of await fetched(store)) {
          const text = Buffer.from(bytes).toString();
          assert.ok(content.get(file)?.startsWith(text), `seed ${seed}: ${file} is ${text}`);
        }
      }
      await one.pass(true);
      const there = await fetched(store);
      for (const file of disk.list(DIR).filter((name) => content.has(name)))
        assert.equal(Buffer.from(there.get(file)!).toString(), content.get(file), `seed ${seed}`);
    }
  });
});

describe("a fetch", () => {
  const progress = (): void => {};

  test("of a point takes the base before it, and goes on where it ended", async () => {
    const { disk, store, mirror } = setUp();
    for (const revision of [5, 10, 15])
      write(disk, baseName(revision, START_MS + revision * 1000), bytesOf(`base ${revision}`));
    write(disk, segmentName(1), bytesOf("segment"));
    const one = mirror();
    await one.begin();
    await one.pass(true);
    const target = new MemoryDisk();
    const until = { revision: 12 };
    const first = await fetchBackup(target, store, "/a", { until, progress });
    assert.deepEqual(first, { files: 2, sizeBytes: 14 });
    const byTime = { timeMs: START_MS + 6000 };
    const second = await fetchBackup(target, store, "/a", { until: byTime, progress });
    assert.deepEqual(second, { files: 1, sizeBytes: 6 });
    const seen: number[][] = [];
    await fetchBackup(target, store, "/a", { progress: (...some) => seen.push(some) });
    assert.deepEqual(seen, [[7, 7]]);
    const early = { revision: 4 };
    await assert.rejects(
      fetchBackup(target, store, "/b", { until: early, progress }),
      failsWith("OutOfRange", /no base snapshot that old/),
    );
  });

  test("refuses a place without a backup, and a directory with something else", async () => {
    const { disk, store, mirror } = setUp();
    const target = new MemoryDisk();
    await assert.rejects(
      fetchBackup(target, store, "/a", { progress }),
      failsWith("OutOfRange", /no backup/),
    );
    write(disk, baseName(5, START_MS), bytesOf("base"));
    const one = mirror();
    await one.begin();
    await one.pass(true);
    target.makeDir("/a");
    target.replace("/a/mine", bytesOf("mine"));
    await assert.rejects(
      fetchBackup(target, store, "/a", { progress }),
      failsWith("OtherHistory", /not empty \(mine\)/),
    );
    target.makeDir("/b");
    target.replace("/b/mirror.json", bytesOf("{}"));
    await assert.rejects(
      fetchBackup(target, store, "/b", { progress }),
      failsWith("OtherHistory", /another backup/),
    );
    assert.deepEqual(
      target.list("/a").filter((name) => name !== "lock"),
      ["mine"],
    );
  });

  test("of an object that is shorter than listed leaves no file", async () => {
    const { disk, store, mirror } = setUp();
    write(disk, baseName(5, START_MS), bytesOf("base"));
    const one = mirror();
    await one.begin();
    await one.pass(true);
    const target = new MemoryDisk();
    store.before = (operation) => {
      if (operation === `get ${baseName(5, START_MS)}`)
        store.objects.set(baseName(5, START_MS), bytesOf("bas"));
    };
    await assert.rejects(
      fetchBackup(target, store, "/a", { progress }),
      failsWith("Damaged", /has 3 bytes, and 4 were listed/),
    );
    assert.ok(!target.list("/a").includes(baseName(5, START_MS)));
  });
});
