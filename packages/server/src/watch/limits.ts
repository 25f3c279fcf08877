/** What bounds watch; docs/LIMITS.md lists them. */
export interface WatchLimits {
  /**
   * Bytes of one stream that wait for the end of the turn or for the client. A watch beyond it is parked. One revision of one
   * watch may go beyond the budget, when the client has read what was sent before.
   */
  readonly maxStreamBacklogBytes: number;
  /** The same of all streams together that do not read as fast as they are written to. */
  readonly maxTotalBacklogBytes: number;
  /** Revisions in one response (etcd: watchBatchMaxRevs). */
  readonly maxResponseRevisions: number;
  /** Bytes of events in a response of more than one revision: many clients refuse messages above 4 MiB. */
  readonly maxResponseBytes: number;
  /** Events, and about how many bytes of them, that are kept in memory for who is a little behind. */
  readonly maxRecentEvents: number;
  readonly maxRecentBytes: number;
  /** Events read and events delivered by those who catch up in one turn; the revision that reaches it is finished. */
  readonly maxSliceEvents: number;
}

const MIB = 1024 * 1024;

export const WATCH_LIMITS: WatchLimits = {
  maxStreamBacklogBytes: 4 * MIB,
  maxTotalBacklogBytes: 256 * MIB,
  maxResponseRevisions: 1000,
  maxResponseBytes: MIB,
  maxRecentEvents: 16_384,
  maxRecentBytes: 16 * MIB,
  maxSliceEvents: 10_000,
};
