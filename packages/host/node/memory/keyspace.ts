/**
 * In-memory keyspaces in the directories of a MemoryDisk: a keyspace follows its directory when
 * that is renamed, removed or lost in a crash. A write becomes visible and durable when its promise
 * resolves. In a crash a random prefix of the pending writes survives, each wholly or not at all.
 */
import type { Clock } from "../../src/clock.ts";
import { DiskError, type DiskErrorCode } from "../../src/disk.ts";
import type {
  Keyspace,
  KeyspaceOpener,
  KeyspaceRange,
  KeyspaceRecord,
  KeyspaceSnapshot,
  KeyspaceWrite,
} from "../../src/keyspace.ts";
import type { Random } from "../../src/random.ts";
import type { MemoryDisk } from "./disk.ts";

export interface MemoryKeyspaceOptions {
  /** Clock for the duration of writes; without one they take none. */
  readonly clock?: Clock;
  /** Duration of a write; default 0: it ends in a microtask. */
  readonly writeDelayMs?: () => number;
}

const DEFAULT_SLICE_BYTES = 256 << 10;

/** Values share buffers of this size: one for each would be most of what the collector marks. */
const SLAB_BYTES = 4096;

/**
 * The records at one moment: sorted keys as latin1 strings, and their values, which scans return
 * without copies.
 */
interface Records {
  readonly keys: string[];
  readonly values: Map<string, Uint8Array>;
}

/** Keys, and the value of each at the same place. */
interface Batch {
  readonly keys: readonly string[];
  readonly values: readonly (Uint8Array | undefined)[];
}

/** The store of a directory, open or not. */
interface Store {
  records: Records;
  /** A reader uses `records`: the next write works on a copy. */
  shared: boolean;
  open: boolean;
  damaged: boolean;
  /** Pending writes, oldest first. */
  pending: Batch[];
}

function toKey(bytes: Uint8Array): string {
  return Buffer.prototype.latin1Slice.call(bytes, 0, bytes.length);
}

function fromKey(key: string): Uint8Array {
  const bytes = new Uint8Array(key.length);
  for (let i = 0; i < key.length; i++) bytes[i] = key.charCodeAt(i);
  return bytes;
}

/** A copy of a batch, which its owner may change later. */
function copyOf(batch: Iterable<KeyspaceWrite>): Batch {
  const keys: string[] = [];
  const values: (Uint8Array | undefined)[] = [];
  let slab = new Uint8Array(0);
  let used = 0;
  for (const { key, value } of batch) {
    keys.push(toKey(key));
    if (value === undefined || value.length > SLAB_BYTES / 4) {
      values.push(value?.slice());
      continue;
    }
    if (used + value.length > slab.length) {
      slab = new Uint8Array(SLAB_BYTES);
      used = 0;
    }
    const copy = slab.subarray(used, used + value.length);
    copy.set(value);
    values.push(copy);
    used += value.length;
  }
  return { keys, values };
}

/** The index of the first key at or above `key`. */
function lowerBound(keys: readonly string[], key: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((keys[middle] ?? "") < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

function apply(store: Store, batch: Batch): void {
  if (store.shared) {
    store.records = { keys: store.records.keys.slice(), values: new Map(store.records.values) };
    store.shared = false;
  }
  const { keys, values } = store.records;
  for (let i = 0; i < batch.keys.length; i++) {
    const key = batch.keys[i] as string;
    const value = batch.values[i];
    const { size } = values;
    if (value !== undefined) {
      values.set(key, value);
      if (values.size > size) insert(keys, key);
    } else if (values.delete(key)) keys.splice(lowerBound(keys, key), 1);
  }
}

/** Most keys are revisions, which come in order and of which few other keys are above. */
function insert(keys: string[], key: string): void {
  const { length } = keys;
  if (length === 0 || (keys[length - 1] as string) < key) keys.push(key);
  else keys.splice(lowerBound(keys, key), 0, key);
}

function share(store: Store): Records {
  store.shared = true;
  return store.records;
}

async function* slices(
  records: Records,
  range: KeyspaceRange,
  sliceBytes: number,
): AsyncGenerator<KeyspaceRecord[]> {
  const to = range.to && toKey(range.to);
  let slice: KeyspaceRecord[] = [];
  let bytes = 0;
  const start = range.from ? lowerBound(records.keys, toKey(range.from)) : 0;
  for (let i = start; ; i++) {
    const key = records.keys[i];
    if (key === undefined || (to !== undefined && key >= to)) break;
    const value = records.values.get(key) as Uint8Array;
    slice.push([fromKey(key), value]);
    bytes += key.length + value.length;
    if (bytes >= sliceBytes) {
      yield slice;
      slice = [];
      bytes = 0;
    }
  }
  if (slice.length > 0) yield slice;
}

class MemoryKeyspace implements Keyspace {
  readonly #opener: MemoryKeyspaceOpener;
  readonly #path: string;
  readonly #store: Store;
  #closed = false;
  /** Set by a failed write, after which only `close` is allowed. */
  #failed: DiskError | undefined;
  #lastWrite: Promise<void> = Promise.resolve();

  constructor(opener: MemoryKeyspaceOpener, path: string, store: Store) {
    this.#opener = opener;
    this.#path = path;
    this.#store = store;
  }

  get(key: Uint8Array): Uint8Array | undefined {
    this.#check();
    return this.#store.records.values.get(toKey(key));
  }

  async getMany(keys: readonly Uint8Array[]): Promise<(Uint8Array | undefined)[]> {
    return keys.map((key) => this.get(key));
  }

  async write(batch: Iterable<KeyspaceWrite>): Promise<void> {
    this.#check();
    if (this.#failed) throw this.#failed;
    const copy = copyOf(batch);
    this.#store.pending.push(copy);
    const previous = this.#lastWrite;
    const done = previous
      .catch(() => {})
      .then(
        () =>
          new Promise<void>((resolve, reject) => {
            this.#opener.afterWrite(() => {
              if (this.#closed) return;
              this.#store.pending.splice(this.#store.pending.indexOf(copy), 1);
              const code = this.#failed
                ? this.#failed.code
                : this.#opener.fault?.({ path: this.#path, records: copy.keys.length });
              if (code) {
                this.#failed ??= new DiskError(code, this.#path, "injected at write");
                reject(this.#failed);
                return;
              }
              apply(this.#store, copy);
              resolve();
            });
          }),
      );
    this.#lastWrite = done;
    await done;
  }

  scan(range: KeyspaceRange, options?: { sliceBytes?: number }): AsyncIterable<KeyspaceRecord[]> {
    this.#check();
    return slices(share(this.#store), range, options?.sliceBytes ?? DEFAULT_SLICE_BYTES);
  }

  snapshot(): KeyspaceSnapshot {
    this.#check();
    const records = share(this.#store);
    return {
      scan: (range, options) => slices(records, range, options?.sliceBytes ?? DEFAULT_SLICE_BYTES),
      close: async () => {},
    };
  }

  async compact(): Promise<void> {
    this.#check();
  }

  async settle(): Promise<void> {}

  sizeOnDiskBytes(): number {
    let bytes = 0;
    for (const [key, value] of this.#store.records.values) bytes += key.length + value.length;
    return bytes;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    await this.#lastWrite.catch(() => {});
    this.#closed = true;
    this.#store.open = false;
  }

  /** For the opener: the process is dead. */
  abandon(): void {
    this.#closed = true;
  }

  #check(): void {
    if (this.#closed) throw new DiskError("Io", this.#path, "the keyspace is closed");
  }
}

/** Opens keyspaces in directories of one MemoryDisk. */
export class MemoryKeyspaceOpener implements KeyspaceOpener {
  /** Called at the end of each write; a returned code makes it fail. */
  fault:
    | ((write: { readonly path: string; readonly records: number }) => DiskErrorCode | undefined)
    | undefined;
  readonly #disk: MemoryDisk;
  readonly #clock: Clock | undefined;
  readonly #writeDelayMs: () => number;
  readonly #stores = new WeakMap<object, Store>();
  /** Stores that are open, with their handles. */
  readonly #open = new Map<Store, MemoryKeyspace>();

  constructor(disk: MemoryDisk, options: MemoryKeyspaceOptions = {}) {
    this.#disk = disk;
    this.#clock = options.clock;
    this.#writeDelayMs = options.writeDelayMs ?? (() => 0);
    disk.onCrash((random) => this.#crash(random));
  }

  async open(path: string, options: { create: boolean }): Promise<Keyspace> {
    let directory = this.#disk.directory(path);
    let store = directory && this.#stores.get(directory);
    if (!store) {
      if (!options.create) throw new DiskError("NotFound", path, "no backend in this directory");
      if (!directory) {
        this.#disk.makeDir(path);
        directory = this.#disk.directory(path) as object;
      }
      store = {
        records: { keys: [], values: new Map() },
        shared: false,
        open: false,
        damaged: false,
        pending: [],
      };
      this.#stores.set(directory, store);
    }
    if (store.open) throw new DiskError("Locked", path, "the backend is open already");
    if (store.damaged) throw new DiskError("Damaged", path, "the backend is damaged: injected");
    store.open = true;
    const keyspace = new MemoryKeyspace(this, path, store);
    this.#open.set(store, keyspace);
    return keyspace;
  }

  /** Makes the store at `path` refuse to open from now on. */
  damage(path: string): void {
    const store = this.#find(path);
    if (!store) throw new DiskError("NotFound", path, "no backend in this directory");
    store.damaged = true;
  }

  /**
   * The durable values of the store at `path`, by keys in latin1; undefined if there is no store.
   */
  values(path: string): ReadonlyMap<string, Uint8Array> | undefined {
    return this.#find(path)?.records.values;
  }

  /**
   * Replaces the value of a record without the knowledge of an open handle; undefined removes the
   * record. Returns false if there is no such record.
   */
  alter(path: string, key: string, value: Uint8Array | undefined): boolean {
    const store = this.#find(path);
    if (store?.records.values.has(key) !== true) return false;
    apply(store, { keys: [key], values: [value] });
    return true;
  }

  #find(path: string): Store | undefined {
    const directory = this.#disk.directory(path);
    return directory && this.#stores.get(directory);
  }

  /** For MemoryKeyspace: calls `done` when a write that starts now ends. */
  afterWrite(done: () => void): void {
    const delayMs = this.#clock ? this.#writeDelayMs() : 0;
    if (this.#clock && delayMs > 0) this.#clock.after(delayMs, done);
    else queueMicrotask(done);
  }

  #crash(random: Random): void {
    for (const [store, keyspace] of this.#open) {
      keyspace.abandon();
      const survivors = random.below(store.pending.length + 1);
      for (const batch of store.pending.slice(0, survivors)) apply(store, batch);
      store.pending = [];
      store.open = false;
    }
    this.#open.clear();
  }
}
