/**
 * Files as the members see them. Paths are absolute or relative to the process and use "/". Calls
 * block unless they return a promise: a small write costs less than a trip through the thread pool,
 * but a sync does not, so dataSync is the one that runs beside the loop.
 *
 * What survives a crash: bytes of a file after dataSync; names (create, rename, remove) after
 * syncDir on their folder. Nothing else is promised.
 */

/**
 * Why a file operation failed. "Damaged": the bytes were read, but they are not what was written.
 */
export type DiskErrorCode =
  | "NotFound"
  | "Exists"
  | "NoSpace"
  | "NotPermitted"
  | "Locked"
  | "Damaged"
  | "Io";

/** An operating error of a disk, with the path it happened on. */
export class DiskError extends Error {
  readonly code: DiskErrorCode;
  readonly path: string;
  constructor(code: DiskErrorCode, path: string, detail: string, cause?: unknown) {
    super(`${path}: ${detail}`, { cause });
    this.name = "DiskError";
    this.code = code;
    this.path = path;
  }
}

/** What `Disk.stat` tells. */
export interface FileStat {
  readonly kind: "file" | "directory";
  readonly sizeBytes: number;
}

/** An open file. Positions are byte offsets from the start. */
export interface DiskFile {
  readonly path: string;
  /**
   * Reads up to `target.length` bytes at `position`; returns how many there were (0 at the end).
   */
  read(target: Uint8Array, position: number): number;
  /**
   * Writes all of `chunks`, one after the other, from `position` on. The bytes may be reused when
   * it returns.
   */
  write(chunks: readonly Uint8Array[], position: number): void;
  /**
   * Makes all that was written durable (fdatasync) without blocking the loop. One at a time for
   * each file.
   */
  dataSync(): Promise<void>;
  /**
   * Makes all that was written durable before it returns, and tells how long that took, in ms: a
   * simulated disk's clock stands still meanwhile.
   */
  dataSyncNow(): number;
  /** Sets the size; what is added reads as zeros. */
  truncate(sizeBytes: number): void;
  /**
   * Reserves blocks up to `sizeBytes` and extends the file with zeros, where the platform can; else
   * extends it by truncate.
   */
  preallocate(sizeBytes: number): void;
  /**
   * Writes zeros from `position` on without blocking the loop: allocates blocks ahead of their use.
   * No write may touch that range meanwhile, and dataSync may not run before it resolves.
   */
  writeZeros(position: number, lengthBytes: number): Promise<void>;
  size(): number;
  close(): void;
}

/** A lock that this process holds on a path. */
export interface DiskLock {
  release(): void;
}

/** The file system. Every method may throw a DiskError. */
export interface Disk {
  /**
   * Makes the folder and those above it, with `mode` (0o700 unless told). Does nothing where it is
   * there already.
   */
  makeDir(path: string, mode?: number): void;
  /** Names in a folder, sorted. */
  list(path: string): string[];
  /** What stands at `path`, or undefined. */
  stat(path: string): FileStat | undefined;
  /**
   * `read`: must exist. `write`: must exist, read and write. `create`: must not exist, read and
   * write, mode 0o600.
   */
  open(path: string, mode: "read" | "write" | "create"): DiskFile;
  /** The whole file. */
  readAll(path: string): Uint8Array;
  /**
   * Replaces the file by `bytes` so that a crash leaves the old or the new content: temporary name,
   * sync, rename, sync of the folder.
   */
  replace(path: string, bytes: Uint8Array): void;
  rename(from: string, to: string): void;
  /** Removes a file, or a folder with all in it. Does nothing where nothing is. */
  remove(path: string): void;
  /** Makes the names in a folder durable. */
  syncDir(path: string): void;
  /**
   * Takes an exclusive lock named by `path`, held until released or until the process ends, however
   * it ends. A file of that name stays behind, and must not be opened by anyone. Throws DiskError
   * "Locked", naming the holder where it is known.
   */
  lock(path: string): DiskLock;
  /** Bytes free for this user on the file system of `path`. */
  freeBytes(path: string): number;
}
