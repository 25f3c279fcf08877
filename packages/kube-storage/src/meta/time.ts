/** Times of metadata: RFC 3339 in UTC, in whole seconds or in microseconds (metav1.Time). */

/** "2026-01-02T03:04:05Z". @param wallMs milliseconds since 1970; a fraction of a second is cut */
export function metaTime(wallMs: number): string {
  return `${new Date(wallMs).toISOString().slice(0, 19)}Z`;
}

/** "2026-01-02T03:04:05.000000Z" (metav1.MicroTime). @param wallMs with a fraction at most */
export function microTime(wallMs: number): string {
  const whole = Math.floor(wallMs);
  const micros = Math.floor((wallMs - whole) * 1000);
  return `${new Date(whole).toISOString().slice(0, 23)}${String(micros).padStart(3, "0")}Z`;
}

const RFC_3339 =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)$/;

/** Milliseconds since 1970 of an RFC 3339 text; undefined for another text or none. */
export function parseTime(text: unknown): number | undefined {
  if (typeof text !== "string" || !RFC_3339.test(text)) return undefined;
  const ms = Date.parse(text.replace(",", "."));
  return Number.isNaN(ms) ? undefined : ms;
}
