/** The output of a log: what a reader that stops costs, and what it does not. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { until } from "../../../test/support/until.ts";
import { fileTarget, nodeSurroundings } from "../node/log-targets.ts";
import { LogOutput, type LogTarget, MAX_LOG_QUEUE_BYTES } from "../src/log-output.ts";

/** A pipe that takes so many bytes, and then says `code`. */
function pipe(space: number) {
  const state = { space, text: "", code: "EAGAIN", closed: false };
  const target: LogTarget = {
    write(bytes) {
      const count = Math.min(bytes.length, state.space);
      if (count === 0) throw Object.assign(new Error(state.code), { code: state.code });
      state.space -= count;
      state.text += Buffer.from(bytes.subarray(0, count)).toString("latin1");
      return count;
    },
    reopen() {},
    close() {
      state.closed = true;
    },
  };
  return { state, target };
}

const missing = (lines: number): string => `missing ${lines}\n`;
const open = (target: LogTarget, graceMs = 20): LogOutput =>
  new LogOutput(target, missing, nodeSurroundings, { graceMs });

test("a line is written at once where the target takes it", () => {
  const { state, target } = pipe(Number.POSITIVE_INFINITY);
  const output = open(target);
  output.write("one\n");
  assert.equal(state.text, "one\n");
  output.close();
  assert.deepEqual([state.closed, output.droppedLines, output.queueBytes], [true, 0, 0]);
});

test("what a full pipe does not take waits, and follows in order, also within a line", async () => {
  const { state, target } = pipe(6);
  const output = open(target);
  for (const line of ["one\n", "two\n", "three\n"]) output.write(line);
  assert.deepEqual([state.text, output.queueBytes], ["one\ntw", 8]);
  state.space = 3;
  await until("it has taken them", () => state.text === "one\ntwo\nt");
  state.space = Number.POSITIVE_INFINITY;
  await until("it is empty", () => output.queueBytes === 0);
  assert.equal(state.text, "one\ntwo\nthree\n");
  output.close();
  assert.equal(output.droppedLines, 0);
});

test("a queue that is full drops its oldest lines, counts them, and says so in their place", async () => {
  const { state, target } = pipe(2);
  const output = open(target);
  const line = (i: number): string => `${String(i).padStart(1023, "0")}\n`;
  const total = 3 * (MAX_LOG_QUEUE_BYTES / 1024);
  for (let i = 0; i < total; i++) {
    output.write(line(i));
    assert.ok(output.queueBytes <= MAX_LOG_QUEUE_BYTES);
  }
  assert.ok(output.droppedLines >= (total * 2) / 3 - 1, String(output.droppedLines));
  const dropped = output.droppedLines;
  state.space = Number.POSITIVE_INFINITY;
  await until("all is written", () => output.queueBytes === 0);
  const seen = state.text.trimEnd().split("\n");
  // The first was cut when the pipe was full: it is whole.
  assert.deepEqual(seen.slice(0, 2), [line(0).trimEnd(), `missing ${dropped}`]);
  assert.equal(seen.length, 2 + total - 1 - dropped);
  assert.equal(Number(seen[2]), dropped + 1);
  assert.equal(Number(seen.at(-1)), total - 1, "the newest is there");
  output.close();
  assert.equal(output.droppedLines, dropped);
});

test("a line that is longer than the queue waits as well", () => {
  const { state, target } = pipe(0);
  const output = open(target);
  output.write("small\n");
  output.write(`${"x".repeat(MAX_LOG_QUEUE_BYTES)}\n`);
  assert.equal(output.droppedLines, 1);
  state.space = Number.POSITIVE_INFINITY;
  output.close();
  assert.ok(state.text.startsWith("missing 1\nxx"));
});

test("the last lines get a bounded time, and what is left counts as dropped", () => {
  const { state, target } = pipe(4);
  const output = open(target, 50);
  output.write("one\n");
  output.write("received signal; shutting down\n");
  output.close();
  assert.deepEqual([state.text, output.droppedLines, state.closed], ["one\n", 1, true]);
  output.write("after the end\n");
  assert.equal(output.queueBytes, 0);
});

test("a pipe that is closed costs no time at the end, and a disk that is full is tried again", async () => {
  const closed = pipe(0);
  closed.state.code = "EPIPE";
  const output = open(closed.target, 3_600_000);
  output.write("one\n");
  output.close();
  assert.equal(output.droppedLines, 1);
  const full = pipe(0);
  full.state.code = "ENOSPC";
  const other = open(full.target);
  other.write("one\n");
  full.state.space = 100;
  await until("it is written", () => full.state.text === "one\n");
  other.close();
});

test("a named pipe as a log file: refused without a reader, and full when that stops", (t: TestContext) => {
  const dir = mkdtempSync(join(tmpdir(), "quorate-log-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const path = join(dir, "fifo");
  execFileSync("mkfifo", [path]);
  assert.throws(() => fileTarget(path), { code: "ENXIO" });
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const output = open(fileTarget(path));
  // The call returns although nothing reads: more than any pipe holds by itself.
  for (let i = 0; i < 300; i++) output.write(`${"x".repeat(1023)}\n`);
  assert.ok(output.queueBytes > 0);
  const bytes = Buffer.alloc(4096);
  assert.ok(readSync(reader, bytes, 0, bytes.length, null) > 0);
  output.close();
  assert.ok(output.droppedLines > 0);
  closeSync(reader);
});
