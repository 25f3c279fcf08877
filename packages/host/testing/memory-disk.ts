/**
 * A disk in memory that loses what a real one may lose.
 *
 * A crash keeps of each file what memory-file.ts says, and of each folder the names as they were
 * after some prefix of the changes made since its last syncDir (file systems bring changes of names
 * down in order, but nobody knows how far they came). A rename within a folder is one change; from
 * one folder to another it is two. A folder whose own name is lost takes all in it along.
 */
import type { Clock } from "../src/clock.ts";
import {
  type Disk,
  DiskError,
  type DiskErrorCode,
  type DiskFile,
  type DiskLock,
  type FileStat,
} from "../src/disk.ts";
import type { Random } from "../src/random.ts";
import { MemoryFileContent, SECTOR_BYTES } from "./memory-file.ts";

/** What a fault hook is asked about. */
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

export interface MemoryDiskOptions {
  /** Times the syncs; without one they end in a microtask. */
  readonly clock?: Clock;
  /** How long a dataSync takes; 0 unless told. */
  readonly syncDelayMs?: () => number;
  /** Writes beyond this fail with NoSpace; no limit unless told. */
  readonly capacityBytes?: number;
}

class Folder {
  entries = new Map<string, Folder | MemoryFileContent>();
  readonly #durable = new Map<string, Folder | MemoryFileContent>();
  #changes: (readonly [name: string, node: Folder | MemoryFileContent | undefined])[][] = [];

  change(...changes: [name: string, node: Folder | MemoryFileContent | undefined][]): void {
    this.#changes.push(changes);
    for (const [name, node] of changes) put(this.entries, name, node);
  }

  /**
   * Costs what the changes since the last sync cost, not what the folder holds: a log may have
   * thousands of segments.
   */
  sync(): void {
    this.#makeDurable(this.#changes.length);
    this.#changes = [];
  }

  /** Leaves the names that the crash spares, durable from now on. */
  crash(random: Random): void {
    this.#makeDurable(random.below(this.#changes.length + 1));
    this.#changes = [];
    this.entries = new Map(this.#durable);
  }

  #makeDurable(count: number): void {
    for (const changes of this.#changes.slice(0, count)) {
      for (const [name, node] of changes) put(this.#durable, name, node);
    }
  }
}

function put(
  map: Map<string, Folder | MemoryFileContent>,
  name: string,
  node: Folder | MemoryFileContent | undefined,
): void {
  if (node) map.set(name, node);
  else map.delete(name);
}

function split(path: string): string[] {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return parts;
}

/** A Disk of its own, empty but for the root folder. */
export class MemoryDisk implements Disk {
  /**
   * Asked before each operation; a code makes it fail, and so does an error that the hook throws. A
   * failing write leaves its first half, to the end of a sector, unless the hook made the disk
   * crash; a failing sync loses what it covered.
   */
  fault: ((operation: DiskOperation) => DiskErrorCode | undefined) | undefined;
  capacityBytes: number;
  readonly #clock: Clock | undefined;
  readonly #syncDelayMs: () => number;
  readonly #root = new Folder();
  readonly #locks = new Set<string>();
  readonly #crashListeners = new Set<(random: Random) => void>();
  /** Counts processes: what an earlier one opened is dead. */
  #process = 0;
  #usedBytes = 0;

  constructor(options: MemoryDiskOptions = {}) {
    this.#clock = options.clock;
    this.#syncDelayMs = options.syncDelayMs ?? (() => 0);
    this.capacityBytes = options.capacityBytes ?? Number.POSITIVE_INFINITY;
  }

  /**
   * The machine stops at once: unsynced bytes and names are lost, kept or torn by chance; open
   * files and locks are gone.
   */
  crash(random: Random): void {
    this.kill(random);
    this.#usedBytes = 0;
    const seen = new Set<Folder | MemoryFileContent>();
    const visit = (node: Folder | MemoryFileContent): void => {
      if (seen.has(node)) return;
      seen.add(node);
      node.crash(random);
      if (node instanceof Folder) for (const child of node.entries.values()) visit(child);
      else this.#usedBytes += node.sizeBytes;
    };
    visit(this.#root);
  }

  /**
   * The process stops at once, as by kill -9: what was written stays, open files and locks are
   * gone, pending syncs never end.
   */
  kill(random: Random): void {
    this.#process++;
    this.#locks.clear();
    for (const listener of [...this.#crashListeners]) listener(random);
  }

  /** Calls `listener` at each crash or kill, before files change. */
  onCrash(listener: (random: Random) => void): void {
    this.#crashListeners.add(listener);
  }

  /** Puts a durable file there, with durable folders above it: for fixtures. */
  install(path: string, bytes: Uint8Array): void {
    const parts = split(path);
    let folder = this.#root;
    for (const part of parts.slice(0, -1)) {
      let next = folder.entries.get(part);
      if (!(next instanceof Folder)) {
        next = new Folder();
        folder.change([part, next]);
      }
      folder.sync();
      folder = next;
    }
    const content = new MemoryFileContent();
    content.write(bytes, 0);
    content.makeDurable();
    this.#usedBytes += bytes.length;
    folder.change([parts[parts.length - 1], content]);
    folder.sync();
  }

  /** Flips the bits of `mask` in one byte of a file, on the platter so to say. */
  corrupt(path: string, position: number, mask = 1): void {
    this.#file(path).corrupt(position, mask);
  }

  /**
   * The folder itself, which stays the same object through renames of it or of folders above;
   * undefined where there is none.
   */
  folder(path: string): object | undefined {
    const node = this.#find(path);
    return node instanceof Folder ? node : undefined;
  }

  makeDir(path: string): void {
    this.#check({ kind: "makeDir", path });
    let folder = this.#root;
    for (const part of split(path)) {
      const next = folder.entries.get(part);
      if (next instanceof MemoryFileContent)
        throw new DiskError("Exists", path, "a file stands in the way");
      if (next) folder = next;
      else {
        const made = new Folder();
        folder.change([part, made]);
        folder = made;
      }
    }
  }

  list(path: string): string[] {
    this.#check({ kind: "list", path });
    return [...this.#folder(path).entries.keys()].sort();
  }

  stat(path: string): FileStat | undefined {
    const node = this.#find(path);
    if (!node) return undefined;
    return node instanceof Folder
      ? { kind: "directory", sizeBytes: 0 }
      : { kind: "file", sizeBytes: node.sizeBytes };
  }

  open(path: string, mode: "read" | "write" | "create"): DiskFile {
    this.#check({ kind: "open", path });
    if (mode !== "create") return new MemoryFile(this, path, this.#file(path), mode === "write");
    const [folder, name] = this.#parent(path);
    if (folder.entries.has(name)) throw new DiskError("Exists", path, "exists already");
    const content = new MemoryFileContent();
    folder.change([name, content]);
    return new MemoryFile(this, path, content, true);
  }

  readAll(path: string): Uint8Array {
    const content = this.#file(path);
    this.#check({ kind: "read", path, position: 0, lengthBytes: content.sizeBytes });
    const bytes = new Uint8Array(content.sizeBytes);
    content.read(bytes, 0);
    return bytes;
  }

  replace(path: string, bytes: Uint8Array): void {
    const temporary = `${path}.tmp`;
    this.remove(temporary);
    const file = this.open(temporary, "create");
    try {
      file.write([bytes], 0);
      file.dataSyncNow();
      this.rename(temporary, path);
    } catch (error) {
      this.remove(temporary);
      throw error;
    } finally {
      file.close();
    }
    this.syncDir(`${path}/..`);
  }

  rename(from: string, to: string): void {
    this.#check({ kind: "rename", path: from });
    const [source, oldName] = this.#parent(from);
    const [target, newName] = this.#parent(to);
    const node = source.entries.get(oldName);
    if (!node) throw new DiskError("NotFound", from, "no such file or folder");
    const replaced = target.entries.get(newName);
    if (replaced === node) return;
    if (replaced instanceof Folder && replaced.entries.size > 0)
      throw new DiskError("Exists", to, "the folder is not empty");
    if (replaced && replaced instanceof Folder !== node instanceof Folder)
      throw new DiskError("Io", to, "a file and a folder do not replace each other");
    if (replaced) this.#usedBytes -= sizeOf(replaced);
    if (source === target) source.change([oldName, undefined], [newName, node]);
    else {
      target.change([newName, node]);
      source.change([oldName, undefined]);
    }
  }

  remove(path: string): void {
    this.#check({ kind: "remove", path });
    const node = this.#find(path);
    if (!node) return;
    const [folder, name] = this.#parent(path);
    folder.change([name, undefined]);
    this.#usedBytes -= sizeOf(node);
  }

  syncDir(path: string): void {
    this.#check({ kind: "syncDir", path });
    this.#folder(path).sync();
  }

  lock(path: string): DiskLock {
    const [folder, name] = this.#parent(path);
    const key = split(path).join("/");
    if (this.#locks.has(key)) throw new DiskError("Locked", path, "held by this process");
    if (!folder.entries.has(name)) folder.change([name, new MemoryFileContent()]);
    this.#locks.add(key);
    const process = this.#process;
    let released = false;
    return {
      release: () => {
        if (!released && this.#process === process) this.#locks.delete(key);
        released = true;
      },
    };
  }

  freeBytes(path: string): number {
    this.#folder(path);
    return Math.max(0, this.capacityBytes - this.#usedBytes);
  }

  /** For MemoryFile: the process that is alive. */
  process(): number {
    return this.#process;
  }

  /**
   * For MemoryFile: makes room or throws NoSpace, and gives how many of `wantedBytes` there is room
   * for.
   */
  reserve(wantedBytes: number): number {
    const granted = Math.min(wantedBytes, Math.max(0, this.capacityBytes - this.#usedBytes));
    this.#usedBytes += granted;
    return granted;
  }

  /** For MemoryFile: the opposite of reserve. */
  giveBack(bytes: number): void {
    this.#usedBytes -= bytes;
  }

  /** For MemoryFile: asks the fault hook for the error that the operation fails with. */
  faultOf(operation: DiskOperation): unknown {
    try {
      const code = this.fault?.(operation);
      return code && new DiskError(code, operation.path, `injected at ${operation.kind}`);
    } catch (error) {
      return error;
    }
  }

  /** For MemoryFile: how long a sync that starts now takes. */
  nextSyncMs(): number {
    return this.#clock ? this.#syncDelayMs() : 0;
  }

  /**
   * For MemoryFile: runs `done` when a sync that starts now ends, unless the process is dead by
   * then.
   */
  afterSync(done: () => void): void {
    const process = this.#process;
    const end = () => {
      if (this.#process === process) done();
    };
    if (this.#clock) this.#clock.after(this.nextSyncMs(), end);
    else queueMicrotask(end);
  }

  #check(operation: DiskOperation): void {
    const error = this.faultOf(operation);
    if (error) throw error;
  }

  #find(path: string): Folder | MemoryFileContent | undefined {
    let node: Folder | MemoryFileContent | undefined = this.#root;
    for (const part of split(path)) {
      if (!(node instanceof Folder)) return undefined;
      node = node.entries.get(part);
    }
    return node;
  }

  #folder(path: string): Folder {
    const node = this.#find(path);
    if (node instanceof Folder) return node;
    throw node
      ? new DiskError("Io", path, "is not a folder")
      : new DiskError("NotFound", path, "no such folder");
  }

  #file(path: string): MemoryFileContent {
    const node = this.#find(path);
    if (node instanceof MemoryFileContent) return node;
    throw node
      ? new DiskError("Io", path, "is a folder")
      : new DiskError("NotFound", path, "no such file");
  }

  #parent(path: string): [folder: Folder, name: string] {
    const parts = split(path);
    const name = parts.pop();
    if (name === undefined) throw new DiskError("NotPermitted", path, "the root has no name");
    const folder = this.#find(parts.join("/"));
    if (!(folder instanceof Folder))
      throw new DiskError("NotFound", path, "its folder does not exist");
    return [folder, name];
  }
}

/**
 * How much of a write of `lengthBytes` is left when it stops at the end of a sector, as a kernel
 * does, which writes by pages.
 */
function wholeSectors(position: number, lengthBytes: number): number {
  const end = position + lengthBytes;
  return Math.max(0, end - (end % SECTOR_BYTES) - position);
}

function sizeOf(node: Folder | MemoryFileContent): number {
  if (node instanceof MemoryFileContent) return node.sizeBytes;
  let total = 0;
  for (const child of node.entries.values()) total += sizeOf(child);
  return total;
}

class MemoryFile implements DiskFile {
  readonly path: string;
  readonly #disk: MemoryDisk;
  readonly #content: MemoryFileContent;
  readonly #writable: boolean;
  readonly #process: number;
  #closed = false;
  #busyWith: string | undefined;

  constructor(disk: MemoryDisk, path: string, content: MemoryFileContent, writable: boolean) {
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

  write(chunks: readonly Uint8Array[], position: number): void {
    this.#checkWritable();
    let lengthBytes = 0;
    for (const chunk of chunks) lengthBytes += chunk.length;
    let error = this.#disk.faultOf({ kind: "write", path: this.path, position, lengthBytes });
    // The hook made the machine crash: what a crash leaves is settled, and the dead write no
    // longer.
    if (this.#process !== this.#disk.process())
      throw error ?? new DiskError("Io", this.path, "the process that opened the file is dead");
    let allowedBytes = error ? wholeSectors(position, lengthBytes >> 1) : lengthBytes;
    const growthBytes = Math.max(0, position + allowedBytes - this.#content.sizeBytes);
    const granted = this.#disk.reserve(growthBytes);
    if (granted < growthBytes) {
      allowedBytes = wholeSectors(position, allowedBytes - (growthBytes - granted));
      this.#disk.giveBack(granted - Math.max(0, position + allowedBytes - this.#content.sizeBytes));
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
          this.#content.completeSync();
          resolve();
        }
      });
    });
  }

  dataSyncNow(): number {
    this.#checkOpen();
    const error = this.#disk.faultOf({ kind: "sync", path: this.path });
    this.#content.beginSync();
    if (error) {
      this.#content.failSync();
      throw error;
    }
    this.#content.completeSync();
    return this.#disk.nextSyncMs();
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

  /** Accounts for a change of the size; a negative one gives space back. */
  #grow(byBytes: number): void {
    if (byBytes <= 0) {
      this.#disk.giveBack(-byBytes);
      return;
    }
    const granted = this.#disk.reserve(byBytes);
    if (granted === byBytes) return;
    this.#disk.giveBack(granted);
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
