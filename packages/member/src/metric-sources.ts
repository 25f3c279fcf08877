/**
 * How a member's metrics hang together with its parts: where gauges get their values at each
 * scrape, and who observes what.
 */
import type { Clock } from "@quorate/host";
import { idToHex } from "@quorate/proto";
import type { Store } from "@quorate/store";
import type { SaveTiming, WalMeasures } from "@quorate/wal";
import { gates } from "./config/features.ts";
import type { MemberConfig } from "./config/member-config.ts";
import { SERVER_VERSION } from "./config/version.ts";
import { type MemberMetrics, memberMetrics } from "./metrics/member-metrics.ts";
import type { Space } from "./space/index.ts";
import type { WatchHub } from "./watch/index.ts";

/** What is measured of a member. */
export interface MeasuredMember {
  readonly leader: bigint;
  readonly isLeader: boolean;
  readonly isLearner: boolean;
  readonly commitIndex: number;
  readonly appliedIndex: number;
  readonly pendingProposals: number;
  readonly readIndexes: { readonly slow: number; readonly failed: number };
  readonly store: Store;
  readonly space: Space;
  readonly watches: WatchHub;
}

/** The metrics of the member that `member` returns, once there is one. */
export function metricsOf(
  config: MemberConfig,
  member: () => MeasuredMember | undefined,
): MemberMetrics {
  return memberMetrics(
    {
      hasLeader: () => (member()?.leader ?? 0n) !== 0n,
      isLeader: () => member()?.isLeader ?? false,
      isLearner: () => member()?.isLearner ?? false,
      commitIndex: () => member()?.commitIndex ?? 0,
      appliedIndex: () => member()?.appliedIndex ?? 0,
      pendingProposals: () => member()?.pendingProposals ?? 0,
      slowReadIndexes: () => member()?.readIndexes.slow ?? 0,
      failedReadIndexes: () => member()?.readIndexes.failed ?? 0,
      counted: (what) => member()?.store.mvcc.counts[what] ?? 0,
      keyCount: () => member()?.store.mvcc.keyCount ?? 0,
      currentRevision: () => member()?.store.mvcc.currentRevision ?? 0,
      compactRevision: () => member()?.store.mvcc.compactRevision ?? 0,
      sizeBytes: () => member()?.store.sizeBytes ?? 0,
      sizeInUseBytes: () => member()?.store.liveBytes ?? 0,
      quotaBytes: () => config.quotaBackendBytes ?? -1,
      quotaUsedShare: () => member()?.space.keeper.usedShare ?? 0,
      quotaWarningPercent: () => member()?.space.keeper.warningPercent ?? 0,
      watchStreams: () => member()?.watches.streamCount ?? 0,
      watchers: () => member()?.watches.feed.watcherCount ?? 0,
      slowWatchers: () => member()?.watches.feed.slowWatcherCount ?? 0,
      pendingWatchEvents: () => member()?.watches.pendingEvents ?? 0,
      watchBytes: () => member()?.watches.watchBudget.usedBytes ?? 0,
      watchesRefused: () => member()?.watches.watchBudget.refusals ?? 0,
      contestantBytes: () => member()?.watches.contestBudget.usedBytes ?? 0,
      contestantsRefused: () => member()?.watches.contestBudget.refusals ?? 0,
    },
    { extensive: config.metrics === "extensive" },
  );
}

/** Sets the metrics of this member's identity: its id, its version, and its features. */
export function nameMember(metrics: MemberMetrics, id: bigint, config: MemberConfig): void {
  metrics.serverVersion.with(SERVER_VERSION).value = 1;
  metrics.serverId.with(idToHex(id)).value = 1;
  for (const [name, { stage }] of gates) {
    metrics.featureEnabled.with(name, stage).value = config.featureGates.get(name) === true ? 1 : 0;
  }
}

/** Where the log counts its writes and syncs. */
export function walMeasures({
  walFsyncDuration: syncSeconds,
  walWriteDuration: writeSeconds,
  walWriteBytes: writtenBytes,
}: MemberMetrics): WalMeasures {
  return { syncSeconds, writeSeconds, writtenBytes };
}

/** Measures the saving of snapshot files. */
export function saveTiming(metrics: MemberMetrics, clock: Clock): SaveTiming {
  return {
    clock,
    onSave: (durationMs) => {
      metrics.snapFsyncDuration.observe(durationMs / 1000);
      metrics.snapSaveDuration.observe(durationMs / 1000);
    },
  };
}
