/** Durations as kubectl prints ages (apimachinery: util/duration/duration.go HumanDuration). */
import { parseTime } from "../meta/time.ts";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

function twoUnits(seconds: number, large: number, name: string, small: number, unit: string) {
  const count = Math.floor(seconds / large);
  const rest = Math.floor((seconds % large) / small);
  return rest === 0 ? `${count}${name}` : `${count}${name}${rest}${unit}`;
}

/** Two or three significant figures, such as "5d12h". @param ms negative where clocks differ */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / 1000);
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 2 * MINUTE) return `${seconds}s`;
  if (seconds < 10 * MINUTE) return twoUnits(seconds, MINUTE, "m", 1, "s");
  if (seconds < 3 * HOUR) return `${Math.floor(seconds / MINUTE)}m`;
  if (seconds < 8 * HOUR) return twoUnits(seconds, HOUR, "h", MINUTE, "m");
  if (seconds < 2 * DAY) return `${Math.floor(seconds / HOUR)}h`;
  if (seconds < 8 * DAY) return twoUnits(seconds, DAY, "d", HOUR, "h");
  if (seconds < 2 * YEAR) return `${Math.floor(seconds / DAY)}d`;
  if (seconds < 8 * YEAR) return twoUnits(seconds, YEAR, "y", DAY, "d");
  return `${Math.floor(seconds / YEAR)}y`;
}

/** The age of a time in an object; "<unknown>" without one. */
export function ageSince(time: unknown, nowMs: number): string {
  const ms = parseTime(time);
  return ms === undefined ? "<unknown>" : humanDuration(nowMs - ms);
}
