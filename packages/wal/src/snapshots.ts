/**
 * Snapshot files, in etcd's format (server/etcdserver/api/snap in etcd's sources):
 *
 *     snap/0000000000000002-0000000000002711.snap     term - index
 *
 * A file is a snappb.Snapshot: the CRC-32C of the data, and the data, an encoded raftpb.Snapshot.
 * A member writes them for etcd, which starts from the newest, and reads none: its state is in the
 * backend, and the marks are in the log.
 */
import type { Clock, Disk } from "@quorate/host";
import { crc32c, raftpb, snappb } from "@quorate/proto";
import { parseIndexedName } from "./format.ts";

const SUFFIX = ".snap";

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
