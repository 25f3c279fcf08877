/**
 * The space quota of a member: how full its store is, when the cluster must take no more writes,
 * and when it may again.
 *
 *     0 %        80 %            90 %            100 %
 *     |  quiet   |  a warning    |  a warning    |  NOSPACE is raised: puts and grants are refused
 *                                                   by every member
 *
 *     compaction was carried out, live bytes are below 80 %: the leader ends the alarm through the
 *     log (--quota-auto-disarm)
 *
 * What counts is the bytes of live records, and of the keys in the index, which is in memory; not
 * those of files, so compaction alone frees space. How far it has come differs between members,
 * so nothing that is applied depends on the quota: a member that is full refuses its own clients
 * and raises the alarm through the log, and the alarm is what all members refuse by. Requests that
 * were on their way when the quota was reached are applied and answered.
 */
import type { Clock, Logger, Timer } from "@quorate/host";
import {
  AlarmRequest,
  AlarmRequest_AlarmAction,
  AlarmType,
  errorOf,
  idToHex,
} from "@quorate/proto";
import type { Alarm, Applied } from "@quorate/store";
import type { LeaderView } from "../loop/leader-view.ts";
import type { Proposals } from "../loop/proposals.ts";
import type { StoreRef } from "../reads/store-ref.ts";

export interface SpaceOptions {
  readonly memberId: bigint;
  /** Undefined: no quota. */
  readonly quotaBytes: number | undefined;
  /** If a NOSPACE alarm ends by itself once there is space again. */
  readonly autoDisarm: boolean;
}

export interface SpaceKeeperParts {
  readonly store: StoreRef;
  readonly leader: LeaderView;
  readonly proposals: Proposals;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How often a member looks at its space. */
const LOOK_EVERY_MS = 500;
/** A follower that is full leaves it to the leader for this long to say so: one alarm is enough. */
const FOLLOWER_WAITS_MS = 2000;
/**
 * A full member leaves it to a running compaction for this long to free space. Where requests and
 * compactions follow each other as fast as they come, it never does: then only the alarm lets it.
 */
const COMPACTION_WAITS_MS = 10_000;
/** Shares of the quota at which a warning is due. */
const WARNINGS = [0.8, 0.9] as const;
/** An alarm ends by itself below this share of the quota. */
const DISARM_BELOW = 0.8;
/** A warning is repeated only after the share was below it by this much. */
const HYSTERESIS = 0.02;

export class SpaceKeeper {
  readonly #options: SpaceOptions;
  readonly #parts: SpaceKeeperParts;
  #timer: Timer | undefined;
  /** The highest warning that was given and still holds. */
  #warned = 0;
  /** The share at which the next one is due. */
  #nextWarning: number = WARNINGS[0];
  /** Since when this member has been over its quota without an alarm. */
  #fullSinceMs: number | undefined;
  /** Since when there was not enough space; until there is as much as ends an alarm. */
  #scarceSinceMs: number | undefined;
  /** The compact revision of a compaction that ran while an alarm held: its end is the alarm's. */
  #runsUnderAlarm: number | undefined;
  #raising: Promise<void> | undefined;
  #disarming = false;

  constructor(options: SpaceOptions, parts: SpaceKeeperParts) {
    this.#options = options;
    this.#parts = parts;
  }

  start(): void {
    const { quotaBytes } = this.#options;
    if (quotaBytes === undefined)
      this.#parts.logger.info("disabled backend quota", { "quota-name": "v3-applier" });
    else
      this.#parts.logger.info("enabled backend quota", {
        "quota-name": "v3-applier",
        "quota-size-bytes": quotaBytes,
      });
    this.#timer = this.#parts.clock.every(LOOK_EVERY_MS, () => this.look());
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** What the quota counts as a share of it: 0 without a quota. */
  get usedShare(): number {
    const { quotaBytes } = this.#options;
    return quotaBytes === undefined ? 0 : this.#parts.store.current.quotaBytes / quotaBytes;
  }

  /** The warning that holds: 0, 80 or 90 (percent). */
  get warningPercent(): number {
    return Math.round(this.#warned * 100);
  }

  /**
   * Whether there is space for a request that costs so much (its estimate; 0 for one that adds
   * nothing).
   */
  hasSpace(costBytes: number): boolean {
    const { quotaBytes } = this.#options;
    return (
      costBytes === 0 ||
      quotaBytes === undefined ||
      this.#parts.store.current.quotaBytes + costBytes < quotaBytes
    );
  }

  /**
   * For a request that does not fit: raises the alarm, waits until it holds, and throws NoSpace.
   */
  async refuse(): Promise<never> {
    await this.#raise();
    throw errorOf("NoSpace");
  }

  /**
   * Looks at the space: logs warnings, raises the alarm, ends it. Called at intervals, and when a
   * compaction is done.
   */
  look(): void {
    this.#warn();
    this.#noteCompaction();
    const { alarms } = this.#parts.store.current;
    if (this.usedShare < DISARM_BELOW) this.#scarceSinceMs = undefined;
    if (alarms.noSpace) {
      this.#fullSinceMs = undefined;
      if (this.#options.autoDisarm && this.#parts.leader.isLeader)
        this.#disarm(alarms.list(AlarmType.NOSPACE));
      return;
    }
    if (this.usedShare < 1 || this.#isLeftToCompaction()) {
      this.#fullSinceMs = undefined;
      return;
    }
    const nowMs = this.#parts.clock.monotonicMs();
    this.#fullSinceMs ??= nowMs;
    if (this.#parts.leader.isLeader || nowMs - this.#fullSinceMs >= FOLLOWER_WAITS_MS)
      this.#raise();
  }

  /**
   * Entries were applied: a warning that is due, or a quota that is used up, is not noticed half a
   * second later.
   */
  applied(): void {
    if (this.#options.quotaBytes === undefined) return;
    this.#noteCompaction();
    const share = this.usedShare;
    if (share >= this.#nextWarning) this.#warn();
    if (share >= 1 && this.#fullSinceMs === undefined) this.look();
  }

  #warn(): void {
    const share = this.usedShare;
    let due = 0;
    for (const warning of WARNINGS) if (share >= warning) due = warning;
    if (due > this.#warned) {
      this.#parts.logger.warn(
        "the store is close to its quota; compact it, or raise --quota-backend-bytes",
        {
          "used-percent": Math.floor(share * 100),
          "live-bytes": this.#parts.store.current.liveBytes,
          "key-bytes": this.#parts.store.current.mvcc.keyBytes,
          "quota-size-bytes": this.#options.quotaBytes ?? 0,
        },
      );
    } else if (due === this.#warned || share >= this.#warned - HYSTERESIS) {
      return;
    }
    this.#warned = due;
    this.#nextWarning = WARNINGS.find((warning) => warning > due) ?? Number.POSITIVE_INFINITY;
  }

  #noteCompaction(): void {
    const { alarms, mvcc } = this.#parts.store.current;
    if (!alarms.noSpace) this.#runsUnderAlarm = undefined;
    else if (mvcc.isCompacting) this.#runsUnderAlarm = mvcc.compactRevision;
  }

  /** For a member without space: whether a running compaction may still free some. */
  #isLeftToCompaction(): boolean {
    const { clock, store } = this.#parts;
    const nowMs = clock.monotonicMs();
    this.#scarceSinceMs ??= nowMs;
    return store.current.mvcc.isCompacting && nowMs - this.#scarceSinceMs < COMPACTION_WAITS_MS;
  }

  /**
   * Raises NOSPACE for this member, unless it is raised or a running compaction may free space.
   * Never rejects.
   */
  #raise(): Promise<void> {
    const { store, logger } = this.#parts;
    if (store.current.alarms.noSpace || this.#isLeftToCompaction()) return Promise.resolve();
    this.#raising ??= this.#proposeRaise()
      .catch((error: Error) =>
        logger.warn("failed to raise an alarm", { alarm: "NOSPACE", error: error.message }),
      )
      .finally(() => {
        this.#raising = undefined;
      });
    return this.#raising;
  }

  async #proposeRaise(): Promise<void> {
    const { memberId, quotaBytes } = this.#options;
    this.#parts.logger.warn("message exceeded backend quota; raising alarm", {
      "quota-size-bytes": quotaBytes ?? 0,
      "live-bytes": this.#parts.store.current.liveBytes,
      "key-bytes": this.#parts.store.current.mvcc.keyBytes,
    });
    await this.#propose(AlarmRequest_AlarmAction.ACTIVATE, memberId);
  }

  /**
   * Ends the NOSPACE alarms that a compaction has helped since they were raised, if there is space
   * again. An alarm without one stays: an operator may have raised it.
   */
  #disarm(alarms: readonly Alarm[]): void {
    const { mvcc, liveBytes } = this.#parts.store.current;
    if (this.#disarming || mvcc.isCompacting || this.usedShare >= DISARM_BELOW) return;
    // Etcd's members would raise it again: compaction does not make their files smaller.
    if (this.#parts.store.current.followsEtcd) return;
    const helped = alarms.filter(
      ({ compactRevision }) =>
        mvcc.compactedRevision > compactRevision || mvcc.compactedRevision === this.#runsUnderAlarm,
    );
    if (helped.length === 0) return;
    this.#disarming = true;
    const { logger } = this.#parts;
    logger.info("there is space again after a compaction; ending the alarm", {
      alarm: "NOSPACE",
      members: helped.map(({ memberId }) => idToHex(memberId)).join(","),
      "live-bytes": liveBytes,
      "quota-size-bytes": this.#options.quotaBytes ?? 0,
    });
    const ended = helped.map(({ memberId }) =>
      this.#propose(AlarmRequest_AlarmAction.DEACTIVATE, memberId),
    );
    Promise.allSettled(ended).then((results) => {
      this.#disarming = false;
      for (const result of results) {
        if (result.status === "rejected")
          logger.warn("failed to end an alarm", { alarm: "NOSPACE", error: String(result.reason) });
      }
    });
  }

  #propose(action: AlarmRequest_AlarmAction, memberID: bigint): Promise<Applied> {
    const request = AlarmRequest.encode({ action, memberID, alarm: AlarmType.NOSPACE });
    return this.#parts.proposals.propose("alarm", request);
  }
}
