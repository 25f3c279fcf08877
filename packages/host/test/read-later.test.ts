/** Reading a file without blocking: the same bytes as at once, on both disks. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { nodeDisk } from "../node/disk.ts";
import { MemoryDisk } from "../node/memory/disk.ts";
import type { Disk } from "../src/disk.ts";

const directory = mkdtempSync(join(tmpdir(), "quorate-read-later-"));
after(() => rmSync(directory, { recursive: true }));

for (const [name, disk] of [
  ["node", nodeDisk],
  ["memory", new MemoryDisk()],
] as const satisfies readonly (readonly [string, Disk])[]) {
  test(`${name}: a file is read from any place, and less at its end`, async () => {
    disk.makeDir(directory);
    const file = disk.open(join(directory, "f"), "create");
    file.write([new TextEncoder().encode("hello wide world")], 0);
    const target = new Uint8Array(10);
    assert.equal(await file.readLater(target, 6), 10);
    assert.equal(new TextDecoder().decode(target), "wide world");
    assert.equal(await file.readLater(target, 11), 5);
    assert.equal(await file.readLater(target, 16), 0);
    file.close();
  });
}
