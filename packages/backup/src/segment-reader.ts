/**
 * Reading a segment from front to back, one record in memory. The end that a crash has torn is passed over: bytes that no record fits into,
 * a last record whose checksum does not match, or nothing but zeros. Anything else that is broken is damage.
 */
import type { Disk, DiskFile } from "@quorate/host";
import { crc32c, readU32BE, toUtf8 } from "@quorate/proto";
import { BackupError } from "./errors.ts";
import { type BackupRecord, decodeRecord, MAGIC, MAX_RECORD_BYTES, RECORD_HEAD_BYTES } from "./format.ts";

const ZERO_CHECK_BYTES = 64 * 1024;

/**
 * The records of a segment in order; nothing for one that was torn before its head was whole.
 * @throws BackupError with the place of the damage; DiskError
 */
export function* readSegment(disk: Disk, path: string): Generator<BackupRecord> {
  const file = disk.open(path, "read");
  try {
    yield* recordsOf(file, path);
  } finally {
    file.close();
  }
}

function* recordsOf(file: DiskFile, path: string): Generator<BackupRecord> {
  const sizeBytes = file.size();
  const damaged = (offset: number, problem: string): never => {
    throw new BackupError(path, `damaged at byte ${offset}: ${problem}`);
  };
  if (sizeBytes < MAGIC.length + RECORD_HEAD_BYTES || isZero(file, 0, sizeBytes)) return;
  if (toUtf8(read(file, 0, MAGIC.length)) !== MAGIC) damaged(0, `a segment of a backup begins with ${MAGIC}`);
  let isFirst = true;
  for (let at = MAGIC.length; at < sizeBytes; ) {
    if (at + RECORD_HEAD_BYTES > sizeBytes) return;
    const head = read(file, at, RECORD_HEAD_BYTES);
    const lengthBytes = readU32BE(head, 0);
    const end = at + RECORD_HEAD_BYTES + lengthBytes;
    if (lengthBytes > MAX_RECORD_BYTES) {
      if (isZero(file, at, sizeBytes)) return;
      damaged(at, `a record of ${lengthBytes} bytes is too long`);
    }
    if (end > sizeBytes) return;
    const payload = read(file, at + RECORD_HEAD_BYTES, lengthBytes);
    if (crc32c(crc32c(0, head, 8), payload) !== readU32BE(head, 4)) {
      if (end === sizeBytes || isZero(file, at, sizeBytes)) return;
      damaged(at, "the checksum of a record does not match, and others follow it");
    }
    let record: BackupRecord;
    try {
      record = decodeRecord(head[8]!, payload);
    } catch (error) {
      if (error instanceof RangeError) return damaged(at, error.message);
      throw error;
    }
    if (isFirst !== (record.kind === "head")) damaged(at, isFirst ? "a segment begins with a head" : "a head stands in the middle");
    isFirst = false;
    yield record;
    at = end;
  }
}

function read(file: DiskFile, offset: number, sizeBytes: number): Uint8Array {
  const bytes = new Uint8Array(sizeBytes);
  for (let done = 0; done < sizeBytes; ) {
    const count = file.read(bytes.subarray(done), offset + done);
    if (count === 0) throw new BackupError(file.path, `it became shorter while it was read: byte ${offset + done} is missing`);
    done += count;
  }
  return bytes;
}

function isZero(file: DiskFile, from: number, to: number): boolean {
  for (let at = from; at < to; at += ZERO_CHECK_BYTES) {
    if (read(file, at, Math.min(ZERO_CHECK_BYTES, to - at)).some((byte) => byte !== 0)) return false;
  }
  return true;
}
