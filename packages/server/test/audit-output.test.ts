/** Audit lines on their way out: batches, full disks, pipes, rotation and bounds. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { open as openFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { silentLogger } from "@quorate/host";
import { nodeClock } from "@quorate/host/node";
import { until } from "../../../test/support/until.ts";
import type { AuditTarget, openAuditTarget } from "../node/audit/audit-output.ts";
import {
  AuditOutput,
  type AuditOutputOptions,
  MAX_AUDIT_QUEUE_BYTES,
  REFUSING_QUEUE_BYTES,
} from "../node/audit/audit-output.ts";

describe("audit output", () => {
  let dir: string;
  let path: string;
  let output: AuditOutput | undefined;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "quorate-audit-"));
    path = join(dir, "audit.log");
  });
  afterEach(async () => {
    await output?.close();
    output = undefined;
    rmSync(dir, { recursive: true });
  });

  async function start(more: Partial<AuditOutputOptions> = {}, open?: typeof openAuditTarget) {
    const options = { path, maxFileBytes: 0, maxFileAgeMs: 0, keepFiles: 2, ...more };
    output = new AuditOutput(options, { clock: nodeClock, logger: silentLogger, open });
    await output.start();
    return output;
  }

  /** A disk that takes so many bytes. */
  function disk(space: number) {
    const state = { space, text: "" };
    const target: AuditTarget = {
      isFile: true,
      sizeBytes: 0,
      sinceMs: 0,
      write: async (bytes) => {
        const count = Math.min(bytes.length, state.space);
        if (count === 0) throw Object.assign(new Error("no space left"), { code: "ENOSPC" });
        state.space -= count;
        state.text += Buffer.from(bytes.subarray(0, count)).toString();
        return count;
      },
      close: async () => {},
    };
    return { state, open: async () => target };
  }

  test("lines reach a file that is for its owner alone; close writes what waits", async () => {
    writeFileSync(path, "before\n", { mode: 0o600 });
    const one = await start();
    for (let i = 0; i < 1000; i++) one.write(`{"n":${i}}`);
    await one.close();
    const lines = readFileSync(path, "utf8").split("\n");
    assert.deepEqual(
      [lines.length, lines[0], lines[1], lines[1000]],
      [1002, "before", '{"n":0}', '{"n":999}'],
    );
    assert.equal(one.writtenLines, 1000);
    const fresh = await start({ path: join(dir, "new.log") });
    fresh.write("x");
    await fresh.close();
    assert.equal(statSync(join(dir, "new.log")).mode & 0o777, 0o600);
  });

  test("a file is rotated by size, and the oldest goes", async () => {
    const one = await start({ maxFileBytes: 10 });
    for (let i = 0; i < 4; i++) {
      one.write(`line number ${i}`);
      await until("it is rotated", () => one.rotations === i + 1);
    }
    const names = readdirSync(dir).sort();
    assert.deepEqual([names.length, one.rotations], [2, 4]);
    assert.match(names[1], /^audit\.log\.\d{8}T\d{6}\.\d{3}Z$/);
    assert.equal(readFileSync(join(dir, names[1]), "utf8"), "line number 3\n");
  });

  test("a file is rotated by age", async () => {
    const one = await start({ maxFileAgeMs: 1 });
    one.write("a");
    await until("it is rotated", () => one.rotations > 0);
    assert.ok(!existsSync(path));
  });

  test("a file that was moved away is opened again when that is asked for", async () => {
    const one = await start();
    one.write("a");
    await until("it is written", () => one.writtenLines === 1);
    renameSync(path, `${path}.1`);
    one.reopen();
    one.write("b");
    await one.close();
    assert.deepEqual(
      [readFileSync(`${path}.1`, "utf8"), readFileSync(path, "utf8")],
      ["a\n", "b\n"],
    );
  });

  test("a full disk: lines wait, a cut line is ended, and writing goes on by itself", async () => {
    const { state, open } = disk(9);
    const one = await start({}, open);
    for (const text of ["first", "second", "third"]) one.write(text);
    await until("it fails", () => one.failures > 0);
    assert.equal(one.isWritable, false);
    state.space = 1000;
    await until("it goes on", () => one.isWritable);
    assert.equal(state.text, "first\nsec\nthird\n");
    assert.deepEqual([one.writtenLines, one.droppedLines], [2, 1]);
  });

  test("what does not fit the queue is dropped and counted; before that, writes are refused", async () => {
    const one = await start({}, disk(0).open);
    const line = "x".repeat(65_535);
    for (let bytes = 0; bytes <= REFUSING_QUEUE_BYTES; bytes += 65_536) one.write(line);
    assert.equal(one.isWritable, false);
    assert.equal(one.droppedLines, 0);
    for (let i = 0; i < 100; i++) one.write(line);
    assert.ok(one.queueBytes <= MAX_AUDIT_QUEUE_BYTES);
    assert.ok(one.droppedLines > 0);
  });

  test("/dev/full is a target that always fails", { skip: !existsSync("/dev/full") }, async () => {
    const one = await start({ path: "/dev/full" });
    one.write("a");
    await until("it fails", () => one.failures > 0);
    assert.equal(one.isWritable, false);
  });

  test("a named pipe is written while there is a reader, and waits for one", async () => {
    const pipe = join(dir, "pipe");
    execFileSync("mkfifo", [pipe]);
    const one = await start({ path: pipe });
    assert.equal(one.isWritable, false, "there is no reader yet");
    one.write("for later");
    const reader = await openFile(pipe, "r+");
    try {
      await until("it is written", () => one.writtenLines === 1);
      const { buffer, bytesRead } = await reader.read(Buffer.alloc(100), 0, 100);
      assert.equal(buffer.subarray(0, bytesRead).toString(), "for later\n");
      // A reader that reads no more: the pipe fills, and the loop is not held up.
      for (let i = 0; i < 3; i++) one.write("y".repeat(65_000));
      await until("it counts as failed", () => !one.isWritable);
    } finally {
      await reader.close();
    }
  });

  test("what cannot be a target stops the start", async () => {
    await assert.rejects(start({ path: dir }), /cannot open .*(?:directory)/);
    await assert.rejects(start({ path: join(dir, "no", "such") }), /cannot open .*ENOENT/);
  });
});
