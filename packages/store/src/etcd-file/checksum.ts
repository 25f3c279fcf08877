/** The SHA-256 at the end of a snapshot file. A database copied from a data directory has none. */
import { sha256 } from "@noble/hashes/sha2.js";
import type { Disk } from "@quorate/host";
import { equals, toHex } from "@quorate/proto";
import { CHECKSUM_BYTES } from "./export.ts";
import { EtcdFileError } from "./schema.ts";

/**
 * Database pages are multiples of this size, so a remainder shows that there is a checksum (etcd's
 * rule).
 */
const SECTOR_BYTES = 512;
const READ_BYTES = 1 << 20;

/** Whether a file of that size ends with a checksum. */
export function hasChecksum(sizeBytes: number): boolean {
  return sizeBytes % SECTOR_BYTES === CHECKSUM_BYTES;
}

/**
 * Compares a file with the checksum at its end. Blocks while it reads. @param onProgress called
 * with the bytes read so far @throws EtcdFileError if the checksum is missing or wrong; DiskError
 */
export function verifyChecksum(
  disk: Disk,
  path: string,
  onProgress: (bytes: number) => void = () => {},
): void {
  const file = disk.open(path, "read");
  try {
    const sizeBytes = file.size();
    if (!hasChecksum(sizeBytes)) {
      throw new EtcdFileError(
        path,
        `it has ${sizeBytes} bytes, and a snapshot ends with 32 bytes of SHA-256 after whole pages: it was cut short, or it is a ` +
          "database copied from a data directory, which needs --skip-hash-check (snapshot missing hash but --skip-hash-check=false)",
      );
    }
    const hash = sha256.create();
    const buffer = new Uint8Array(READ_BYTES);
    const databaseBytes = sizeBytes - CHECKSUM_BYTES;
    for (let at = 0; at < databaseBytes; ) {
      const read = file.read(buffer.subarray(0, Math.min(READ_BYTES, databaseBytes - at)), at);
      if (read === 0)
        throw new EtcdFileError(path, `it became shorter while it was read: byte ${at} is missing`);
      hash.update(buffer.subarray(0, read));
      at += read;
      onProgress(at);
    }
    const expected = new Uint8Array(CHECKSUM_BYTES);
    file.read(expected, databaseBytes);
    const found = hash.digest();
    if (!equals(expected, found)) {
      throw new EtcdFileError(
        path,
        `its bytes were changed, or the checksum at byte ${databaseBytes}`,
        `expected sha256 ${toHex(expected)}, got ${toHex(found)}`,
      );
    }
  } finally {
    file.close();
  }
}
