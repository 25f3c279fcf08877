/**
 * Reads one frame of a segment.
 */
import { EMPTY, Reader, WireError } from "@quorate/proto";
import { type RecordType, WORD_BYTES } from "./format.ts";
import type { SegmentFile } from "./segment-file.ts";

/** A record that was read. The caller verifies its checksum. */
export interface Frame {
  readonly type: RecordType;
  readonly crc: number;
  readonly data: Uint8Array;
  /** Where the next frame starts. */
  readonly end: number;
}

/** The end of the frames: zeros from here on, or the end of the file. */
export interface NoFrame {
  readonly kind: "end";
}

/** Bytes that are not a valid frame. */
export interface BrokenFrame {
  readonly kind: "broken";
  readonly reason: string;
  /**
   * The end of the frame by its length word, possibly beyond the file; undefined if the word is cut
   * off or invalid.
   */
  readonly end: number | undefined;
  /** The file ends before the frame does. */
  readonly isCut: boolean;
}

/** Two tags and three varints. */
const MAX_RECORD_HEAD_BYTES = 33;

const END: NoFrame = { kind: "end" };

function broken(reason: string, end?: number, isCut = false): BrokenFrame {
  return { kind: "broken", reason, end, isCut };
}

/** One for all records: none is read while another one is. */
const reader = new Reader(EMPTY);

/** The fields of a walpb.Record in `bytes`. */
interface RecordFields {
  readonly type: number;
  readonly crc: number;
  readonly dataStart: number;
  readonly dataEnd: number;
}

/**
 * Reads a walpb.Record in the form that every writer of the format uses: type, checksum, then
 * optional data. Stricter than a protobuf decoder, which would take a flipped bit in a tag for an
 * unknown field. @param limit the end of the bytes that may belong to the record
 */
function readRecord(bytes: Uint8Array, start: number, limit: number): RecordFields | undefined {
  reader.reset(bytes, start, limit);
  try {
    if (reader.tag() !== 0x08) return undefined;
    const type = reader.uint64();
    if (reader.tag() !== 0x10) return undefined;
    const crc = reader.uint64();
    if (crc > 0xffff_ffff) return undefined;
    const { pos } = reader;
    if (pos === limit || bytes[pos] !== 0x1a) return { type, crc, dataStart: pos, dataEnd: pos };
    reader.tag();
    const length = reader.uint64();
    return { type, crc, dataStart: reader.pos, dataEnd: reader.pos + length };
  } catch (error) {
    if (error instanceof WireError) return undefined;
    throw error;
  }
}

/** The frame at `offset`, a multiple of 8. */
export function readFrame(file: SegmentFile, offset: number): Frame | NoFrame | BrokenFrame {
  if (file.sizeBytes - offset < WORD_BYTES) {
    return file.isZero(offset, file.sizeBytes)
      ? END
      : broken("the file ends inside a length word", undefined, true);
  }
  const wordAt = file.locate(offset, WORD_BYTES);
  const word = file.window;
  let length = 0;
  for (let i = wordAt + 6; i >= wordAt; i--) length = length * 0x100 + word[i];
  const top = word[wordAt + 7];
  if (length === 0 && top === 0) return END;
  const padBytes = top & 0x7f;
  const isPlausible =
    length > 0 &&
    (top === 0 ? length % 8 === 0 : top > 0x80 && padBytes < 8 && (length + padBytes) % 8 === 0);
  if (!isPlausible) return broken("the length word makes no sense");
  const end = offset + WORD_BYTES + length + padBytes;
  if (end > file.sizeBytes) return broken("the record runs past the end of the file", end, true);
  const start = file.locate(offset + WORD_BYTES, length + padBytes);
  const bytes = file.window;
  const record = readRecord(bytes, start, start + length);
  if (!record || record.dataEnd !== start + length)
    return broken("the record cannot be decoded", end);
  const { type, crc, dataStart, dataEnd } = record;
  if (type < 1 || type > 5) return broken(`the record has an unknown type ${type}`, end);
  for (let i = dataEnd; i < dataEnd + padBytes; i++) {
    if (bytes[i] !== 0) return broken("the padding is not zero", end);
  }
  return { type: type as RecordType, crc, data: bytes.subarray(dataStart, dataEnd), end };
}

/**
 * The record behind the length word at `offset`, by its own lengths instead of the length word; and
 * the end of its frame. Undefined if there is no complete record.
 */
export function readRecordWithoutLength(file: SegmentFile, offset: number): Frame | undefined {
  const start = offset + WORD_BYTES;
  if (start >= file.sizeBytes) return undefined;
  // Type, checksum and length of the data are in the first bytes, which determine the record's
  // size.
  const head = file.view(start, Math.min(file.sizeBytes - start, MAX_RECORD_HEAD_BYTES));
  const record = readRecord(head, 0, head.length);
  if (!record || record.dataStart === record.dataEnd || start + record.dataEnd > file.sizeBytes)
    return undefined;
  const { type, crc, dataStart, dataEnd } = record;
  const end = start + dataEnd + ((8 - (dataEnd % 8)) % 8);
  return {
    type: type as RecordType,
    crc,
    data: file.view(start + dataStart, dataEnd - dataStart),
    end,
  };
}
