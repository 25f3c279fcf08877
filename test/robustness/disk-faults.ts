/**
 * Loaded into a member's process before its own code (NODE_OPTIONS=--import): makes fdatasync slow,
 * or writing fail as on a full disk, as the file that QUORATE_TEST_DISK_FAULTS names says at that
 * moment. What the store writes in native code does not come by here.
 */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

const path = process.env["QUORATE_TEST_DISK_FAULTS"];
/** The file is looked at again after so long. */
const LOOK_AGAIN_MS = 50;

const real = {
  fdatasync: fs.fdatasync,
  writeSync: fs.writeSync,
  writevSync: fs.writevSync,
  write: fs.write,
  readFileSync: fs.readFileSync,
};
let faults = { syncDelayMs: 0, isFull: false };
let readMs = Number.NEGATIVE_INFINITY;

function look(): typeof faults {
  if (performance.now() - readMs > LOOK_AGAIN_MS && path !== undefined) {
    readMs = performance.now();
    try {
      faults = JSON.parse(real.readFileSync(path, "utf8")) as typeof faults;
    } catch {
      // It is being written: what it said before holds for a little longer.
    }
  }
  return faults;
}

function noSpace(): NodeJS.ErrnoException {
  return Object.assign(new Error("ENOSPC: no space left on device, write"), {
    code: "ENOSPC",
    errno: -28,
    syscall: "write",
  });
}

/** Standard output and error go somewhere else. */
const isFull = (fd: number): boolean => fd > 2 && look().isFull;

if (path !== undefined) {
  Object.assign(fs, {
    fdatasync(fd: number, done: fs.NoParamCallback) {
      const { syncDelayMs } = look();
      if (syncDelayMs === 0) real.fdatasync(fd, done);
      else setTimeout(() => real.fdatasync(fd, done), syncDelayMs);
    },
    writeSync(fd: number, ...rest: unknown[]) {
      if (isFull(fd)) throw noSpace();
      return (real.writeSync as (...all: unknown[]) => number)(fd, ...rest);
    },
    writevSync(fd: number, ...rest: unknown[]) {
      if (isFull(fd)) throw noSpace();
      return (real.writevSync as (...all: unknown[]) => number)(fd, ...rest);
    },
    write(fd: number, ...rest: unknown[]) {
      const done = rest.at(-1) as (error: Error | null, count: number) => void;
      if (isFull(fd)) setImmediate(() => done(noSpace(), 0));
      else (real.write as (...all: unknown[]) => void)(fd, ...rest);
    },
  });
  syncBuiltinESMExports();
}
