/** One seed, in this thread: its options first, what came of it, and its hash over all events. */

import { writeFileSync } from "node:fs";
import { defined } from "@quorate/proto";
import type { SimOptions } from "../base/options.ts";
import { type Explains, formatHistory } from "../check/judge.ts";
import type { RunResult } from "../result.ts";

/** What to report of a run beside its result. */
export interface OneOptions {
  /** Events of each member. */
  readonly storyLines: number;
  /** Files for the picture of a history that fails, and for the history itself. */
  readonly pictureFile: string | undefined;
  readonly historyFile: string | undefined;
  print(line: string): void;
}

/** Runs a seed's options. Returns true if all promises held. */
export async function runOne(
  options: SimOptions,
  run: (options: SimOptions, explains: Explains) => Promise<RunResult>,
  how: OneOptions,
): Promise<boolean> {
  const { print } = how;
  print(`options ${JSON.stringify(options, undefined, 1)}`);
  const start = process.cpuUsage();
  const { story, violation, verdict, history, hash, ...rest } = await run(options, (what) =>
    print(`VIOLATION, and now the failing part of the history is made small\n${what}`),
  );
  const { user, system } = process.cpuUsage(start);
  if (how.storyLines > 0) print(story.last(how.storyLines));
  print(JSON.stringify(rest, undefined, 1));
  if (verdict !== undefined) {
    const { undecided, answered, unknown, lastRevision } = verdict;
    const open = undecided.length === 0 ? "decided" : `UNDECIDED ${undecided.join(", ")}`;
    print(
      `history: ${answered} answered, ${unknown} of unknown outcome, revision ${lastRevision}, ${open}`,
    );
  }
  if (how.historyFile !== undefined) {
    writeFileSync(how.historyFile, formatHistory(history));
    print(`the clients' history is in ${how.historyFile}`);
  }
  if (verdict?.picture !== undefined && how.pictureFile !== undefined) {
    writeFileSync(how.pictureFile, verdict.picture);
    print(
      `a picture of the ${defined(verdict.failing, "the failing").length} operations that fail is in ${how.pictureFile}`,
    );
  }
  if (verdict?.isBounded === true)
    print(
      `${defined(verdict.failing, "the failing").length} operations fail; the search for fewer ended at its bound`,
    );
  const cpuMs = (user + system) / 1000;
  const speed = (rest.simulatedMs / cpuMs).toFixed(0);
  print(
    `${(rest.simulatedMs / 1000).toFixed(1)} s simulated in ${(cpuMs / 1000).toFixed(2)} s of processor time: ${speed} times as fast`,
  );
  print(`hash over all events: ${hash}`);
  print(violation === undefined ? "all promises held" : `VIOLATION\n${violation}`);
  return violation === undefined;
}
