/**
 * Times as Go reads and writes them (time.Parse with RFC 3339): JSON texts of metav1.Time in whole
 * seconds and of MicroTime in microseconds, both in UTC.
 */

/** Seconds since 1970 of Go's zero time, year 1, which Kubernetes writes as null. */
const ZERO_SECONDS = -62_135_596_800;

export interface Instant {
  readonly seconds: number;
  readonly micros: number;
}

interface Element {
  /** As Go's errors name it. */
  readonly layout: string;
  readonly pattern: RegExp;
  /** What Go says of a value that is too large, and the largest; undefined without a range. */
  readonly range?: readonly [what: string, min: number, max: number];
}

const HYPHEN: Element = { layout: "-", pattern: /^-/ };
const COLON: Element = { layout: ":", pattern: /^:/ };
const digits = (layout: string, what: string, min: number, max: number): Element => ({
  layout,
  pattern: /^\d\d/,
  range: [what, min, max],
});

const UP_TO_SECONDS: readonly Element[] = [
  { layout: "2006", pattern: /^\d{4}/ },
  HYPHEN,
  digits("01", "month", 1, 12),
  HYPHEN,
  digits("02", "day", 1, 31),
  { layout: "T", pattern: /^T/ },
  digits("15", "hour", 0, 23),
  COLON,
  digits("04", "minute", 0, 59),
  COLON,
  digits("05", "second", 0, 59),
];
const ZONE: Element = { layout: "Z07:00", pattern: /^(?:Z|[+-]\d\d:\d\d)/ };
// Go accepts a fraction after the seconds of a layout without one.
const ANY_FRACTION: Element = { layout: "", pattern: /^(?:[.,]\d+)?/ };
const MICROS: Element = { layout: ".000000", pattern: /^\.\d{6}/ };

const LAYOUTS = {
  seconds: {
    name: "2006-01-02T15:04:05Z07:00",
    elements: [...UP_TO_SECONDS, ANY_FRACTION, ZONE],
  },
  micros: {
    name: "2006-01-02T15:04:05.000000Z07:00",
    elements: [...UP_TO_SECONDS, MICROS, ZONE],
  },
} as const;

/** A time as Kubernetes writes it, of a day that every month has: the usual case. */
const USUAL = {
  seconds: /^\d{4}-\d\d-(?:0[1-9]|1\d|2[0-8])T\d\d:\d\d:\d\dZ$/,
  micros: /^\d{4}-\d\d-(?:0[1-9]|1\d|2[0-8])T\d\d:\d\d:\d\d\.\d{6}Z$/,
} as const;

function usualTime(text: string, unit: "seconds" | "micros"): Instant | undefined {
  if (!USUAL[unit].test(text) || text.startsWith("24", 11)) return undefined;
  const ms = Date.parse(unit === "seconds" ? text : `${text.slice(0, 19)}Z`);
  if (Number.isNaN(ms)) return undefined;
  return { seconds: ms / 1000, micros: unit === "seconds" ? 0 : Number(text.slice(20, 26)) };
}

/**
 * Parses a time.
 * @param unit "seconds" for metav1.Time, "micros" for MicroTime, which demands six decimals
 * @returns undefined for the zero time. Throws SyntaxError with Go's text.
 */
export function parseTime(text: string, unit: "seconds" | "micros"): Instant | undefined {
  const usual = usualTime(text, unit);
  if (usual !== undefined) return isZero(usual) ? undefined : usual;
  const { name, elements } = LAYOUTS[unit];
  const failed = (what: string): SyntaxError =>
    new SyntaxError(`parsing time ${JSON.stringify(text)}${what}`);
  const found: string[] = [];
  let rest = text;
  for (const { layout, pattern, range } of elements) {
    const part = pattern.exec(rest)?.[0];
    if (part === undefined)
      throw failed(` as "${name}": cannot parse ${JSON.stringify(rest)} as "${layout}"`);
    if (range !== undefined && (Number(part) < range[1] || Number(part) > range[2]))
      throw failed(`: ${range[0]} out of range`);
    found.push(part);
    rest = rest.slice(part.length);
  }
  if (rest !== "") throw failed(`: extra text: ${JSON.stringify(rest)}`);
  const [year, , month, , day, , hour, , minute, , second, fraction = "", zone] = found;
  const days = new Date(Date.UTC(2000, Number(month), 0)).getUTCDate();
  const leap = Number(year) % 4 === 0 && (Number(year) % 100 !== 0 || Number(year) % 400 === 0);
  if (Number(day) > (month === "02" && !leap ? 28 : days)) throw failed(": day out of range");
  const ms = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}${zone}`);
  if (Number.isNaN(ms)) throw failed(": time zone offset out of range");
  const seconds = ms / 1000;
  const micros = Number(fraction.slice(1, 7).padEnd(6, "0"));
  return isZero({ seconds, micros }) ? undefined : { seconds, micros };
}

function isZero({ seconds, micros }: Instant): boolean {
  return seconds === ZERO_SECONDS && micros === 0;
}

/** The text under which Go writes a time that it reads; null for the zero time. As parseTime. */
export function canonicalTime(text: string, unit: "seconds" | "micros"): string | null {
  const usual = usualTime(text, unit);
  return usual !== undefined && !isZero(usual) ? text : formatTime(parseTime(text, unit), unit);
}

/** The last time that was formatted: times of one object are often equal. */
let last = { seconds: 0, text: "1970-01-01T00:00:00" };

/** The JSON text of a time; null for the zero time and for years that RFC 3339 cannot write. */
export function formatTime(time: Instant | undefined, unit: "seconds" | "micros"): string | null {
  if (time === undefined || isZero(time)) return null;
  if (last.seconds !== time.seconds) {
    const date = new Date(time.seconds * 1000);
    if (!(date.getUTCFullYear() >= 0 && date.getUTCFullYear() <= 9999)) return null;
    last = { seconds: time.seconds, text: date.toISOString().slice(0, 19) };
  }
  const { text } = last;
  return unit === "seconds" ? `${text}Z` : `${text}.${String(time.micros).padStart(6, "0")}Z`;
}
