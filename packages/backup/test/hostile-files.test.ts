/**
 * A backup whose files somebody has renamed, swapped, repeated, removed, or mixed with those of
 * another cluster: what is rebuilt from it is what the cluster had at that revision, or it is
 * refused with BackupError. Names in it lead nowhere, and claims of size are not believed.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  BackupError,
  chainFor,
  chainsOf,
  readCatalog,
  readSegment,
  rebuild,
  SegmentWriter,
} from "@quorate/backup";
import type { Disk } from "@quorate/host";
import { authpb, fromUtf8 } from "@quorate/proto";
import { Store } from "@quorate/store";
import {
  addBase,
  type Backup,
  cluster,
  DIR,
  emptyBackup,
  equalsModel,
  record,
} from "../../../test/support/memory-backup.ts";
import { SeededRandom } from "../../../test/support/random.ts";
import { baseName, MAGIC, segmentName } from "../src/format.ts";

async function backupOf(seed: number): Promise<Backup> {
  const backup = emptyBackup(seed);
  for (let i = 0; i < 10; i++) backup.model.step();
  await addBase(backup);
  for (const number of [1, 2, 3]) record(backup, number, 12);
  await addBase(backup);
  record(backup, 4, 12);
  return backup;
}

/** Rebuilds a revision. @returns undefined where the backup refuses */
async function rebuilt(backup: Backup, revision: number): Promise<Store | undefined> {
  const storeDir = "/rebuilt";
  backup.disk.remove(storeDir);
  backup.disk.makeDir(storeDir);
  try {
    const chain = chainFor(readCatalog(backup.disk, DIR), revision);
    const found = await rebuild(backup, chain, { revision }, { storeDir, cluster });
    assert.equal(found, revision);
  } catch (error) {
    assert.ok(error instanceof BackupError, `${(error as Error).stack}`);
    return undefined;
  }
  return Store.open(backup.keyspaces, storeDir);
}

/** Every revision is the model's, or refused. @returns how many were rebuilt, and refused */
async function check(backup: Backup, random: SeededRandom): Promise<[number, number]> {
  let [whole, refused] = [0, 0];
  for (let i = 0; i < 4; i++) {
    const revision = 1 + random.below(backup.model.revision);
    const store = await rebuilt(backup, revision);
    if (store === undefined) refused++;
    else {
      whole++;
      equalsModel(store, backup.model, []);
      await store.close({ flush: false });
    }
  }
  return [whole, refused];
}

function write(disk: Backup["disk"], path: string, bytes: Uint8Array): void {
  disk.remove(path);
  const file = disk.open(path, "create");
  file.write([bytes], 0);
  file.close();
}

/** What is done to two files of a backup. */
const HARM: Readonly<Record<string, (disk: Backup["disk"], one: string, other: string) => void>> = {
  "a repeated segment": (disk, one) => {
    const bytes = disk.readAll(one).slice();
    for (const number of [5, 6]) write(disk, `${DIR}/${segmentName(number)}`, bytes);
  },
  "swapped segments": (disk, one, other) => {
    const [first, second] = [one, other].map((path) => disk.readAll(path).slice());
    write(disk, one, second);
    write(disk, other, first);
  },
  "a segment in the place of another": (disk, one, other) =>
    write(disk, one, disk.readAll(other).slice()),
  "a segment that is gone": (disk, one) => disk.remove(one),
  "a segment that is cut": (disk, one, other) => {
    const bytes = disk.readAll(one);
    write(disk, one, bytes.slice(0, bytes.length - 1 - (other.length % 7)));
  },
  "a segment behind another in one file": (disk, one, other) =>
    write(disk, one, Buffer.concat([disk.readAll(one), disk.readAll(other)])),
  "a base under the name of another revision": (disk) => {
    const [first] = readCatalog(disk, DIR).bases;
    disk.rename(first.path, `${DIR}/${baseName(first.revision + 3, first.timeMs)}`);
  },
  "no base but the last": (disk) => disk.remove(readCatalog(disk, DIR).bases[0].path),
};

for (const [name, harm] of Object.entries(HARM)) {
  test(`${name}: what is rebuilt is right, the rest is refused`, async () => {
    const random = new SeededRandom(name.length);
    let all = [0, 0];
    for (let seed = 0; seed < 4; seed++) {
      const backup = await backupOf(seed);
      const numbers = [1, 2, 3, 4];
      const [one] = numbers.splice(random.below(4), 1);
      const other = numbers[random.below(3)];
      harm(backup.disk, `${DIR}/${segmentName(one)}`, `${DIR}/${segmentName(other)}`);
      const counts = await check(backup, random);
      all = all.map((count, i) => count + counts[i]);
    }
    assert.equal(all[0] + all[1], 16);
    assert.ok(all[0] > 0, "something can be rebuilt");
  });
}

test("files of another cluster are refused, whichever came first", async () => {
  for (const number of [0, 5]) {
    const backup = await backupOf(1);
    const other = emptyBackup(2);
    record(other, 1, 5, 99n);
    write(
      backup.disk,
      `${DIR}/${segmentName(number)}`,
      other.disk.readAll(`${DIR}/${segmentName(1)}`),
    );
    assert.throws(() => readCatalog(backup.disk, DIR), {
      name: "BackupError",
      message: /it contains backups of two clusters: .*segment-0000000\d\.qbk is of cluster /,
    });
  }
});

test("names that lead elsewhere are names: of files they are none of a backup's, of users they are kept", async () => {
  const backup = await backupOf(3);
  const { disk } = backup;
  for (const name of ["segment-..00001.qbk", "base-..%2f.db", "segment-000000001.qbk"])
    write(disk, `${DIR}/${name}`, fromUtf8("x"));
  assert.equal(readCatalog(disk, DIR).segments.length, 4);
  const before = new Set(disk.list("/"));
  const { revision } = backup.model;
  const writer = SegmentWriter.create(disk, DIR, 5, {
    kind: "head",
    clusterId: 77n,
    revision,
    timeMs: 0,
  });
  const permission = authpb.Permission.create({ key: fromUtf8("/../k"), rangeEnd: fromUtf8("") });
  const users = {
    users: new Map([["../../etc/passwd", ["../r"]]]),
    roles: new Map([["../r", [permission]]]),
  };
  const timeMs = Number.MAX_SAFE_INTEGER;
  writer.append({ kind: "users", timeMs, users: { isEnabled: true, authRevision: 3, ...users } });
  writer.close();
  const found = [...readSegment(disk, `${DIR}/${segmentName(5)}`)].at(-1);
  assert.ok(found?.kind === "users" && found.users.users.has("../../etc/passwd"));
  const store = await rebuilt(backup, revision);
  assert.ok(store !== undefined);
  await store.close({ flush: false });
  assert.deepEqual(new Set(disk.list("/")), before.add("rebuilt"));
});

test("a file of terabytes that only has the name of a segment is refused after a glance", () => {
  let most = 0;
  const file = {
    path: `${DIR}/${segmentName(1)}`,
    size: () => 2 ** 42,
    close: () => {},
    read(target: Uint8Array, position: number): number {
      most = Math.max(most, target.length);
      assert.ok(position < 1024 * 1024, "it is not read to its end");
      target.fill(0x41);
      return target.length;
    },
  };
  const disk = { open: () => file } as unknown as Disk;
  assert.throws(() => [...readSegment(disk, file.path)], {
    message: new RegExp(`damaged at byte 0: a segment of a backup begins with ${MAGIC}`),
  });
  assert.ok(most <= 128 * 1024, `${most} bytes at once`);
});

test("a chain ends before what does not continue it", async () => {
  const backup = await backupOf(5);
  const [one, other] = [1, 2].map((number) => `${DIR}/${segmentName(number)}`);
  HARM["swapped segments"](backup.disk, one, other);
  const [first] = chainsOf(readCatalog(backup.disk, DIR));
  assert.ok(first.last < backup.model.revision);
  assert.throws(
    () => chainFor(readCatalog(backup.disk, DIR), first.last + 1),
    /it has the revisions/,
  );
});
