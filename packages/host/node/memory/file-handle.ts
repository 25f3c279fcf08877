/** Open files of a MemoryDisk. */
import { DiskError, type DiskFile } from "../../src/disk.ts";
import { type MemoryFileContent, SECTOR_BYTES } from "./file.ts";

/** An operation that a fault hook may fail. */
export interface DiskOperation {
  readonly kind:
    | "open"
    | "read"
    | "write"
    | "sync"
    | "resize"
    | "rename"
    | "remove"
    | "list"
    | "makeDir"
    | "syncDir";
  readonly path: string;
  /** Of a read or a write. */
  readonly position?: number;
  readonly lengthBytes?: number;
}

/** The services of a MemoryDisk for its open files. */
export interface MemoryFileDisk {
  /** Whether syncs of a path lie (MemoryDisk.lies). */
  readonly lies: ((path: string, from: number | undefined) => boolean) | undefined;
  /** The number of the present process. */
  process(): number;
  /** Reserves space. Returns how many of `wantedBytes` are available. */
  reserve(wantedBytes: number): number;
  /** The opposite of reserve. */
  release(bytes: number): void;
  /** Calls the fault hook. Returns the error of the operation, if it is to fail. */
  faultOf(operation: DiskOperation): unknown;
  /** The duration of a sync that starts now, in ms. */
  nextSyncMs(): number;
  /** Calls `done` when a sync that starts now ends, unless the process has died by then. */
  afterSync(done: () => void): void;
}

/**
 * The bytes of a failed write that remain: up to the end of a sector, since the kernel writes by
 * pages.
 */
function wholeSectors(position: number, lengthBytes: number): number {
  const end = position + lengthBytes;
  return Math.max(0, end - (end % SECTOR_BYTES) - position);
}

/** An open file of a MemoryDisk. */
export class MemoryFile implements DiskFile {
  readonly path: string;
  readonly #disk: MemoryFileDisk;
  readonly #content: MemoryFileContent;
  readonly #writable: boolean;
  readonly #process: number;
  #closed = false;
  #busyWith: string | undefined;

  constructor(disk: MemoryFileDisk, path: string, content: MemoryFileContent, writable: boolean) {
    this.#disk = disk;
    this.path = path;
    this.#content = content;
    this.#writable = writable;
    this.#process = disk.process();
  }

  read(target: Uint8Array, position: number): number {
    this.#check({ kind: "read", path: this.path, position, lengthBytes: target.length });
    return this.#content.read(target, position);
  }

  async readLater(target: Uint8Array, position: number): Promise<number> {
    return this.read(target, position);
  }

  write(chunks: readonly Uint8Array[], position: number): void {
    this.#checkWritable();
    let lengthBytes = 0;
    for (const chunk of chunks) lengthBytes += chunk.length;
    let error = this.#disk.faultOf({ kind: "write", path: this.path, position, lengthBytes });
    // The hook made the machine crash: its result is decided, and a dead process writes no more.
    if (this.#process !== this.#disk.process())
      throw error ?? new DiskError("Io", this.path, "the process that opened the file is dead");
    let allowedBytes = error ? wholeSectors(position, lengthBytes >> 1) : lengthBytes;
    const growthBytes = Math.max(0, position + allowedBytes - this.#content.sizeBytes);
    const granted = this.#disk.reserve(growthBytes);
    if (granted < growthBytes) {
      allowedBytes = wholeSectors(position, allowedBytes - (growthBytes - granted));
      this.#disk.release(granted - Math.max(0, position + allowedBytes - this.#content.sizeBytes));
      error ??= new DiskError("NoSpace", this.path, "no space left on the disk");
    }
    let at = position;
    for (const chunk of chunks) {
      const part = chunk.subarray(0, Math.max(0, position + allowedBytes - at));
      this.#content.write(part, at);
      at += part.length;
    }
    if (error) throw error;
  }

  dataSync(): Promise<void> {
    this.#start("dataSync");
    this.#content.beginSync();
    return new Promise((resolve, reject) => {
      this.#disk.afterSync(() => {
        this.#busyWith = undefined;
        const error = this.#disk.faultOf({ kind: "sync", path: this.path });
        if (error) {
          this.#content.failSync();
          reject(error);
        } else {
          this.#endSync();
          resolve();
        }
      });
    });
  }

  dataSyncNow(): number {
    this.#checkOpen();
    const error = this.#disk.faultOf({ kind: "sync", path: this.path });
    if (error) {
      this.#content.beginSync();
      this.#content.failSync();
      throw error;
    }
    if (!this.#isLie()) this.#content.syncNow();
    return this.#disk.nextSyncMs();
  }

  #endSync(): void {
    if (this.#isLie()) this.#content.dropSync();
    else this.#content.completeSync();
  }

  #isLie(): boolean {
    const { lies } = this.#disk;
    return lies?.(this.path, this.#content.firstUnsynced) === true;
  }

  truncate(sizeBytes: number): void {
    this.#checkWritable();
    this.#check({ kind: "resize", path: this.path });
    this.#grow(sizeBytes - this.#content.sizeBytes);
    this.#content.resize(sizeBytes);
  }

  preallocate(sizeBytes: number): void {
    this.#checkWritable();
    this.#check({ kind: "resize", path: this.path });
    if (sizeBytes > this.#content.sizeBytes) {
      this.#grow(sizeBytes - this.#content.sizeBytes);
      this.#content.resize(sizeBytes);
    }
    this.dataSyncNow();
  }

  writeZeros(position: number, lengthBytes: number): Promise<void> {
    this.#checkWritable();
    this.#start("writeZeros");
    return new Promise((resolve, reject) => {
      this.#disk.afterSync(() => {
        this.#busyWith = undefined;
        try {
          this.#check({ kind: "write", path: this.path, position, lengthBytes });
          this.#grow(Math.max(0, position + lengthBytes - this.#content.sizeBytes));
          this.#content.writeZeros(position, lengthBytes);
          resolve();
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  size(): number {
    this.#checkOpen();
    return this.#content.sizeBytes;
  }

  close(): void {
    if (this.#busyWith && this.#process === this.#disk.process())
      throw new Error(`${this.path}: closed during ${this.#busyWith}`);
    this.#closed = true;
  }

  #start(what: string): void {
    this.#checkOpen();
    if (this.#busyWith) throw new Error(`${this.path}: ${what} during ${this.#busyWith}`);
    this.#busyWith = what;
  }

  /** Accounts for a change of the size; a negative one releases space. */
  #grow(byBytes: number): void {
    if (byBytes <= 0) {
      this.#disk.release(-byBytes);
      return;
    }
    const granted = this.#disk.reserve(byBytes);
    if (granted === byBytes) return;
    this.#disk.release(granted);
    throw new DiskError("NoSpace", this.path, "no space left on the disk");
  }

  #check(operation: DiskOperation): void {
    this.#checkOpen();
    const error = this.#disk.faultOf(operation);
    if (error) throw error;
  }

  #checkWritable(): void {
    this.#checkOpen();
    if (!this.#writable) throw new DiskError("NotPermitted", this.path, "opened for reading");
  }

  #checkOpen(): void {
    if (this.#closed) throw new DiskError("Io", this.path, "the file is closed");
    if (this.#process !== this.#disk.process())
      throw new DiskError("Io", this.path, "the process that opened the file is dead");
  }
}
