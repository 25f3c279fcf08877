/** Every twin under the same suites. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SeededRandom } from "@quorate/host";
import { levelKeyspaces, nodeClock, nodeDisk } from "@quorate/host/node";
import {
  clockContract,
  diskContract,
  keyspaceContract,
  ManualClock,
  MemoryDisk,
  MemoryKeyspaceOpener,
  randomContract,
} from "@quorate/host/testing";

function temporaryFolder(): { root: string; cleanUp(): void } {
  const root = mkdtempSync(join(tmpdir(), "quorate-host-"));
  return { root, cleanUp: () => rmSync(root, { recursive: true }) };
}

function memoryFolder(disk: MemoryDisk): string {
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

diskContract("node", () => ({ disk: nodeDisk, ...temporaryFolder() }));
diskContract("memory", () => {
  const disk = new MemoryDisk();
  return { disk, root: memoryFolder(disk) };
});
diskContract("memory on a clock", () => {
  const clock = new ManualClock();
  const disk = new MemoryDisk({ clock, syncDelayMs: () => 5 });
  return { disk, root: memoryFolder(disk), settle: () => clock.advanceAsync(5) };
});

keyspaceContract("level", () => ({ opener: levelKeyspaces, ...temporaryFolder() }));
keyspaceContract("memory", () => {
  const disk = new MemoryDisk();
  return { opener: new MemoryKeyspaceOpener(disk), root: memoryFolder(disk) };
});
