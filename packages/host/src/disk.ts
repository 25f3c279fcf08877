/**
 * The file system of a member. Paths are absolute or relative to the process and use "/". Calls
 * block unless they return a promise: a small write is cheaper than a trip through the thread pool;
 * a sync is not, so dataSync runs on a thread.
 *
 * Durable after a crash: the bytes of a file after dataSync; names (create, rename, remove) after
 * syncDir on their directory. Nothing else is guaranteed.
 */

/**
 * Why a file operation failed. "Damaged": the bytes read are not those written.
 */
export type DiskErrorCode =
  | "NotFound"
  | "Exists"
  | "NoSpace"
  | "NotPermitted"
  | "Locked"
  | "Damaged"
  | "Io";

/** An operating error of a disk, with its path. */
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

/** The result of `Disk.stat`. */
export interface FileStat {
  readonly kind: "file" | "directory";
  readonly sizeBytes: number;
}

/** An open file. Positions are byte offsets from the start. */
export interface DiskFile {
  readonly path: string;
  /**
   * Reads up to `target.length` bytes at `position`; returns the number of bytes read (0 at the
   * end).
   */
  read(target: Uint8Array, position: number): number;
  /** As `read`, without blocking the event loop. `target` must not be used before it resolves. */
  readLater(target: Uint8Array, position: number): Promise<number>;
  /**
   * Writes `chunks` one after the other from `position` on. The caller may reuse the bytes
   * afterwards.
   */
  write(chunks: readonly Uint8Array[], position: number): void;
  /**
   * Makes all earlier writes durable (fdatasync) without blocking the event loop. One call at a
   * time per file.
   */
  dataSync(): Promise<void>;
  /**
   * Makes all earlier writes durable before it returns. Returns the duration in ms, because the
   * simulated clock stands still meanwhile.
   */
  dataSyncNow(): number;
  /** Sets the size; added bytes read as zeros. */
  truncate(sizeBytes: number): void;
  /**
   * Extends the file with zeros to `sizeBytes`, with allocated blocks where the platform can, else
   * by truncate.
   */
  preallocate(sizeBytes: number): void;
  /**
   * Writes zeros from `position` on without blocking the event loop, to allocate blocks ahead.
   * Until it resolves, no write may touch that range and dataSync must not run.
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
   * Makes a directory and its parents, with `mode` (default 0o700). Does nothing if it exists.
   */
  makeDir(path: string, mode?: number): void;
  /** The names in a directory, sorted. */
  list(path: string): string[];
  /** The file or directory at `path`, or undefined. */
  stat(path: string): FileStat | undefined;
  /**
   * `read`: must exist. `write`: must exist, read and write. `create`: must not exist, read and
   * write, mode 0o600.
   */
  open(path: string, mode: "read" | "write" | "create"): DiskFile;
  /** The whole file. */
  readAll(path: string): Uint8Array;
  /**
   * Replaces the content atomically: a crash leaves the old or the new bytes. Writes a temporary
   * file, syncs it, renames it, syncs the directory.
   */
  replace(path: string, bytes: Uint8Array): void;
  rename(from: string, to: string): void;
  /** Removes a file, or a directory with its content. Does nothing if it does not exist. */
  remove(path: string): void;
  /** Makes the names in a directory durable. */
  syncDir(path: string): void;
  /**
   * Takes an exclusive lock named by `path`, held until released or until the process ends, however
   * it ends. A file of that name remains and must not be opened. Throws DiskError "Locked", which
   * names the holder if known.
   */
  lock(path: string): DiskLock;
  /** Free bytes for this user on the file system of `path`. */
  freeBytes(path: string): number;
}
