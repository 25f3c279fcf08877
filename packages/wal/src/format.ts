/**
 * The write-ahead log on disk, in etcd's format (server/storage/wal in etcd's sources).
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
 * Each segment opens with a crc record (the rolling checksum so far), a metadata record (the same
 * in all segments) and, unless it is the first segment, a state record. Entries, states and
 * snapshot marks follow in the order they were written. An entry with the index of an earlier one
 * replaces it and all entries after it; LogRules says what may follow what.
 *
 * One extension is Quorate's own. etcd's crc records have no data; here they may carry a durable
 * mark: 8 bytes, the length of this segment that was known to be on disk when the record was
 * written, and 4 bytes, the CRC-32C of those 8. etcd ignores that data (a crc record is not part of
 * the rolling checksum). With the mark, a reader can distinguish a torn write at the end, which was
 * never acknowledged, from damage to a record that was.
 */
import { crc32c, raftpb, writeU32LE } from "@quorate/proto";

/** `walpb.Record.type`. */
export const RecordType = { Metadata: 1, Entry: 2, State: 3, Crc: 4, Snapshot: 5 } as const;
export type RecordType = (typeof RecordType)[keyof typeof RecordType];

/** The size at which a segment is closed, and to which it is preallocated: etcd's 64 MB. */
export const SEGMENT_BYTES = 64_000_000;

/** The unit that a disk writes atomically. */
export const SECTOR_BYTES = 512;

/** A length word. */
export const WORD_BYTES = 8;

/** The data of a crc record with a durable mark. */
export const MARK_BYTES = 12;

/** One segment of the log, by its name. */
export interface SegmentName {
  readonly name: string;
  readonly sequence: number;
  /** Index of the first entry that the segment may hold. */
  readonly index: number;
}

function hex16(value: number): string {
  return value.toString(16).padStart(16, "0");
}

/** The name of a segment. @param sequence its number, from 0. @param index of its first entry */
export function segmentName(sequence: number, index: number): SegmentName {
  return { name: `${hex16(sequence)}-${hex16(index)}.wal`, sequence, index };
}

/**
 * The two numbers in a name like 0000000000000001-00000000000184d7.wal; undefined for any other
 * name, or if a number is out of range.
 */
export function parseIndexedName(
  name: string,
  suffix: string,
): readonly [number, number] | undefined {
  if (!name.endsWith(suffix)) return undefined;
  const match = /^([0-9a-f]{16})-([0-9a-f]{16})$/.exec(name.slice(0, -suffix.length));
  if (!match) return undefined;
  const [, sequence = "", index = ""] = match;
  const first = Number.parseInt(sequence, 16);
  const second = Number.parseInt(index, 16);
  return Number.isSafeInteger(first) && Number.isSafeInteger(second) ? [first, second] : undefined;
}

/** The segments among the names in a directory, in order. Other names are no part of the log. */
export function segmentsAmong(names: readonly string[]): SegmentName[] {
  const segments: SegmentName[] = [];
  for (const name of names) {
    const numbers = parseIndexedName(name, ".wal");
    if (numbers) segments.push({ name, sequence: numbers[0], index: numbers[1] });
  }
  return segments.sort((a, b) => a.sequence - b.sequence);
}

/**
 * The position of the segment from which to read `index`: the last that starts at or before it; -1
 * if there is none.
 */
export function segmentFor(segments: readonly SegmentName[], index: number): number {
  return segments.findLastIndex((segment) => segment.index <= index);
}

/**
 * Writes the data of a crc record with a durable mark: the first `durableBytes` of this segment are
 * on disk. @param data of MARK_BYTES
 */
export function encodeMark(data: Uint8Array, durableBytes: number): void {
  writeU32LE(data, 0, durableBytes);
  writeU32LE(data, 4, Math.floor(durableBytes / 2 ** 32));
  writeU32LE(data, 8, crc32c(0, data, 0, 8));
}

/** The length in a durable mark, or undefined if the bytes are not a mark. */
export function decodeMark(data: Uint8Array): number | undefined {
  if (data.length !== MARK_BYTES) return undefined;
  const view = new DataView(data.buffer, data.byteOffset, MARK_BYTES);
  if (view.getUint32(8, true) !== crc32c(0, data, 0, 8)) return undefined;
  return Number(view.getBigUint64(0, true));
}

/** What the rules read of an entry. */
type CheckedEntry = Pick<raftpb.Entry, "type" | "term" | "index"> & {
  readonly data: { readonly length: number };
};

/**
 * The rules between the records of a log: `entry` and `state` return the problem with a record, or
 * undefined after adding it. The writer asserts them and the reader checks them, so a log that was
 * written can be read.
 *
 * The reader needs them because a record's type is not covered by the checksum: a flipped bit can
 * turn an entry into a state or the reverse, and the result may decode, but it does not fit the
 * records before it. (One case remains: a state of term 2 whose vote is an id below 2^53, as one in
 * 2,000 is, looks like an empty entry; the next entry then shows it.)
 *
 * A state's term may be below that of the last entry: a crash can lose the state of a batch and
 * keep its entries.
 */
export class LogRules {
  /** Index and term of the last entry or of a snapshot beyond it; the term is 0 while unknown. */
  lastIndex: number;
  #lastTerm = 0;
  #stateTerm = 0;
  #commit = 0;

  /**
   * @param lastIndex the last index before the first record: 0, or where an earlier segment ended.
   */
  constructor(lastIndex: number) {
    this.lastIndex = lastIndex;
  }

  entry(entry: CheckedEntry): string | undefined {
    const { type, term, index, data } = entry;
    if (type < 0 || type > raftpb.EntryType.EntryConfChangeV2)
      return `entry ${index} has an unknown type ${type}`;
    if (type === raftpb.EntryType.EntryConfChange && data.length === 0)
      return `entry ${index} changes the configuration to nothing`;
    if (index < 1 || term < 1) return `an entry has index ${index} and term ${term}`;
    if (index > this.lastIndex + 1) return `entry ${index} follows entry ${this.lastIndex}`;
    if (index <= this.#commit)
      return `entry ${index} would replace a committed one (commit is ${this.#commit})`;
    if (index === this.lastIndex + 1 && term < this.#lastTerm)
      return `entry ${index} has term ${term}, the one before has ${this.#lastTerm}`;
    this.lastIndex = index;
    this.#lastTerm = term;
    return undefined;
  }

  /**
   * @param opens the state is the first record of a log that is read from a later segment on: its
   * committed entries are in earlier segments.
   */
  state(state: raftpb.HardState, opens = false): string | undefined {
    const { term, commit } = state;
    if (opens) this.lastIndex = Math.max(this.lastIndex, commit);
    if (term < 1) return `a state has term ${term}`;
    if (term < this.#stateTerm) return `the term goes back from ${this.#stateTerm} to ${term}`;
    if (commit < this.#commit)
      return `the commit index goes back from ${this.#commit} to ${commit}`;
    if (commit > this.lastIndex)
      return `the commit index is ${commit}, the last entry ${this.lastIndex}`;
    this.#stateTerm = term;
    this.#commit = commit;
    return undefined;
  }

  /** A snapshot mark beyond the last entry replaces all entries before it. */
  snapshot(index: number, term: number): void {
    if (index <= this.lastIndex) return;
    this.lastIndex = index;
    this.#lastTerm = term;
  }
}
