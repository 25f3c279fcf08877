/**
 * Distinguishes a torn write at the end of the log from damage, when a record of the last segment
 * is broken.
 *
 * A crash loses unsynced data sector by sector: a lost sector keeps its old content, and ahead of
 * the log the segment is zeros. A torn write therefore shows as a whole sector of zeros inside the
 * record (or from its length word on), or as a file that ends inside it. Anything else is damage,
 * because a crash does not flip bits. A torn write is damage, too, if a later durable mark says
 * that its place was on disk. Records after it prove nothing by themselves: a crash may lose the
 * first sector of a write and keep the second.
 */
import { crc32c } from "@quorate/proto";
import { decodeMark, MARK_BYTES, RecordType, SECTOR_BYTES, WORD_BYTES } from "./format.ts";
import { type BrokenFrame, type NoFrame, readFrame, readRecordWithoutLength } from "./frame.ts";
import type { SegmentFile } from "./segment-file.ts";

/** The end of the valid records: nothing follows, a torn write up to `end`, or damage. */
export type Tail =
  | { readonly kind: "clean" }
  | { readonly kind: "torn"; readonly end: number }
  | { readonly kind: "damaged"; readonly reason: string };

/**
 * Classifies the last segment from `offset` on, where reading stopped.
 *
 * @param crc the rolling checksum up to `offset`.
 * @param stop the result of reading there; a record with a wrong checksum counts as a broken one.
 */
export function judgeTail(
  file: SegmentFile,
  offset: number,
  crc: number,
  stop: NoFrame | BrokenFrame,
): Tail {
  const end = file.endOfNonZero(offset, file.sizeBytes);
  if (stop.kind === "end" && end === offset) return { kind: "clean" };
  const reason =
    stop.kind === "end" ? "a length word of zero is followed by other bytes" : stop.reason;
  if (!hasTornSector(file, offset, stop)) return { kind: "damaged", reason };
  if (stop.kind === "broken" && isWholeBehindWrongLength(file, offset, crc, stop))
    return { kind: "damaged", reason };
  const mark = laterMark(file, offset, end);
  if (mark)
    return {
      kind: "damaged",
      reason: `${reason}, and byte ${mark.at} says that ${mark.durableBytes} bytes were on the disk`,
    };
  return { kind: "torn", end };
}

/** Whether the broken frame looks like a write of which some sectors did not reach the disk. */
function hasTornSector(file: SegmentFile, offset: number, stop: NoFrame | BrokenFrame): boolean {
  if (stop.kind === "end") {
    const sectorEnd = offset - (offset % SECTOR_BYTES) + SECTOR_BYTES;
    return file.isZero(offset, Math.min(sectorEnd, file.sizeBytes));
  }
  if (stop.isCut) return true;
  // The length word is invalid. It lies in one sector, so it is not torn.
  if (stop.end === undefined) return false;
  for (
    let sector = offset - (offset % SECTOR_BYTES) + SECTOR_BYTES;
    sector < stop.end;
    sector += SECTOR_BYTES
  ) {
    if (file.isZero(sector, Math.min(sector + SECTOR_BYTES, file.sizeBytes))) return true;
  }
  return false;
}

/**
 * Whether a complete record is there that does not fit its length word: the word was changed after
 * it was written.
 */
function isWholeBehindWrongLength(
  file: SegmentFile,
  offset: number,
  crc: number,
  stop: BrokenFrame,
): boolean {
  const record = readRecordWithoutLength(file, offset);
  if (!record || record.end === stop.end) return false;
  return record.crc === (record.type === RecordType.Crc ? crc : crc32c(crc, record.data));
}

/** A durable mark in (from, to) that covers more than `from` bytes. */
function laterMark(
  file: SegmentFile,
  from: number,
  to: number,
): { readonly at: number; readonly durableBytes: number } | undefined {
  for (let at = from + WORD_BYTES; at + WORD_BYTES + MARK_BYTES < to; at += WORD_BYTES) {
    // The first byte excludes most positions: a frame with a mark has a record of 18 to 22 bytes.
    const length = file.view(at, 1)[0] ?? 0;
    if (length < MARK_BYTES + 6 || length > MARK_BYTES + 10) continue;
    const frame = readFrame(file, at);
    if ("kind" in frame || frame.type !== RecordType.Crc) continue;
    const durableBytes = decodeMark(frame.data);
    if (durableBytes !== undefined && durableBytes > from && durableBytes <= at)
      return { at, durableBytes };
  }
  return undefined;
}
