/** Why the time of a proposal ran out (etcd: parseProposeCtxErr). */
import type { ErrorName } from "@quorate/proto";
import type { Store } from "@quorate/store";
import type { PeerStatus } from "@quorate/transport";

/** The member whose proposal it was. */
export interface TimeoutView {
  readonly id: bigint;
  /** 0n where none is known. */
  readonly leader: bigint;
  readonly config: { readonly electionTimeoutMs: number };
  readonly store: Pick<Store, "membership">;
}

/**
 * The name of the error that the proposal ends with. Times are of the monotonic clock.
 * @param startedMs when it was made
 * @param leaderElectedMs when the member last heard of a new leader
 */
export function timeoutReason(
  startedMs: number,
  leaderElectedMs: number,
  member: TimeoutView,
  peers: readonly PeerStatus[],
): ErrorName {
  const { id, leader, config, store } = member;
  const leaderLostMs = leaderElectedMs - 2 * config.electionTimeoutMs;
  if (startedMs > leaderLostMs && startedMs < leaderElectedMs) return "TimeoutDueToLeaderFail";
  if (leader === 0n) return "Timeout";
  const connected = peers.filter(
    (peer) => peer.activeSinceMs !== undefined && peer.activeSinceMs <= startedMs,
  );
  const isReachable =
    leader === id
      ? connected.length + 1 > store.membership.members().length / 2
      : connected.some((peer) => peer.id === leader);
  return isReachable ? "Timeout" : "TimeoutDueToConnectionLost";
}
