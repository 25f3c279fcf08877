/**
 * Everything about the space that a member's store takes: the quota and its alarm, compaction,
 * defragmentation. The member says what happened; the parts do the rest at their own times.
 */
import type { Clock, Logger } from "@quorate/host";
import { AlarmType, errorOf, idToHex } from "@quorate/proto";
import type { Alarm } from "@quorate/store";
import type { Flusher } from "../apply/persistence.ts";
import type { StoreExchange } from "../apply/store-exchange.ts";
import type { MemberConfig } from "../config/member-config.ts";
import type { LeaderView } from "../loop/leader-view.ts";
import type { Lifetime } from "../loop/lifetime.ts";
import type { Proposals } from "../loop/proposals.ts";
import type { MemberMetrics } from "../metrics/member-metrics.ts";
import type { MemberObserver } from "../observer.ts";
import type { StoreRef } from "../reads/store-ref.ts";
import { AutoCompactor } from "./auto-compactor.ts";
import { Compactor } from "./compactor.ts";
import { SpaceKeeper } from "./space-keeper.ts";

export interface SpaceParts {
  readonly memberId: bigint;
  readonly config: MemberConfig;
  readonly store: StoreRef;
  readonly leader: LeaderView;
  readonly proposals: Proposals;
  readonly flusher: Flusher;
  readonly exchange: StoreExchange;
  readonly lifetime: Lifetime;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: MemberMetrics;
  readonly observer: MemberObserver | undefined;
}

export class Space {
  readonly keeper: SpaceKeeper;
  readonly #parts: SpaceParts;
  readonly #compactor: Compactor;
  readonly #autoCompactor: AutoCompactor;
  readonly #defragmenter: Defragmenter;
  #hasStopped = false;

  constructor(parts: SpaceParts) {
    this.#parts = parts;
    const { memberId, config, store, leader, proposals, clock, logger, metrics } = parts;
    this.keeper = new SpaceKeeper(
      { memberId, quotaBytes: config.quotaBackendBytes, autoDisarm: config.quotaAutoDisarm },
      {
        store,
        leader,
        proposals,
        clock,
        logger: logger.child("server"),
      },
    );
    this.#compactor = new Compactor({
      store,
      clock,
      logger: logger.child("mvcc"),
      metrics,
      batchLimit: config.compactionBatchLimit,
      pauseMs: config.compactionSleepIntervalMs,
      flush: () => parts.flusher.flush(),
      finished: () => this.keeper.look(),
      fatal: parts.lifetime.end,
    });
    this.#autoCompactor = new AutoCompactor(config.autoCompaction, {
      currentRevision: () => store.current.mvcc.currentRevision,
      isLeader: () => leader.isLeader,
      propose: (request) => proposals.propose("compaction", request),
      clock,
      logger: logger.child("compactor"),
    });
    this.#defragmenter = new Defragmenter({
      store,
      clock,
      logger: logger.child("backend"),
      metrics,
    });
  }

  start(): void {
    this.keeper.start();
    this.#autoCompactor.start();
    this.attach();
  }

  /** A store was opened or took the place of another: goes on with what was under way in it. */
  attach(): void {
    this.alarmsChanged();
    if (this.#parts.store.current.mvcc.isCompacting) this.#compactor.run();
  }

  /** The store is about to be closed: nothing touches it after this has resolved. */
  async detach(): Promise<void> {
    await this.#compactor.stop();
  }

  async stop(): Promise<void> {
    this.#hasStopped = true;
    this.keeper.stop();
    this.#autoCompactor.stop();
    await this.detach();
  }

  /** A compaction was applied. */
  compactionScheduled(): void {
    this.#compactor.run();
  }

  /**
   * Resolves when the compactions that were applied have removed what they are to remove, durably;
   * in the store that took the place of this one, if one did meanwhile. Rejects with Stopped where
   * the member ends before that.
   */
  async compacted(): Promise<void> {
    for (;;) {
      await this.#compactor.idle();
      await this.#parts.exchange.over();
      if (this.#hasStopped) throw errorOf("Stopped");
      if (!this.#parts.store.current.mvcc.isCompacting) break;
      this.#compactor.run();
    }
    await this.#parts.store.current.flush();
  }

  /**
   * Rewrites the store's files beside other work, so that they give back what was removed. @throws
   * DiskError
   */
  defragment(): Promise<void> {
    return this.#defragmenter.run();
  }

  /** An alarm was raised or ended. */
  alarmsChanged(): void {
    const { metrics, store, observer } = this.#parts;
    const { alarms } = metrics;
    for (const { metric } of alarms.series.values()) metric.value = 0;
    for (const { memberId, type } of store.current.alarms.list())
      alarms.with(idToHex(memberId), alarmName(type)).value = 1;
    observer?.alarmsChanged(store.current.alarms);
  }
}

interface DefragmenterParts {
  readonly store: StoreRef;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Pick<MemberMetrics, "defragInFlight" | "defragDuration">;
}

/**
 * Defragmentation: the files of the store are rewritten beside other work, so that the space of
 * what compaction removed is freed. Calls that come while one runs wait for it and then share the
 * next: what was removed before a call is gone from the files when the call is answered.
 */
export class Defragmenter {
  readonly #parts: DefragmenterParts;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(parts: DefragmenterParts) {
    this.#parts = parts;
  }

  /** Resolves when the files have been rewritten. @throws DiskError */
  run(): Promise<void> {
    if (this.#running === undefined) return this.#start();
    this.#next ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        return this.#start();
      });
    return this.#next;
  }

  #start(): Promise<void> {
    const running = this.#rewrite().finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    this.#running = running;
    return running;
  }

  async #rewrite(): Promise<void> {
    const { clock, logger, metrics } = this.#parts;
    const store = this.#parts.store.current;
    const startMs = clock.monotonicMs();
    const beforeBytes = store.sizeOnDiskBytes;
    metrics.defragInFlight.value = 1;
    logger.info("starting defragment", { "current-db-size-bytes": beforeBytes });
    try {
      await store.reclaim();
    } catch (error) {
      logger.warn("failed to defragment", {
        error: error instanceof Error ? error.message : String(error),
      });
      throw error;
    } finally {
      metrics.defragInFlight.value = 0;
    }
    const tookMs = clock.monotonicMs() - startMs;
    metrics.defragDuration.observe(tookMs / 1000);
    logger.info("finished defragment", {
      "current-db-size-bytes-diff": store.sizeOnDiskBytes - beforeBytes,
      "current-db-size-bytes": store.sizeOnDiskBytes,
      "current-db-size-in-use-bytes": store.liveBytes,
      took: `${tookMs.toFixed(1)}ms`,
    });
  }
}

/** "NOSPACE", "CORRUPT", or the number of a kind that this version does not know. */
export function alarmName(type: AlarmType): string {
  if (type === AlarmType.NOSPACE) return "NOSPACE";
  return type === AlarmType.CORRUPT ? "CORRUPT" : String(type);
}

/** An alarm in the text form of its protobuf message, which Status lists among its errors. */
export function alarmText({ memberId, type }: Alarm): string {
  return memberId === 0n
    ? `alarm:${alarmName(type)}`
    : `memberID:${memberId} alarm:${alarmName(type)}`;
}
