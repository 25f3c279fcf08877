/**
 * The checks of --strict-reconfig-check: a change of the membership is refused where it would leave
 * the cluster without a quorum of members that are started and reachable (etcd:
 * RaftCluster.IsReadyTo..., server/etcdserver/util.go).
 */
import type { Member } from "@quorate/store";
import type { PeerStatus } from "@quorate/transport";

/** A link counts as healthy once it has been up for so long (etcd: HealthInterval). */
export const HEALTH_INTERVAL_MS = 5000;

/** What the checks look at: the membership, and how this member's links stand. */
export interface QuorumView {
  readonly selfId: bigint;
  readonly nowMs: number;
  readonly members: readonly Member[];
  readonly peers: readonly PeerStatus[];
}

export function quorumOf(count: number): number {
  return Math.floor(count / 2) + 1;
}

/** A member that has published itself has been started at least once. */
function isStarted(member: Member): boolean {
  return member.name !== "";
}

function votersOf(view: QuorumView): Member[] {
  return view.members.filter((member) => !member.isLearner);
}

/**
 * How many of `members` this one has been connected to for the interval, the health interval unless
 * given; it counts itself.
 */
function connectedCount(
  view: QuorumView,
  members: readonly Member[],
  intervalMs = HEALTH_INTERVAL_MS,
): number {
  const sinceMs = view.nowMs - intervalMs;
  return members.filter(({ id }) => {
    if (id === view.selfId) return true;
    const activeSinceMs = view.peers.find((peer) => peer.id === id)?.activeSinceMs;
    return activeSinceMs !== undefined && activeSinceMs <= sinceMs;
  }).length;
}

/** Why a change is refused, as the name of its error; undefined if nothing speaks against it. */
export type Refusal = "MemberNotEnoughStarted" | "Unhealthy" | undefined;

/**
 * Whether a member may be added. A new voter counts for the quorum at once and is not reachable
 * yet, so the others must be a quorum of the larger cluster. A learner leaves the quorum as it is,
 * so the quorum of today is enough; etcd asks for that of the larger cluster here too, and so
 * refuses the first step of replacing a dead member of three.
 */
export function refuseAdd(view: QuorumView, isLearner: boolean): Refusal {
  const voters = votersOf(view);
  if (isLearner)
    return connectedCount(view, voters) < quorumOf(voters.length) ? "Unhealthy" : undefined;
  const started = voters.filter(isStarted).length;
  // A cluster of one that was restored grows while its quorum is open.
  const growsFromOne = started === 1 && voters.length === 1;
  if (!growsFromOne && started < quorumOf(voters.length + 1)) return "MemberNotEnoughStarted";
  if (voters.length > 1 && connectedCount(view, voters) < quorumOf(voters.length + 1))
    return "Unhealthy";
  return undefined;
}

/**
 * Whether a member may be removed: enough of the others must be started, and stay reachable if it
 * is reachable itself.
 */
export function refuseRemove(view: QuorumView, id: bigint): Refusal {
  if (view.members.find((member) => member.id === id)?.isLearner === true) return undefined;
  const voters = votersOf(view);
  const others = voters.filter((member) => member.id !== id);
  if (others.filter(isStarted).length < quorumOf(others.length)) return "MemberNotEnoughStarted";
  // One that is down is no part of the quorum that works now.
  const isDown = view.peers.find((peer) => peer.id === id)?.activeSinceMs === undefined;
  if (id !== view.selfId && isDown) return undefined;
  return connectedCount(view, voters) - 1 < quorumOf(voters.length - 1) ? "Unhealthy" : undefined;
}

/**
 * Whether a learner may become a voter: it is counted as started. The members that are connected
 * now must be a quorum with it, or one dead voter and a learner that died after it had caught up
 * would end the quorum of three; etcd does not look at the links here.
 */
export function refusePromote(view: QuorumView, id: bigint): Refusal {
  const voters = votersOf(view);
  const needed = quorumOf(voters.length + 1);
  if (voters.filter(isStarted).length + 1 < needed) return "MemberNotEnoughStarted";
  const later = view.members.filter((member) => !member.isLearner || member.id === id);
  return connectedCount(view, later, 0) < needed ? "Unhealthy" : undefined;
}
