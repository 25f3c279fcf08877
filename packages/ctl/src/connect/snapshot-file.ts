/** A file that a snapshot is saved in: complete and durable, or not there. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { systemReason } from "@quorate/cli";

/**
 * Makes a file that appears whole and durable, or not at all. Rejects with what `fill` rejects
 * with, or with an Error that describes the fault of the disk.
 */
export async function writeSnapshotFile(
  path: string,
  fill: (write: (bytes: Uint8Array) => void) => Promise<void>,
): Promise<void> {
  const part = `${path}.part`;
  // The rename would replace a device or a directory.
  const found = statSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isFile()) {
    throw new Error(
      `could not write ${path}: it is ${found.isDirectory() ? "a directory" : "no regular file"}; name a file`,
    );
  }
  const file = openPart(part);
  let open = true;
  try {
    await fill((bytes) => writeAll(file, bytes));
    fsyncSync(file);
    closeSync(file);
    open = false;
    renameSync(part, path);
    syncDirectory(dirname(path));
  } finally {
    if (open) closeSync(file);
    rmSync(part, { force: true });
  }
}

function openPart(part: string): number {
  try {
    return openSync(part, "w", 0o600);
  } catch (error) {
    throw new Error(`could not open ${part} (open ${part}: ${systemReason(error)})`);
  }
}

function writeAll(file: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done);
}

function syncDirectory(path: string): void {
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
