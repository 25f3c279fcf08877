/**
 * A member's disk and keyspaces as one process of it sees them: when the process is dead, so is its
 * view.
 */
import {
  type Disk,
  DiskError,
  type DiskFile,
  type DiskLock,
  type FileStat,
  type Keyspace,
  type KeyspaceOpener,
  type KeyspaceWrite,
  keptWrite,
} from "@quorate/host";
import type { Process } from "./base/scheduler.ts";

/** Changes to what a process sees of its files, for planted bugs. */
export interface DiskTwist {
  file?(file: DiskFile): DiskFile;
  batch?(batch: readonly KeyspaceWrite[]): readonly KeyspaceWrite[];
}

export class ProcessDisk implements Disk {
  readonly #disk: Disk;
  readonly #process: Process;
  readonly #twist: DiskTwist;

  constructor(disk: Disk, process: Process, twist: DiskTwist = {}) {
    this.#disk = disk;
    this.#process = process;
    this.#twist = twist;
  }

  #live(path: string): Disk {
    if (!this.#process.alive) throw new DiskError("Io", path, "the process is dead");
    return this.#disk;
  }

  makeDir(path: string, mode?: number): void {
    this.#live(path).makeDir(path, mode);
  }

  list(path: string): string[] {
    return this.#live(path).list(path);
  }

  stat(path: string): FileStat | undefined {
    return this.#live(path).stat(path);
  }

  open(path: string, mode: "read" | "write" | "create"): DiskFile {
    const file = this.#live(path).open(path, mode);
    return this.#twist.file?.(file) ?? file;
  }

  readAll(path: string): Uint8Array {
    return this.#live(path).readAll(path);
  }

  replace(path: string, bytes: Uint8Array): void {
    this.#live(path).replace(path, bytes);
  }

  rename(from: string, to: string): void {
    this.#live(from).rename(from, to);
  }

  remove(path: string): void {
    this.#live(path).remove(path);
  }

  syncDir(path: string): void {
    this.#live(path).syncDir(path);
  }

  lock(path: string): DiskLock {
    return this.#live(path).lock(path);
  }

  freeBytes(path: string): number {
    return this.#live(path).freeBytes(path);
  }
}

export class ProcessKeyspaces implements KeyspaceOpener {
  readonly #opener: KeyspaceOpener;
  readonly #process: Process;
  readonly #twist: DiskTwist;

  constructor(opener: KeyspaceOpener, process: Process, twist: DiskTwist = {}) {
    this.#opener = opener;
    this.#process = process;
    this.#twist = twist;
  }

  async open(path: string, options: { create: boolean }): Promise<Keyspace> {
    if (!this.#process.alive) throw new DiskError("Io", path, "the process is dead");
    const keyspace = await this.#opener.open(path, options);
    const { batch: twist } = this.#twist;
    if (twist === undefined) return keyspace;
    return {
      get: (key) => keyspace.get(key),
      getMany: (keys) => keyspace.getMany(keys),
      write: (batch) => keyspace.write(twist(Array.from(batch, keptWrite))),
      scan: (range, scanOptions) => keyspace.scan(range, scanOptions),
      snapshot: () => keyspace.snapshot(),
      compact: (range) => keyspace.compact(range),
      settle: () => keyspace.settle(),
      sizeOnDiskBytes: () => keyspace.sizeOnDiskBytes(),
      close: () => keyspace.close(),
    };
  }
}
