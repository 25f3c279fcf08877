/** Where metrics that are read at a scrape get their values. */
import type { MvccCounts } from "@quorate/store";

/** Where gauges that are computed at scrape time get their values. */
export interface MetricSources {
  hasLeader(): boolean;
  isLeader(): boolean;
  isLearner(): boolean;
  commitIndex(): number;
  appliedIndex(): number;
  pendingProposals(): number;
  slowReadIndexes(): number;
  failedReadIndexes(): number;
  counted(what: keyof MvccCounts): number;
  keyCount(): number;
  currentRevision(): number;
  compactRevision(): number;
  sizeBytes(): number;
  sizeInUseBytes(): number;
  quotaBytes(): number;
  /** Live bytes as a share of the quota. */
  quotaUsedShare(): number;
  /** 0, 80 or 90. */
  quotaWarningPercent(): number;
  watchStreams(): number;
  watchers(): number;
  slowWatchers(): number;
  pendingWatchEvents(): number;
  /**
   * Bytes that watches, and calls that wait for locks and elections, are taken to hold; and how
   * many requests were refused for it.
   */
  watchBytes(): number;
  watchesRefused(): number;
  contestantBytes(): number;
  contestantsRefused(): number;
}
