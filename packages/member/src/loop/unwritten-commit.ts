/**
 * A hard state whose only news is the commit index. It travels with the next append to the log,
 * because no member depends on it being durable, but for the last voter (apply/last-voter.ts).
 */
import type { raftpb } from "@quorate/proto";
import type { Wal } from "@quorate/wal";

export class UnwrittenCommit {
  readonly #wal: Wal;
  /** The hard state that waits for an append; undefined for none. */
  hardState: raftpb.HardState | undefined;

  constructor(wal: Wal) {
    this.#wal = wal;
  }

  /** Writes it now, for callers that are about to refer to it in the log. */
  write(): void {
    const hardState = this.hardState;
    this.hardState = undefined;
    if (hardState !== undefined) this.#wal.append(hardState, []);
  }
}
