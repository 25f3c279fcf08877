/**
 * Reads a log from end to end, or from one of its segments on, record by record.
 *
 * Used by `Wal.open` and by the offline tools. It checks what can be checked without a meaning:
 * sequence of the segments, frames, rolling checksum, the records that open a segment. What the
 * records mean to each other is in rules.ts.
 */
import type { Disk } from "@quorate/host";
import { crc32c, equals } from "@quorate/proto";
import { WalDamageError, WalError } from "./errors.ts";
import { decodeMark, RecordType, type SegmentName, segmentFor, segmentsAmong } from "./format.ts";
import { type BrokenFrame, type NoFrame, readFrame } from "./frame.ts";
import { SegmentFile } from "./segment-file.ts";
import { judgeTail } from "./tear.ts";

/** A record and its place. */
export interface WalRecord {
  readonly segment: SegmentName;
  /** Where its frame starts. */
  readonly offset: number;
  readonly type: RecordType;
  /** The checksum as the record has it, found to be right. */
  readonly crc: number;
  /** A view that stays good. */
  readonly data: Uint8Array;
}

/** Where the good records of a log end. */
export interface WalEnd {
  readonly segments: readonly SegmentName[];
  /** Where the next record goes in the last segment. */
  readonly offset: number;
  readonly crc: number;
  readonly metadata: Uint8Array;
  /**
   * So many bytes of the last segment were on the disk when they were followed by others; what is
   * behind them may be in memory only.
   */
  readonly durableBytes: number;
  /**
   * Bytes of a torn write from `offset` on; behind them there are only zeros. 0 where the log ends
   * cleanly.
   */
  readonly tornBytes: number;
}

/**
 * Reads records from the segment on that holds the entry after `from`; without `from`, from the
 * oldest segment that has no gap behind it. Throws a WalDamageError at the first record that is
 * broken or where a segment is missing, a WalError NotFound if there is no log or none that reaches
 * back so far; returns where the log ends.
 */
export function* readWal(disk: Disk, dir: string, from?: number): Generator<WalRecord, WalEnd> {
  const all = disk.stat(dir) ? segmentsAmong(disk.list(dir)) : [];
  if (all.length === 0) throw new WalError("NotFound", dir, "there is no log here");
  const first =
    from === undefined
      ? all.findLastIndex((_, i) => i === 0 || hasGapBefore(all, i))
      : segmentFor(all, from);
  if (first < 0)
    throw new WalError("NotFound", dir, `the log starts at entry ${all[0].index}, after ${from}`);
  const segments = all.slice(first);
  const log = new LogReader(disk, dir);
  for (const [i, segment] of segments.entries()) {
    if (i > 0 && hasGapBefore(segments, i)) {
      throw new WalDamageError(
        dir,
        segment.name,
        0,
        `segment ${segments[i - 1].sequence + 1} is missing before it`,
      );
    }
    yield* log.segment(segment, i === segments.length - 1);
  }
  return { segments, ...log.end() };
}

function hasGapBefore(segments: readonly SegmentName[], i: number): boolean {
  return segments[i].sequence !== segments[i - 1].sequence + 1;
}

/** What goes on from segment to segment. */
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

  /** Takes a record into the checksum; gives what is wrong with it. */
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

  /** Reading cannot go on: finds out whether that is right so. */
  #stop(
    segment: SegmentName,
    file: SegmentFile,
    isLast: boolean,
    count: number,
    stop: NoFrame | BrokenFrame,
  ): void {
    const offset = this.#offset;
    const damage = (reason: string) => new WalDamageError(this.#dir, segment.name, offset, reason);
    // A segment has its name only after its first records are on the disk, and is left only after
    // its last ones are.
    if (count < 2)
      throw damage(stop.kind === "end" ? "the segment ends before its metadata" : stop.reason);
    if (!isLast) {
      if (stop.kind === "broken") throw damage(stop.reason);
      if (file.firstNonZero(offset, file.sizeBytes) !== undefined)
        throw damage("a length word of zero is followed by other bytes");
      return;
    }
    const tail = judgeTail(file, offset, this.#crc ?? 0, stop);
    if (tail.kind === "damaged") throw damage(tail.reason);
    this.#tornBytes = tail.kind === "torn" ? tail.end - offset : 0;
  }
}
