/**
 * Snapshot files, in etcd's format (server/etcdserver/api/snap in etcd's sources):
 *
 *     snap/0000000000000002-0000000000002711.snap          term - index
 *     snap/0000000000000002-0000000000002711.snap.broken   one that could not be read
 *
 * A file is a snappb.Snapshot: the CRC-32C of the data, and the data, an encoded raftpb.Snapshot.
 * The server defines the snapshot's own data; it is small, because the state is in the backend.
 */
import type { Clock, Disk } from "@quorate/host";
import { crc32c, raftpb, snappb, type walpb } from "@quorate/proto";
import { parseIndexedName } from "./format.ts";

const SUFFIX = ".snap";
const BROKEN_SUFFIX = ".broken";

interface SnapshotName {
  readonly name: string;
  readonly term: number;
  readonly index: number;
}

/** The term and index in the name of a snapshot file; undefined for any other name. */
export function parseSnapshotName(
  name: string,
): { readonly term: number; readonly index: number } | undefined {
  const numbers = parseIndexedName(name, SUFFIX);
  return numbers && { term: numbers[0], index: numbers[1] };
}

/** The result of `SnapshotFiles.load`. */
export interface LoadedSnapshot {
  readonly snapshot: raftpb.Snapshot;
  readonly path: string;
}

/** Measures the saving of snapshots. */
export interface SaveTiming {
  readonly clock: Clock;
  onSave(durationMs: number): void;
}

/** The snapshot files of one member. */
export class SnapshotFiles {
  readonly #disk: Disk;
  readonly #dir: string;
  readonly #timing: SaveTiming | undefined;

  /** @param dir the directory, which must exist */
  constructor(disk: Disk, dir: string, timing?: SaveTiming) {
    this.#disk = disk;
    this.#dir = dir;
    this.#timing = timing;
  }

  /**
   * Writes a snapshot, durable and complete when it returns; returns the path. Blocks for the
   * syncs.
   */
  save(snapshot: raftpb.Snapshot): string {
    const timing = this.#timing;
    const startMs = timing?.clock.monotonicMs() ?? 0;
    const { term, index } = snapshot.metadata;
    const path = `${this.#dir}/${term.toString(16).padStart(16, "0")}-${index.toString(16).padStart(16, "0")}${SUFFIX}`;
    const data = raftpb.Snapshot.encode(snapshot);
    this.#disk.replace(path, snappb.Snapshot.encode({ crc: crc32c(0, data), data }));
    timing?.onSave(timing.clock.monotonicMs() - startMs);
    return path;
  }

  /**
   * Loads the newest snapshot that one of `marks` (from validSnapshotMarks) names; undefined if
   * there is none. Unreadable files on the way are renamed and reported to `onBroken`.
   */
  load(
    marks: readonly walpb.Snapshot[],
    onBroken: (path: string, reason: string) => void = () => {},
  ): LoadedSnapshot | undefined {
    for (const file of this.#newestFirst()) {
      if (!marks.some((mark) => mark.term === file.term && mark.index === file.index)) continue;
      const path = `${this.#dir}/${file.name}`;
      const found = readSnapshot(this.#disk.readAll(path), file);
      if (typeof found !== "string") return { snapshot: found, path };
      this.#disk.rename(path, path + BROKEN_SUFFIX);
      this.#disk.syncDir(this.#dir);
      onBroken(path, found);
    }
    return undefined;
  }

  /**
   * Removes all but the `keep` newest snapshots (at least 1), and the unfinished file of a crash;
   * returns the removed names.
   */
  purge(keep: number): string[] {
    const removed = this.#newestFirst()
      .slice(Math.max(1, keep))
      .map((file) => file.name);
    for (const name of this.#disk.list(this.#dir)) {
      if (name.endsWith(`${SUFFIX}.tmp`)) removed.push(name);
    }
    for (const name of removed) this.#disk.remove(`${this.#dir}/${name}`);
    return removed;
  }

  #newestFirst(): SnapshotName[] {
    const files: SnapshotName[] = [];
    for (const name of this.#disk.list(this.#dir)) {
      const numbers = parseIndexedName(name, SUFFIX);
      if (numbers) files.push({ name, term: numbers[0], index: numbers[1] });
    }
    return files.sort((a, b) => b.term - a.term || b.index - a.index);
  }
}

/** The snapshot in a file's bytes, or the reason why there is none. */
function readSnapshot(bytes: Uint8Array, file: SnapshotName): raftpb.Snapshot | string {
  if (bytes.length === 0) return "the file is empty";
  try {
    const { crc, data } = snappb.Snapshot.decode(bytes);
    if (data.length === 0) return "the snapshot is empty";
    if (crc32c(0, data) !== crc) return "the checksum does not match";
    const snapshot = raftpb.Snapshot.decode(data);
    const { term, index } = snapshot.metadata;
    return term === file.term && index === file.index
      ? snapshot
      : `the file holds the snapshot of term ${term} and index ${index}`;
  } catch (error) {
    return `the file cannot be decoded: ${(error as Error).message}`;
  }
}
