/** Waiting for what real processes bring about. */
import { setTimeout as delay } from "node:timers/promises";

/** A limit for machines that have much else to do; nothing takes as long. */
const LIMIT_MS = 120_000;

/**
 * Looks again and again until it holds.
 * @param everyMs the time between two looks
 * @throws Error that says `what` was waited for in vain
 */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  everyMs = 20,
): Promise<void> {
  const endMs = performance.now() + LIMIT_MS;
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`not within ${LIMIT_MS / 1000} s: ${what}`);
    await delay(everyMs);
  }
}
