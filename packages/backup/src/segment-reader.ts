/**
 * Reads a segment sequentially, with one record in memory. It skips an end torn by a crash, which
 * is everything from the first broken record on, since unsynced sectors reach the disk in any
 * order. A broken record that was synced is damage.
 */
import type { Disk, DiskFile } from "@quorate/host";
import { crc32c, defined, KeyValue, readU32BE, toUtf8, WireError } from "@quorate/proto";
import { BackupError } from "./errors.ts";
import {
  type BackupRecord,
  decodeRecord,
  Kind,
  MAGIC,
  MAX_RECORD_BYTES,
  RECORD_HEAD_BYTES,
  SYNCED_BYTES,
} from "./format.ts";

/** Bytes that are looked through at a time. */
const SCAN_BYTES = 64 * 1024;

/**
 * The records of a segment in order; none if it was torn before its head was complete.
 * @throws BackupError with the offset of the damage; DiskError
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
    throw new BackupError(
      "Damaged",
      path,
      `damaged at byte ${offset}: ${problem}; keep a copy of it elsewhere and cut it there ("truncate -s ${offset} ${path}"): ` +
        `the changes before that byte can be rebuilt, and "quorateutl backup list" shows the rest`,
    );
  };
  if (sizeBytes < MAGIC.length) return;
  if (toUtf8(read(file, 0, MAGIC.length)) !== MAGIC) {
    // A crash during the creation of a segment leaves a file of zeros.
    if (isZero(file, sizeBytes)) return;
    damaged(0, `a segment of a backup begins with ${MAGIC}`);
  }
  let isFirst = true;
  let last = 0;
  for (let at = MAGIC.length; at < sizeBytes; ) {
    const found = recordAt(file, at, sizeBytes);
    if (found === undefined) {
      if (!wasSynced(file, at, sizeBytes)) return;
      return damaged(at, "a record's length or checksum is wrong, and it had been synced");
    }
    const { kind, payload, end } = found;
    const record = decoded(kind, payload);
    if (record instanceof RangeError) return damaged(at, record.message);
    if (isFirst !== (record.kind === "head"))
      damaged(at, isFirst ? "a segment begins with a head" : "a head stands in the middle");
    isFirst = false;
    if (record.kind === "head") last = record.revision;
    if (record.kind === "changes") {
      if (record.revision !== last + 1)
        return damaged(
          at,
          `revision ${record.revision} follows ${last}, and the changes between are missing`,
        );
      last = record.revision;
    }
    yield record;
    at = end;
  }
}

function isZero(file: DiskFile, sizeBytes: number): boolean {
  for (let at = 0; at < sizeBytes; at += SCAN_BYTES) {
    const chunk = read(file, at, Math.min(SCAN_BYTES, sizeBytes - at));
    if (chunk.some((byte) => byte !== 0)) return false;
  }
  return true;
}

function read(file: DiskFile, offset: number, sizeBytes: number): Uint8Array {
  const bytes = new Uint8Array(sizeBytes);
  for (let done = 0; done < sizeBytes; ) {
    const count = file.read(bytes.subarray(done), offset + done);
    if (count === 0)
      throw new BackupError(
        "Damaged",
        file.path,
        `it was truncated while it was read: byte ${offset + done} is missing`,
      );
    done += count;
  }
  return bytes;
}

/** The complete record at an offset; undefined if there is none. */
function recordAt(
  file: DiskFile,
  at: number,
  sizeBytes: number,
): { kind: number; payload: Uint8Array; end: number } | undefined {
  if (at + RECORD_HEAD_BYTES > sizeBytes) return undefined;
  const head = read(file, at, RECORD_HEAD_BYTES);
  const lengthBytes = readU32BE(head, 0);
  const end = at + RECORD_HEAD_BYTES + lengthBytes;
  if (lengthBytes > MAX_RECORD_BYTES || end > sizeBytes) return undefined;
  const payload = read(file, at + RECORD_HEAD_BYTES, lengthBytes);
  if (crc32c(crc32c(0, head, 8), payload) !== readU32BE(head, 4)) return undefined;
  return { kind: defined(head[8], "the kind of a record"), payload, end };
}

/** A record, or what is wrong with it: its checksum is right, its content need not be. */
function decoded(kind: number, payload: Uint8Array): BackupRecord | RangeError {
  try {
    const record = decodeRecord(kind, payload);
    if (record.kind === "changes") checkChanges(record);
    return record;
  } catch (error) {
    if (error instanceof RangeError) return error;
    if (error instanceof WireError) return new RangeError(error.message);
    throw error;
  }
}

/** @throws RangeError, WireError for a change that a store would not have made */
function checkChanges({ revision, changes }: BackupRecord & { kind: "changes" }): void {
  for (const { deleted, record } of changes) {
    const { key, modRevision } = KeyValue.decode(record);
    if (key.length === 0) throw new RangeError("a change has no key");
    if (!deleted && modRevision !== revision)
      throw new RangeError(`a change of revision ${modRevision} is in revision ${revision}`);
  }
}

/**
 * Whether a "synced" record behind `at` covers it. Few offsets look like one, so few checksums are
 * computed.
 */
function wasSynced(file: DiskFile, at: number, sizeBytes: number): boolean {
  const from = at + 1;
  for (let chunkAt = from; chunkAt + RECORD_HEAD_BYTES <= sizeBytes; chunkAt += SCAN_BYTES) {
    const chunk = read(
      file,
      chunkAt,
      Math.min(SCAN_BYTES + RECORD_HEAD_BYTES - 1, sizeBytes - chunkAt),
    );
    for (let i = 0; i + RECORD_HEAD_BYTES <= chunk.length; i++) {
      if (chunk[i + 8] !== Kind.synced || readU32BE(chunk, i) !== SYNCED_BYTES) continue;
      const found = recordAt(file, chunkAt + i, sizeBytes);
      if (found === undefined) continue;
      const record = decoded(found.kind, found.payload);
      if (record instanceof RangeError) continue;
      if (record.kind === "synced" && record.offset > at) return true;
    }
  }
  return false;
}
