/**
 * What the longest turns of a member's loop did: V8's profiler runs while calls are measured, and
 * its samples within the longest turns are printed as a tree. The samples cost the member time, so
 * figures of such a run are not to be compared with others.
 */
import { Session } from "node:inspector";
import { type CpuProfile, type Frame, frames } from "../cpu-profile.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const SAMPLE_US = 100;
/** Turns that are shown, and the least part of one that a line stands for. */
const MAX_TURNS = 3;
const MIN_LINE_MS = 0.2;

/** A turn: its times by the monotonic clock in microseconds. */
export interface ProfiledTurn {
  readonly fromUs: number;
  readonly toUs: number;
  readonly cpuMs: number;
}

/** A running profiler. */
export class TurnProfile {
  readonly #session = new Session();

  constructor() {
    this.#session.connect();
    this.#session.post("Profiler.enable");
    this.#session.post("Profiler.setSamplingInterval", { interval: SAMPLE_US });
    this.#session.post("Profiler.start");
  }

  /** The text for the longest of `turns`; the profile begins again. */
  take(turns: readonly ProfiledTurn[]): string {
    let profile: CpuProfile | undefined;
    // The session is one of this thread: its results come at once.
    this.#session.post("Profiler.stop", (_error, result) => {
      profile = result?.profile as CpuProfile | undefined;
    });
    this.#session.post("Profiler.start");
    if (profile === undefined) return "";
    const longest = [...turns].sort((a, b) => b.cpuMs - a.cpuMs).slice(0, MAX_TURNS);
    const lines: string[] = [];
    for (const { fromUs, toUs, cpuMs } of longest) {
      lines.push(
        `turn of ${cpuMs.toFixed(1)} ms, ${((toUs - fromUs) / 1000).toFixed(1)} by the clock`,
      );
      write(frames(profile, fromUs, toUs, ROOT).tree, 1, lines);
    }
    return lines.join("\n");
  }
}

function write({ name, selfMs, totalMs, children }: Frame, depth: number, lines: string[]): void {
  if (totalMs < MIN_LINE_MS) return;
  lines.push(`${"  ".repeat(depth)}${totalMs.toFixed(1)} (${selfMs.toFixed(1)}) ${name}`);
  for (const child of [...children].sort((a, b) => b.totalMs - a.totalMs))
    write(child, depth + 1, lines);
}
