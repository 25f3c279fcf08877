/**
 * The stories of slow calls: what held the members' event loops while a call was under way.
 */
import type { Noted } from "./agents.ts";
import type { SlowCall } from "./paced.ts";

/** Of calls that were due closer to each other only the slowest is told: they waited together. */
const APART_MS = 50;
/** What took less of a call's time is not told. */
const MIN_TOLD_MS = 0.5;

/**
 * The stories of the slowest calls, the slowest first: a line each, and a line for each thing that
 * a member did meanwhile, as far as it took.
 * @param noted what each member noted
 * @param count at most so many stories
 */
export function stories(
  slowest: readonly SlowCall[],
  noted: readonly (readonly Noted[])[],
  count: number,
): string[] {
  const told: SlowCall[] = [];
  for (const call of slowest) {
    if (told.length === count) break;
    if (told.every(({ dueMs }) => Math.abs(dueMs - call.dueMs) >= APART_MS)) told.push(call);
  }
  return told.flatMap((call) => [headline(call), ...meanwhile(call, noted)]);
}

function headline({ dueMs, sentMs, doneMs }: SlowCall): string {
  return `${ms(doneMs - dueMs)} from due to done; sent after ${ms(sentMs - dueMs)}`;
}

function meanwhile({ dueMs, doneMs }: SlowCall, members: readonly (readonly Noted[])[]): string[] {
  const lines: { atMs: number; line: string }[] = [];
  for (const [index, noted] of members.entries()) {
    const member = members.length > 1 ? `member ${index}: ` : "";
    for (const { what, fromMs, durationMs } of noted) {
      const shareMs = Math.min(fromMs + durationMs, doneMs) - Math.max(fromMs, dueMs);
      if (shareMs < MIN_TOLD_MS) continue;
      const whole = shareMs < durationMs - 0.05 ? ` of ${ms(durationMs)}` : "";
      const atMs = fromMs - dueMs;
      lines.push({ atMs, line: `  ${member}at ${ms(atMs)}, ${ms(shareMs)}${whole}: ${what}` });
    }
  }
  return lines.toSorted((a, b) => a.atMs - b.atMs).map(({ line }) => line);
}

const ms = (value: number): string => `${value.toFixed(1)} ms`;
