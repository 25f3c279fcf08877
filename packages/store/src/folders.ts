/**
 * The folders of a store, and how a received one takes the place of the old. A crash at any moment
 * leaves the old store or the complete new one.
 *
 *     store/db                 the keyspace in use
 *     store/db.INDEX.tmp       a snapshot that is being received
 *     store/db.INDEX.recv      one that was received whole and verified
 *     store/db.old             the one that a received one has just replaced
 */
import type { Disk } from "@quorate/host";

const RECEIVED = /^db\.(\d+)\.recv$/;

export function currentFolder(storeDir: string): string {
  return `${storeDir}/db`;
}

export function incomingFolder(storeDir: string, index: number): string {
  return `${storeDir}/db.${index}.tmp`;
}

/** An incoming folder is complete and closed: it gets the name that says so. */
export function markReceived(disk: Disk, storeDir: string, index: number): void {
  // The keyspace syncs what it writes, but not the names of all its files.
  disk.syncDir(incomingFolder(storeDir, index));
  disk.rename(incomingFolder(storeDir, index), `${storeDir}/db.${index}.recv`);
  disk.syncDir(storeDir);
}

/** Puts the received store of `index` in the place of the current one, which must be closed. */
export function installReceived(disk: Disk, storeDir: string, index: number): void {
  const current = currentFolder(storeDir);
  disk.remove(`${storeDir}/db.old`);
  if (disk.stat(current) !== undefined) disk.rename(current, `${storeDir}/db.old`);
  disk.rename(`${storeDir}/db.${index}.recv`, current);
  disk.syncDir(storeDir);
  disk.remove(`${storeDir}/db.old`);
}

/**
 * Brings the folders in order at start, before the store is opened: finishes an exchange that a
 * crash interrupted, and removes what is not needed. A received store counts only if the WAL says
 * that a snapshot of its index was accepted.
 * @param acceptedIndex the index of the newest snapshot that the WAL marks, 0 for none.
 * @returns true if a received store was put in place.
 */
export function recoverFolders(disk: Disk, storeDir: string, acceptedIndex: number): boolean {
  let installed = false;
  const names = disk.list(storeDir);
  if (acceptedIndex > 0 && names.includes(`db.${acceptedIndex}.recv`)) {
    installReceived(disk, storeDir, acceptedIndex);
    installed = true;
  } else if (!names.includes("db") && names.includes("db.old")) {
    disk.rename(`${storeDir}/db.old`, currentFolder(storeDir));
    disk.syncDir(storeDir);
  }
  for (const name of disk.list(storeDir)) {
    if (name !== "db" && name.startsWith("db.")) disk.remove(`${storeDir}/${name}`);
  }
  return installed;
}

/**
 * Removes what is left of broken receptions, and received stores that were not wanted: those at or
 * below `appliedIndex`. One above it may be about to be put in place.
 */
export function dropIncoming(disk: Disk, storeDir: string, appliedIndex: number): void {
  for (const name of disk.list(storeDir)) {
    const received = RECEIVED.exec(name);
    if (name.endsWith(".tmp") || (received !== null && Number(received[1]) <= appliedIndex))
      disk.remove(`${storeDir}/${name}`);
  }
}
