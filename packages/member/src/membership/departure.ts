/**
 * How a member that was removed from the cluster leaves. It serves no client any more from the
 * moment that it knows; then
 *
 *     it has applied its removal     it goes on serving its peers for a few election timeouts: one
 *                                    of them may need its vote and its log to learn that the
 *                                    removal was committed. Once a peer says that it knows, a
 *                                    second is enough.
 *     the removal left one voter     that voter may need this member's vote, and there is no other
 *                                    voter: the member stays until the voter is known to have
 *                                    committed the removal, also over restarts. The voter has
 *                                    that on its disk before it says so (loop/loop.ts)
 *     a peer says so, and it has not applied it    it ends at once: no peer will send to it
 */
import type { Clock, Logger, Timer } from "@quorate/host";
import { idToHex, raftpb } from "@quorate/proto";

/** It stays for so many election timeouts, or for so long if its peers know (etcd: 1 s). */
const GRACE_ELECTIONS = 3;
const LEAST_MS = 1000;
/**
 * It stays for so long where the removal left one voter that is not known to have committed it. A
 * restart begins this time again.
 */
export const MAX_LAST_VOTER_WAIT_MS = 600_000;

const { MsgApp, MsgHeartbeat } = raftpb.MessageType;

export interface DepartureParts {
  readonly memberId: bigint;
  readonly dataDir: string;
  readonly electionTimeoutMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly lifetime: {
    /** Refuses clients' requests from now on. */
    stopServing(): void;
    /** Ends the member. @param error why, where that is not in order */
    end(error?: Error): void;
  };
}

/** The removal as it was applied here. */
export interface Removal {
  /** Index of the entry, or of a later one that was applied. */
  readonly index: number;
  /** Voters in the configuration without this member. */
  readonly voters: number;
  /** Set if an earlier process applied it: what the member ends with. */
  readonly error?: Error | undefined;
}

export class Departure {
  readonly #parts: DepartureParts;
  /** When this member learnt that it was removed. */
  #sinceMs: number | undefined;
  #removal: Removal | undefined;
  /**
   * True while this member waits for the one voter that is left: the messages of peers are looked
   * at by `heard`.
   */
  isListening = false;
  /** A peer is known to know of the removal. */
  #isKnown = false;
  /** At most two: the wait, and its end once a peer knows. */
  readonly #timers: Timer[] = [];

  constructor(parts: DepartureParts) {
    this.#parts = parts;
  }

  /** The removal was applied here, by this process or an earlier one. */
  applied(removal: Removal): void {
    if (this.#sinceMs !== undefined) return;
    this.#begin();
    this.#removal = removal;
    const { electionTimeoutMs, logger, memberId } = this.#parts;
    this.isListening = removal.voters === 1;
    if (this.isListening) {
      logger.warn(
        "the removed member stays until the one voter that is left has committed the removal",
        {
          "local-member-id": idToHex(memberId),
          "removal-index": removal.index,
          "at-most": `${MAX_LAST_VOTER_WAIT_MS}ms`,
          advice: "if the other member is down, start it while this one runs",
        },
      );
    }
    this.#endAfter(this.isListening ? MAX_LAST_VOTER_WAIT_MS : GRACE_ELECTIONS * electionTimeoutMs);
  }

  /**
   * Messages of peers have come in: a leader's commit index may show that it has committed the
   * removal.
   */
  heard(messages: readonly raftpb.Message[]): void {
    const { index = 0 } = this.#removal ?? {};
    if (
      messages.some(
        ({ type, commit }) => (type === MsgApp || type === MsgHeartbeat) && commit >= index,
      )
    )
      this.known();
  }

  /** A peer says that this member was removed. May be called often. */
  known(): void {
    const { clock, lifetime } = this.#parts;
    if (this.#sinceMs === undefined) {
      this.#begin();
      clock.endOfTurn(() => lifetime.end());
      return;
    }
    if (this.#isKnown) return;
    this.#isKnown = true;
    this.isListening = false;
    this.#endAfter(Math.max(0, this.#sinceMs + LEAST_MS - clock.monotonicMs()));
  }

  /** The member has ended: a process that goes on is not to wait for the timer. */
  stop(): void {
    for (const timer of this.#timers) timer.cancel();
  }

  #endAfter(delayMs: number): void {
    const { clock, lifetime } = this.#parts;
    this.#timers.push(clock.after(delayMs, () => lifetime.end(this.#removal?.error)));
  }

  #begin(): void {
    const { clock, dataDir, logger, memberId, lifetime } = this.#parts;
    this.#sinceMs = clock.monotonicMs();
    logger.error("the member has been permanently removed from the cluster", {
      "local-member-id": idToHex(memberId),
      "data-dir": dataDir,
      advice: "data-dir used by this member must be removed before a new member is started there",
    });
    // The client that requested the removal from this member still gets the response.
    clock.endOfTurn(lifetime.stopServing);
  }
}
