/**
 * Judges the lives of leases, from their owners' requests and the responses, and from when a key
 * with the lease was seen gone.
 *
 *   LEASE-1 not early   while the time that a grant or a keep-alive set is not up, counted from
 *                       its call, the lease stands
 *   LEASE-2 revoked     what an answered revocation took is not seen alive by a read that was
 *                       called after it: the history's checker sees
 *                       that by itself, since the key's deletion is a write; here only that the
 *                       lease does go
 *   LEASE-3 not for ever  a lease that no client keeps alive ends, at the latest by the time the
 *                         caller names
 */

/** One lease; times in ms of one clock that never goes back. */
export interface LeaseRecord {
  /** For messages. */
  readonly name: string;
  /** Calls that set its time: the grant and the keep-alives, answered ones only, in order. */
  readonly renewals: readonly { readonly calledMs: number; readonly ttlMs: number }[];
  /** When its owner first called for its end; undefined if never. */
  readonly revokeCalledMs: number | undefined;
  /** When it was first known to be gone; undefined if that was never seen. */
  readonly goneMs: number | undefined;
}

/**
 * By when each lease that is not kept alive must have been seen gone; `undefined` demands nothing.
 */
export interface LeaseDemand {
  readonly goneByMs: number | undefined;
  /**
   * What clocks may differ by over a lease's time, as a share: 0 where one clock counts for all.
   */
  readonly drift: number;
}

/** The first thing that is wrong, or undefined. */
export function checkLeases(
  leases: readonly LeaseRecord[],
  demand: LeaseDemand,
): string | undefined {
  for (const { name, renewals, revokeCalledMs, goneMs } of leases) {
    const asked = revokeCalledMs !== undefined && goneMs !== undefined && revokeCalledMs <= goneMs;
    let dueMs = Number.NEGATIVE_INFINITY;
    for (const { calledMs, ttlMs } of renewals) {
      const untilMs = calledMs + ttlMs * (1 - demand.drift);
      // What was called after the end was answered for nothing, and is judged all the same: its
      // answer said that the lease stands.
      dueMs = Math.max(dueMs, untilMs);
      if (goneMs !== undefined && !asked && goneMs < untilMs) {
        const early = Math.round(untilMs - goneMs);
        const renewed = `(renewed at ${Math.round(calledMs)})`;
        return `LEASE-1: ${name} was gone at ${Math.round(goneMs)} ms, ${early} ms before its time was up ${renewed}`;
      }
    }
    if (
      goneMs === undefined &&
      demand.goneByMs !== undefined &&
      (dueMs < demand.goneByMs || revokeCalledMs !== undefined)
    ) {
      return `LEASE-3: ${name} was due at ${Math.round(dueMs)} ms and is not gone at ${Math.round(demand.goneByMs)} ms`;
    }
  }
  return undefined;
}
