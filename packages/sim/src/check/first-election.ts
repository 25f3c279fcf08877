/**
 * What --initial-election-tick-advance must not do:
 *
 *   LOG-10 patience   a follower that has heard a leader, and knows of no later term, stands for
 *                     election only when it has heard nothing of it for a whole election
 *                     timeout, or because the leader asks for it
 *
 * A member that has heard no leader since its start may stand earlier; that there is one leader a
 * term all the same is LOG-1.
 */
import { raftpb } from "@quorate/proto";
import type { Raft } from "@quorate/raft";
import { Violation } from "../base/violation.ts";

const { MsgApp, MsgHeartbeat, MsgSnap } = raftpb.MessageType;
const OF_LEADERS: ReadonlySet<number> = new Set([MsgApp, MsgHeartbeat, MsgSnap]);

/** LOG-10, for one process of a member. @param electionTicks its election timeout */
export function watchPatience(
  name: string,
  raft: Raft,
  electionTicks: number,
  fail: (error: unknown) => void,
): void {
  /** Ticks since it has heard its leader; undefined: not since its start. */
  let quietTicks: number | undefined;
  const step = raft.step.bind(raft);
  raft.step = (message) => {
    const refused = step(message);
    const isHeard =
      OF_LEADERS.has(message.type) && message.term === raft.term && raft.leader === message.from;
    if (isHeard && refused === undefined) quietTicks = 0;
    return refused;
  };
  const tick = raft.tick.bind(raft);
  raft.tick = () => {
    const wasFollower = raft.role === "follower";
    // A vote in a later term has made the leader unknown: no member leads that could be disturbed.
    if (raft.leader === 0n) quietTicks = undefined;
    if (quietTicks !== undefined) quietTicks++;
    tick();
    if (!wasFollower || raft.role === "follower" || quietTicks === undefined) return;
    if (quietTicks < electionTicks)
      fail(
        new Violation(
          `LOG-10: ${name} stands for election ${quietTicks} ticks after it heard its leader; its timeout is ${electionTicks}`,
        ),
      );
  };
}
