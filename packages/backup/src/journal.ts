/**
 * The records of a run: the open segment, the last revision in it, and the leases as last seen. A
 * full segment becomes durable before the next one begins, so a crash can tear only the newest
 * segment. After a failed write or sync the journal writes nothing more; the next run reads what
 * the file holds.
 */

import type { Disk } from "@quorate/host";
import { defined } from "@quorate/proto";
import { applyLeases } from "./follow-state.ts";
import {
  type BackupRecord,
  MAX_LEASES_PER_RECORD,
  parseSegmentName,
  type RevisionChange,
} from "./format.ts";
import { SegmentWriter } from "./segment-writer.ts";

/** The state at the start of a segment. */
export interface JournalStart {
  readonly clusterId: bigint;
  /** Earlier files have all changes up to and including this revision. */
  readonly revision: number;
  /** Times to live in seconds, by lease. */
  readonly leases: ReadonlyMap<bigint, number>;
  /** The changes of that revision; absent where unknown. */
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
  #recordedMs = 0;
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

  /** The last recorded revision. */
  get last(): number {
    return this.#last;
  }

  /** The wall-clock time in ms up to which all changes are recorded; 0 before the first record. */
  get recordedMs(): number {
    return this.#recordedMs;
  }

  /** The changes of the last revision; undefined while the base is the newest record. */
  get lastChanges(): readonly RevisionChange[] | undefined {
    return this.#lastChanges;
  }

  get leases(): ReadonlyMap<bigint, number> {
    return this.#leases;
  }

  /** Begins a segment. The one before is made durable and closed. Rejects with DiskError. */
  async begin(start: JournalStart): Promise<void> {
    await this.#settle();
    this.#clusterId = start.clusterId;
    this.#last = start.revision;
    this.#lastChanges = start.changes;
    this.#leases = new Map(start.leases);
    this.#nextSegment();
  }

  /** Waits until all of the segment is durable, including records appended meanwhile. */
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
    this.#appendLeaseRecords(true, this.#leases);
  }

  /** The highest number of an existing segment, torn ones included; 0 without segments. */
  #highestNumber(): number {
    return Math.max(0, ...this.#disk.list(this.#dir).map((name) => parseSegmentName(name) ?? 0));
  }

  /** Appends the changes of the next revision. @throws DiskError */
  appendRevision(timeMs: number, revision: number, changes: readonly RevisionChange[]): void {
    this.append({ kind: "changes", timeMs, revision, changes });
    this.#last = revision;
    this.#lastChanges = changes;
  }

  /**
   * Appends leases that are new, have another time to live in seconds, or have ended (0).
   * @throws DiskError
   */
  appendLeases(changed: ReadonlyMap<bigint, number>): void {
    if (changed.size === 0) return;
    applyLeases(this.#leases, { all: false, leases: changed });
    this.#appendLeaseRecords(false, changed);
  }

  #appendLeaseRecords(all: boolean, leases: ReadonlyMap<bigint, number>): void {
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
    this.#attempt(() => defined(this.#segment, "the segment").append(record));
    if (record.kind === "changes" || record.kind === "progress") this.#recordedMs = record.timeMs;
  }

  /** Begins the next segment if this one is full. Rejects with DiskError. */
  async rollIfFull(): Promise<void> {
    if (!defined(this.#segment, "the segment").isFull) return;
    await this.#settle();
    this.#nextSegment();
  }

  /**
   * Makes all records appended before the call durable. Calls run one after the other. Rejects with
   * DiskError.
   */
  sync(): Promise<void> {
    this.#syncing = this.#syncing.then(() => defined(this.#segment, "the segment").sync());
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

  /** Makes all records durable and closes the segment, if one is open. Rejects with DiskError. */
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
