/**
 * The checksums of a LevelDB's files: every byte of a table that changes is found, and what belongs
 * to nothing is not looked at.
 */
import assert from "node:assert/strict";
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { DiskError } from "@quorate/host";
import { levelKeyspaces, nodeDisk } from "@quorate/host/node";
import { checkLevelFiles } from "@quorate/store";

const directory = mkdtempSync(join(tmpdir(), "quorate-level-files-"));
after(() => rmSync(directory, { recursive: true }));

/** Some that compress well and some that do not, so that both kinds of blocks are there. */
function record(i: number): { key: Uint8Array; value: Uint8Array } {
  const random = (n: number): number => (Math.imul(n + 1, 2_654_435_761) >>> 13) & 0xff;
  const value = new Uint8Array(300).map((_, j) => (i % 2 === 0 ? 97 : random(i * 300 + j)));
  return { key: new TextEncoder().encode(`key-${String(i).padStart(6, "0")}`), value };
}

before(async () => {
  const keyspace = await levelKeyspaces.open(directory, { create: true });
  await keyspace.write(Array.from({ length: 2000 }, (_, i) => record(i)));
  await keyspace.compact({});
  await keyspace.write([record(2000)]);
  await keyspace.close();
  // What was in LevelDB's own log becomes a table when it is opened.
  await (await levelKeyspaces.open(directory, { create: false })).close();
});

const tables = (): string[] => readdirSync(directory).filter((name) => name.endsWith(".ldb"));
const largest = (): string =>
  tables().sort(
    (a, b) => readFileSync(join(directory, b)).length - readFileSync(join(directory, a)).length,
  )[0];

/** What is said with the file's bytes in place of its own. */
async function saidOf(
  name: string,
  change: (bytes: Buffer) => Buffer,
): Promise<string | undefined> {
  const path = join(directory, name);
  const bytes = readFileSync(path);
  writeFileSync(path, change(Buffer.from(bytes)));
  try {
    await checkLevelFiles(nodeDisk, directory);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof DiskError, String(error));
    assert.equal(error.code, "Damaged");
    return error.message;
  } finally {
    writeFileSync(path, bytes);
  }
}

const flipped = (at: number) => (bytes: Buffer) => {
  bytes[at] ^= 0x55;
  return bytes;
};

describe("a LevelDB's files", () => {
  it("are sound as they were written, and a table that belongs to nothing does not count", async () => {
    const checked = await checkLevelFiles(nodeDisk, directory);
    assert.ok(checked.tables <= tables().length);
    assert.ok(
      checked.tables >= 2 && checked.blocks > 20 && checked.bytes > 100_000,
      JSON.stringify(checked),
    );
    writeFileSync(join(directory, "999999.ldb"), "half a tab");
    assert.deepEqual(await checkLevelFiles(nodeDisk, directory), checked);
    rmSync(join(directory, "999999.ldb"));
  });

  it("are damaged by any byte of a table that changes, with the file and the place", async () => {
    const name = largest();
    const { length } = readFileSync(join(directory, name));
    // The zeros of the foot, before its last 8 bytes, are not covered by a checksum.
    const inFoot = length - 48;
    const places = [
      ...Array.from({ length: 60 }, (_, i) => Math.floor((i * (inFoot - 1)) / 59)),
      inFoot,
      inFoot + 2,
      length - 8,
      length - 1,
    ];
    for (const at of places) {
      const said = await saidOf(name, flipped(at));
      assert.ok(said !== undefined, `byte ${at} of ${length}`);
      assert.ok(said.startsWith(`${join(directory, name)}: damaged at byte `), said);
      assert.match(
        said,
        /; the member does not start rather than serve wrong data: remove it from the cluster/,
      );
      const reported = Number(/at byte (\d+)/.exec(said)![1]);
      if (at < inFoot) assert.ok(reported <= at && at - reported < 10_000, `${reported} for ${at}`);
    }
  });

  it("are damaged by a table that is cut short, empty or gone", async () => {
    const name = largest();
    assert.match(
      (await saidOf(name, (bytes) => bytes.subarray(0, bytes.length - 100)))!,
      /the file has \d+ bytes, not \d+;/,
    );
    assert.match(
      (await saidOf(name, () => Buffer.alloc(0)))!,
      /damaged at byte 0: the file has 0 bytes, not/,
    );
    const path = join(directory, name);
    const bytes = readFileSync(path);
    rmSync(path);
    await assert.rejects(checkLevelFiles(nodeDisk, directory), {
      code: "Damaged",
      message: /\.ldb: the file is not there; /,
    });
    writeFileSync(path, bytes);
  });

  it("are damaged by what names them; a change that was not written whole counts as absent", async () => {
    const manifest = readdirSync(directory).find((name) => name.startsWith("MANIFEST-"))!;
    assert.match(
      (await saidOf(manifest, flipped(20)))!,
      /MANIFEST-\d+: damaged at byte 0: the checksum does not match/,
    );
    assert.match(
      (await saidOf("CURRENT", flipped(3)))!,
      /CURRENT: damaged at byte 0: it names no manifest/,
    );
    assert.match(
      (await saidOf("CURRENT", () => Buffer.from("MANIFEST-777777\n")))!,
      /MANIFEST-777777: the file is not there/,
    );
    const path = join(directory, manifest);
    const bytes = readFileSync(path);
    writeFileSync(path, Buffer.concat([bytes, bytes.subarray(0, 12)]));
    await checkLevelFiles(nodeDisk, directory);
    truncateSync(path, bytes.length);
    await checkLevelFiles(nodeDisk, directory);
  });
});
