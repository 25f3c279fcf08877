/** Why the time of a proposal ran out (etcd: parseProposeCtxErr). */
import type { ErrorName } from "@quorate/proto";
import type { Store } from "@quorate/store";
import type { PeerStatus } from "@quorate/transport";
import type { MemberConfig } from "../config/member-config.ts";
import type { LeaderView } from "./leader-view.ts";

/**
 * The name of the error that a proposal ends with.
 * @param startedMs when it was made, in monotonic milliseconds
 */
export function timeoutReason(
  startedMs: number,
  { memberId, leader, electedMs }: LeaderView,
  { electionTimeoutMs }: Pick<MemberConfig, "electionTimeoutMs">,
  { membership }: Pick<Store, "membership">,
  peers: readonly PeerStatus[],
): ErrorName {
  const leaderLostMs = electedMs - 2 * electionTimeoutMs;
  if (startedMs > leaderLostMs && startedMs < electedMs) return "TimeoutDueToLeaderFail";
  if (leader === 0n) return "Timeout";
  const connected = peers.filter(
    (peer) => peer.activeSinceMs !== undefined && peer.activeSinceMs <= startedMs,
  );
  const isReachable =
    leader === memberId
      ? connected.length + 1 > membership.members().length / 2
      : connected.some((peer) => peer.id === leader);
  return isReachable ? "Timeout" : "TimeoutDueToConnectionLost";
}
