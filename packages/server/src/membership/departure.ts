/**
 * How a member that was removed from the cluster leaves. It serves nobody any more from the moment that it knows; then
 *
 *     it has applied its removal     it goes on answering its peers for a few election timeouts: one of them may need its vote and its log
 *                                    to learn that the removal was committed. Once a peer says that it knows, a second is enough.
 *     a peer says so, and it has not applied it    it ends at once: nobody will send it anything
 */
import type { Clock, Logger } from "@quorate/host";
import { idToHex } from "@quorate/proto";

/** It stays for so many election timeouts, or for so long if its peers know (etcd: 1 s). */
const GRACE_ELECTIONS = 3;
const LEAST_MS = 1000;

export interface DepartureParts {
  readonly memberId: bigint;
  readonly dataDir: string;
  readonly electionTimeoutMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Refuses what clients ask from now on. */
  stopServing(): void;
  end(): void;
}

export class Departure {
  readonly #parts: DepartureParts;
  /** When this member learnt that it was removed. */
  #sinceMs: number | undefined;

  constructor(parts: DepartureParts) {
    this.#parts = parts;
  }

  /** The removal was applied here. */
  applied(): void {
    if (this.#sinceMs !== undefined) return;
    this.#begin();
    const { clock, electionTimeoutMs, end } = this.#parts;
    clock.after(GRACE_ELECTIONS * electionTimeoutMs, end);
  }

  /** A peer says that this member was removed. May be called often. */
  told(): void {
    const { clock, end } = this.#parts;
    if (this.#sinceMs === undefined) {
      this.#begin();
      clock.endOfTurn(end);
      return;
    }
    clock.after(Math.max(0, this.#sinceMs + LEAST_MS - clock.monotonicMs()), end);
  }

  #begin(): void {
    const { clock, dataDir, logger, memberId, stopServing } = this.#parts;
    this.#sinceMs = clock.monotonicMs();
    logger.error("the member has been permanently removed from the cluster", {
      "local-member-id": idToHex(memberId),
      "data-dir": dataDir,
      advice: "data-dir used by this member must be removed before a new member is started there",
    });
    // Whoever asked this member for its removal still gets the answer.
    clock.endOfTurn(stopServing);
  }
}
