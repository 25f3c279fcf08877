/**
 * Takes a base snapshot: the file appears under its final name whole and durable, or not at all.
 */
import type { Clock, Disk } from "@quorate/host";
import { etcdFileRevision } from "@quorate/store";
import { baseName } from "../src/format.ts";

export interface TakenBase {
  readonly path: string;
  readonly revision: number;
  /**
   * Wall clock in ms, rounded up to a whole second, as in the file's name. The content is older.
   */
  readonly timeMs: number;
  readonly sizeBytes: number;
}

export interface BaseDeps {
  readonly disk: Disk;
  readonly clock: Clock;
  /**
   * Saves a snapshot of a member to a file, durably.
   * @param stop gives up within one message of the member; the promise then rejects with its reason
   * @returns the size in bytes; rejects with ClientError, or with an Error that names what is wrong
   *   with the stream or the disk
   */
  saveSnapshot(path: string, stop: AbortSignal): Promise<number>;
}

/**
 * Takes a base into a backup's directory. Rejects as saveSnapshot does, with EtcdFileError,
 * DiskError.
 */
export async function takeBase(
  { disk, clock, saveSnapshot }: BaseDeps,
  dir: string,
  stop: AbortSignal,
): Promise<TakenBase> {
  const incoming = `${dir}/incoming`;
  const sizeBytes = await saveSnapshot(incoming, stop);
  const timeMs = Math.ceil(clock.wallMs() / 1000) * 1000;
  const revision = etcdFileRevision(disk, incoming);
  const path = `${dir}/${baseName(revision, timeMs)}`;
  disk.rename(incoming, path);
  disk.syncDir(dir);
  return { path, revision, timeMs, sizeBytes };
}
