/**
 * Reads a log, whole or from one of its segments on, record by record.
 *
 * Used by `Wal.open` and by the offline tools. It checks everything that does not need the records'
 * meaning: the sequence of the segments, frames, the rolling checksum, and the records that open a
 * segment. LogRules (format.ts) checks how records follow each other.
 */
import type { Disk } from "@quorate/host";
import { crc32c, equals } from "@quorate/proto";
import { WalDamageError, WalError } from "./errors.ts";
import { decodeMark, RecordType, type SegmentName, segmentFor, segmentsAmong } from "./format.ts";
import { type BrokenFrame, type NoFrame, readFrame } from "./frame.ts";
import { SegmentFile } from "./segment-file.ts";
import { judgeTail } from "./tear.ts";

/** A record and its position. */
export interface WalRecord {
  readonly segment: SegmentName;
  /** Byte offset of its frame. */
  readonly offset: number;
  readonly type: RecordType;
  /** The record's checksum, verified. */
  readonly crc: number;
  /** A view that stays valid. */
  readonly data: Uint8Array;
}

/** The end of the valid records of a log. */
export interface WalEnd {
  readonly segments: readonly SegmentName[];
  /** Offset in the last segment of the next record. */
  readonly offset: number;
  readonly crc: number;
  readonly metadata: Uint8Array;
  /**
   * The length of the last segment that a later durable mark proves to be on disk; bytes after it
   * may be only in memory.
   */
  readonly durableBytes: number;
  /** Bytes of a torn write from `offset` on, followed by zeros only. 0 if the log ends cleanly. */
  readonly tornBytes: number;
}

/**
 * Reads records, starting with the segment that holds the entry after `from`; without `from`, with
 * the oldest segment that has no gap behind it. Throws WalDamageError at the first broken record or
 * missing segment, and WalError NotFound if there is no log or it starts after `from`. Returns the
 * end of the log.
 */
export function* readWal(disk: Disk, dir: string, from?: number): Generator<WalRecord, WalEnd> {
  const all = disk.stat(dir) ? segmentsAmong(disk.list(dir)) : [];
  if (all.length === 0) throw new WalError("NotFound", dir, "there is no log here");
  const first =
    from === undefined
      ? all.findLastIndex((_, i) => i === 0 || hasGapBefore(all, i))
      : segmentFor(all, from);
  if (first < 0)
    throw new WalError("NotFound", dir, `the log starts at entry ${all[0]?.index}, after ${from}`);
  const segments = all.slice(first);
  const log = new LogReader(disk, dir);
  for (const [i, segment] of segments.entries()) {
    if (i > 0 && hasGapBefore(segments, i)) {
      throw new WalDamageError(
        dir,
        segment.name,
        0,
        `segment ${(segments[i - 1]?.sequence ?? 0) + 1} is missing before it`,
      );
    }
    yield* log.segment(segment, i === segments.length - 1);
  }
  return { segments, ...log.end() };
}

function hasGapBefore(segments: readonly SegmentName[], i: number): boolean {
  const [before, after] = [segments[i - 1], segments[i]];
  return before === undefined || after?.sequence !== before.sequence + 1;
}

/** The state that continues from segment to segment. */
class LogReader {
  readonly #disk: Disk;
  readonly #dir: string;
  #crc: number | undefined;
  #metadata: Uint8Array | undefined;
  #offset = 0;
  #durableBytes = 0;
  #tornBytes = 0;

  constructor(disk: Disk, dir: string) {
    this.#disk = disk;
    this.#dir = dir;
  }

  end(): Omit<WalEnd, "segments"> {
    return {
      offset: this.#offset,
      crc: this.#crc ?? 0,
      metadata: this.#metadata ?? new Uint8Array(0),
      durableBytes: this.#durableBytes,
      tornBytes: this.#tornBytes,
    };
  }

  *segment(segment: SegmentName, isLast: boolean): Generator<WalRecord> {
    const file = new SegmentFile(this.#disk, `${this.#dir}/${segment.name}`);
    try {
      let count = 0;
      this.#durableBytes = 0;
      for (this.#offset = 0; ; count++) {
        const frame = readFrame(file, this.#offset);
        if ("kind" in frame) {
          this.#stop(segment, file, isLast, count, frame);
          return;
        }
        const { type, crc, data, end } = frame;
        const problem = this.#check(count, type, crc, data);
        if (problem) {
          this.#stop(segment, file, isLast, count, {
            kind: "broken",
            reason: problem,
            end,
            isCut: false,
          });
          return;
        }
        yield { segment, offset: this.#offset, type, crc, data };
        this.#offset = end;
      }
    } finally {
      file.close();
    }
  }

  /** Adds a record to the checksum; returns the problem with the record, if any. */
  #check(count: number, type: RecordType, crc: number, data: Uint8Array): string | undefined {
    if (count === 0 && type !== RecordType.Crc) return "the segment does not open with a checksum";
    if (count === 1 && type !== RecordType.Metadata)
      return "the segment's second record is not its metadata";
    if (type === RecordType.Crc) {
      const durableBytes = data.length > 0 ? decodeMark(data) : 0;
      if (durableBytes === undefined || durableBytes > this.#offset)
        return "the durable mark is broken";
      this.#durableBytes = Math.max(this.#durableBytes, durableBytes);
      if (this.#crc !== undefined && crc !== this.#crc) {
        return count === 0
          ? "the segment does not go on from the one before: the checksum differs"
          : "the checksum does not match";
      }
      this.#crc = crc;
      return undefined;
    }
    const rolled = crc32c(this.#crc ?? 0, data);
    if (rolled !== crc) return "the checksum does not match";
    if (type === RecordType.Metadata) {
      if (this.#metadata && !equals(this.#metadata, data))
        return "the metadata differs from that of the first segment";
      this.#metadata = data;
    }
    this.#crc = rolled;
    return undefined;
  }

  /** Reading stopped: decides whether this is a valid end of the log. */
  #stop(
    segment: SegmentName,
    file: SegmentFile,
    isLast: boolean,
    count: number,
    stop: NoFrame | BrokenFrame,
  ): void {
    const offset = this.#offset;
    const damage = (reason: string) => new WalDamageError(this.#dir, segment.name, offset, reason);
    // A segment gets its name only after its first records are on disk, and the next segment starts
    // only after its last ones are.
    if (count < 2)
      throw damage(stop.kind === "end" ? "the segment ends before its metadata" : stop.reason);
    if (!isLast) {
      if (stop.kind === "broken") throw damage(stop.reason);
      if (!file.isZero(offset, file.sizeBytes))
        throw damage("a length word of zero is followed by other bytes");
      return;
    }
    const tail = judgeTail(file, offset, this.#crc ?? 0, stop);
    if (tail.kind === "damaged") throw damage(tail.reason);
    this.#tornBytes = tail.kind === "torn" ? tail.end - offset : 0;
  }
}
