/**
 * The write-ahead log of a member.
 *
 *     const { wal, hardState, entries } = Wal.open(disk, dir, mark, options);   // or Wal.create
 *     for a new member
 *     wal.append(hardState, entries);   // one blocking write
 *     await wal.sync();                 // now it is durable; appends may go on meanwhile
 *     await wal.saveSnapshot(mark);     // after a snapshot file was saved
 *     wal.release(mark.index);          // segments that nothing needs any more
 *     await wal.close();
 *
 * An error of the disk ends the use of a log: after a failed write or sync nobody knows what the
 * disk holds, so nothing is tried again.
 *
 * A segment that is full is left inside `append`: its end is synced, the next one gets its first
 * records and its name, and that is synced too. Those three syncs block; they come once in 64 MB.
 */
import {
  type Clock,
  type Disk,
  type DiskFile,
  type DiskLock,
  type Logger,
  silentLogger,
} from "@quorate/host";
import { raftpb, walpb } from "@quorate/proto";
import { FrameEncoder } from "./encoder.ts";
import { assert, WalError } from "./errors.ts";
import { RecordType, SEGMENT_BYTES, type SegmentName, segmentFor, segmentName } from "./format.ts";
import { isLog, makeLog, reopenLog } from "./opening.ts";
import { SegmentPipeline } from "./pipeline.ts";
import { LogRules } from "./rules.ts";

export interface WalOptions {
  /** Measures the syncs. */
  readonly clock: Clock;
  /** Size at which a segment is left for the next, a multiple of 8; 64,000,000 unless told. */
  readonly segmentBytes?: number;
  readonly logger?: Logger;
  /** Called after each sync of a segment with how long it took. */
  readonly onSync?: (durationMs: number) => void;
  /**
   * Called after each write with its size and how long it took, which is not told of the head of a
   * new segment.
   */
  readonly onWrite?: (sizeBytes: number, durationMs?: number) => void;
}

/** What `Wal.open` found. */
export interface OpenedWal {
  readonly wal: Wal;
  readonly metadata: Uint8Array;
  /** The last state written, or undefined. */
  readonly hardState: raftpb.HardState | undefined;
  /** Entries after the snapshot, in order. */
  readonly entries: raftpb.Entry[];
  /** Bytes of a torn write that were cut off at the end; nobody was promised them. */
  readonly droppedTailBytes: number;
}

/** A sync under way, and the segment and length that it will make durable. */
interface SyncUnderWay {
  readonly file: DiskFile;
  readonly lengthBytes: number;
  readonly startMs: number;
  readonly promise: Promise<void>;
}

interface WalParts {
  readonly disk: Disk;
  readonly dir: string;
  readonly options: WalOptions;
  readonly lock: DiskLock;
  readonly metadata: Uint8Array;
  readonly hardState: raftpb.HardState | undefined;
  readonly segments: SegmentName[];
  readonly tail: DiskFile;
  /** Where the next record goes in the tail; all before it is durable. */
  readonly offset: number;
  readonly crc: number;
  readonly rules: LogRules;
}

function lockPath(dir: string): string {
  return `${dir}.lock`;
}

export class Wal {
  readonly #disk: Disk;
  readonly #dir: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #segmentBytes: number;
  readonly #onSync: ((durationMs: number) => void) | undefined;
  readonly #onWrite: WalOptions["onWrite"];
  #lastSyncMs = Number.POSITIVE_INFINITY;
  readonly #lock: DiskLock;
  readonly #metadata: Uint8Array;
  readonly #rules: LogRules;
  readonly #encoder: FrameEncoder;
  readonly #pipeline: SegmentPipeline;
  #hardState: raftpb.HardState | undefined;
  /** Oldest first; the last is the tail. */
  #segments: SegmentName[];
  #tail: DiskFile;
  /** Where the next record goes in the tail. */
  #offset: number;
  /** How much of the tail is on the disk for sure. */
  #durableBytes: number;
  /** What the last durable mark said, or where the tail began to be written by this process. */
  #markedBytes: number;
  #syncing: SyncUnderWay | undefined;
  /** The sync that follows the one under way, for all who came too late for that. */
  #nextSync: PromiseWithResolvers<void> | undefined;
  /** Why the log cannot be used any more. */
  #ended: WalError | undefined;
  #isClosing = false;

  private constructor(parts: WalParts) {
    const { options } = parts;
    this.#disk = parts.disk;
    this.#dir = parts.dir;
    this.#clock = options.clock;
    this.#logger = options.logger ?? silentLogger;
    this.#segmentBytes = segmentBytesOf(options);
    this.#onSync = options.onSync;
    this.#onWrite = options.onWrite;
    this.#lock = parts.lock;
    this.#metadata = parts.metadata;
    this.#rules = parts.rules;
    this.#hardState = parts.hardState;
    this.#segments = parts.segments;
    this.#tail = parts.tail;
    this.#offset = parts.offset;
    this.#durableBytes = parts.offset;
    this.#markedBytes = 0;
    this.#encoder = new FrameEncoder(parts.crc);
    this.#pipeline = new SegmentPipeline(parts.disk, parts.dir, this.#segmentBytes);
  }

  /** Whether there is a log in `dir`. */
  static exists(disk: Disk, dir: string): boolean {
    return isLog(disk, dir);
  }

  /**
   * Makes a new log in the folder `dir`, which appears whole or not at all; the folder above it
   * must be there and durable. Blocks, for the allocation of a segment. The log opens with a mark
   * of snapshot 0.
   *
   * @param metadata goes to the head of each segment: who the log belongs to.
   * @throws WalError Exists, DiskError ("Locked" if another process makes one at this moment).
   */
  static create(disk: Disk, dir: string, metadata: Uint8Array, options: WalOptions): Wal {
    const segmentBytes = segmentBytesOf(options);
    const lock = disk.lock(lockPath(dir));
    try {
      return new Wal({
        disk,
        dir,
        options,
        lock,
        metadata: metadata.slice(),
        hardState: undefined,
        rules: new LogRules(0),
        ...makeLog(disk, dir, metadata, segmentBytes),
      });
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  /**
   * Opens the log in `dir` and reads it from the snapshot `from` on ({index: 0, term: 0} stands for
   * none). A torn write at its end is cut off. Blocks while it reads.
   *
   * @throws WalDamageError; WalError NotFound, SnapshotNotFound, SnapshotMismatch; DiskError
   * ("Locked" if another process has it).
   */
  static open(disk: Disk, dir: string, from: walpb.Snapshot, options: WalOptions): OpenedWal {
    segmentBytesOf(options);
    if (!isLog(disk, dir)) throw new WalError("NotFound", dir, "there is no log here");
    const lock = disk.lock(lockPath(dir));
    try {
      const { metadata, hardState, entries, end, rules, segments, tail } = reopenLog(
        disk,
        dir,
        from,
        options.logger,
      );
      const wal = new Wal({
        disk,
        dir,
        options,
        lock,
        metadata,
        hardState,
        segments,
        tail,
        offset: end.offset,
        crc: end.crc,
        rules,
      });
      return { wal, metadata, hardState, entries, droppedTailBytes: end.tornBytes };
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  /** Index of the last entry, or of a snapshot beyond it. */
  get lastIndex(): number {
    return this.#rules.lastIndex;
  }

  /** When, on the monotonic clock, the sync that is under way began; undefined if none is. */
  get syncingSinceMs(): number | undefined {
    return this.#syncing?.startMs;
  }

  /** Names of the segments, oldest first. */
  get segmentNames(): string[] {
    return this.#segments.map((segment) => segment.name);
  }

  /**
   * Writes entries, then the state if there is one, in one blocking write; durable after `sync`. An
   * entry takes the place of an earlier one with its index and of all after that. The entries' data
   * are not needed any more when it returns.
   *
   * Entries must follow each other and be above the commit index; the state's commit index must not
   * be beyond the last entry (a snapshot that was received is saved first).
   *
   * @throws DiskError, after which the log is closed; WalError Closed.
   */
  append(hardState: raftpb.HardState | undefined, entries: readonly raftpb.Entry[]): void {
    this.#checkOpen();
    const isState =
      hardState !== undefined &&
      (hardState.term !== 0 || hardState.vote !== 0n || hardState.commit !== 0);
    if (!isState && entries.length === 0) return;
    this.#guard(() => {
      this.#beginBatch();
      for (const entry of entries) {
        const problem = this.#rules.entry(entry);
        assert(problem === undefined, `append: ${problem}`);
        this.#encoder.entry(entry);
      }
      if (isState) {
        const problem = this.#rules.state(hardState);
        assert(problem === undefined, `append: ${problem}`);
        this.#hardState = { ...hardState };
        this.#encoder.record(RecordType.State, raftpb.HardState.encode(hardState));
      }
      this.#writeBatch();
    });
    if (this.#offset >= this.#segmentBytes) this.#cut();
    else if (this.#offset * 2 >= this.#segmentBytes) this.#pipeline.start();
  }

  /**
   * Resolves when all that was appended before the call is durable. One fdatasync runs at a time;
   * calls that come meanwhile share the next.
   *
   * Rejects with a DiskError, after which the log is closed.
   */
  sync(): Promise<void> {
    this.#checkOpen();
    return this.#sync();
  }

  /**
   * Like `sync`, but all is durable when it returns: where nobody has other work for the time, that
   * is quicker than waking another thread. No sync may be under way.
   *
   * @throws DiskError, after which the log is closed; WalError Closed.
   */
  syncNow(): void {
    this.#checkOpen();
    assert(this.#syncing === undefined, "syncNow: a sync is under way");
    if (this.#durableBytes === this.#offset) return;
    this.#guard(() => this.#syncNow(this.#tail));
    this.#durableBytes = this.#offset;
  }

  /** Whether a sync is under way. */
  get isSyncing(): boolean {
    return this.#syncing !== undefined;
  }

  /** How long the last sync took; infinite before the first. */
  get lastSyncMs(): number {
    return this.#lastSyncMs;
  }

  /**
   * Marks that a snapshot file is there, durable when it resolves. The file is saved before.
   * Entries up to the snapshot's index need not be in the log: one received from a leader takes
   * their place.
   */
  async saveSnapshot(mark: walpb.Snapshot): Promise<void> {
    this.#checkOpen();
    assert(
      mark.index === 0 || mark.confState !== undefined,
      "saveSnapshot: a snapshot has a configuration",
    );
    this.#guard(() => {
      this.#rules.snapshot(mark.index, mark.term);
      this.#beginBatch();
      this.#encoder.record(RecordType.Snapshot, walpb.Snapshot.encode(mark));
      this.#writeBatch();
    });
    await this.#sync();
  }

  /**
   * Removes the oldest segments that are not needed to start from a snapshot at `index`, as long as
   * more than `keepSegments` remain; gives their names. The lock stays.
   */
  release(index: number, keepSegments = 1): string[] {
    this.#checkOpen();
    const count = Math.min(
      segmentFor(this.#segments, index),
      this.#segments.length - Math.max(1, keepSegments),
    );
    if (count <= 0) return [];
    const released = this.#segments.slice(0, count).map((segment) => segment.name);
    // Oldest first: were the machine to stop in between, what remains is still a row without a gap.
    for (const name of released) {
      this.#disk.remove(`${this.#dir}/${name}`);
      this.#segments.shift();
    }
    return released;
  }

  /**
   * Syncs what was appended, closes the files and gives the lock back, also where the sync fails. A
   * second call does nothing.
   */
  async close(): Promise<void> {
    if (this.#isClosing) return;
    this.#isClosing = true;
    try {
      if (!this.#ended) await this.#sync();
    } finally {
      this.#ended ??= new WalError("Closed", this.#dir, "the log is closed");
      await this.#syncing?.promise.catch(() => {});
      await this.#pipeline.close();
      this.#tail.close();
      this.#lock.release();
    }
  }

  #checkOpen(): void {
    if (this.#ended) throw this.#ended;
    if (this.#isClosing) throw new WalError("Closed", this.#dir, "the log is being closed");
  }

  /** Runs what changes the log; its failure ends the use of it. */
  #guard<T>(call: () => T): T {
    try {
      return call();
    } catch (error) {
      this.#fail(error);
      throw error;
    }
  }

  #fail(error: unknown): void {
    this.#ended ??= new WalError(
      "Closed",
      this.#dir,
      `the log cannot be used after an error: ${(error as Error).message}`,
      error,
    );
    this.#nextSync?.reject(error);
    this.#nextSync = undefined;
  }

  /** Starts a batch; a durable mark goes first if more is on the disk than the last one said. */
  #beginBatch(): void {
    this.#encoder.reset();
    if (this.#durableBytes <= this.#markedBytes) return;
    this.#encoder.mark(this.#durableBytes);
    this.#markedBytes = this.#durableBytes;
  }

  #writeBatch(): void {
    const startMs = this.#clock.monotonicMs();
    this.#tail.write(this.#encoder.chunks(), this.#offset);
    this.#offset += this.#encoder.sizeBytes;
    this.#onWrite?.(this.#encoder.sizeBytes, this.#clock.monotonicMs() - startMs);
  }

  #sync(): Promise<void> {
    if (this.#syncing) {
      const { file, lengthBytes, promise } = this.#syncing;
      if (file === this.#tail && lengthBytes === this.#offset) return promise;
      this.#nextSync ??= Promise.withResolvers();
      return this.#nextSync.promise;
    }
    return this.#durableBytes === this.#offset ? Promise.resolve() : this.#startSync();
  }

  #startSync(): Promise<void> {
    const file = this.#tail;
    const lengthBytes = this.#offset;
    const startMs = this.#clock.monotonicMs();
    const promise = file.dataSync().then(
      () => {
        this.#syncing = undefined;
        this.#noteSync(this.#clock.monotonicMs() - startMs);
        if (file === this.#tail) this.#durableBytes = lengthBytes;
        else file.close();
        this.#continueSync();
      },
      (error) => {
        this.#syncing = undefined;
        if (file !== this.#tail) file.close();
        this.#fail(error);
        throw error;
      },
    );
    this.#syncing = { file, lengthBytes, startMs, promise };
    return promise;
  }

  /** Starts the sync that others wait for. */
  #continueSync(): void {
    const waiting = this.#nextSync;
    if (!waiting) return;
    this.#nextSync = undefined;
    if (this.#durableBytes === this.#offset) waiting.resolve();
    else this.#startSync().then(waiting.resolve, waiting.reject);
  }

  #syncNow(file: DiskFile): void {
    this.#noteSync(file.dataSyncNow());
  }

  #noteSync(tookMs: number): void {
    this.#lastSyncMs = tookMs;
    this.#onSync?.(tookMs);
  }

  /**
   * Leaves the tail for a new segment. Until that has its name, nothing that is not durable refers
   * to it.
   */
  #cut(): void {
    this.#guard(() => {
      const old = this.#tail;
      old.truncate(this.#offset);
      this.#syncNow(old);

      const segment = segmentName(
        this.#segments[this.#segments.length - 1].sequence + 1,
        this.#rules.lastIndex + 1,
      );
      const path = `${this.#dir}/${segment.name}`;
      const file = this.#pipeline.take();
      try {
        this.#encoder.reset();
        this.#encoder.crcRecord();
        this.#encoder.record(RecordType.Metadata, this.#metadata);
        if (this.#hardState)
          this.#encoder.record(RecordType.State, raftpb.HardState.encode(this.#hardState));
        file.write(this.#encoder.chunks(), 0);
        this.#syncNow(file);
        this.#disk.rename(file.path, path);
        this.#disk.syncDir(this.#dir);
      } finally {
        // Opened again under its own name, for messages.
        file.close();
      }
      // A sync that is under way closes the old file when it ends.
      if (this.#syncing?.file !== old) old.close();
      this.#tail = this.#disk.open(path, "write");
      this.#segments.push(segment);
      this.#offset = this.#encoder.sizeBytes;
      this.#durableBytes = this.#offset;
      this.#markedBytes = this.#offset;
      this.#onWrite?.(this.#offset);
      this.#logger.info("created a new WAL segment", { path });
    });
  }
}

function segmentBytesOf(options: WalOptions): number {
  const segmentBytes = options.segmentBytes ?? SEGMENT_BYTES;
  assert(
    Number.isSafeInteger(segmentBytes) && segmentBytes > 0 && segmentBytes % 8 === 0,
    `a segment of ${segmentBytes} bytes`,
  );
  return segmentBytes;
}
