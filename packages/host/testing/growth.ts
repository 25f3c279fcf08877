/** How the processor time of a function grows with its input: 1 is linear, 2 quadratic. */

/** Processor time of one measurement, long enough for the clock, microseconds. */
const MEASURED_US = 4000;
const ATTEMPTS = 5;
const STEP = 8;

/**
 * The exponent by which the time of `run` grows between inputs of `size` and of eight times `size`:
 * the least of five attempts, because a busy machine only ever adds time.
 *
 * @param inputOf makes an input of that size, outside of the measured time
 */
export function growthOf<T>(
  inputOf: (size: number) => T,
  run: (input: T) => unknown,
  size: number,
): number {
  const [small, large] = [inputOf(size), inputOf(size * STEP)];
  let repeats = 1;
  while (microseconds(run, small, repeats) < MEASURED_US) repeats *= 2;
  let least = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const before = microseconds(run, small, repeats);
    const after = microseconds(run, large, Math.max(1, repeats / STEP)) * Math.min(STEP, repeats);
    least = Math.min(least, after / before);
  }
  return Math.log(least) / Math.log(STEP);
}

function microseconds<T>(run: (input: T) => unknown, input: T, repeats: number): number {
  const start = process.cpuUsage();
  for (let i = 0; i < repeats; i++) run(input);
  const { user, system } = process.cpuUsage(start);
  return Math.max(1, user + system);
}
