/**
 * Automatic compaction, by time or by number of revisions (etcd:
 * server/etcdserver/api/v3compactor). The leader alone does it: the compaction goes through the log
 * like a client's.
 *
 *     periodic 8h        the revision is noted every 6 minutes; after 8 hours that of 8 hours ago
 *                        is compacted, and so on every hour
 *     periodic 5m        noted every 30 s, compacted every 5 minutes
 *     revision 1000      every 5 minutes all but the newest 1000 revisions are compacted
 *
 * Every member notes revisions, so that a new leader need not wait for a whole period.
 */
import type { Clock, Logger, Timer } from "@quorate/host";
import { CompactionRequest } from "@quorate/proto";
import type { Applied } from "@quorate/store";
import type { AutoCompaction } from "../config/member-config.ts";

export interface AutoCompactorParts {
  readonly currentRevision: () => number;
  readonly isLeader: () => boolean;
  readonly propose: (request: Uint8Array) => Promise<Applied>;
  readonly clock: Clock;
  readonly logger: Logger;
}

const HOUR_MS = 3_600_000;
/** How often the number of revisions is looked at. */
export const REVISION_INTERVAL_MS = 5 * 60_000;
/** The revision is noted so often in a period; after a failure the next try is as soon. */
const NOTES_PER_PERIOD = 10;

export class AutoCompactor {
  readonly #mode: AutoCompaction;
  readonly #parts: AutoCompactorParts;
  #timer: Timer | undefined;
  #compacting = false;
  /** The last revision that was compacted here. */
  #last = 0;
  /** Revisions at intervals, the first one a whole period ago once there are enough of them. */
  #notes: number[] = [];
  /** When the last compaction by time was done, or counting began. */
  #sinceMs = 0;
  /** Whether the whole first period has passed. */
  #isSettled = false;

  constructor(mode: AutoCompaction, parts: AutoCompactorParts) {
    this.#mode = mode;
    this.#parts = parts;
  }

  start(): void {
    const { clock } = this.#parts;
    const mode = this.#mode;
    if (mode.mode === "revision") {
      this.#timer = clock.every(REVISION_INTERVAL_MS, () =>
        this.#byRevision(mode.retentionRevisions),
      );
    } else if (mode.mode === "periodic") {
      this.#notes = [this.#parts.currentRevision()];
      this.#sinceMs = clock.monotonicMs();
      this.#timer = clock.every(noteEveryMs(mode.retentionMs), () =>
        this.#byTime(mode.retentionMs),
      );
    }
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #byRevision(retentionRevisions: number): void {
    const revision = this.#parts.currentRevision() - retentionRevisions;
    if (!this.#parts.isLeader() || revision <= 0 || revision === this.#last) return;
    this.#compact(revision, "revision", { "revision-compaction-retention": retentionRevisions });
  }

  #byTime(retentionMs: number): void {
    const { clock, isLeader, currentRevision } = this.#parts;
    const revision = this.#notes[0] ?? 0;
    const nowMs = clock.monotonicMs();
    const intervalMs = this.#isSettled ? Math.min(retentionMs, HOUR_MS) : retentionMs;
    if (isLeader() && nowMs - this.#sinceMs >= intervalMs && revision !== this.#last) {
      this.#isSettled = true;
      this.#compact(revision, "periodic", { "compact-period": `${retentionMs}ms` });
    }
    this.#notes.push(currentRevision());
    const most = Math.floor(retentionMs / noteEveryMs(retentionMs)) + 1;
    if (this.#notes.length > most) this.#notes.shift();
  }

  #compact(
    revision: number,
    kind: string,
    fields: Readonly<Record<string, string | number>>,
  ): void {
    if (this.#compacting) return;
    const { clock, logger, propose } = this.#parts;
    logger.info(`starting auto ${kind} compaction`, { revision, ...fields });
    const startMs = clock.monotonicMs();
    this.#compacting = true;
    const isDone = ({ error }: Applied) => {
      if (error !== undefined && error.code !== "Compacted") throw error;
      this.#last = revision;
      this.#sinceMs = startMs;
      logger.info(`completed auto ${kind} compaction`, {
        revision,
        ...fields,
        took: `${(clock.monotonicMs() - startMs).toFixed(1)}ms`,
      });
    };
    propose(CompactionRequest.encode({ revision }))
      .then(isDone)
      .catch((error: Error) =>
        logger.warn(`failed auto ${kind} compaction`, {
          revision,
          ...fields,
          error: error.message,
        }),
      )
      .finally(() => {
        this.#compacting = false;
      });
  }
}

function noteEveryMs(retentionMs: number): number {
  return Math.max(1, Math.min(retentionMs, HOUR_MS) / NOTES_PER_PERIOD);
}
