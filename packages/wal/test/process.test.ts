/** Real processes: the lock, and kill -9 in the middle of writing. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, it, type TestContext } from "node:test";
import { DiskError } from "@quorate/host";
import { nodeDisk } from "@quorate/host/node";
import { Wal } from "@quorate/wal";
import { endsWith } from "../../../test/support/children.ts";
import { entries, options, plain, START } from "./support.ts";

let root = "";
before(() => {
  root = mkdtempSync(join(tmpdir(), "quorate-wal-"));
});
after(() => rmSync(root, { recursive: true }));

/**
 * A process that opens or makes the log and appends entries of 200 bytes, 3 a batch; prints the
 * last index of each synced batch.
 */
const WRITER = `
  import { nodeClock, nodeDisk } from "@quorate/host/node";
  import { Wal } from "@quorate/wal";
  import { entries, START, state } from "./support.ts";
  const [dir] = process.argv.slice(1);
  const options = { clock: nodeClock, segmentBytes: 64 * 1024 };
  const exists = Wal.exists(nodeDisk, dir);
  const wal = exists ? Wal.open(nodeDisk, dir, START, options).wal : Wal.create(nodeDisk, dir, new Uint8Array([1]), options);
  for (;;) {
    const next = wal.lastIndex + 1;
    wal.append(state(1, next - 1), entries(next, next + 2, 1, 200));
    await wal.sync();
    console.log(wal.lastIndex);
  }
`;

function startWriter(
  t: TestContext,
  dir: string,
): { child: ChildProcess; lines: AsyncIterator<string>; exited: Promise<void> } {
  const args = ["--input-type=module", "-e", WRITER, dir];
  const child = endsWith(
    spawn(process.execPath, args, {
      cwd: import.meta.dirname,
      stdio: ["ignore", "pipe", "inherit"],
    }),
    t,
  );
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  return {
    child,
    lines: createInterface({ input: child.stdout })[Symbol.asyncIterator](),
    exited,
  };
}

describe("a second process", () => {
  it("is refused while the first has the log, with the process that holds it", async (t) => {
    const dir = join(root, "locked");
    const { child, lines, exited } = startWriter(t, dir);
    try {
      await lines.next();
      assert.throws(
        () => Wal.open(nodeDisk, dir, START, options(64 << 10)),
        (error) =>
          error instanceof DiskError &&
          error.code === "Locked" &&
          error.message === `${dir}.lock: held by process ${child.pid}`,
      );
    } finally {
      child.kill("SIGKILL");
      await exited;
    }
    await Wal.open(nodeDisk, dir, START, options(64 << 10)).wal.close();
  });

  it("finds after kill -9 all that the first called durable", async (t) => {
    const dir = join(root, "killed");
    let acknowledged = 0;
    for (let round = 0; round < 4; round++) {
      const { child, lines, exited } = startWriter(t, dir);
      const until = acknowledged + 150 * (round + 1);
      while (acknowledged < until) {
        const { value, done } = await lines.next();
        assert.ok(!done, "the writer ended by itself");
        acknowledged = Number(value);
      }
      child.kill("SIGKILL");
      for (let line = await lines.next(); !line.done; line = await lines.next())
        acknowledged = Number(line.value);
      await exited;
      const opened = Wal.open(nodeDisk, dir, START, options(64 << 10));
      const count = opened.entries.length;
      assert.ok(count >= acknowledged, `${count} entries, ${acknowledged} acknowledged`);
      assert.deepEqual(plain(opened.entries), plain(entries(1, count, 1, 200)));
      await opened.wal.close();
      acknowledged = count;
    }
  });
});
