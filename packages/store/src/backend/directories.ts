/**
 * The directories of a store, and the replacement of a store by a received one. A crash at any
 * moment leaves the old store or the complete new one.
 *
 *     store/db                 the keyspace in use
 *     store/db.INDEX.tmp       a snapshot that is being received
 *     store/db.INDEX.file.tmp  the database file of etcd that it comes in
 *     store/db.INDEX.recv      a snapshot that was received completely and verified
 *     store/db.old             the store that a received one has just replaced
 */
import type { Disk } from "@quorate/host";

const RECEIVED = /^db\.(\d+)\.recv$/;

export function currentDirectory(storeDir: string): string {
  return `${storeDir}/db`;
}

export function incomingDirectory(storeDir: string, index: number): string {
  return `${storeDir}/db.${index}.tmp`;
}

/** A database file of etcd, while the snapshot of `index` is received. */
export function incomingFile(storeDir: string, index: number): string {
  return `${storeDir}/db.${index}.file.tmp`;
}

/** Renames a received directory that is complete and closed, which marks it as such. */
export function markReceived(disk: Disk, storeDir: string, index: number): void {
  // The keyspace syncs its files' content, but not the names of all of them.
  disk.syncDir(incomingDirectory(storeDir, index));
  disk.rename(incomingDirectory(storeDir, index), `${storeDir}/db.${index}.recv`);
  disk.syncDir(storeDir);
}

/** Replaces the current store, which must be closed, with the received one of `index`. */
export function installReceived(disk: Disk, storeDir: string, index: number): void {
  const current = currentDirectory(storeDir);
  disk.remove(`${storeDir}/db.old`);
  if (disk.stat(current) !== undefined) disk.rename(current, `${storeDir}/db.old`);
  disk.rename(`${storeDir}/db.${index}.recv`, current);
  disk.syncDir(storeDir);
  disk.remove(`${storeDir}/db.old`);
}

/**
 * Repairs the directories at start, before the store is opened: finishes a replacement that a crash
 * interrupted, and removes leftovers. A received store counts only if the WAL has a mark of a
 * snapshot of its index.
 * @param acceptedIndex the index of the newest snapshot that the WAL marks, 0 for none.
 * @returns true if a received store replaced the current one.
 */
export function recoverDirectories(disk: Disk, storeDir: string, acceptedIndex: number): boolean {
  let installed = false;
  const names = disk.list(storeDir);
  if (acceptedIndex > 0 && names.includes(`db.${acceptedIndex}.recv`)) {
    installReceived(disk, storeDir, acceptedIndex);
    installed = true;
  } else if (!names.includes("db") && names.includes("db.old")) {
    disk.rename(`${storeDir}/db.old`, currentDirectory(storeDir));
    disk.syncDir(storeDir);
  }
  for (const name of disk.list(storeDir)) {
    if (name !== "db" && name.startsWith("db.")) disk.remove(`${storeDir}/${name}`);
  }
  return installed;
}

/**
 * Removes incomplete received stores, and complete ones at or below `appliedIndex`, which are not
 * needed. One above it may be about to be installed.
 */
export function dropIncoming(disk: Disk, storeDir: string, appliedIndex: number): void {
  for (const name of disk.list(storeDir)) {
    const received = RECEIVED.exec(name);
    if (name.endsWith(".tmp") || (received !== null && Number(received[1]) <= appliedIndex))
      disk.remove(`${storeDir}/${name}`);
  }
}
