/** A snapshot that a leader has sent: marked in the log, then put in the place of the store. */
import type { Logger } from "@quorate/host";
import type { raftpb } from "@quorate/proto";
import type { Raft } from "@quorate/raft";
import type { SnapshotFiles, Wal } from "@quorate/wal";
import type { FaultHook } from "../loop/fault-points.ts";
import type { Lifetime } from "../loop/lifetime.ts";
import type { MemberMetrics } from "../metrics/member-metrics.ts";
import type { Publication } from "../publication.ts";
import type { Configuration } from "./configuration.ts";
import type { LogMarks } from "./persistence.ts";
import type { StoreExchange } from "./store-exchange.ts";

export interface SnapshotInstallDeps {
  readonly files: SnapshotFiles;
  readonly wal: Wal;
  readonly marks: LogMarks;
  readonly exchange: StoreExchange;
  readonly configuration: Configuration;
  readonly publication: Publication;
  readonly raft: Pick<Raft, "appliedIndex">;
  readonly lifetime: Lifetime;
  readonly metrics: Pick<MemberMetrics, "snapshotApplyInProgress">;
  readonly logger: Logger;
  readonly faults: FaultHook | undefined;
}

export class SnapshotInstall {
  readonly #deps: SnapshotInstallDeps;

  constructor(deps: SnapshotInstallDeps) {
    this.#deps = deps;
  }

  /** Marks in the log that the snapshot was accepted; durable when it resolves. */
  async save(snapshot: raftpb.Snapshot): Promise<void> {
    const { files, wal, marks, faults } = this.#deps;
    const { index, term, confState } = snapshot.metadata;
    faults?.("before-snapshot-save");
    marks.installing(index);
    files.save(snapshot);
    await wal.saveSnapshot({ index, term, confState });
  }

  /** Puts the received store of a saved snapshot in place; durable when it resolves. */
  async install(snapshot: raftpb.Snapshot): Promise<void> {
    const { lifetime, metrics, logger, raft } = this.#deps;
    const { exchange, marks, configuration, publication } = this.#deps;
    // The log has its mark, so that the next start puts it in place.
    if (lifetime.hasEnded) return;
    const { index, term } = snapshot.metadata;
    logger.info("applying snapshot", {
      "incoming-snapshot-index": index,
      "current-applied-index": raft.appliedIndex,
    });
    metrics.snapshotApplyInProgress.value = 1;
    await exchange.run(index);
    marks.installed();
    configuration.connectPeers();
    metrics.snapshotApplyInProgress.value = 0;
    logger.info("applied snapshot", { "snapshot-index": index, "snapshot-term": term });
    publication.versionMayBeKnown();
  }
}
