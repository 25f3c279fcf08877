/**
 * The whole state as a stream of bytes, for a member that is too far behind for the log.
 *
 *     "QRMSNAP1"                                              8 bytes
 *     frame*                                                  records in key order, about 256 KiB a
 *                                                             frame
 *         length of the payload   u32 (more than 0)
 *         payload                 { key length u32, value length u32, key, value }*
 *         CRC-32C of the payload  u32
 *     end
 *         0                       u32
 *         number of records       u64
 *         rolling CRC-32C         u32, over the CRCs of all frames
 *
 * Integers are big-endian. The records are the backend's own, bucket byte included; the position
 * (index, term, configuration) is among them, in the bucket meta.
 */
import type { Keyspace, KeyspaceRecord, KeyspaceWrite } from "@quorate/host";
import {
  CodedError,
  concat,
  crc32c,
  fromUtf8,
  readBigU64BE,
  readU32BE,
  toUtf8,
  writeU32BE,
  writeU64BE,
} from "@quorate/proto";

const MAGIC = fromUtf8("QRMSNAP1");
/**
 * Maximum length of a frame: a record is at most as large as a request, and a frame ends once it is
 * over its size.
 */
const MAX_FRAME_BYTES = 1024 * 1024 * 1024;
/** Records are written into the new keyspace in batches of about this size. */
const BATCH_BYTES = 4 * 1024 * 1024;

/** A stream that is cut short or damaged. */
export class SnapshotStreamError extends CodedError<"BadSnapshotStream"> {
  /** Bytes of the stream that were read before the fault. */
  readonly offset: number;
  constructor(offset: number, problem: string) {
    super(
      "SnapshotStreamError",
      "BadSnapshotStream",
      `snapshot stream at offset ${offset}: ${problem}`,
    );
    this.offset = offset;
  }
}

function u32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  writeU32BE(bytes, value, 0);
  return bytes;
}

function encodeFrame(records: readonly KeyspaceRecord[]): { chunks: Uint8Array[]; crc: number } {
  const parts: Uint8Array[] = [];
  for (const [key, value] of records) {
    const head = new Uint8Array(8);
    writeU32BE(head, key.length, 0);
    writeU32BE(head, value.length, 4);
    parts.push(head, key, value);
  }
  const payload = concat(parts);
  const crc = crc32c(0, payload);
  return { chunks: [u32(payload.length), payload, u32(crc)], crc };
}

/** The stream of these records, which must be in key order. */
export async function* encodeSnapshot(
  slices: AsyncIterable<KeyspaceRecord[]>,
): AsyncGenerator<Uint8Array> {
  yield MAGIC;
  let count = 0;
  let rolling = 0;
  for await (const records of slices) {
    if (records.length === 0) continue;
    const frame = encodeFrame(records);
    count += records.length;
    rolling = crc32c(rolling, u32(frame.crc));
    yield concat(frame.chunks);
  }
  const end = new Uint8Array(16);
  writeU64BE(end, count, 4);
  writeU32BE(end, rolling, 12);
  yield end;
}

/** Reads exact numbers of bytes from chunks of any size. */
class ByteReader {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  offset = 0;

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  async take(sizeBytes: number): Promise<Uint8Array> {
    while (this.#waitingBytes < sizeBytes) {
      const next = await this.#chunks.next();
      if (next.done === true) {
        throw new SnapshotStreamError(
          this.offset,
          `it ends ${sizeBytes - this.#waitingBytes} bytes before what was announced`,
        );
      }
      this.#waiting.push(next.value);
      this.#waitingBytes += next.value.length;
    }
    const [first, ...others] = this.#waiting;
    const all = first !== undefined && others.length === 0 ? first : concat(this.#waiting);
    this.#waiting = [all.subarray(sizeBytes)];
    this.#waitingBytes -= sizeBytes;
    this.offset += sizeBytes;
    return all.subarray(0, sizeBytes);
  }

  async expectEnd(): Promise<void> {
    const next = this.#waitingBytes > 0 ? { done: false } : await this.#chunks.next();
    if (next.done !== true) throw new SnapshotStreamError(this.offset, "bytes follow its end");
  }
}

/**
 * Writes the records of a stream into an empty keyspace; all of them are durable when it resolves.
 * Returns the length of the stream in bytes. Throws SnapshotStreamError. @param progress called
 * with the bytes read so far, after each batch
 */
export async function decodeSnapshot(
  chunks: AsyncIterable<Uint8Array>,
  keyspace: Keyspace,
  progress: (bytes: number) => void = () => {},
): Promise<number> {
  const reader = new ByteReader(chunks);
  if (toUtf8(await reader.take(MAGIC.length)) !== toUtf8(MAGIC))
    throw new SnapshotStreamError(0, "it is not a snapshot of the store");
  let count = 0;
  let rolling = 0;
  let batch: KeyspaceWrite[] = [];
  let batchBytes = 0;
  for (;;) {
    const length = readU32BE(await reader.take(4), 0);
    if (length === 0) break;
    if (length > MAX_FRAME_BYTES)
      throw new SnapshotStreamError(reader.offset, `a frame of ${length} bytes is too long`);
    const payload = await reader.take(length);
    const crc = crc32c(0, payload);
    if (readU32BE(await reader.take(4), 0) !== crc)
      throw new SnapshotStreamError(reader.offset, "the checksum of a frame does not match");
    rolling = crc32c(rolling, u32(crc));
    for (let at = 0; at < length; count++) {
      if (at + 8 > length) throw new SnapshotStreamError(reader.offset, "a record is cut short");
      const keyEnd = at + 8 + readU32BE(payload, at);
      const valueEnd = keyEnd + readU32BE(payload, at + 4);
      if (valueEnd > length) throw new SnapshotStreamError(reader.offset, "a record is cut short");
      batch.push({
        key: payload.subarray(at + 8, keyEnd),
        value: payload.subarray(keyEnd, valueEnd),
      });
      at = valueEnd;
    }
    batchBytes += length;
    if (batchBytes >= BATCH_BYTES) {
      await keyspace.write(batch);
      batch = [];
      batchBytes = 0;
      progress(reader.offset);
    }
  }
  const end = await reader.take(12);
  const announced = readBigU64BE(end);
  if (announced !== BigInt(count))
    throw new SnapshotStreamError(reader.offset, `it says ${announced} records and had ${count}`);
  if (readU32BE(end, 8) !== rolling)
    throw new SnapshotStreamError(reader.offset, "the checksum over all frames does not match");
  await reader.expectEnd();
  if (batch.length > 0) await keyspace.write(batch);
  progress(reader.offset);
  return reader.offset;
}
