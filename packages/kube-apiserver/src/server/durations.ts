/** Durations in Go's form ("1m30s", "500ms"), as clients write ?timeout. */

const UNITS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  "\u00b5s": 1e-3,
  "\u03bcs": 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

const PART = /(\d+(?:\.\d*)?|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/y;

/** Milliseconds; undefined for a text that is no duration. */
export function parseDurationMs(text: string): number | undefined {
  if (text === "0") return 0;
  const sign = /^[+-]/.exec(text)?.[0] ?? "";
  if (text.length === sign.length || text.length > 64) return undefined;
  PART.lastIndex = sign.length;
  let totalMs = 0;
  while (PART.lastIndex < text.length) {
    const match = PART.exec(text);
    if (match === null) return undefined;
    totalMs += Number(match[1]) * UNITS[match[2]];
  }
  return sign === "-" ? -totalMs : totalMs;
}
