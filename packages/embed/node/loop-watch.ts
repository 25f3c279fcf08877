/**
 * Notices that the program held the event loop which a member shares with it. A member whose loop
 * is held sends no heartbeats and answers none: held for as long as the election timeout, it loses
 * its leadership, or calls an election for nothing.
 */
import type { Clock, Timer } from "@quorate/host";

/** Looks in the time that may be held. */
const LOOKS = 4;

/**
 * Calls `held` with the milliseconds, each time that the loop was held for `mostMs` or longer.
 */
export function watchLoop(
  clock: Pick<Clock, "every" | "monotonicMs">,
  mostMs: number,
  held: (heldMs: number) => void,
): Timer {
  const periodMs = mostMs / LOOKS;
  let lastMs = clock.monotonicMs();
  return clock.every(periodMs, () => {
    const nowMs = clock.monotonicMs();
    const heldMs = nowMs - lastMs - periodMs;
    lastMs = nowMs;
    if (heldMs >= mostMs) held(heldMs);
  });
}
