/**
 * Keeping the log short, and helping members for which it is too short.
 *
 * Every `snapshotCount` entries, or when they hold `maxLogBytes`, the log gets a new beginning: the
 * store is flushed, a mark for its index goes into the WAL (with a .snap file beside it, as in
 * etcd), old segments go, and Raft drops entries from memory, but for the last `catchUpEntries`
 * (and at most `maxCatchUpBytes`) that a slow follower may still want. A follower that wants older
 * ones gets the store itself as a stream.
 */
import type { Clock, Disk, KeyspaceOpener, Logger } from "@quorate/host";
import { EMPTY, idToHex, raftpb } from "@quorate/proto";
import {
  type AppliedEntry,
  dropIncoming,
  receiveSnapshot,
  type StoreSnapshot,
} from "@quorate/store";
import type { SnapshotStream, Transport } from "@quorate/transport";
import type { SnapshotFiles, Wal } from "@quorate/wal";
import type { MemberConfig } from "../config/member-config.ts";
import type { FaultHook } from "../loop/fault-points.ts";
import type { MemberLoop } from "../loop/loop.ts";
import type { StoreRef } from "../reads/store-ref.ts";

export interface SnapshotLimits {
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
}

export interface SnapshotParts {
  readonly memberId: bigint;
  readonly store: StoreRef;
  readonly wal: Wal;
  readonly files: SnapshotFiles;
  readonly transport: Transport;
  readonly loop: Pick<
    MemberLoop<AppliedEntry>,
    "appliedIndex" | "received" | "withRaft" | "writeHardState"
  >;
  readonly clock: Clock;
  readonly disk: Disk;
  readonly keyspaces: KeyspaceOpener;
  readonly config: Pick<MemberConfig, "storeDir">;
  readonly logger: Logger;
  readonly faults: FaultHook;
  /** A leader's store has been received and is on the disk. */
  received(durationMs: number): void;
  fatal(error: unknown): void;
}

/**
 * After a snapshot was sent, the entries behind it stay for this long: the follower still has to
 * ask for them (as in etcd).
 */
const KEEP_AFTER_SENT_MS = 30_000;

/** An applied entry's place in the count of bytes, kept for a sample of entries. */
interface ByteMark {
  readonly index: number;
  readonly totalBytes: number;
}

const BYTE_MARK_EVERY_BYTES = 1024 * 1024;

/** A snapshot for a follower. */
interface SnapshotSent {
  /** The view that is streamed; undefined before it is open and after it was closed. */
  snapshot: StoreSnapshot | undefined;
  index: number;
  /** The transport has reported how it ended: the next may be sent. */
  isOver: boolean;
}

/** Callbacks about the leader's store that this member waits for outside of Raft. */
interface Expecting {
  begins(): void;
  /** @throws Error where another came before */
  came(index: number): void;
  failed(error: Error): void;
}

export class Snapshots {
  readonly #limits: SnapshotLimits;
  readonly #parts: SnapshotParts;
  #lastMarkIndex: number;
  #marking = false;
  #totalBytes = 0;
  #bytesAtLastMark = 0;
  #byteMarks: ByteMark[] = [];
  /** Indexes that a follower is being sent a snapshot of, by member: the log behind them stays. */
  readonly #sending = new Map<bigint, SnapshotSent>();
  #receiving = false;
  /** The mark that is being written. */
  #marked: Promise<void> = Promise.resolve();
  /** Set while this member waits for the leader's store outside of Raft. */
  #expecting: Expecting | undefined;

  constructor(limits: SnapshotLimits, parts: SnapshotParts, lastMarkIndex: number) {
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
    if (lastMark === undefined || this.#totalBytes - lastMark.totalBytes >= BYTE_MARK_EVERY_BYTES) {
      this.#byteMarks.push({ index, totalBytes: this.#totalBytes });
    }
    if (this.#marking || this.#expecting !== undefined) return;
    const tooMany = index - this.#lastMarkIndex >= this.#limits.snapshotCount;
    const tooLarge = this.#totalBytes - this.#bytesAtLastMark >= this.#limits.maxLogBytes;
    if (!tooMany && !tooLarge) return;
    this.#marking = true;
    this.#marked = this.#mark().then(
      () => {
        this.#marking = false;
      },
      (error: unknown) => this.#parts.fatal(error),
    );
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
    this.#parts.loop.writeHardState();
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
    let keepFrom = Math.max(index - catchUpEntries, this.#indexWithin(maxCatchUpBytes));
    const pinned = Math.min(index, ...[...this.#sending.values()].map((sending) => sending.index));
    keepFrom = Math.min(keepFrom, index, Math.max(pinned, this.#indexWithin(maxLogBytes)));
    const lowest = this.#indexWithin(maxLogBytes);
    this.#byteMarks = this.#byteMarks.filter((mark) => mark.index >= lowest);
    const compacted = this.#parts.loop.withRaft((raft) => {
      if (keepFrom < raft.firstIndex) return false;
      raft.compact(keepFrom, confState);
      return true;
    });
    if (compacted) this.#parts.logger.info("compacted Raft logs", { "compact-index": keepFrom });
  }

  /** The index from which the entries hold at most `bytes`; 0 if all that were counted do. */
  #indexWithin(bytes: number): number {
    if (this.#totalBytes <= bytes) return 0;
    const floor = this.#totalBytes - bytes;
    return this.#byteMarks.find((mark) => mark.totalBytes >= floor)?.index ?? 0;
  }

  /** Streams the store to a peer that has requested it, outside of Raft. */
  sendTo(id: bigint): void {
    const { memberId, loop } = this.#parts;
    const term = loop.withRaft((raft) => raft.term);
    this.send(
      raftpb.Message.create({ type: raftpb.MessageType.MsgSnap, to: id, from: memberId, term }),
    );
  }

  /**
   * Streams the store to the peer that Raft's message is for. The transport reports how it
   * ended through `sent`.
   */
  send(message: raftpb.Message): void {
    const { logger, transport } = this.#parts;
    // One at a time, from the opening of the view on: of two, the end of the one could not be
    // distinguished from that of the other.
    if (this.#sending.get(message.to)?.isOver === false) return;
    const sending: SnapshotSent = {
      snapshot: undefined,
      index: this.#lastMarkIndex,
      isOver: false,
    };
    this.#sending.set(message.to, sending);
    this.#parts.store.current.snapshot().then(
      (snapshot) => {
        if (this.#sending.get(message.to) !== sending) {
          // The store is being closed, or exchanged.
          snapshot.close().catch((error: unknown) => this.#parts.fatal(error));
          return;
        }
        const { index, term, confState } = snapshot.position;
        sending.snapshot = snapshot;
        if (term > message.term) {
          // This member led when the message was made, and another has led since.
          this.sent(message.to, false);
          return;
        }
        sending.index = index;
        logger.info("sending database snapshot", {
          "snapshot-index": index,
          "remote-peer-id": idToHex(message.to),
          bytes: snapshot.sizeEstimateBytes,
        });
        transport.sendSnapshot({
          message: {
            ...message,
            snapshot: { data: EMPTY, metadata: { index, term, confState } },
          },
          body: snapshot.chunks,
        });
      },
      (error: unknown) => {
        logger.warn("failed to open a snapshot to send", {
          "remote-peer-id": idToHex(message.to),
          error: error instanceof Error ? error.message : String(error),
        });
        this.sent(message.to, false);
      },
    );
  }

  /** A snapshot was taken over by the peer, or was not. */
  sent(id: bigint, taken: boolean): void {
    const sending = this.#sending.get(id);
    sending?.snapshot?.close().catch((error: unknown) => this.#parts.fatal(error));
    if (sending !== undefined) {
      sending.snapshot = undefined;
      sending.isOver = true;
      this.#parts.clock.after(taken ? KEEP_AFTER_SENT_MS : 0, () => {
        if (this.#sending.get(id) === sending) this.#sending.delete(id);
      });
    }
    this.#parts.loop.withRaft((raft) => raft.reportSnapshot(id, taken));
  }

  /**
   * Takes a snapshot from a peer into a directory of its own and then hands its message to Raft,
   * which decides whether to use it. Of one that is not ahead the message alone goes to Raft, whose
   * response names this member's commit index: without it the leader would send the same snapshot
   * for ever where the response to the first one was lost.
   *
   * @throws Error where the snapshot was not taken
   */
  async receive(stream: SnapshotStream): Promise<void> {
    const { logger, disk, keyspaces } = this.#parts;
    const { storeDir } = this.#parts.config;
    const { message } = stream;
    const index = message.snapshot?.metadata.index ?? 0;
    if (this.#receiving) throw new Error("another snapshot is being received");
    if (this.#expecting === undefined && index <= this.#parts.loop.appliedIndex) {
      this.#parts.loop.received([message]);
      throw new Error(`the snapshot's index ${index} is not ahead of this member`);
    }
    this.#receiving = true;
    const startMs = this.#parts.clock.monotonicMs();
    this.#expecting?.begins();
    try {
      if (this.#expecting === undefined)
        dropIncoming(disk, storeDir, this.#parts.loop.appliedIndex);
      logger.info("receiving database snapshot", {
        "snapshot-index": index,
        "remote-snapshot-sender-id": idToHex(message.from),
      });
      await receiveSnapshot(
        { disk, keyspaces },
        storeDir,
        index,
        stream.body,
        undefined,
        message.snapshot?.metadata,
      );
      this.#parts.received(this.#parts.clock.monotonicMs() - startMs);
      logger.info("received and saved database snapshot", {
        "snapshot-index": index,
        "remote-snapshot-sender-id": idToHex(message.from),
      });
      if (this.#expecting !== undefined) this.#expecting.came(index);
      else this.#parts.loop.received([message]);
    } catch (error) {
      this.#expecting?.failed(error as Error);
      throw error;
    } finally {
      this.#receiving = false;
    }
  }

  /**
   * The next store that arrives is not Raft's: `begun` resolves when it begins to come, `arrived`
   * when it is there; that rejects where it breaks off. Until `release` the log gets no new
   * beginning and no other store is taken; the one that came must not be older than `leastIndex`,
   * where the log begins.
   */
  expect(): {
    begun: Promise<void>;
    arrived: Promise<number>;
    leastIndex: () => Promise<number>;
    release: () => void;
  } {
    const { disk, loop } = this.#parts;
    const { storeDir } = this.#parts.config;
    // One that came for an attempt that failed is of no use any more, and takes as much of the disk
    // as the store.
    if (!this.#receiving) dropIncoming(disk, storeDir, loop.appliedIndex);
    const begun = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<number>();
    // It may break off before anybody waits for it.
    arrived.promise.catch(() => {});
    let came = false;
    const expecting: Expecting = {
      begins: () => begun.resolve(),
      came(index) {
        if (came) throw new Error("another store has come already");
        came = true;
        arrived.resolve(index);
      },
      failed: (error) => arrived.reject(error),
    };
    this.#expecting = expecting;
    return {
      begun: begun.promise,
      arrived: arrived.promise,
      leastIndex: async () => {
        await this.#marked;
        return this.#lastMarkIndex;
      },
      release: () => {
        if (this.#expecting === expecting) this.#expecting = undefined;
      },
    };
  }

  /**
   * A received snapshot is about to be marked in the log. A mark of this member's own that is under
   * way is below it and must not follow it there: a start would begin at the older of the two.
   */
  installing(index: number): void {
    this.#lastMarkIndex = index;
  }

  /** A received snapshot was installed: the log starts again at its index. */
  installed(index: number): void {
    this.#lastMarkIndex = index;
    this.#bytesAtLastMark = this.#totalBytes;
    this.#byteMarks = [];
  }

  /** Closes the views that are still being sent, when the member stops. */
  async close(): Promise<void> {
    for (const sending of this.#sending.values()) await sending.snapshot?.close();
    this.#sending.clear();
  }
}
