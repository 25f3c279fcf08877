/**
 * How a log comes to be open: a new one appears whole or not at all; one that is there is read, and
 * what a crash left of it is put right. Whoever calls holds the log's lock.
 */
import { type Disk, type DiskFile, type Logger, parentOf } from "@quorate/host";
import { walpb } from "@quorate/proto";
import { FrameEncoder } from "./encoder.ts";
import { assert, WalError } from "./errors.ts";
import { RecordType, type SegmentName, segmentName, segmentsAmong } from "./format.ts";
import { SegmentPipeline } from "./pipeline.ts";
import { type Replay, replay } from "./replay.ts";

/** How much is copied at a time when a log is opened. */
const REWRITE_BYTES = 1 << 20;

/** Whether there is a log in `dir`. */
export function isLog(disk: Disk, dir: string): boolean {
  return disk.stat(dir) !== undefined && segmentsAmong(disk.list(dir)).length > 0;
}

/** A log that was just made. */
export interface NewLog {
  readonly segments: SegmentName[];
  /** The only segment, to write to. */
  readonly tail: DiskFile;
  /** Where the next record goes, and the checksum that it goes on from. */
  readonly offset: number;
  readonly crc: number;
}

/**
 * Makes a log with its first segment, durable when it returns. Throws WalError Exists, DiskError.
 */
export function makeLog(
  disk: Disk,
  dir: string,
  metadata: Uint8Array,
  segmentBytes: number,
): NewLog {
  if (isLog(disk, dir)) throw new WalError("Exists", dir, "there is a log already");
  if (disk.stat(dir) && disk.list(dir).length > 0)
    throw new WalError("Exists", dir, "the folder holds other files");
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

/** A log that was there, and what it holds from a snapshot on. */
export interface ReopenedLog extends Replay {
  readonly segments: SegmentName[];
  /** The last segment, to write to; all of it that was read is durable. */
  readonly tail: DiskFile;
}

/**
 * Reads the log in `dir` from the snapshot `from` on, and cuts off a torn write at its end. Throws
 * as Wal.open does.
 */
export function reopenLog(
  disk: Disk,
  dir: string,
  from: walpb.Snapshot,
  logger: Logger | undefined,
): ReopenedLog {
  for (const name of disk.list(dir)) {
    if (SegmentPipeline.owns(name)) disk.remove(`${dir}/${name}`);
  }
  const replayed = replay(disk, dir, from);
  const { end } = replayed;
  const segments = segmentsAmong(disk.list(dir));
  const tail = disk.open(`${dir}/${segments[segments.length - 1].name}`, "write");
  try {
    if (end.tornBytes > 0) {
      // What is left of it must never be taken for a record behind later ones.
      tail.write([new Uint8Array(Math.min(end.tornBytes, tail.size() - end.offset))], end.offset);
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
 * Brings a range of a file down to the disk that was read and may be in the system's memory only,
 * because the process that wrote it died before its sync, or after one that failed: then the system
 * takes the bytes for written, and only writing them again makes a sync count.
 */
function makeDurable(file: DiskFile, from: number, to: number): void {
  const buffer = new Uint8Array(Math.min(REWRITE_BYTES, to - from));
  for (let at = from; at < to; ) {
    const count = file.read(buffer.subarray(0, Math.min(buffer.length, to - at)), at);
    assert(count > 0, "a log became shorter while it was opened");
    file.write([buffer.subarray(0, count)], at);
    at += count;
  }
  file.dataSyncNow();
}
