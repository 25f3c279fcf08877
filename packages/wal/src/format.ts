/**
 * The write-ahead log on disk, as etcd lays it out (server/storage/wal in etcd's sources).
 *
 *     wal/0000000000000000-0000000000000000.wal      sequence number - index of the first entry
 *                                                    that may stand in it
 *     wal/0000000000000001-00000000000184d7.wal
 *     wal/2.tmp                                      a segment prepared ahead: zeros, no part of
 *                                                    the log yet
 *
 * A segment is a row of frames, then zeros up to its size (it is allocated before it is used):
 *
 *     | length word, 8 bytes, little-endian         | walpb.Record          | padding      |
 *     | bits 0-55: bytes of the record              | type, crc, data       | zeros to the |
 *     | bits 56-63: 0, or 0x80 + bytes of padding   |                       | next 8 bytes |
 *
 * Frames are aligned to 8 bytes, so that a length word never lies in two sectors. A length word of
 * 0 ends the segment. `crc` is CRC-32C rolled over the `data` of all records since the log was
 * created, this one included; it goes on from segment to segment.
 *
 * Each segment opens with a crc record (where the rolling checksum stands), a metadata record (the
 * same in all segments) and, unless it is the first, a state record. Then come entries, states and
 * snapshot marks as they happen; a later entry with the index of an earlier one takes its place and
 * that of all after it.
 *
 * One thing is ours. etcd's crc records have no data; ours may carry a durable mark: 8 bytes, the
 * length of this segment that was known to be on the disk when the record was written, and 4 bytes,
 * the CRC-32C of those 8. etcd skips over that data (a crc record is not in the rolling checksum).
 * The mark is what lets a reader tell the torn end of a write that nobody was promised from damage
 * to one that was.
 */
import { crc32c } from "@quorate/proto";

/** `walpb.Record.type`. */
export const RecordType = { Metadata: 1, Entry: 2, State: 3, Crc: 4, Snapshot: 5 } as const;
export type RecordType = (typeof RecordType)[keyof typeof RecordType];

/** The size at which a segment is left for the next, and to which it is allocated: etcd's 64 MB. */
export const SEGMENT_BYTES = 64_000_000;

/** What a disk writes whole. */
export const SECTOR_BYTES = 512;

/** A length word. */
export const WORD_BYTES = 8;

/** The data of a crc record with a durable mark. */
export const MARK_BYTES = 12;

/** One segment of the log, by its name. */
export interface SegmentName {
  readonly name: string;
  readonly sequence: number;
  /** Index of the first entry that may stand in it. */
  readonly index: number;
}

function hex16(value: number): string {
  return value.toString(16).padStart(16, "0");
}

/** The name of the segment that is the `sequence`th, from 0, and starts at entry `index`. */
export function segmentName(sequence: number, index: number): SegmentName {
  return { name: `${hex16(sequence)}-${hex16(index)}.wal`, sequence, index };
}

/**
 * Two numbers from a name like 0000000000000001-00000000000184d7.wal; undefined if it is not one,
 * or out of range.
 */
export function parseIndexedName(
  name: string,
  suffix: string,
): readonly [number, number] | undefined {
  if (!name.endsWith(suffix)) return undefined;
  const match = /^([0-9a-f]{16})-([0-9a-f]{16})$/.exec(name.slice(0, -suffix.length));
  if (!match) return undefined;
  const first = Number.parseInt(match[1], 16);
  const second = Number.parseInt(match[2], 16);
  return Number.isSafeInteger(first) && Number.isSafeInteger(second) ? [first, second] : undefined;
}

/** The segments among the names of a folder, in order. Other names are no part of the log. */
export function segmentsAmong(names: readonly string[]): SegmentName[] {
  const segments: SegmentName[] = [];
  for (const name of names) {
    const numbers = parseIndexedName(name, ".wal");
    if (numbers) segments.push({ name, sequence: numbers[0], index: numbers[1] });
  }
  return segments.sort((a, b) => a.sequence - b.sequence);
}

/**
 * The position of the segment where reading from `index` starts: the last that starts at or before
 * it; -1 if there is none.
 */
export function segmentFor(segments: readonly SegmentName[], index: number): number {
  return segments.findLastIndex((segment) => segment.index <= index);
}

/** The data of a crc record that says: the first `durableBytes` of this segment are on the disk. */
export function encodeMark(durableBytes: number): Uint8Array {
  const data = new Uint8Array(MARK_BYTES);
  const view = new DataView(data.buffer);
  view.setBigUint64(0, BigInt(durableBytes), true);
  view.setUint32(8, crc32c(0, data, 0, 8), true);
  return data;
}

/** The length that a mark tells, or undefined if the bytes are not a mark. */
export function decodeMark(data: Uint8Array): number | undefined {
  if (data.length !== MARK_BYTES) return undefined;
  const view = new DataView(data.buffer, data.byteOffset, MARK_BYTES);
  if (view.getUint32(8, true) !== crc32c(0, data, 0, 8)) return undefined;
  return Number(view.getBigUint64(0, true));
}
