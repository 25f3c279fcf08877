/**
 * Schedules of CronJobs: five fields, or a word (github.com/robfig/cron, parser.go).
 *
 *     minute 0-59, hour 0-23, day 1-31, month 1-12 or JAN-DEC, weekday 0-6 or SUN-SAT
 *     each: * or ?, n, a-b, and a step: 5/15, 1-9/2; several with ","
 *     @yearly @annually @monthly @weekly @daily @midnight @hourly, or @every 1h30m
 */
import { parseDuration } from "@quorate/host";
import { quoteText } from "@quorate/proto";

interface Bounds {
  readonly min: number;
  readonly max: number;
  readonly names: readonly string[];
}

const MONTHS = ["", ..."jan feb mar apr may jun jul aug sep oct nov dec".split(" ")];
const DAYS = "sun mon tue wed thu fri sat".split(" ");

const FIELDS: readonly Bounds[] = [
  { min: 0, max: 59, names: [] },
  { min: 0, max: 23, names: [] },
  { min: 1, max: 31, names: [] },
  { min: 1, max: 12, names: MONTHS },
  { min: 0, max: 6, names: DAYS },
];

const WORDS = "yearly annually monthly weekly daily midnight hourly".split(" ");
/** Longer schedules are refused. */
const MAX_SCHEDULE_CHARS = 10_000;

/** What is wrong with a schedule; undefined for a good one. */
export function cronProblem(schedule: string): string | undefined {
  if (schedule.length > MAX_SCHEDULE_CHARS) return "too long";
  const [, zone, rest] = /^(?:CRON_)?TZ=(\S*)(?: (.*))?$/s.exec(schedule) ?? [];
  if (zone !== undefined) {
    if (!isZone(zone)) return `provided bad location ${zone}: unknown time zone ${zone}`;
    return cronProblem((rest ?? "").trim());
  }
  if (schedule.startsWith("@")) return wordProblem(schedule);
  const fields = schedule.trim() === "" ? [] : schedule.trim().split(/\s+/);
  if (fields.length !== FIELDS.length) {
    const { length } = fields;
    return `expected exactly ${FIELDS.length} fields, found ${length}: [${fields.join(" ")}]`;
  }
  for (const [index, field] of fields.entries()) {
    for (const range of field.split(",")) {
      if (range === "") continue;
      const problem = rangeProblem(range, FIELDS[index] as Bounds);
      if (problem !== undefined) return problem;
    }
  }
  return undefined;
}

function isZone(name: string): boolean {
  return name === "" || name === "UTC" || name === "Local" || isKnownZone(name);
}

/** A name of the time zone database, or an offset. */
export function isKnownZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en-US", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

const EVERY = "@every ";

function wordProblem(text: string): string | undefined {
  if (WORDS.includes(text.slice(1))) return undefined;
  if (!text.startsWith(EVERY)) return `unrecognized descriptor: ${text}`;
  const duration = text.slice(EVERY.length);
  if (typeof parseDuration(duration) === "number") return undefined;
  return `failed to parse duration ${text}: time: invalid duration ${quoteText(duration)}`;
}

/** A number, or a text that says why it is none. */
function read(text: string, { names }: Bounds): number | string {
  const index = text === "" ? -1 : names.indexOf(text.toLowerCase());
  if (index >= 0) return index;
  const value = Number(text);
  const why = `strconv.Atoi: parsing ${quoteText(text)}`;
  if (!/^[+-]?\d+$/.test(text)) return `failed to parse int from ${text}: ${why}: invalid syntax`;
  if (value < 0) return `negative number (${value}) not allowed: ${text}`;
  if (!Number.isSafeInteger(value))
    return `failed to parse int from ${text}: ${why}: value out of range`;
  return value;
}

function rangeProblem(text: string, bounds: Bounds): string | undefined {
  const { min, max } = bounds;
  const [range = "", stepText, more] = text.split("/");
  const [low = "", high, others] = range.split("-");
  let [start, end] = [min, max];
  if (low !== "*" && low !== "?") {
    const first = read(low, bounds);
    if (typeof first === "string") return first;
    [start, end] = [first, first];
    if (others !== undefined) return `too many hyphens: ${text}`;
    if (high !== undefined) {
      const last = read(high, bounds);
      if (typeof last === "string") return last;
      end = last;
    }
  }
  let step = 1;
  if (more !== undefined) return `too many slashes: ${text}`;
  if (stepText !== undefined) {
    const given = read(stepText, { ...bounds, names: [] });
    if (typeof given === "string") return given;
    step = given;
    // "5/15" goes on to the end.
    if (high === undefined) end = max;
  }
  if (start < min) return `beginning of range (${start}) below minimum (${min}): ${text}`;
  if (end > max) return `end of range (${end}) above maximum (${max}): ${text}`;
  if (start > end) return `beginning of range (${start}) beyond end of range (${end}): ${text}`;
  if (step === 0) return `step of range should be a positive number: ${text}`;
  return undefined;
}
