/**
 * Creates and opens logs. A new log appears completely or not at all. An existing one is read and
 * repaired after a crash. The caller holds the log's lock.
 */
import { type Disk, type DiskFile, type Logger, parentOf } from "@quorate/host";
import { defined, walpb } from "@quorate/proto";
import { FrameEncoder } from "./encoder.ts";
import { WalError } from "./errors.ts";
import { RecordType, type SegmentName, segmentName, segmentsAmong } from "./format.ts";
import { assert } from "./invariants.ts";
import { type NewestReplay, replayNewest } from "./newest.ts";
import { SegmentPipeline } from "./pipeline.ts";
import { replay } from "./replay.ts";

/** Bytes that are copied at a time when a log is opened. */
const REWRITE_BYTES = 1 << 20;

/** Whether there is a log in `dir`. */
export function isLog(disk: Disk, dir: string): boolean {
  return disk.stat(dir) !== undefined && segmentsAmong(disk.list(dir)).length > 0;
}

/** A log that was just created. */
export interface NewLog {
  readonly segments: SegmentName[];
  /** The only segment, open for writing. */
  readonly tail: DiskFile;
  /** The offset of the next record, and the checksum that it continues. */
  readonly offset: number;
  readonly crc: number;
}

/**
 * Creates a log with its first segment, durable when it returns. Throws WalError Exists, DiskError.
 */
export function makeLog(
  disk: Disk,
  dir: string,
  metadata: Uint8Array,
  segmentBytes: number,
): NewLog {
  if (isLog(disk, dir)) throw new WalError("Exists", dir, "there is a log already");
  if (disk.stat(dir) && disk.list(dir).length > 0)
    throw new WalError("Exists", dir, "the directory holds other files");
  const temporary = `${dir}.tmp`;
  disk.remove(temporary);
  disk.makeDir(temporary);
  const segment = segmentName(0, 0);
  const encoder = new FrameEncoder(0);
  encoder.crcRecord();
  encoder.record(RecordType.Metadata, metadata);
  encoder.record(RecordType.Snapshot, walpb.Snapshot.encode({}));
  const file = disk.open(`${temporary}/${segment.name}`, "create");
  try {
    file.preallocate(segmentBytes);
    file.write(encoder.chunks(), 0);
    file.dataSyncNow();
  } finally {
    file.close();
  }
  disk.syncDir(temporary);
  disk.remove(dir);
  disk.rename(temporary, dir);
  disk.syncDir(parentOf(dir));
  return {
    segments: [segment],
    tail: disk.open(`${dir}/${segment.name}`, "write"),
    offset: encoder.sizeBytes,
    crc: encoder.crc,
  };
}

/** The snapshot from which a log is read, or the newest that its last state has committed. */
export type ReadFrom = walpb.Snapshot | "newest";

/** An existing log, and its content from a snapshot on. */
export interface ReopenedLog extends NewestReplay {
  readonly segments: SegmentName[];
  /** The last segment, open for writing; the part that was read is durable. */
  readonly tail: DiskFile;
}

/**
 * Reads the log in `dir` from the snapshot `from` on, or from the newest one that a member may start
 * from, and cuts off a torn write at its end. Throws like Wal.open.
 */
export function reopenLog(
  disk: Disk,
  dir: string,
  from: ReadFrom,
  logger: Logger | undefined,
): ReopenedLog {
  for (const name of disk.list(dir)) {
    if (SegmentPipeline.owns(name)) disk.remove(`${dir}/${name}`);
  }
  const replayed =
    from === "newest" ? replayNewest(disk, dir) : { ...replay(disk, dir, from), from };
  const { end } = replayed;
  const segments = segmentsAmong(disk.list(dir));
  const last = defined(segments.at(-1), "a segment of the log");
  const tail = disk.open(`${dir}/${last.name}`, "write");
  try {
    if (end.tornBytes > 0) {
      // Zeros the torn bytes: they must never be taken for a record after new ones.
      tail.write([new Uint8Array(end.tornBytes)], end.offset);
      logger?.warn("cut off a torn write at the end of the WAL", {
        path: tail.path,
        offset: end.offset,
        "dropped-bytes": end.tornBytes,
      });
    }
    makeDurable(tail, end.durableBytes, end.offset);
    disk.syncDir(dir);
  } catch (error) {
    tail.close();
    throw error;
  }
  return { ...replayed, segments, tail };
}

/**
 * Makes a range of a file durable that may be only in the page cache, because the process that
 * wrote it died before its sync or after a failed one. After a failed sync the kernel considers the
 * pages clean, so only a new write makes the next sync write them.
 */
function makeDurable(file: DiskFile, from: number, to: number): void {
  const buffer = new Uint8Array(Math.min(REWRITE_BYTES, to - from));
  for (let at = from; at < to; ) {
    const count = file.read(buffer.subarray(0, Math.min(buffer.length, to - at)), at);
    assert(count > 0, "WAL-5");
    file.write([buffer.subarray(0, count)], at);
    at += count;
  }
  file.dataSyncNow();
}
