/**
 * A member that differs from the others rebuilds its store (--self-heal): while the CORRUPT alarm
 * names it, it serves no reads, requests the leader's store, puts that in the place of its own,
 * compares itself with the others, and ends the alarm.
 *
 *     alarm CORRUPT for this member is applied
 *       -> reads wait, from that moment on; watches get no more events; a leader hands
 *       leadership over
 *       -> is the leader's history that of a majority of all members, this one not counted?
 *          yes:  the leader streams its store, as of index S; this member goes on applying until it
 *                is at S or later; its loop stands
 *                still: the received store takes the place of the old one, entries after S are
 *                applied to it once more; until it was
 *                compared with the others again, it is no witness for anybody
 *          no:   if this member's own history is that of a majority by now, nothing is to be
 *                fetched; else it waits
 *       -> the alarm is ended through the log, reads go on
 *
 * The log and Raft's state are not touched: they were right. Nothing of it happens for an alarm of
 * the member id 0, where it is unknown which member is right.
 */
import type { Clock, Logger, Timer } from "@quorate/host";
import {
  type AlarmRequest,
  AlarmRequest_AlarmAction,
  AlarmType,
  errorOf,
  idToHex,
} from "@quorate/proto";
import type { Applied } from "@quorate/store";
import type { StoreRef } from "../reads/store-ref.ts";
import type { Standing } from "./checker.ts";

export interface HealerParts {
  readonly memberId: bigint;
  readonly store: StoreRef;
  readonly isLeader: () => boolean;
  /** Whether the leader's history is that of a majority of all members, this one not counted. */
  readonly isLeaderRight: () => Promise<boolean>;
  /** Hands leadership over, if this member has it. */
  readonly handOver: () => Promise<void>;
  /** Has the leader's store put in the place of this member's; gives up when `stopped` rejects. */
  readonly replaceStore: (stopped: Promise<never>) => Promise<void>;
  /**
   * How this member's history compares with that of a majority of all members. It is
   * counted itself if `counts` is true.
   */
  readonly standing: (counts: boolean) => Promise<Standing>;
  readonly propose: (request: AlarmRequest) => Promise<Applied>;
  readonly hasEnded: () => boolean;
  /** Nothing of the store may be shown any more. */
  readonly unserved: () => Promise<void>;
  /** Reads go on. */
  readonly served: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How often a member looks whether it is named, beside the moments in which alarms change. */
const LOOK_EVERY_MS = 500;
/** After an attempt that failed. */
const PAUSE_MS = 2000;

export class Healer {
  readonly #parts: HealerParts;
  #healing: Promise<void> | undefined;
  #timer: Timer | undefined;
  /** Whether this member knows of itself that it differs, and the alarm is not raised yet. */
  #accused = false;
  /**
   * True while this member has, or may have, a copy of the leader's store that was not compared
   * with the others yet.
   */
  isUnsure = false;

  /** Rejects when the member ends, so that nothing is waited for any longer. */
  readonly #stopped = Promise.withResolvers<never>();

  constructor(parts: HealerParts) {
    this.#parts = parts;
    this.#stopped.promise.catch(() => {});
  }

  start(): void {
    this.#timer = this.#parts.clock.every(LOOK_EVERY_MS, () => this.look());
    this.look();
  }

  /**
   * The member has ended. What this member has is not shown any more if it was not to be shown
   * before.
   */
  stop(): void {
    this.#timer?.cancel();
    this.#stopped.reject(errorOf("Stopped"));
  }

  /**
   * This member has found out by itself that it differs: it raises the alarm as soon as it takes
   * part.
   */
  accuse(): void {
    this.#accused = true;
  }

  /** True while what this member has must not be read. */
  get isHealing(): boolean {
    return this.#healing !== undefined;
  }

  /**
   * Resolves when what this member has may be read; rejects with Stopped if the member ends before
   * that.
   */
  async healed(): Promise<void> {
    while (this.#healing !== undefined) {
      await this.#healing;
      if (this.#parts.hasEnded()) throw errorOf("Stopped");
    }
  }

  #isNamed(): boolean {
    const { store, memberId } = this.#parts;
    return store.current.alarms
      .list(AlarmType.CORRUPT)
      .some((alarm) => alarm.memberId === memberId);
  }

  /** Begins if this member is named: nothing more is read from when this returns. */
  look(): void {
    if (
      this.#healing !== undefined ||
      this.#timer === undefined ||
      !(this.#accused || this.#isNamed())
    )
      return;
    // Not in the middle of an entry's application.
    const begun = new Promise<void>((resolve) => this.#parts.clock.endOfTurn(resolve));
    const healing = begun.then(() => this.#heal());
    this.isUnsure = false;
    this.#parts.store.withheld++;
    this.#healing = healing.finally(() => {
      if (this.#parts.hasEnded()) return;
      this.#healing = undefined;
      this.#parts.store.withheld--;
      this.isUnsure = false;
      this.#parts.served();
    });
  }

  async #heal(): Promise<void> {
    const { memberId, logger, clock, hasEnded, unserved } = this.#parts;
    const stopped = this.#stopped.promise;
    logger.error(
      "this member differs from the others; it serves no reads and fetches the leader's store",
      {
        "local-member-id": idToHex(memberId),
      },
    );
    const startMs = clock.monotonicMs();
    while (!hasEnded() && (this.#accused || this.#isNamed())) {
      try {
        await unserved();
        if (this.#accused) await Promise.race([this.#nameItself(), stopped]);
        await Promise.race([this.#attempt(stopped), stopped]);
        logger.info("this member has rebuilt its store from the leader's", {
          "local-member-id": idToHex(memberId),
          took: `${(clock.monotonicMs() - startMs).toFixed(0)}ms`,
        });
        return;
      } catch (error) {
        if (hasEnded()) return;
        logger.warn("failed to fetch the leader's store; trying again", {
          error: (error as Error).message,
        });
        const pause = Promise.withResolvers<void>();
        const timer = clock.after(PAUSE_MS, () => pause.resolve());
        await Promise.race([pause.promise, stopped.catch(() => timer.cancel())]);
      }
    }
  }

  async #nameItself(): Promise<void> {
    const { memberId, standing, propose } = this.#parts;
    const found = await standing(true);
    // It may be the other one that is wrong: what this member has must not be replaced by that.
    if (found === "unknown")
      throw new Error(
        "this member differs from another, and too few can be compared to decide which of them is right",
      );
    if (found === "differs")
      await propose({
        action: AlarmRequest_AlarmAction.ACTIVATE,
        memberID: memberId,
        alarm: AlarmType.CORRUPT,
      });
    this.#accused = false;
  }

  async #attempt(stopped: Promise<never>): Promise<void> {
    const { isLeader, handOver, isLeaderRight, replaceStore, standing } = this.#parts;
    if (!this.#isNamed()) return;
    if (isLeader()) await handOver();
    if (isLeader()) throw new Error("this member leads, and no other member takes leadership over");
    if (!this.isUnsure && (await isLeaderRight())) {
      // From here on it has another's store, and is no witness of its own.
      this.isUnsure = true;
      await replaceStore(stopped);
    } else if (!this.isUnsure && (await standing(true)) === "of the majority") {
      await this.#endAlarm();
      return;
    }
    if (!this.isUnsure)
      throw new Error("too few members can be compared to decide which of them are right");
    // The leader may have become the one that is wrong.
    const found = await standing(false);
    if (found === "unknown")
      throw new Error(
        "too few of the others can be compared to decide whether what was fetched is right",
      );
    if (found === "differs") {
      this.isUnsure = false;
      throw new Error("what was fetched is not what a majority of the members has");
    }
    await this.#endAlarm();
  }

  async #endAlarm(): Promise<void> {
    const { memberId, propose } = this.#parts;
    const { error } = await propose({
      action: AlarmRequest_AlarmAction.DEACTIVATE,
      memberID: memberId,
      alarm: AlarmType.CORRUPT,
    });
    if (error !== undefined) throw error;
  }
}
