/** Numbers of JSON as Go sees them: int64 where the value is a whole one, else float64. */

/** A whole number that fits into 64 bits, as far as JavaScript's numbers show it. */
export function isInt64(value: number): boolean {
  return Number.isInteger(value) && Math.abs(value) <= 2 ** 63;
}

/** A float64 as Go's %v prints it. */
export function goFloat(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e21) return String(value);
  const exponent = Math.floor(Math.log10(Math.abs(value)));
  const text = exponent < -4 || exponent >= 21 ? value.toExponential() : String(value);
  return text.replace(/e([+-])(\d)$/, "e$10$2");
}
