/**
 * Whether a leader's heartbeats leave on time (etcd: pkg/contention, server/etcdserver/raft.go):
 * the time between two that are sent to the same member, whatever causes them. A late tick does no
 * harm where a round of reads has sent heartbeats meanwhile, and none where there is no follower.
 */
export class HeartbeatGaps {
  readonly #mostMs: number;
  /** When a heartbeat was sent last, by member. */
  readonly #sentMs = new Map<bigint, number>();

  /** @param intervalMs between two heartbeats; as in etcd, twice that is late */
  constructor(intervalMs: number) {
    this.#mostMs = 2 * intervalMs;
  }

  /** Notes a heartbeat that leaves. Returns by how many ms it is late; undefined if it is not. */
  sent(to: bigint, nowMs: number): number | undefined {
    const last = this.#sentMs.get(to);
    this.#sentMs.set(to, nowMs);
    if (last === undefined || nowMs - last <= this.#mostMs) return undefined;
    return nowMs - last - this.#mostMs;
  }

  /** Forgets all: another leader begins, or the members are others. */
  reset(): void {
    this.#sentMs.clear();
  }
}
