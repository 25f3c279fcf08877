/** Every implementation and fake under the contract suites. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SeededRandom } from "@quorate/host";
import { levelKeyspaces, nodeClock, nodeDisk, unsyncedNodeDisk } from "@quorate/host/node";
import {
  clockContract,
  diskContract,
  keyspaceContract,
  ManualClock,
  MemoryDisk,
  MemoryKeyspaceOpener,
  randomContract,
} from "@quorate/host/testing";

function temporaryDirectory(): { root: string; cleanUp(): void } {
  const root = mkdtempSync(join(tmpdir(), "quorate-host-"));
  return { root, cleanUp: () => rmSync(root, { recursive: true }) };
}

function memoryDirectory(disk: MemoryDisk): string {
  disk.makeDir("/data");
  return "/data";
}

randomContract("SeededRandom", (seed) => new SeededRandom(seed));

clockContract("node", () => ({
  clock: nodeClock,
  pass: (ms) => new Promise((resolve) => nodeClock.after(ms, resolve)),
}));
clockContract("manual", () => {
  const clock = new ManualClock();
  return { clock, pass: (ms) => clock.advanceAsync(ms) };
});

diskContract("node", () => ({ disk: nodeDisk, ...temporaryDirectory() }));
diskContract("node without fsync", () => ({ disk: unsyncedNodeDisk, ...temporaryDirectory() }));
diskContract("memory", () => {
  const disk = new MemoryDisk();
  return { disk, root: memoryDirectory(disk) };
});
diskContract("memory on a clock", () => {
  const clock = new ManualClock();
  const disk = new MemoryDisk({ clock, syncDelayMs: () => 5 });
  return { disk, root: memoryDirectory(disk), settle: () => clock.advanceAsync(5) };
});

keyspaceContract("level", () => ({ opener: levelKeyspaces, ...temporaryDirectory() }));
keyspaceContract("memory", () => {
  const disk = new MemoryDisk();
  return { opener: new MemoryKeyspaceOpener(disk), root: memoryDirectory(disk) };
});
