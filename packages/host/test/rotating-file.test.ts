import assert from "node:assert/strict";
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { gunzipSync } from "node:zlib";
import { nodeLogger } from "../node/logger.ts";
import { type LogRotation, RotatingFile } from "../node/rotating-file.ts";

const ROTATION: LogRotation = {
  maxFileBytes: 20,
  maxAgeMs: 0,
  keepFiles: 0,
  localTime: false,
  compress: false,
};

describe("a rotating log file", () => {
  let dir = "";
  let path = "";
  let wallMs = 0;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "quorate-log-"));
    path = join(dir, "etcd.log");
    wallMs = Date.UTC(2026, 0, 2, 15, 4, 5);
  });
  afterEach(() => rmSync(dir, { recursive: true }));

  /** A file whose clock moves on by a second with each look. */
  function open(rotation: Partial<LogRotation> = {}): RotatingFile {
    const target = { write: (line: string) => appendFileSync(path, line), reopen: () => {} };
    const now = () => new Date((wallMs += 1000));
    return new RotatingFile(path, { ...ROTATION, ...rotation }, target, now);
  }
  const files = () => readdirSync(dir).sort();
  const line = (n: number) => `line ${n} of nine\n`;

  it("moves on before the line that does not fit, under the time", async () => {
    const file = open();
    for (let n = 1; n <= 3; n++) file.write(line(n));
    await file.idle();
    assert.equal(readFileSync(path, "utf8"), line(3));
    const moved = files().filter((name) => name !== "etcd.log");
    assert.deepEqual(
      moved.map((name) => name.replace(/0[6-9]\.000/, "SS")),
      ["etcd-2026-01-02T15-04-SS.log", "etcd-2026-01-02T15-04-SS.log"],
    );
    assert.deepEqual(
      moved.map((name) => readFileSync(join(dir, name), "utf8")),
      [line(1), line(2)],
    );
  });

  it("counts what the file has at the start, and takes a line that is longer than the limit", () => {
    writeFileSync(path, "x".repeat(19));
    const file = open();
    file.write(line(1));
    file.write("y".repeat(100));
    assert.equal(readFileSync(path, "utf8"), "y".repeat(100));
    assert.equal(files().length, 3);
  });

  it("keeps the newest, and deletes those that are too old; other files stay", async () => {
    writeFileSync(join(dir, "etcd-2025-12-01T00-00-00.000.log"), "old");
    writeFileSync(join(dir, "etcd-2025-12-01T00-00-00.000.txt"), "another program's");
    writeFileSync(join(dir, "etcd-notes.log"), "mine");
    const file = open({ keepFiles: 2, maxAgeMs: 86_400_000 });
    file.write(line(1));
    file.write(line(2));
    await file.idle();
    assert.equal(
      files().some((name) => name.startsWith("etcd-2025") && name.endsWith("log")),
      false,
    );
    for (let n = 3; n <= 8; n++) file.write(line(n));
    await file.idle();
    assert.equal(files().filter((name) => /^etcd-2026.*log$/.test(name)).length, 2);
    assert.ok(files().includes("etcd-notes.log"));
    assert.ok(files().includes("etcd-2025-12-01T00-00-00.000.txt"));
  });

  it("compresses what was moved", async () => {
    const file = open({ compress: true });
    file.write(line(1));
    file.write(line(2));
    await file.idle();
    const [moved, plain] = files();
    assert.match(moved, /^etcd-2026-.*\.log\.gz$/);
    assert.equal(plain, "etcd.log");
    assert.equal(gunzipSync(readFileSync(join(dir, moved))).toString(), line(1));
  });

  it("grows on where the file cannot be moved, and tries again later", () => {
    const file = open();
    file.write(line(1));
    renameSync(path, join(dir, "away"));
    // The move fails: there is no file.
    file.write(line(2));
    file.write(line(3));
    assert.equal(readFileSync(path, "utf8"), line(2) + line(3));
    file.write("z".repeat(1 << 20));
    assert.equal(readFileSync(path, "utf8").length, 1 << 20);
  });

  it("serves a logger: no line is lost over many files", () => {
    const logger = nodeLogger({
      outputs: [path],
      format: "json",
      rotation: { ...ROTATION, maxFileBytes: 2000 },
    });
    for (let i = 0; i < 60; i++) logger.info("line", { i });
    logger.close();
    const names = files();
    assert.ok(names.length > 1, "nothing was rotated");
    const seen = names.flatMap((name) =>
      readFileSync(join(dir, name), "utf8")
        .trimEnd()
        .split("\n")
        .map((text) => (JSON.parse(text) as { i: number }).i),
    );
    assert.deepEqual(
      seen.sort((a, b) => a - b),
      Array.from({ length: 60 }, (_, i) => i),
    );
  });
});
