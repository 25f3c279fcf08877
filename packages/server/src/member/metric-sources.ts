/** Where the gauges of a member's metrics get their values at each scrape. */
import type { Store } from "@quorate/store";
import type { ServerConfig } from "../config/index.ts";
import { MemberMetrics } from "../metrics/member-metrics.ts";
import type { Space } from "../space/index.ts";
import type { WatchHub } from "../watch/index.ts";

/** What is measured of a member. */
export interface MeasuredMember {
  readonly leader: bigint;
  readonly isLeader: boolean;
  readonly isLearner: boolean;
  readonly commitIndex: number;
  readonly appliedIndex: number;
  readonly pendingProposals: number;
  readonly store: Store;
  readonly space: Space;
  readonly watches: WatchHub;
}

/** The metrics of the member that `member` gives, once there is one. */
export function metricsOf(config: ServerConfig, member: () => MeasuredMember | undefined): MemberMetrics {
  return new MemberMetrics(
    {
      hasLeader: () => (member()?.leader ?? 0n) !== 0n,
      isLeader: () => member()?.isLeader ?? false,
      isLearner: () => member()?.isLearner ?? false,
      commitIndex: () => member()?.commitIndex ?? 0,
      appliedIndex: () => member()?.appliedIndex ?? 0,
      pendingProposals: () => member()?.pendingProposals ?? 0,
      keyCount: () => member()?.store.mvcc.keyCount ?? 0,
      currentRevision: () => member()?.store.mvcc.currentRevision ?? 0,
      compactRevision: () => member()?.store.mvcc.compactRevision ?? 0,
      sizeBytes: () => member()?.store.sizeOnDiskBytes ?? 0,
      sizeInUseBytes: () => member()?.store.liveBytes ?? 0,
      quotaBytes: () => config.quotaBackendBytes ?? -1,
      quotaUsedShare: () => member()?.space.keeper.usedShare ?? 0,
      quotaWarningPercent: () => member()?.space.keeper.warningPercent ?? 0,
      watchStreams: () => member()?.watches.streamCount ?? 0,
      watchers: () => member()?.watches.watcherCount ?? 0,
      slowWatchers: () => member()?.watches.slowWatcherCount ?? 0,
      pendingWatchEvents: () => member()?.watches.pendingEvents ?? 0,
    },
    { extensive: config.metrics === "extensive" },
  );
}
