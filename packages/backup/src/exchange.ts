/**
 * New directories that take the places of others, which stay beside them. A file in the data
 * directory says so from the first rename to the last, so that neither program starts on a mixture
 * and a second run finishes what a crash has interrupted.
 *
 *     member.new   made and durable
 *     exchange     written
 *     member   ->  member.etcd
 *     member.new -> member
 *     exchange     removed
 */
import { type Disk, EXCHANGE_FILE, parentOf } from "@quorate/host";
import { EMPTY } from "@quorate/proto";

/** A directory and what takes its place. */
export interface Exchange {
  readonly place: string;
  /** The new directory, in the same file system. */
  readonly made: string;
  /** Where the old one goes. It must not exist. */
  readonly aside: string;
}

/** Exchanges all of them, durably. @throws DiskError */
export function exchange(disk: Disk, dataDir: string, all: readonly Exchange[]): void {
  disk.replace(`${dataDir}/${EXCHANGE_FILE}`, EMPTY);
  finishExchange(disk, dataDir, all);
}

/**
 * Finishes an exchange that was interrupted, of the same directories.
 * @returns false if there was none
 * @throws DiskError
 */
export function finishExchange(disk: Disk, dataDir: string, all: readonly Exchange[]): boolean {
  const file = `${dataDir}/${EXCHANGE_FILE}`;
  if (disk.stat(file) === undefined) return false;
  for (const { place, made, aside } of all) {
    if (disk.stat(made) === undefined) continue;
    if (disk.stat(place) !== undefined) disk.rename(place, aside);
    disk.rename(made, place);
    disk.syncDir(parentOf(place));
  }
  disk.remove(file);
  disk.syncDir(dataDir);
  return true;
}
