/** Values that follow their files: what is good is taken, what is bad changes nothing. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { silentLogger } from "@quorate/host";
import { FILE_RELOAD_PERIOD_MS, FileSource, MAX_RELOADED_FILE_BYTES } from "@quorate/host/node";
import { ManualClock } from "@quorate/host/testing";

describe("a value that follows its files", () => {
  let dir: string;
  let clock: ManualClock;
  let lines: string[];
  let source: FileSource<number> | undefined;

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "quorate-files-"));
    clock = new ManualClock();
    lines = [];
  });
  afterEach(() => {
    source?.close();
    rmSync(dir, { recursive: true });
  });

  async function open(path: string): Promise<FileSource<number>> {
    const say = (level: string) => (msg: string, fields?: object) =>
      void lines.push(`${level}: ${msg} ${JSON.stringify(fields)}`);
    const logger = { ...silentLogger, info: say("info"), warn: say("warn") };
    const parse = (contents: ReadonlyMap<string, Uint8Array>): number => {
      const text = Buffer.from(contents.get(path)!).toString();
      if (!/^\d+\n$/.test(text)) throw new Error(`${path} has no number`);
      return Number(text);
    };
    source = await FileSource.open({ what: "number", paths: [path], parse }, { clock, logger });
    return source;
  }

  test("is read again when a file changes, in whichever way", async () => {
    const path = join(dir, "n");
    writeFileSync(path, "1\n");
    const one = await open(path);
    const seen: number[] = [];
    one.onChange((value) => seen.push(value));
    writeFileSync(path, "2\n");
    clock.advance(FILE_RELOAD_PERIOD_MS);
    await one.check();
    writeFileSync(join(dir, "new"), "3\n");
    renameSync(join(dir, "new"), path);
    await one.check();
    await one.check();
    assert.deepEqual([one.current, seen, one.reloads, one.failedReloads], [3, [2, 3], 2, 0]);
  });

  test("follows a link that moves, as a mounted secret does", async () => {
    for (const [name, text] of [
      ["a", "1\n"],
      ["b", "2\n"],
    ] as const) {
      mkdirSync(join(dir, name));
      writeFileSync(join(dir, name, "n"), text);
    }
    symlinkSync("a", join(dir, "data"));
    const one = await open(join(dir, "data", "n"));
    symlinkSync("b", join(dir, "tmp"));
    renameSync(join(dir, "tmp"), join(dir, "data"));
    await one.check();
    assert.equal(one.current, 2);
  });

  test("stays as it is where a file is bad, gone or huge, and says so", async () => {
    const path = join(dir, "n");
    writeFileSync(path, "1\n");
    const one = await open(path);
    writeFileSync(path, "secret");
    await one.check();
    await one.check();
    assert.deepEqual([one.current, one.failedReloads], [1, 1], "a bad content counts once");
    assert.equal(one.isStale, true);
    rmSync(path);
    await one.check();
    await one.check();
    assert.equal(one.failedReloads, 3, "a file that is gone counts at each look");
    assert.equal(lines.length, 2, "and is said once");
    writeFileSync(path, "9".repeat(MAX_RELOADED_FILE_BYTES + 1));
    await one.check();
    assert.deepEqual([one.current, one.failedReloads], [1, 4]);
    assert.match(lines[0], /^warn: cannot use changed files.*n has no number/);
    assert.match(lines.at(-1)!, /it is longer than 1048576 bytes/);
    assert.doesNotMatch(lines.join(), /secret/);
    writeFileSync(path, "5\n");
    await one.check();
    assert.deepEqual([one.current, one.isStale], [5, false]);
    renameSync(path, `${path}.away`);
    await one.check();
    assert.equal(one.isStale, true);
    renameSync(`${path}.away`, path);
    await one.check();
    assert.deepEqual([one.current, one.isStale], [5, false]);
    const before = lines.length;
    renameSync(path, `${path}.away`);
    await one.check();
    await one.check();
    assert.equal(lines.length, before + 1, "that it is gone again is said again");
  });

  test("is not there at all where the first files are bad", async () => {
    await assert.rejects(open(join(dir, "none")), /cannot read .*none: ENOENT/);
  });
});
