/**
 * Work that can pause. A request that may touch many keys is a generator: it yields after a bounded
 * number of keys, and its caller decides whether to continue at once or to return to the event loop
 * first.
 *
 *     function* count(keys: Iterable<string>): Steps<number> {
 *       let n = 0;
 *       for (const _ of keys) if (++n % STEP_KEYS === 0) yield;
 *       return n;
 *     }
 *     const total = runSteps(count(keys));     // to the end, without a pause
 */

/**
 * A computation that returns `T` and may pause at each `yield`. The state that it reads must stay
 * valid across pauses.
 */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Maximum keys of the index that one step visits: some 0.1 ms. */
export const STEP_KEYS = 1024;

/** Runs `steps` to the end without a pause and returns the result. @throws what the steps throw */
export function runSteps<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
