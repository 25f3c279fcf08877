/**
 * DISK-1: a member starts with all that it has acknowledged. Its log reaches as far as the process
 * before had it on the disk, by its own account, and its term is not below one in which it has
 * answered. A member whose disk lost any of that must refuse to start.
 */
import { raftpb } from "@quorate/proto";
import type { Raft } from "@quorate/raft";
import { violate } from "../base/violation.ts";

const { MsgAppResp, MsgVoteResp } = raftpb.MessageType;

/** What a member relies on to be on its disk. */
interface Relied {
  /** The log reaches to here. */
  index: number;
  /** The highest term of an acknowledgement or of a vote. */
  term: number;
}

export class Acknowledged {
  /** By member id. */
  readonly #relied = new Map<bigint, Relied>();
  /** Starts that were compared with what was acknowledged before. */
  compared = 0;

  #of(id: bigint): Relied {
    let relied = this.#relied.get(id);
    if (relied === undefined) this.#relied.set(id, (relied = { index: 0, term: 0 }));
    return relied;
  }

  /** Where the log of a member ended on its disk when its last process ended; 0 if none has. */
  indexOf(id: bigint): number {
    return this.#relied.get(id)?.index ?? 0;
  }

  /** Whether a machine was made from less than its member has acknowledged. */
  isLess({ id, lastIndex, term }: Raft): boolean {
    const relied = this.#of(id);
    return lastIndex < relied.index || term < relied.term;
  }

  /** A message leaves a member. */
  sent({ type, from, term, reject }: raftpb.Message): void {
    if (reject || (type !== MsgAppResp && type !== MsgVoteResp)) return;
    const relied = this.#of(from);
    if (term > relied.term) relied.term = term;
  }

  /**
   * A process of a member has made its machine from what the disk holds.
   * @throws Violation
   */
  started(name: string, { id, lastIndex, term }: Raft): void {
    const relied = this.#of(id);
    this.compared++;
    if (lastIndex < relied.index) {
      violate(
        "DISK-1",
        `${name} starts with a log that ends at ${lastIndex}, and had entries up to ${relied.index} on its disk`,
      );
    }
    if (term < relied.term)
      violate("DISK-1", `${name} starts in term ${term}, and has answered in term ${relied.term}`);
  }

  /** A member's process ends. */
  ended({ id, stableIndex }: Raft): void {
    this.#of(id).index = stableIndex;
  }
}
