/**
 * Reads one frame of a segment.
 */
import { type RecordType, WORD_BYTES } from "./format.ts";
import type { SegmentFile } from "./segment-file.ts";

/** A record that was read; whether its checksum is right is for the caller to see. */
export interface Frame {
  readonly type: RecordType;
  readonly crc: number;
  readonly data: Uint8Array;
  /** Where the next frame starts. */
  readonly end: number;
}

/** No frame: zeros from here on, or the end of the file. */
export interface NoFrame {
  readonly kind: "end";
}

/** Bytes that are no frame. */
export interface BrokenFrame {
  readonly kind: "broken";
  readonly reason: string;
  /** Where the frame ends, as its length word says, maybe beyond the file; undefined if the word is cut off or makes no sense. */
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

/** A varint of up to 64 bits at a place; `value` is exact up to 2^53. */
function varint(bytes: Uint8Array, at: number): { readonly value: number; readonly end: number } | undefined {
  let value = 0;
  let scale = 1;
  for (let i = at; i < Math.min(bytes.length, at + 10); i++) {
    value += (bytes[i] & 0x7f) * scale;
    if (bytes[i] < 0x80) return { value, end: i + 1 };
    scale *= 0x80;
  }
  return undefined;
}

/** The fields of a walpb.Record, and where it ends by its own account. */
interface RecordFields {
  readonly type: number;
  readonly crc: number;
  readonly data: Uint8Array;
  readonly end: number;
}

/**
 * Reads a walpb.Record as every writer of the format puts it: type, checksum, then data or nothing. Stricter than a protobuf decoder, which
 * would let a flipped bit in a tag pass as an unknown field.
 */
function readRecord(bytes: Uint8Array): RecordFields | undefined {
  if (bytes[0] !== 0x08) return undefined;
  const type = varint(bytes, 1);
  if (!type || bytes[type.end] !== 0x10) return undefined;
  const crc = varint(bytes, type.end + 1);
  if (!crc || crc.value > 0xffff_ffff) return undefined;
  if (bytes[crc.end] !== 0x1a) return { type: type.value, crc: crc.value, data: bytes.subarray(0, 0), end: crc.end };
  const length = varint(bytes, crc.end + 1);
  if (!length || length.end + length.value > bytes.length) return undefined;
  const end = length.end + length.value;
  return { type: type.value, crc: crc.value, data: bytes.subarray(length.end, end), end };
}

/** The frame at `offset`, a multiple of 8. */
export function readFrame(file: SegmentFile, offset: number): Frame | NoFrame | BrokenFrame {
  const left = file.sizeBytes - offset;
  if (left < WORD_BYTES)
    return file.firstNonZero(offset, file.sizeBytes) === undefined ? END : broken("the file ends inside a length word", undefined, true);
  const word = file.view(offset, WORD_BYTES);
  let length = 0;
  for (let i = 6; i >= 0; i--) length = length * 0x100 + word[i];
  const top = word[7];
  if (length === 0 && top === 0) return END;
  const padBytes = top & 0x7f;
  const isPlausible = length > 0 && (top === 0 ? length % 8 === 0 : top > 0x80 && padBytes < 8 && (length + padBytes) % 8 === 0);
  if (!isPlausible) return broken("the length word makes no sense");
  const end = offset + WORD_BYTES + length + padBytes;
  if (end > file.sizeBytes) return broken("the record runs past the end of the file", end, true);
  const body = file.view(offset + WORD_BYTES, length + padBytes);
  const record = readRecord(body.subarray(0, length));
  if (!record || record.end !== length) return broken("the record cannot be decoded", end);
  if (record.type < 1 || record.type > 5) return broken(`the record has an unknown type ${record.type}`, end);
  for (let i = length; i < body.length; i++) {
    if (body[i] !== 0) return broken("the padding is not zero", end);
  }
  return { type: record.type as RecordType, crc: record.crc, data: record.data, end };
}

/**
 * The record that stands behind the length word at `offset`, by its own lengths, whatever the length word says; and where its frame ends.
 * Undefined if there is none in full.
 */
export function readRecordWithoutLength(file: SegmentFile, offset: number): Frame | undefined {
  const start = offset + WORD_BYTES;
  if (start >= file.sizeBytes) return undefined;
  // Type, checksum and length of the data stand in the first bytes; they tell how many more there are.
  const head = file.view(start, Math.min(file.sizeBytes - start, MAX_RECORD_HEAD_BYTES));
  if (head[0] !== 0x08) return undefined;
  const type = varint(head, 1);
  const crc = type && head[type.end] === 0x10 ? varint(head, type.end + 1) : undefined;
  const length = crc && head[crc.end] === 0x1a ? varint(head, crc.end + 1) : undefined;
  if (!type || !crc || !length || start + length.end + length.value > file.sizeBytes) return undefined;
  const recordBytes = length.end + length.value;
  const end = start + recordBytes + ((8 - (recordBytes % 8)) % 8);
  return { type: type.value as RecordType, crc: crc.value, data: file.view(start + length.end, length.value), end };
}
