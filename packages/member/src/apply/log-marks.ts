/**
 * New beginnings of the log, which keep it short.
 *
 * Every `snapshotCount` entries, or when they hold `maxLogBytes`, the log gets a new beginning: the
 * store is flushed, a mark for its index goes into the WAL (with a .snap file beside it, as in
 * etcd), old segments go, and Raft drops entries from memory, but for the last `catchUpEntries`
 * (and at most `maxCatchUpBytes`) that a slow follower may still want. A follower that wants older
 * ones gets the store itself as a stream (snapshot-sender.ts).
 */
import type { Logger } from "@quorate/host";
import { EMPTY, type raftpb } from "@quorate/proto";
import type { Raft } from "@quorate/raft";
import type { SnapshotFiles, Wal } from "@quorate/wal";
import type { FaultHook } from "../loop/fault-points.ts";
import type { Lifetime } from "../loop/lifetime.ts";
import type { LoopTurns } from "../loop/loop-turns.ts";
import type { UnwrittenCommit } from "../loop/unwritten-commit.ts";
import type { StoreRef } from "../reads/store-ref.ts";
import type { SentSnapshots } from "./sent-snapshots.ts";
import type { SnapshotReceiver } from "./snapshot-receiver.ts";

export interface LogMarkLimits {
  readonly snapshotCount: number;
  readonly catchUpEntries: number;
  /**
   * Bytes of entries that are applied and still in memory, beyond which the log is cut even before
   * `snapshotCount`.
   */
  readonly maxLogBytes: number;
  readonly maxCatchUpBytes: number;
  /** Log segments and snapshot files to keep beyond need. */
  readonly maxWalFiles: number;
  readonly maxSnapshotFiles: number;
  readonly byteMarkEveryBytes: number;
}

export interface LogMarksParts {
  readonly store: StoreRef;
  readonly wal: Wal;
  readonly files: SnapshotFiles;
  readonly raft: Raft;
  readonly turns: LoopTurns;
  readonly unwritten: UnwrittenCommit;
  readonly sent: SentSnapshots;
  readonly receiver: SnapshotReceiver;
  readonly lifetime: Lifetime;
  readonly logger: Logger;
  readonly faults: FaultHook;
}

/** An applied entry's place in the count of bytes, kept for a sample of entries. */
interface ByteMark {
  readonly index: number;
  readonly totalBytes: number;
}

export class LogMarks {
  readonly #limits: LogMarkLimits;
  readonly #parts: LogMarksParts;
  #lastMarkIndex: number;
  #marking = false;
  #totalBytes = 0;
  #bytesAtLastMark = 0;
  #byteMarks: ByteMark[] = [];
  /** The mark that is being written. */
  #marked: Promise<void> = Promise.resolve();

  constructor(limits: LogMarkLimits, parts: LogMarksParts, lastMarkIndex: number) {
    this.#limits = limits;
    this.#parts = parts;
    this.#lastMarkIndex = lastMarkIndex;
  }

  /**
   * Entries were applied, up to `index`, with `bytes` of data: time for a new beginning of the log?
   */
  applied(index: number, bytes: number): void {
    this.#totalBytes += bytes;
    const lastMark = this.#byteMarks[this.#byteMarks.length - 1];
    const { byteMarkEveryBytes } = this.#limits;
    if (lastMark === undefined || this.#totalBytes - lastMark.totalBytes >= byteMarkEveryBytes) {
      this.#byteMarks.push({ index, totalBytes: this.#totalBytes });
    }
    if (this.#marking) return;
    const tooMany = index - this.#lastMarkIndex >= this.#limits.snapshotCount;
    const tooLarge = this.#totalBytes - this.#bytesAtLastMark >= this.#limits.maxLogBytes;
    if ((!tooMany && !tooLarge) || this.#parts.receiver.isExpecting) return;
    this.#marking = true;
    this.#marked = this.#mark().then(() => {
      this.#marking = false;
    }, this.#parts.lifetime.end);
  }

  async #mark(): Promise<void> {
    const { wal, files, logger, faults } = this.#parts;
    const store = this.#parts.store.current;
    const position = store.position;
    faults("before-backend-flush");
    await store.flush();
    faults("after-backend-flush");
    const { index, term, confState } = position;
    const previous = this.#lastMarkIndex;
    if (index <= previous || store !== this.#parts.store.current) return;
    faults("before-snapshot-mark");
    this.#parts.unwritten.write();
    files.save({ data: EMPTY, metadata: { index, term, confState } });
    await wal.saveSnapshot({ index, term, confState });
    faults("after-snapshot-mark");
    logger.info("saved snapshot", { "snapshot-index": index, "snapshot-term": term });
    // A received snapshot may have overtaken this mark while it was written.
    if (index <= this.#lastMarkIndex) return;
    this.#lastMarkIndex = index;
    this.#bytesAtLastMark = this.#totalBytes;
    this.#compactLog(index, confState);
    faults("before-log-release");
    // The mark before this one stays startable, should this one's segment be damaged.
    wal.release(previous, this.#limits.maxWalFiles);
    files.purge(this.#limits.maxSnapshotFiles);
  }

  /**
   * Drops entries that no follower is likely to want: those further back than the catch-up bounds,
   * but not those behind a snapshot that is on its way or has just arrived, unless they have grown
   * to `maxLogBytes`.
   */
  #compactLog(index: number, confState: raftpb.ConfState): void {
    const { catchUpEntries, maxCatchUpBytes, maxLogBytes } = this.#limits;
    const { sent, raft, turns, logger } = this.#parts;
    let keepFrom = Math.max(index - catchUpEntries, this.#indexWithin(maxCatchUpBytes));
    const pinned = sent.least(index);
    keepFrom = Math.min(keepFrom, index, Math.max(pinned, this.#indexWithin(maxLogBytes)));
    const lowest = this.#indexWithin(maxLogBytes);
    this.#byteMarks = this.#byteMarks.filter((mark) => mark.index >= lowest);
    const isCompacted = keepFrom >= raft.firstIndex;
    if (isCompacted) raft.compact(keepFrom, confState);
    turns.wake();
    if (isCompacted) logger.info("compacted Raft logs", { "compact-index": keepFrom });
  }

  /** The index from which the entries hold at most `bytes`; 0 if all that were counted do. */
  #indexWithin(bytes: number): number {
    if (this.#totalBytes <= bytes) return 0;
    const floor = this.#totalBytes - bytes;
    return this.#byteMarks.find((mark) => mark.totalBytes >= floor)?.index ?? 0;
  }

  /** Of the last mark, whose entry the log begins after. */
  get lastIndex(): number {
    return this.#lastMarkIndex;
  }

  /** The same when a mark that is being written is there. */
  async leastIndex(): Promise<number> {
    await this.#marked;
    return this.#lastMarkIndex;
  }

  /**
   * A received snapshot is about to be marked in the log. A mark of this member's own that is under
   * way is below it and must not follow it there: a start would begin at the older of the two.
   */
  installing(index: number): void {
    this.#lastMarkIndex = index;
  }

  /** The received snapshot was installed: bytes count from there. */
  installed(): void {
    this.#bytesAtLastMark = this.#totalBytes;
  }
}
