/**
 * LEARNER-1: a leader proposes to make a learner a voter only when the learner has, on its disk,
 * nine tenths of what the leader has on its own (etcd: readyPercentThreshold). Looked at when a
 * promotion is proposed for the first time, in the machines of both.
 */
import { idToHex, raftpb } from "@quorate/proto";
import type { Raft } from "@quorate/raft";
import { decodeChangeContext } from "@quorate/store";
import { Violation } from "../base/violation.ts";
import type { Acknowledged } from "./acknowledged.ts";

const READY_SHARE = 0.9;

export class PromotionCheck {
  readonly #acknowledged: Acknowledged;
  /** Machines of members that run, by member id. */
  readonly #machines = new Map<bigint, Raft>();
  /** Ids of changes that were proposed. */
  readonly #seen = new Set<bigint>();
  readonly counts = { promotions: 0 };

  constructor(acknowledged: Acknowledged) {
    this.#acknowledged = acknowledged;
  }

  /** A process of a member has made its machine. */
  watch(name: string, raft: Raft, fail: (error: unknown) => void): void {
    this.#machines.set(raft.id, raft);
    const propose = raft.proposeConfChange.bind(raft);
    raft.proposeConfChange = (change) => {
      const problem = "type" in change ? this.#problem(name, raft, change) : undefined;
      if (problem !== undefined) fail(problem);
      return propose(change);
    };
  }

  /** A member's process ends. */
  forget(raft: Raft): void {
    if (this.#machines.get(raft.id) === raft) this.#machines.delete(raft.id);
  }

  #problem(
    name: string,
    raft: Raft,
    { id, type, nodeId, context }: raftpb.ConfChange,
  ): Violation | undefined {
    if (
      type !== raftpb.ConfChangeType.ConfChangeAddNode ||
      this.#seen.has(id) ||
      !decodeChangeContext(context).isPromote
    )
      return undefined;
    // A later try is of what was decided then; the leader's log has grown since.
    this.#seen.add(id);
    const learner = this.#machines.get(nodeId);
    if (raft.role !== "leader" || (learner !== undefined && learner.term > raft.term))
      return undefined;
    this.counts.promotions++;
    const own = raft.status().progress.find((one) => one.id === raft.id)?.match ?? 0;
    const has = learner?.stableIndex ?? this.#acknowledged.indexOf(nodeId);
    if (has >= own * READY_SHARE) return undefined;
    return new Violation(
      `LEARNER-1: ${name} promotes the learner ${idToHex(nodeId)}, which has ${has} entries of ${own}`,
    );
  }
}
