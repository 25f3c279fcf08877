/**
 * What a run has recorded: the open segment, the last revision in it, and the leases as they were
 * last seen. A segment is left when it is full; it is durable before the next one begins, so that a
 * crash tears the newest alone. After a failed write or sync nothing more is written: what such a
 * file holds is for the next run to find out.
 */
import {
  applyLeases,
  type BackupRecord,
  MAX_LEASES_PER_RECORD,
  parseSegmentName,
  type RevisionChange,
  SegmentWriter,
} from "@quorate/backup";
import type { Disk } from "@quorate/host";

/** Where a run stands when it begins a segment. */
export interface JournalStart {
  readonly clusterId: bigint;
  /** All changes up to it are in earlier files. */
  readonly revision: number;
  /** Times to live in seconds, by lease. */
  readonly leases: ReadonlyMap<bigint, number>;
  /** The changes of that revision, where they are known. */
  readonly changes?: readonly RevisionChange[] | undefined;
}

export class Journal {
  readonly #disk: Disk;
  readonly #dir: string;
  readonly #nowMs: () => number;
  #segment: SegmentWriter | undefined;
  #syncing: Promise<void> = Promise.resolve();
  #failed = false;
  #clusterId = 0n;
  #last = 0;
  #lastChanges: readonly RevisionChange[] | undefined;
  #leases = new Map<bigint, number>();

  constructor(disk: Disk, dir: string, nowMs: () => number) {
    this.#disk = disk;
    this.#dir = dir;
    this.#nowMs = nowMs;
  }

  get clusterId(): bigint {
    return this.#clusterId;
  }

  /** The last revision that is recorded. */
  get last(): number {
    return this.#last;
  }

  /** Its changes; undefined while nothing stands behind a base. */
  get lastChanges(): readonly RevisionChange[] | undefined {
    return this.#lastChanges;
  }

  get leases(): ReadonlyMap<bigint, number> {
    return this.#leases;
  }

  /**
   * Begins a segment behind `start`; the one before is durable and closed then. Rejects with
   * DiskError.
   */
  async begin(start: JournalStart): Promise<void> {
    await this.#settle();
    this.#clusterId = start.clusterId;
    this.#last = start.revision;
    this.#lastChanges = start.changes;
    this.#leases = new Map(start.leases);
    this.#nextSegment();
  }

  /** Waits until all of the segment is durable. Others append while it is synced. */
  async #settle(): Promise<void> {
    while (this.#segment !== undefined && !this.#segment.isDurable) await this.sync();
  }

  #nextSegment(): void {
    const before = this.#segment;
    const head = {
      kind: "head",
      clusterId: this.#clusterId,
      revision: this.#last,
      timeMs: this.#nowMs(),
    } as const;
    this.#segment = this.#attempt(() =>
      SegmentWriter.create(
        this.#disk,
        this.#dir,
        (before?.number ?? this.#highestNumber()) + 1,
        head,
      ),
    );
    before?.close();
    this.#appendLeases(true, this.#leases);
  }

  /** The highest number of a segment that is there, torn ones included; 0 for none. */
  #highestNumber(): number {
    return Math.max(0, ...this.#disk.list(this.#dir).map((name) => parseSegmentName(name) ?? 0));
  }

  /** Records what happened at the next revision. @throws DiskError */
  appendRevision(timeMs: number, revision: number, changes: readonly RevisionChange[]): void {
    this.append({ kind: "changes", timeMs, revision, changes });
    this.#last = revision;
    this.#lastChanges = changes;
  }

  /** Records leases that are new, have another time to live, or are gone (0). @throws DiskError */
  noteLeases(changed: ReadonlyMap<bigint, number>): void {
    if (changed.size === 0) return;
    applyLeases(this.#leases, { all: false, leases: changed });
    this.#appendLeases(false, changed);
  }

  #appendLeases(all: boolean, leases: ReadonlyMap<bigint, number>): void {
    const entries = [...leases];
    const timeMs = this.#nowMs();
    for (let at = 0; at === 0 || at < entries.length; at += MAX_LEASES_PER_RECORD) {
      this.append({
        kind: "leases",
        timeMs,
        all: all && at === 0,
        leases: new Map(entries.slice(at, at + MAX_LEASES_PER_RECORD)),
      });
    }
  }

  /** Appends a record, durable after `sync`. @throws DiskError */
  append(record: BackupRecord): void {
    this.#attempt(() => this.#segment!.append(record));
  }

  /** Goes on in another segment if this one is full. Rejects with DiskError. */
  async turnIfFull(): Promise<void> {
    if (!this.#segment!.isFull) return;
    await this.#settle();
    this.#nextSegment();
  }

  /**
   * Makes durable what was appended before the call, one sync after the other. Rejects with
   * DiskError.
   */
  sync(): Promise<void> {
    this.#syncing = this.#syncing.then(() => this.#segment!.sync());
    return this.#syncing;
  }

  #attempt<T>(task: () => T): T {
    try {
      return task();
    } catch (error) {
      this.#failed = true;
      throw error;
    }
  }

  /**
   * Makes all of it durable and ends the use; harmless where nothing was begun. Rejects with
   * DiskError.
   */
  async close(): Promise<void> {
    await this.#syncing.catch(() => {
      this.#failed = true;
    });
    const segment = this.#segment;
    this.#segment = undefined;
    if (segment === undefined) return;
    try {
      if (!this.#failed) await segment.sync();
    } finally {
      segment.close();
    }
  }
}
