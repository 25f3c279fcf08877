/** What bounds watch; docs/reference/limits.md lists them. */
export interface WatchLimits {
  /**
   * Bytes of one stream that wait for the end of the turn or for the client. A watch beyond it is
   * parked. One revision of one watch may go beyond the budget, when the client has read what was
   * sent before.
   */
  readonly maxStreamBacklogBytes: number;
  /** The same of all streams together that do not read as fast as they are written to. */
  readonly maxTotalBacklogBytes: number;
  /** Revisions in one response (etcd: watchBatchMaxRevs). */
  readonly maxResponseRevisions: number;
  /**
   * Bytes of events in a response of more than one revision: many clients refuse messages above 4
   * MiB.
   */
  readonly maxResponseBytes: number;
  /**
   * Events, and about how many bytes of them, that are kept in memory for watchers that are a
   * little behind.
   */
  readonly maxRecentEvents: number;
  readonly maxRecentBytes: number;
  /**
   * Events read and events delivered in one turn to watchers that catch up; the revision that
   * reaches it is finished.
   */
  readonly maxSliceEvents: number;
  /** Watchers of one stream whose events are sent in a row. */
  readonly maxWatchersAtOnce: number;
  /**
   * What watches cost by themselves, with their keys: of all clients, of one. A watch beyond is
   * cancelled as it is made.
   */
  readonly maxWatchesTotalBytes: number;
  readonly maxWatchesClientBytes: number;
  /** The same of calls that wait for locks and elections. */
  readonly maxContestTotalBytes: number;
  readonly maxContestClientBytes: number;
}

/**
 * What a watch takes in memory, about; and what its keys take besides, for each of their bytes:
 * they are kept in more than one place.
 */
export const WATCH_BYTES = 1024;
export const WATCH_KEY_FACTOR = 2;

const MIB = 1024 * 1024;

export const WATCH_LIMITS: WatchLimits = {
  maxStreamBacklogBytes: 4 * MIB,
  maxTotalBacklogBytes: 256 * MIB,
  maxResponseRevisions: 1000,
  maxResponseBytes: MIB,
  maxRecentEvents: 16_384,
  maxRecentBytes: 16 * MIB,
  maxSliceEvents: 10_000,
  maxWatchersAtOnce: 256,
  maxWatchesTotalBytes: 96 * MIB,
  maxWatchesClientBytes: 48 * MIB,
  maxContestTotalBytes: 48 * MIB,
  maxContestClientBytes: 24 * MIB,
};
