/**
 * How applied entries get to the disk a second time, in the store, and leave the log then.
 *
 * The store's changes are written in batches (Flusher). Every `snapshotCount` entries, or when they
 * hold `maxLogBytes`, the log gets a new beginning (LogMarks): the store is flushed, a mark for its
 * index goes into the WAL (with a .snap file beside it, as in etcd), old segments go, and Raft
 * drops entries from memory, but for the last `catchUpEntries` (and at most `maxCatchUpBytes`) that
 * a slow follower may still want. A follower that wants older ones gets the store itself as a
 * stream (snapshot-sender.ts).
 *
 * Entries of etcd's v2 store, which 3.5 writes and 3.7 does not start on, go at once when the
 * cluster's version says that all members are of 3.6 or later: a member of etcd 3.7 that joins then
 * gets the store, and the log after them.
 */
import type { Clock, Logger, Timer } from "@quorate/host";
import type { Histogram } from "@quorate/metrics";
import { EMPTY, raftpb } from "@quorate/proto";
import type { Raft } from "@quorate/raft";
import { isV2 } from "@quorate/store";
import type { SnapshotFiles, Wal } from "@quorate/wal";
import type { FaultHook } from "../loop/fault-points.ts";
import type { Lifetime } from "../loop/lifetime.ts";
import type { LoopTurns, UnwrittenCommit } from "../loop/turns.ts";
import { compareVersions } from "../membership/versions.ts";
import type { StoreRef } from "../reads/store-ref.ts";
import type { SentSnapshots } from "./sent-snapshots.ts";
import type { SnapshotReceiver } from "./snapshot-receiver.ts";
import type { StoreExchange } from "./store-exchange.ts";

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
  readonly faults: FaultHook | undefined;
}

/** The first version of etcd that writes no entries of the v2 store. */
const WITHOUT_V2 = "3.6.0";

/** An applied entry's place in the count of bytes, kept for a sample of entries. */
interface ByteMark {
  readonly index: number;
  readonly totalBytes: number;
}

/** New beginnings of the log, which keep it short. */
export class LogMarks {
  readonly #limits: LogMarkLimits;
  readonly #parts: LogMarksParts;
  #lastMarkIndex: number;
  #marking = false;
  #totalBytes = 0;
  #bytesAtLastMark = 0;
  #byteMarks: ByteMark[] = [];
  /**
   * Entries up to here go with the next mark, whoever may want them; undefined until the cluster's
   * version says that no more of etcd's v2 store come.
   */
  #lastV2Index: number | undefined;
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
    this.#lastV2Index ??= this.#findLastV2();
    if (this.#marking) return;
    const tooMany = index - this.#lastMarkIndex >= this.#limits.snapshotCount;
    const tooLarge = this.#totalBytes - this.#bytesAtLastMark >= this.#limits.maxLogBytes;
    const holdsV2 = (this.#lastV2Index ?? 0) >= this.#parts.raft.firstIndex;
    if ((!tooMany && !tooLarge && !holdsV2) || this.#parts.receiver.isExpecting) return;
    this.#marking = true;
    this.#marked = this.#mark().then(() => {
      this.#marking = false;
    }, this.#parts.lifetime.end);
  }

  #findLastV2(): number | undefined {
    const { raft, store } = this.#parts;
    const { followsEtcd, membership } = store.current;
    if (!followsEtcd) return undefined;
    if (compareVersions(membership.clusterVersion ?? "0.0", WITHOUT_V2) < 0) return undefined;
    return raft.lastIndexOf(
      ({ type, data }) => type === raftpb.EntryType.EntryNormal && isV2(data),
    );
  }

  async #mark(): Promise<void> {
    const { wal, files, logger, faults } = this.#parts;
    const store = this.#parts.store.current;
    const position = store.position;
    faults?.("before-backend-flush");
    await store.flush();
    faults?.("after-backend-flush");
    const { index, term, confState } = position;
    const previous = this.#lastMarkIndex;
    if (index <= previous || store !== this.#parts.store.current) return;
    faults?.("before-snapshot-mark");
    this.#parts.unwritten.write();
    files.save({ data: EMPTY, metadata: { index, term, confState } });
    await wal.saveSnapshot({ index, term, confState });
    faults?.("after-snapshot-mark");
    logger.info("saved snapshot", { "snapshot-index": index, "snapshot-term": term });
    // A received snapshot may have overtaken this mark while it was written.
    if (index <= this.#lastMarkIndex) return;
    this.#lastMarkIndex = index;
    this.#bytesAtLastMark = this.#totalBytes;
    this.#compactLog(index, confState);
    faults?.("before-log-release");
    // The mark before this one stays startable, should this one's segment be damaged.
    wal.release(previous, this.#limits.maxWalFiles);
    files.purge(this.#limits.maxSnapshotFiles);
  }

  /**
   * Drops entries that no follower is likely to want: those further back than the catch-up bounds,
   * but not those behind a snapshot that is on its way or has just arrived, unless they have grown
   * to `maxLogBytes`. Those up to the last one of etcd's v2 store go.
   */
  #compactLog(index: number, confState: raftpb.ConfState): void {
    const { catchUpEntries, maxCatchUpBytes, maxLogBytes } = this.#limits;
    const { sent, raft, turns, logger } = this.#parts;
    let keepFrom = Math.max(index - catchUpEntries, this.#indexWithin(maxCatchUpBytes));
    const pinned = sent.least(index);
    keepFrom = Math.min(keepFrom, index, Math.max(pinned, this.#indexWithin(maxLogBytes)));
    keepFrom = Math.max(keepFrom, Math.min(index, this.#lastV2Index ?? 0));
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

/** Batches on their way at a time. */
const MAX_FLUSHES = 2;

export interface FlusherDeps {
  readonly clock: Clock;
  readonly store: StoreRef;
  readonly exchange: Pick<StoreExchange, "isRunning">;
  readonly faults: FaultHook | undefined;
  readonly duration: Histogram;
  readonly turns: LoopTurns;
  readonly lifetime: Lifetime;
}

/** Writes the store's changes to the disk: at intervals, and when a batch has reached its bound. */
export class Flusher {
  readonly #everyMs: number;
  readonly #deps: FlusherDeps;
  #timer: Timer | undefined;
  #flushes = 0;

  /** @param everyMs --backend-batch-interval */
  constructor(everyMs: number, deps: FlusherDeps) {
    this.#everyMs = everyMs;
    this.#deps = deps;
  }

  start(): void {
    this.#timer = this.#deps.clock.every(this.#everyMs, () => this.flush());
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** Begins to write a batch, where there is something to write and not too much is on its way. */
  flush(): void {
    const { store, exchange, lifetime } = this.#deps;
    // While a received store takes its place, the old one is closed, and what it has not written
    // is not wanted any more.
    if (exchange.isRunning || !store.current.needsFlush || this.#flushes >= MAX_FLUSHES) return;
    this.#flushes++;
    this.#write().catch(lifetime.end);
  }

  async #write(): Promise<void> {
    const { clock, store, faults, duration, turns } = this.#deps;
    const startMs = clock.monotonicMs();
    faults?.("before-backend-flush");
    await store.current.flush();
    faults?.("after-backend-flush");
    this.#flushes--;
    duration.observe((clock.monotonicMs() - startMs) / 1000);
    // The loop may have waited for space.
    turns.wake();
  }
}
