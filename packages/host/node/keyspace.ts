/**
 * Keyspace over LevelDB, for the backend of a member. The library is level, which in Node is
 * classic-level (the same class; its types have the methods that only LevelDB has).
 *
 * Options, measured with 600,000 records of an 18-byte ascending key and a 300-byte value in synced
 * batches of 10,000. LevelDB's defaults stay where the difference was noise (4 KiB blocks, 8 MiB
 * block cache):
 *
 * - writeBufferSize 8 MiB instead of 4: 559,000 instead of 374,000 records/s, 2.2 instead of 3.7
 *   microseconds of CPU each. A batch of the backend can reach 4 MB, which fills a whole buffer of
 *   the default size and stalls the next one. 16 MiB was 10 % faster for twice the memory (two
 *   buffers can be alive) and a longer replay at open.
 * - maxFileSize 8 MiB instead of 2: the same speed, and the largest backend (8 GiB) stays at about
 *   1,000 tables, which is the number that LevelDB keeps open and mapped.
 * - compression (snappy) stays on: JSON values took 30 MB instead of 202 MB, at the same write rate
 *   and up to 2 microseconds more per read; incompressible blocks are stored uncompressed.
 *
 * Batches use the chained form: 0.45 microseconds per record on the event loop, where an array of
 * operations costs 0.95.
 */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { ClassicLevel } from "classic-level";
import { Level } from "level";
import { verifyBackendCommand } from "../src/advice.ts";
import { DiskError } from "../src/disk.ts";
import type {
  Keyspace,
  KeyspaceOpener,
  KeyspaceRange,
  KeyspaceRecord,
  KeyspaceSnapshot,
  KeyspaceWrite,
} from "../src/keyspace.ts";
import { Pauses } from "../src/turns.ts";
import { nodeClock } from "./clock.ts";
import { toDiskError } from "./errors.ts";

const OPTIONS = {
  keyEncoding: "view",
  valueEncoding: "view",
  writeBufferSize: 8 << 20,
  maxFileSize: 8 << 20,
  compression: true,
} as const;

const DEFAULT_SLICE_BYTES = 256 << 10;
/**
 * Most records in a slice, however small they are: receiving one from the other thread costs some
 * 3 microseconds of the event loop.
 */
const MAX_SLICE_RECORDS = 1024;

/** A long batch is built in slices of this time, between which the event loop runs. */
const BUILD_MS = 2;
const RECORDS_BETWEEN_LOOKS = 64;

/**
 * The open end of a compaction, which classic-level needs as a key. No key of the backend is above
 * it.
 */
const BEYOND_ALL_KEYS = new Uint8Array(1024).fill(0xff);
const BEFORE_ALL_KEYS = new Uint8Array(0);

type Database = ClassicLevel<Uint8Array, Uint8Array>;
type LevelSnapshot = ReturnType<Database["snapshot"]>;

/** The DiskError for an error of LevelDB on the store at `path`. */
function mapError(error: unknown, path: string): DiskError {
  if (error instanceof DiskError) return error;
  // classic-level wraps the reason of a failed open.
  const inner = error as Error & { code?: string };
  const reason =
    inner.code === "LEVEL_DATABASE_NOT_OPEN" && inner.cause instanceof Error
      ? (inner.cause as Error & { code?: string })
      : inner;
  const { message } = reason;
  if (reason.code === "LEVEL_LOCKED")
    return new DiskError(
      "Locked",
      path,
      "the backend is open in another process, or twice in this one",
      error,
    );
  // LevelDB reports a missing or truncated manifest or table as "IO error".
  const isLost =
    message.startsWith("IO error: ") &&
    /(?:CURRENT|\.ldb|\.log|MAN[^/:]{0,20}): (?:No such file|Invalid argument)/.test(message);
  if (
    isLost ||
    reason.code === "LEVEL_CORRUPTION" ||
    /\bCorruption\b|missing files/i.test(message)
  ) {
    return new DiskError(
      "Damaged",
      path,
      `the backend is damaged: ${message}; stop the member and run: ${verifyBackendCommand(path)}`,
      error,
    );
  }
  if (/does not exist \(create_if_missing/.test(message))
    return new DiskError("NotFound", path, "no backend in this directory", error);
  if (/No space left|quota exceeded/i.test(message))
    return new DiskError("NoSpace", path, message, error);
  if (/Permission denied|not permitted|Read-only file system/i.test(message))
    return new DiskError("NotPermitted", path, message, error);
  return new DiskError("Io", path, message, error);
}

/** classic-level returns Buffers, whose slice() does not copy; pure code expects Uint8Arrays. */
function plain(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
}

class LevelKeyspace implements Keyspace {
  readonly #path: string;
  readonly #level: Database;
  readonly #syncs: boolean;
  /** The last requested write while it is pending; never rejects. */
  #writing: Promise<void> | undefined;

  constructor(path: string, level: Database, syncs: boolean) {
    this.#path = path;
    this.#level = level;
    this.#syncs = syncs;
  }

  get(key: Uint8Array): Uint8Array | undefined {
    return this.#runNow(() => {
      const value = this.#level.getSync(key);
      return value && plain(value);
    });
  }

  getMany(keys: readonly Uint8Array[]): Promise<(Uint8Array | undefined)[]> {
    return this.#run(async () =>
      (await this.#level.getMany(keys as Uint8Array[])).map((value) => value && plain(value)),
    );
  }

  write(batch: Iterable<KeyspaceWrite>): Promise<void> {
    // Writes run one at a time: a small one must not overtake a large one that is still being
    // built.
    const before = this.#writing;
    const written = this.#run(() =>
      before === undefined ? this.#write(batch) : before.then(() => this.#write(batch)),
    );
    const writing = written.then(
      () => {},
      () => {},
    );
    this.#writing = writing;
    void writing.then(() => {
      if (this.#writing === writing) this.#writing = undefined;
    });
    return written;
  }

  async #write(batch: Iterable<KeyspaceWrite>): Promise<void> {
    const chain = this.#level.batch();
    const pauses = new Pauses(nodeClock.turns, BUILD_MS);
    let count = 0;
    for (const { key, value } of batch) {
      if (value) chain.put(key, value);
      else chain.del(key);
      if (count++ % RECORDS_BETWEEN_LOOKS === 0) await pauses.next();
    }
    await chain.write({ sync: this.#syncs });
  }

  scan(range: KeyspaceRange, options?: { sliceBytes?: number }): AsyncIterable<KeyspaceRecord[]> {
    return this.#scan(range, options, undefined);
  }

  snapshot(): KeyspaceSnapshot {
    const snapshot = this.#runNow(() => this.#level.snapshot());
    return {
      scan: (range, options) => this.#scan(range, options, snapshot),
      close: () => this.#run(() => snapshot.close()),
    };
  }

  compact(range: KeyspaceRange): Promise<void> {
    return this.#run(() =>
      this.#level.compactRange(range.from ?? BEFORE_ALL_KEYS, range.to ?? BEYOND_ALL_KEYS),
    );
  }

  settle(): Promise<void> {
    // Compacting a range begins with that. There is nothing in this range.
    return this.#run(() => this.#level.compactRange(BEYOND_ALL_KEYS, BEYOND_ALL_KEYS));
  }

  sizeOnDiskBytes(): number {
    let totalBytes = 0;
    for (const name of readdirSync(this.#path)) {
      // A compaction may remove the file between the two calls.
      totalBytes += statSync(join(this.#path, name), { throwIfNoEntry: false })?.size ?? 0;
    }
    return totalBytes;
  }

  close(): Promise<void> {
    return this.#run(async () => {
      await this.#writing;
      await this.#level.close();
    });
  }

  #runNow<T>(call: () => T): T {
    try {
      return call();
    } catch (error) {
      throw mapError(error, this.#path);
    }
  }

  async #run<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      throw mapError(error, this.#path);
    }
  }

  /**
   * Makes the iterator at once, not at the first slice, so that it sees the state at the time of
   * the call.
   */
  #scan(
    range: KeyspaceRange,
    options: { sliceBytes?: number } | undefined,
    snapshot: LevelSnapshot | undefined,
  ): AsyncIterable<KeyspaceRecord[]> {
    const iterator = this.#runNow(() =>
      this.#level.iterator({
        ...(range.from && { gte: range.from }),
        ...(range.to && { lt: range.to }),
        ...(snapshot && { snapshot }),
        highWaterMarkBytes: options?.sliceBytes ?? DEFAULT_SLICE_BYTES,
        // A full scan would evict blocks that single reads need from the cache.
        fillCache: false,
      }),
    );
    const path = this.#path;
    return (async function* () {
      try {
        for (;;) {
          const slice = await iterator.nextv(MAX_SLICE_RECORDS);
          if (slice.length === 0) return;
          yield slice.map(([key, value]) => [plain(key), plain(value)] as const);
        }
      } catch (error) {
        throw mapError(error, path);
      } finally {
        await iterator.close();
      }
    })();
  }
}

class LevelKeyspaceOpener implements KeyspaceOpener {
  readonly #syncs: boolean;

  constructor(syncs: boolean) {
    this.#syncs = syncs;
  }

  async open(path: string, options: { create: boolean }): Promise<Keyspace> {
    const level = new Level(path, OPTIONS) as unknown as Database;
    try {
      if (!options.create && !statSync(path, { throwIfNoEntry: false }))
        throw new DiskError("NotFound", path, "no backend in this directory");
      await level.open({ createIfMissing: options.create });
    } catch (error) {
      await level.close();
      const { code, syscall } = error as NodeJS.ErrnoException;
      throw code && syscall ? toDiskError(error, path) : mapError(error, path);
    }
    return new LevelKeyspace(path, level, this.#syncs);
  }
}

/** Opens LevelDB stores. */
export const levelKeyspaces: KeyspaceOpener = new LevelKeyspaceOpener(true);

/** The same without fsync; see unsyncedNodeDisk. */
export const unsyncedLevelKeyspaces: KeyspaceOpener = new LevelKeyspaceOpener(false);
