/**
 * Reads the list of a LevelDB's tables: the file CURRENT names a manifest, which is a log of
 * changes.
 *
 *   manifest   blocks of 32 KiB, of records: checksum (4 bytes, masked CRC-32C of type and
 *              content), length (2), type (1), content
 *   type       1 whole, 2 first, 3 middle, 4 last part of a change; 0 for zeros that fill a block
 *   change     tags with what belongs to them: 6 a table that is gone (level, number), 7 a new one
 *              (level, number, size, two keys)
 */
import { ByteReader, BytesDamage, maskedCrc, word } from "./bytes.ts";

const BLOCK_BYTES = 32 * 1024;
const HEAD_BYTES = 7;
const FULL = 1;
const LAST = 4;

/** Bytes of a mark behind a user's key. */
const MARK_BYTES = 8;

/** A table of the database. */
export interface LiveTable {
  readonly level: number;
  readonly sizeBytes: number;
  /** The user's keys between which its keys are, both included. */
  readonly smallest: Uint8Array;
  readonly largest: Uint8Array;
}

/** The live tables by number. An incomplete change at the end is ignored. */
export function liveTables(manifest: Uint8Array): ReadonlyMap<number, LiveTable> {
  const tables = new Map<number, LiveTable>();
  let parts: Uint8Array[] = [];
  for (let at = 0; at + HEAD_BYTES <= manifest.length; ) {
    const left = BLOCK_BYTES - (at % BLOCK_BYTES);
    const type = manifest[at + 6];
    if (left < HEAD_BYTES || type === 0) {
      at += left;
      continue;
    }
    const end = at + HEAD_BYTES + (manifest[at + 4] | (manifest[at + 5] << 8));
    if (end > manifest.length) break;
    if (type > LAST || end > at + left) throw new BytesDamage(at, "a record that makes no sense");
    if (maskedCrc(manifest, at + 6, end) !== word(manifest, at))
      throw new BytesDamage(at, "the checksum does not match");
    if (type <= 2) parts = [];
    parts.push(manifest.subarray(at + HEAD_BYTES, end));
    if (type === FULL || type === LAST) applyChange(parts, at, tables);
    at = end;
  }
  return tables;
}

function applyChange(
  parts: readonly Uint8Array[],
  offset: number,
  tables: Map<number, LiveTable>,
): void {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  const reader = new ByteReader(bytes, offset);
  while (!reader.isAtEnd) {
    const tag = reader.varint();
    if (tag === 1) reader.skipText();
    else if (tag === 2 || tag === 3 || tag === 4 || tag === 9) reader.varint();
    else if (tag === 5) {
      reader.varint();
      reader.skipText();
    } else if (tag === 6) {
      reader.varint();
      tables.delete(reader.varint());
    } else if (tag === 7) {
      const level = reader.varint();
      const number = reader.varint();
      const sizeBytes = reader.varint();
      const [smallest, largest] = [reader.text(), reader.text()].map((key) =>
        key.subarray(0, key.length - MARK_BYTES),
      );
      tables.set(number, { level, sizeBytes, smallest, largest });
    } else throw new BytesDamage(offset, `an unknown tag ${tag}`);
  }
}

/** The file of the table with this number. */
export function tablePath(directory: string, number: number): string {
  return `${directory}/${String(number).padStart(6, "0")}.ldb`;
}
