/**
 * The write-ahead log of a member.
 *
 *     const { wal, from, hardState, entries } = Wal.open(disk, dir, "newest", options);
 *     // or Wal.create for a new member
 *     wal.append(hardState, entries);   // one blocking write
 *     await wal.sync();                 // now it is durable; appends may go on meanwhile
 *     await wal.saveSnapshot(mark);     // after a snapshot file was saved
 *     wal.release(mark.index);          // removes segments that are no longer needed
 *     await wal.close();
 *
 * One fdatasync runs at a time, beside the appends; callers that come during it share the next.
 *
 * A disk error closes the log: after a failed write or sync the content of the disk is unknown, so
 * nothing is retried.
 *
 * A full segment is closed inside `append`: its end is synced, the next one gets its first records
 * and its name, and that is synced too. These three syncs block, once in 64 MB.
 */
import {
  type Clock,
  type Disk,
  type DiskFile,
  type DiskLock,
  type Logger,
  silentLogger,
} from "@quorate/host";
import { defined, raftpb, walpb } from "@quorate/proto";
import { FrameEncoder } from "./encoder.ts";
import { WalError } from "./errors.ts";
import {
  LogRules,
  RecordType,
  SEGMENT_BYTES,
  type SegmentName,
  segmentFor,
  segmentName,
} from "./format.ts";
import { assert } from "./invariants.ts";
import { isLog, makeLog, type ReadFrom, reopenLog } from "./opening.ts";
import { SegmentPipeline } from "./pipeline.ts";

/** Where the work of a log is counted. */
export interface WalMeasures {
  /** The duration of each sync of a segment, in seconds. */
  readonly syncSeconds: { observe(seconds: number): void };
  /** The duration of each write; the first records of a new segment are not timed. */
  readonly writeSeconds: { observe(seconds: number): void };
  readonly writtenBytes: { value: number };
}

export interface WalOptions {
  /** Times writes and syncs. */
  readonly clock: Clock;
  /** Size at which a segment is closed, a multiple of 8; 64,000,000 by default. */
  readonly segmentBytes?: number | undefined;
  readonly logger?: Logger;
  readonly measures?: WalMeasures | undefined;
}

/** The result of `Wal.open`. */
export interface OpenedWal {
  readonly wal: Wal;
  /** The mark of the snapshot that it was read from. */
  readonly from: walpb.Snapshot;
  readonly metadata: Uint8Array;
  /** The last hard state written, or undefined. */
  readonly hardState: raftpb.HardState | undefined;
  /** Entries after the snapshot, in order. */
  readonly entries: raftpb.Entry[];
  /** Bytes of a torn write that were cut off at the end; they were never acknowledged. */
  readonly droppedTailBytes: number;
}

/** An fdatasync that runs, with the segment and length that it makes durable. */
interface RunningSync {
  readonly file: DiskFile;
  readonly lengthBytes: number;
  /** Monotonic milliseconds. */
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
  /** Offset of the next record in the last segment; all before it is durable. */
  readonly offset: number;
  readonly crc: number;
  readonly rules: LogRules;
}

/** The size at which a segment is closed; its range is checked. */
function segmentBytesOf(options: WalOptions): number {
  const segmentBytes = options.segmentBytes ?? SEGMENT_BYTES;
  assert(
    Number.isSafeInteger(segmentBytes) && segmentBytes > 0 && segmentBytes % 8 === 0,
    "WAL-4",
    `a segment of ${segmentBytes} bytes`,
  );
  return segmentBytes;
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
  readonly #measures: WalOptions["measures"];
  readonly #lock: DiskLock;
  readonly #metadata: Uint8Array;
  readonly #rules: LogRules;
  readonly #encoder: FrameEncoder;
  readonly #pipeline: SegmentPipeline;
  #hardState: raftpb.HardState | undefined;
  /** Oldest first; the last is the one that is written. */
  #segments: SegmentName[];
  #tail: DiskFile;
  /** Offset of the next record in the last segment. */
  #offset: number;
  /** How much of the last segment is known to be on disk. */
  #durableBytes: number;
  /** The length in the last durable mark, or where this process began to write the last segment. */
  #markedBytes: number;
  #running: RunningSync | undefined;
  /** The sync after the running one, for all callers that came after its start. */
  #next: PromiseWithResolvers<void> | undefined;
  #lastSyncMs = Number.POSITIVE_INFINITY;
  /** The reason why the log cannot be used any more. */
  #ended: WalError | undefined;
  #isClosing = false;

  private constructor(parts: WalParts) {
    const { options } = parts;
    this.#disk = parts.disk;
    this.#dir = parts.dir;
    this.#clock = options.clock;
    this.#logger = options.logger ?? silentLogger;
    this.#segmentBytes = segmentBytesOf(options);
    this.#measures = options.measures;
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
   * Creates a log in the directory `dir`, which appears completely or not at all; its parent must
   * exist and be durable. Blocks for the allocation of a segment. The log starts with a mark of
   * snapshot 0.
   *
   * @param metadata the first record of each segment: identifies the owner of the log.
   * @throws WalError Exists, DiskError ("Locked" if another process is creating one at this
   * moment).
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
   * none), or from the newest that its last state has committed. A torn write at its end is cut
   * off. Blocks while it reads, which it does once for the newest.
   *
   * @throws WalDamageError; WalError NotFound, SnapshotNotFound, SnapshotMismatch; DiskError
   * ("Locked" if another process has it).
   */
  static open(disk: Disk, dir: string, from: ReadFrom, options: WalOptions): OpenedWal {
    segmentBytesOf(options);
    if (!isLog(disk, dir)) throw new WalError("NotFound", dir, "there is no log here");
    const lock = disk.lock(lockPath(dir));
    try {
      const log = reopenLog(disk, dir, from, options.logger);
      const { metadata, hardState, entries, end, rules, segments, tail } = log;
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
      return { wal, from: log.from, metadata, hardState, entries, droppedTailBytes: end.tornBytes };
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  /** Index of the last entry, or of a snapshot beyond it. */
  get lastIndex(): number {
    return this.#rules.lastIndex;
  }

  /** The monotonic time at which the running sync started; undefined if none is running. */
  get syncingSinceMs(): number | undefined {
    return this.#running?.startMs;
  }

  /** Names of the segments, oldest first. */
  get segmentNames(): string[] {
    return this.#segments.map((segment) => segment.name);
  }

  /**
   * Writes entries, then the state if there is one, in one blocking write; durable after `sync`. An
   * entry replaces an earlier one with its index and all entries after it. The entries' data is not
   * used after the return.
   *
   * Entries must follow each other and be above the commit index; the state's commit index must not
   * be beyond the last entry (a received snapshot is saved first).
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
        assert(problem === undefined, "WAL-1", problem);
        this.#encoder.entry(entry);
      }
      if (isState) {
        const problem = this.#rules.state(hardState);
        assert(problem === undefined, "WAL-1", problem);
        this.#hardState = { ...hardState };
        this.#encoder.record(RecordType.State, raftpb.HardState.encode(hardState));
      }
      this.#writeBatch();
    });
    if (this.#offset >= this.#segmentBytes) this.#cut();
    else if (this.#offset * 2 >= this.#segmentBytes) this.#pipeline.start();
  }

  /**
   * Resolves when everything appended before the call is durable. One fdatasync runs at a time;
   * calls during it share the next.
   *
   * Rejects with a DiskError, after which the log is closed.
   */
  sync(): Promise<void> {
    this.#checkOpen();
    return this.#sync();
  }

  /**
   * Like `sync`, but everything is durable when it returns: faster than waking another thread when
   * the event loop has no other work. No sync may be running.
   *
   * @throws DiskError, after which the log is closed; WalError Closed.
   */
  syncNow(): void {
    this.#checkOpen();
    assert(this.#running === undefined, "WAL-2");
    if (this.#durableBytes === this.#offset) return;
    this.#guard(() => this.#syncFileNow(this.#tail));
    this.#durableBytes = this.#offset;
  }

  /** Whether a sync is under way. */
  get isSyncing(): boolean {
    return this.#running !== undefined;
  }

  /** How long the last sync took; infinite before the first. */
  get lastSyncMs(): number {
    return this.#lastSyncMs;
  }

  /**
   * Writes the mark of a snapshot whose file is already saved; durable when it resolves. Entries up
   * to the snapshot's index need not be in the log: a snapshot received from a leader replaces
   * them.
   */
  async saveSnapshot(mark: walpb.Snapshot): Promise<void> {
    this.#checkOpen();
    assert(mark.index === 0 || mark.confState !== undefined, "WAL-3");
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
   * more than `keepSegments` remain; returns their names. Keeps the lock.
   */
  release(index: number, keepSegments = 1): string[] {
    this.#checkOpen();
    const count = Math.min(
      segmentFor(this.#segments, index),
      this.#segments.length - Math.max(1, keepSegments),
    );
    if (count <= 0) return [];
    const released = this.#segments.slice(0, count).map((segment) => segment.name);
    // Oldest first: if the machine stops in between, the remaining segments have no gap.
    for (const name of released) {
      this.#disk.remove(`${this.#dir}/${name}`);
      this.#segments.shift();
    }
    return released;
  }

  /**
   * Syncs what was appended, closes the files and releases the lock, even if the sync fails. A
   * second call does nothing.
   */
  async close(): Promise<void> {
    if (this.#isClosing) return;
    this.#isClosing = true;
    try {
      if (!this.#ended) await this.#sync();
    } finally {
      this.#ended ??= new WalError("Closed", this.#dir, "the log is closed");
      await this.#running?.promise.catch(() => {});
      await this.#pipeline.close();
      this.#tail.close();
      this.#lock.release();
    }
  }

  #checkOpen(): void {
    if (this.#ended) throw this.#ended;
    if (this.#isClosing) throw new WalError("Closed", this.#dir, "the log is being closed");
  }

  /** Runs a change of the log; a failure closes the log. */
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
    this.#next?.reject(error);
    this.#next = undefined;
  }

  /** Starts a batch, with a durable mark if more is on disk than the last one covers. */
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
    if (this.#measures === undefined) return;
    this.#measures.writtenBytes.value += this.#encoder.sizeBytes;
    this.#measures.writeSeconds.observe((this.#clock.monotonicMs() - startMs) / 1000);
  }

  #sync(): Promise<void> {
    const running = this.#running;
    if (running !== undefined) {
      const isSame = running.file === this.#tail && running.lengthBytes === this.#offset;
      if (isSame) return running.promise;
      this.#next ??= Promise.withResolvers();
      return this.#next.promise;
    }
    return this.#durableBytes === this.#offset ? Promise.resolve() : this.#startSync();
  }

  #startSync(): Promise<void> {
    const file = this.#tail;
    const lengthBytes = this.#offset;
    const startMs = this.#clock.monotonicMs();
    const promise = file.dataSync().then(
      () => {
        this.#running = undefined;
        this.#noteSync(this.#clock.monotonicMs() - startMs);
        if (file === this.#tail) this.#durableBytes = lengthBytes;
        else file.close();
        this.#syncForNext();
      },
      (error) => {
        this.#running = undefined;
        if (file !== this.#tail) file.close();
        this.#fail(error);
        throw error;
      },
    );
    this.#running = { file, lengthBytes, startMs, promise };
    return promise;
  }

  /** Syncs for the callers that came during the last sync. */
  #syncForNext(): void {
    const next = this.#next;
    if (next === undefined) return;
    this.#next = undefined;
    if (this.#durableBytes === this.#offset) next.resolve();
    else this.#startSync().then(next.resolve, next.reject);
  }

  /** Syncs a file before it returns. @throws DiskError */
  #syncFileNow(file: DiskFile): void {
    this.#noteSync(file.dataSyncNow());
  }

  #noteSync(tookMs: number): void {
    this.#lastSyncMs = tookMs;
    this.#measures?.syncSeconds.observe(tookMs / 1000);
  }

  /** Starts a new segment. Until it has its name, durable records do not depend on it. */
  #cut(): void {
    this.#guard(() => {
      const old = this.#tail;
      old.truncate(this.#offset);
      this.#syncFileNow(old);

      const segment = segmentName(
        defined(this.#segments.at(-1), "the segment that is written").sequence + 1,
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
        this.#syncFileNow(file);
        this.#disk.rename(file.path, path);
        this.#disk.syncDir(this.#dir);
      } finally {
        // Opened again under its own name, for error messages.
        file.close();
      }
      // A running sync closes the old file when it ends.
      if (this.#running?.file !== old) old.close();
      this.#tail = this.#disk.open(path, "write");
      this.#segments.push(segment);
      this.#offset = this.#encoder.sizeBytes;
      this.#durableBytes = this.#offset;
      this.#markedBytes = this.#offset;
      if (this.#measures !== undefined) this.#measures.writtenBytes.value += this.#offset;
      this.#logger.info("created a new WAL segment", { path });
    });
  }
}
