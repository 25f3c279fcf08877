/**
 * Verifies one of LevelDB's tables, block by block. Reads do not compare the blocks' checksums (the
 * binding has no option for it), so a byte that changed on disk could pass for data.
 *
 *   table    blocks of records, a block of the filter, a block that names the filter, the index, a
 *            foot of 48 bytes
 *   block    content, maybe compressed; a byte that says whether; masked CRC-32C of both (4)
 *   index    records whose values are the handles of the data blocks; restart points, not needed
 *            here, are at the end
 *   foot     handle of the filter's name block, handle of the index, zeros, a magic number (8)
 *   handle   offset and length of the content, two varints
 */
import { ByteReader, BytesDamage, maskedCrc, word } from "./bytes.ts";
import { uncompress } from "./snappy.ts";

export const FOOT_BYTES = 48;
/** Whether a block is compressed, and its checksum, behind the block. */
export const TRAILER_BYTES = 5;
const MAGIC = [0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb];
const COMPRESSED = 1;
/** No index of a table is near this size: a table has 2 MiB, or one large record. */
const MAX_INDEX_BYTES = 256 << 20;

export interface BlockHandle {
  readonly offset: number;
  readonly length: number;
}

/**
 * Verifies the checksums of all blocks; returns their number. Throws BytesDamage for the first
 * damaged one.
 */
export function checkTable(bytes: Uint8Array): number {
  const foot = bytes.length - FOOT_BYTES;
  if (foot < 0) throw new BytesDamage(0, "the file is too short for a table");
  if (MAGIC.some((byte, i) => bytes[bytes.length - 8 + i] !== byte))
    throw new BytesDamage(bytes.length - 8, "the foot is not a table's");
  const reader = new ByteReader(bytes, 0, foot, bytes.length - 8);
  const [names, index] = [handleAt(reader), handleAt(reader)];
  const others = [
    ...handlesIn(content(bytes, names), names),
    ...handlesIn(content(bytes, index), index),
  ];
  for (const handle of others) checkBlock(bytes, handle);
  return others.length + 2;
}

/** The handle at a reader's place. */
export function handleAt(reader: ByteReader): BlockHandle {
  return { offset: reader.varint(), length: reader.varint() };
}

function checkBlock(bytes: Uint8Array, { offset, length }: BlockHandle): void {
  const end = offset + length;
  if (end + TRAILER_BYTES > bytes.length)
    throw new BytesDamage(offset, "a block reaches beyond the end");
  if (maskedCrc(bytes, offset, end + 1) !== word(bytes, end + 1))
    throw new BytesDamage(offset, "the checksum of a block does not match");
}

function content(bytes: Uint8Array, handle: BlockHandle): Uint8Array {
  checkBlock(bytes, handle);
  const raw = bytes.subarray(handle.offset, handle.offset + handle.length);
  if (bytes[handle.offset + handle.length] !== COMPRESSED) return raw;
  const plain = uncompress(raw, MAX_INDEX_BYTES);
  if (plain === undefined) throw new BytesDamage(handle.offset, "a block cannot be uncompressed");
  return plain;
}

/** The values of a block's records; each is a handle. */
function handlesIn(block: Uint8Array, { offset }: BlockHandle): BlockHandle[] {
  const end = block.length < 4 ? -1 : block.length - 4 - 4 * word(block, block.length - 4);
  if (end < 0) throw new BytesDamage(offset, "a block is too short");
  const reader = new ByteReader(block, offset, 0, end);
  const handles: BlockHandle[] = [];
  while (!reader.isAtEnd) {
    reader.varint();
    const keyBytes = reader.varint();
    const next = reader.varint();
    reader.skip(keyBytes);
    const valueAt = reader.at;
    handles.push(handleAt(reader));
    reader.at = valueAt;
    reader.skip(next);
  }
  return handles;
}
