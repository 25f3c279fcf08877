/**
 * Many seeds, on all processors: progress while they run, sums at the end, and the command that
 * runs a seed that failed again.
 */
import { execFileSync } from "node:child_process";
import { appendFileSync } from "node:fs";
import type { Changes } from "../base/options.ts";
import { commandOf } from "./changes.ts";
import { runPool, seedsFrom } from "./pool.ts";
import { Totals } from "./totals.ts";

/** Which seeds, for how long, and what is reported of them. */
export interface ManyOptions {
  readonly first: number;
  /** Infinity for as many as there is time for. */
  readonly count: number;
  /** Milliseconds after which no seed is begun. */
  readonly forMs: number;
  readonly workers: number;
  readonly bug: string | undefined;
  readonly changes: Changes | undefined;
  /** A file to which one line of JSON is added at the end. */
  readonly summaryFile: string | undefined;
  print(line: string): void;
  /** Progress, for people only. */
  note(line: string): void;
}

const PROGRESS_MS = 10_000;

/** Runs the seeds; with a bug, until one finds it. Returns the sums. */
export async function runMany(options: ManyOptions): Promise<Totals> {
  const { first, count, forMs, workers, bug, changes, summaryFile, print, note } = options;
  const startMs = performance.now();
  const totals = new Totals();
  const isOver = () =>
    performance.now() - startMs >= forMs || (bug !== undefined && totals.failed.size > 0);
  let notedMs = startMs;
  await runPool({
    workers,
    bug,
    next: seedsFrom(first, count, isOver, changes),
    done(summary) {
      totals.add(summary);
      if (summary.violation !== undefined) {
        print(
          `seed ${summary.seed}: ${summary.violation.split("\n").slice(0, 6).join("\n  ").slice(0, 1500)}`,
        );
        print(
          `  to run it again: ${commandOf(summary.seed, bug, changes)} --story 60 --picture history.html`,
        );
      }
      const now = performance.now();
      if (now - notedMs < PROGRESS_MS) return;
      notedMs = now;
      const { seeds, failed, simulatedHours, sums } = totals;
      const perMinute = ((seeds * 60_000) / (now - startMs)).toFixed(0);
      const operations = `${(sums.operations / 1000).toFixed(0)},000 operations`;
      note(
        `${seeds} seeds (${perMinute} a minute), ${simulatedHours.toFixed(2)} hours simulated, ${operations}, ${failed.size} failed`,
      );
    },
  });
  print(totals.text());
  const { failed } = totals;
  if (failed.size === 0) print("all promises held");
  else
    print(
      `VIOLATIONS in ${failed.size} seeds: ${[...failed.keys()].sort((a, b) => a - b).join(" ")}`,
    );
  if (summaryFile !== undefined) {
    const line = {
      date: new Date().toISOString(),
      commit: commitOf(),
      first,
      bug,
      changes,
      ...totals.record(),
    };
    appendFileSync(summaryFile, `${JSON.stringify(line)}\n`);
  }
  return totals;
}

/** The commit of the working copy, with a mark if it was changed; undefined where there is none. */
function commitOf(): string | undefined {
  try {
    return execFileSync("git", ["describe", "--always", "--dirty"], {
      cwd: import.meta.dirname,
      encoding: "utf8",
      stdio: "pipe",
    }).trim();
  } catch {
    return undefined;
  }
}
