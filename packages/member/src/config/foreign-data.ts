/**
 * Recognising a data directory that etcd wrote. Ours has the same member/wal and
 * member/snap/*.snap, but keeps its store as a LevelDB directory member/store; etcd keeps a bbolt
 * file member/snap/db. Starting on top of etcd's would lose its data.
 */
import { type Disk, EXCHANGE_FILE } from "@quorate/host";

/**
 * Why a data directory cannot be used: a message for the operator, or undefined if nothing speaks
 * against it. Only looks, never writes.
 */
export function detectForeignData(disk: Pick<Disk, "stat">, dataDir: string): string | undefined {
  const isFile = (path: string): boolean => disk.stat(path)?.kind === "file";
  const isDirectory = (path: string): boolean => disk.stat(path)?.kind === "directory";
  if (isFile(dataDir)) return `${dataDir} is a file, not a data directory`;
  const database = `${dataDir}/member/snap/db`;
  if (isFile(database)) {
    return (
      `${dataDir} is a data directory of etcd itself (${database} is its bbolt database); it is left untouched. ` +
      `To go on with it as this member, run quorateutl adopt ${dataDir} (docs/guide/in-place.md)`
    );
  }
  if (isFile(`${dataDir}/${EXCHANGE_FILE}`)) {
    return (
      `${dataDir} was being exchanged with etcd's when that was interrupted: ` +
      "run the same quorateutl adopt or release again"
    );
  }
  if (isDirectory(`${dataDir}/proxy`))
    return `${dataDir} is the directory of an etcd v2 proxy, which is gone since etcd 3.6; it is left untouched`;
  return undefined;
}
