/** Why the time of a proposal ran out (etcd: parseProposeCtxErr). */
import { type ErrorName, type EtcdError, errorOf } from "@quorate/proto";
import type { Transport } from "@quorate/transport";
import type { MemberConfig } from "../config/member-config.ts";
import type { MemberMetrics } from "../metrics/member-metrics.ts";
import type { StoreRef } from "../reads/store-ref.ts";
import type { LeaderView } from "./leader-view.ts";

export interface TimeoutParts {
  readonly metrics: Pick<MemberMetrics, "proposalsFailed">;
  readonly config: Pick<MemberConfig, "electionTimeoutMs">;
  readonly leader: LeaderView;
  readonly store: StoreRef;
  readonly transport: Pick<Transport, "peers">;
}

/** The errors of proposals that nobody has answered, by what is known of the cluster. */
export class Timeouts {
  readonly #parts: TimeoutParts;

  constructor(parts: TimeoutParts) {
    this.#parts = parts;
  }

  /**
   * The error that a proposal ends with; it is counted.
   * @param startedMs when it was made, in monotonic milliseconds
   * @param isSucceeded its leader has been succeeded, and the successor's entries are applied
   */
  error(startedMs: number, isSucceeded: boolean): EtcdError {
    this.#parts.metrics.proposalsFailed.add();
    return errorOf(isSucceeded ? "TimeoutDueToLeaderFail" : this.#reason(startedMs));
  }

  #reason(startedMs: number): ErrorName {
    const { config, store, transport } = this.#parts;
    const { memberId, leader, electedMs } = this.#parts.leader;
    const leaderLostMs = electedMs - 2 * config.electionTimeoutMs;
    if (startedMs > leaderLostMs && startedMs < electedMs) return "TimeoutDueToLeaderFail";
    if (leader === 0n) return "Timeout";
    const connected = transport
      .peers()
      .filter((peer) => peer.activeSinceMs !== undefined && peer.activeSinceMs <= startedMs);
    const isReachable =
      leader === memberId
        ? connected.length + 1 > store.current.membership.members().length / 2
        : connected.some((peer) => peer.id === leader);
    return isReachable ? "Timeout" : "TimeoutDueToConnectionLost";
  }
}
