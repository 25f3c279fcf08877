/**
 * An in-memory Disk that loses in a crash what a real disk may lose. A crash keeps of each file
 * what file.ts describes, and of each directory the names after some prefix of the changes
 * since its last syncDir (file systems persist name changes in order, but to an unknown point). A
 * rename within a directory is one change; between directories it is two. A directory whose own
 * name is lost loses its content.
 */
import type { Clock } from "../../src/clock.ts";
import {
  type Disk,
  DiskError,
  type DiskErrorCode,
  type DiskFile,
  type DiskLock,
  type FileStat,
} from "../../src/disk.ts";
import type { Random } from "../../src/random.ts";
import { Directory, type MemoryNode, sizeOf, splitPath } from "./directory.ts";
import { MemoryFileContent } from "./file.ts";
import { type DiskOperation, MemoryFile, type MemoryFileDisk } from "./file-handle.ts";

export type { DiskOperation };

export interface MemoryDiskOptions {
  /** Clock for the duration of syncs; without one they take none. */
  readonly clock?: Clock;
  /** Duration of a dataSync; default 0: it ends in a microtask. */
  readonly syncDelayMs?: () => number;
  /** Writes beyond this fail with NoSpace; default no limit. */
  readonly capacityBytes?: number;
}

/** A Disk with an empty root directory. */
export class MemoryDisk implements Disk, MemoryFileDisk {
  /**
   * Called before each operation; a returned code or a thrown error makes it fail. A failing write
   * leaves its first half, up to the end of a sector, unless the hook made the disk crash; a
   * failing sync loses what it covered.
   */
  fault: ((operation: DiskOperation) => DiskErrorCode | undefined) | undefined;
  /**
   * Whether syncs of a path lie: they succeed but make nothing durable. A later sync covers the
   * bytes, or a crash loses them. `from` is where the first sector begins that is not durable,
   * undefined if all are.
   */
  lies: ((path: string, from: number | undefined) => boolean) | undefined;
  capacityBytes: number;
  readonly #clock: Clock | undefined;
  readonly #syncDelayMs: () => number;
  readonly #root = new Directory();
  readonly #locks = new Set<string>();
  readonly #crashListeners = new Set<(random: Random) => void>();
  /** The number of the present process: files that an earlier one opened are dead. */
  #process = 0;
  #usedBytes = 0;

  constructor(options: MemoryDiskOptions = {}) {
    this.#clock = options.clock;
    this.#syncDelayMs = options.syncDelayMs ?? (() => 0);
    this.capacityBytes = options.capacityBytes ?? Number.POSITIVE_INFINITY;
  }

  /**
   * The machine crashes: unsynced bytes and names are lost, kept or torn at random; open files and
   * locks are gone.
   */
  crash(random: Random): void {
    this.kill(random);
    this.#usedBytes = 0;
    const seen = new Set<MemoryNode>();
    const visit = (node: MemoryNode): void => {
      if (seen.has(node)) return;
      seen.add(node);
      node.crash(random);
      if (node instanceof Directory) for (const child of node.entries.values()) visit(child);
      else this.#usedBytes += node.sizeBytes;
    };
    visit(this.#root);
  }

  /**
   * The process is killed, as by kill -9: written bytes stay, open files and locks are gone,
   * pending syncs never end.
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

  /** Adds a durable file in durable directories, for fixtures. */
  install(path: string, bytes: Uint8Array): void {
    const parts = splitPath(path);
    const name = parts.pop();
    if (name === undefined) throw new TypeError(`${path} names no file`);
    let directory = this.#root;
    for (const part of parts) {
      let next = directory.entries.get(part);
      if (!(next instanceof Directory)) {
        next = new Directory();
        directory.change([part, next]);
      }
      directory.sync();
      directory = next;
    }
    const content = new MemoryFileContent();
    content.write(bytes, 0);
    content.makeDurable();
    this.#usedBytes += bytes.length;
    directory.change([name, content]);
    directory.sync();
  }

  /** Flips the bits of `mask` in one byte of a file, also in its durable content. */
  corrupt(path: string, position: number, mask = 1): void {
    this.#file(path).corrupt(position, mask);
  }

  /**
   * The directory's object, which stays the same through renames of it or of its parents; undefined
   * if it does not exist.
   */
  directory(path: string): object | undefined {
    const node = this.#find(path);
    return node instanceof Directory ? node : undefined;
  }

  makeDir(path: string): void {
    this.#check({ kind: "makeDir", path });
    let directory = this.#root;
    for (const part of splitPath(path)) {
      const next = directory.entries.get(part);
      if (next instanceof MemoryFileContent)
        throw new DiskError("Exists", path, "a file exists in its place");
      if (next) directory = next;
      else {
        const made = new Directory();
        directory.change([part, made]);
        directory = made;
      }
    }
  }

  list(path: string): string[] {
    this.#check({ kind: "list", path });
    return [...this.#directory(path).entries.keys()].sort();
  }

  stat(path: string): FileStat | undefined {
    const node = this.#find(path);
    if (!node) return undefined;
    return node instanceof Directory
      ? { kind: "directory", sizeBytes: 0 }
      : { kind: "file", sizeBytes: node.sizeBytes };
  }

  open(path: string, mode: "read" | "write" | "create"): DiskFile {
    this.#check({ kind: "open", path });
    if (mode !== "create") return new MemoryFile(this, path, this.#file(path), mode === "write");
    const [directory, name] = this.#parent(path);
    if (directory.entries.has(name)) throw new DiskError("Exists", path, "exists already");
    const content = new MemoryFileContent();
    directory.change([name, content]);
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
    if (!node) throw new DiskError("NotFound", from, "no such file or directory");
    const replaced = target.entries.get(newName);
    if (replaced === node) return;
    if (replaced instanceof Directory && replaced.entries.size > 0)
      throw new DiskError("Exists", to, "the directory is not empty");
    if (replaced && replaced instanceof Directory !== node instanceof Directory)
      throw new DiskError("Io", to, "a file and a directory do not replace each other");
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
    const [directory, name] = this.#parent(path);
    directory.change([name, undefined]);
    this.#usedBytes -= sizeOf(node);
  }

  syncDir(path: string): void {
    this.#check({ kind: "syncDir", path });
    this.#directory(path).sync();
  }

  lock(path: string): DiskLock {
    const [directory, name] = this.#parent(path);
    const key = splitPath(path).join("/");
    if (this.#locks.has(key)) throw new DiskError("Locked", path, "held by this process");
    if (!directory.entries.has(name)) directory.change([name, new MemoryFileContent()]);
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
    this.#directory(path);
    return Math.max(0, this.capacityBytes - this.#usedBytes);
  }

  process(): number {
    return this.#process;
  }

  reserve(wantedBytes: number): number {
    const granted = Math.min(wantedBytes, Math.max(0, this.capacityBytes - this.#usedBytes));
    this.#usedBytes += granted;
    return granted;
  }

  release(bytes: number): void {
    this.#usedBytes -= bytes;
  }

  faultOf(operation: DiskOperation): unknown {
    try {
      const code = this.fault?.(operation);
      return code && new DiskError(code, operation.path, `injected at ${operation.kind}`);
    } catch (error) {
      return error;
    }
  }

  nextSyncMs(): number {
    return this.#clock ? this.#syncDelayMs() : 0;
  }

  afterSync(done: () => void): void {
    const process = this.#process;
    const end = () => {
      if (this.#process === process) done();
    };
    const delayMs = this.nextSyncMs();
    if (this.#clock && delayMs > 0) this.#clock.after(delayMs, end);
    else queueMicrotask(end);
  }

  #check(operation: DiskOperation): void {
    const error = this.faultOf(operation);
    if (error) throw error;
  }

  #find(path: string): MemoryNode | undefined {
    let node: MemoryNode | undefined = this.#root;
    for (const part of splitPath(path)) {
      if (!(node instanceof Directory)) return undefined;
      node = node.entries.get(part);
    }
    return node;
  }

  #directory(path: string): Directory {
    const node = this.#find(path);
    if (node instanceof Directory) return node;
    throw node
      ? new DiskError("Io", path, "is not a directory")
      : new DiskError("NotFound", path, "no such directory");
  }

  #file(path: string): MemoryFileContent {
    const node = this.#find(path);
    if (node instanceof MemoryFileContent) return node;
    throw node
      ? new DiskError("Io", path, "is a directory")
      : new DiskError("NotFound", path, "no such file");
  }

  #parent(path: string): [directory: Directory, name: string] {
    const parts = splitPath(path);
    const name = parts.pop();
    if (name === undefined) throw new DiskError("NotPermitted", path, "the root has no name");
    const directory = this.#find(parts.join("/"));
    if (!(directory instanceof Directory))
      throw new DiskError("NotFound", path, "its directory does not exist");
    return [directory, name];
  }
}
