/** Numbers of JSON as Go sees them: int64 where the value is a whole one, else float64. */

/** A whole number that fits into 64 bits, as far as JavaScript's numbers show it. */
export function isInt64(value: number): boolean {
  return Number.isInteger(value) && Math.abs(value) <= 2 ** 63;
}
