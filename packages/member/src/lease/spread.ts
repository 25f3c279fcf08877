/**
 * Leases that were all extended at one moment would all expire at one: those beyond what a second's
 * revocations allow get later, each by a little more than the one before (etcd: lessor.Promote).
 */
import { mergeSort, STEP_KEYS, type Steps } from "@quorate/store";
import type { Deadlines, Due } from "./deadlines.ts";

/** A lease whose expiry can be put off; `dueMs` is never later than `expiryMs`. */
export interface Expiring extends Due {
  readonly id: bigint;
  expiryMs: number;
}

/**
 * Puts expiries off, in steps. Leases that are revoked between two steps are passed over; those
 * that come meanwhile stay where they are.
 * @param perSecond leases that may expire in one second
 */
export function* spread<T extends Expiring>(
  leases: ReadonlyMap<bigint, T>,
  expiries: Deadlines<T>,
  perSecond: number,
): Steps<void> {
  const sorted = yield* mergeSort([...leases.values()], (a, b) => a.expiryMs - b.expiryMs);
  let baseMs = sorted[0].expiryMs;
  let nextMs = baseMs + 1000;
  let expires = 0;
  let looks = 0;
  for (const lease of sorted) {
    if (++looks % STEP_KEYS === 0) yield;
    const { expiryMs } = lease;
    if (leases.get(lease.id) !== lease) continue;
    if (expiryMs > nextMs) {
      baseMs = expiryMs;
      nextMs = baseMs + 1000;
      expires = 1;
      continue;
    }
    expires++;
    if (expires <= perSecond) continue;
    const delayMs = (1000 * expires) / perSecond - (expiryMs - baseMs);
    nextMs = baseMs + delayMs;
    lease.expiryMs = expiryMs + delayMs;
    expiries.move(lease, lease.expiryMs);
  }
}
