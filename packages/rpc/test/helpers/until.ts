/** Waits for conditions in turns of the event loop. */

/** How long a condition may take to come true; far more than it ever does. */
const PATIENCE_MS = 120_000;

/**
 * Resolves once `condition` holds; looks again in each turn of the event loop. Rejects if it does
 * not come to hold at all.
 */
export async function until(condition: () => boolean): Promise<void> {
  const lastMs = performance.now() + PATIENCE_MS;
  while (!condition()) {
    if (performance.now() > lastMs) throw new Error(`this does not come true: ${condition}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Resolves once a value has stayed the same for some turns of the event loop. */
export async function unchanged(value: () => number): Promise<void> {
  for (let same = 0, last = value(); same < 50; same++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    if (value() !== last) same = 0;
    last = value();
  }
}
