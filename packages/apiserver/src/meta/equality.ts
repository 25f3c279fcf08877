/** Comparison of objects as Kubernetes compares them (api/equality: Semantic.DeepEqual). */

/** Absent, null, {} and [] are one: Go's types have one empty value. */
function isNothing(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (typeof value !== "object") return false;
  return Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0;
}

/** Whether two JSON values are the same; absent, null and empty ones are. */
export function semanticEqual(a: unknown, b: unknown): boolean {
  if (a === b || (isNothing(a) && isNothing(b))) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, index) => semanticEqual(item, b[index]));
  }
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  for (const key of Object.keys(left)) {
    if (!semanticEqual(left[key], right[key])) return false;
  }
  return Object.keys(right).every((key) => key in left || isNothing(right[key]));
}
