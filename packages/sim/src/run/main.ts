/** The simulator's command: its options stand in `readArguments` below. */
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { plantEdit } from "@quorate/host/testing";
import { defined } from "@quorate/proto";
import {
  inGroup,
  readArguments,
  switchOption,
  valueOption,
} from "../../../../scripts/dev/command-line.ts";
import { optionsOf, type SimOptions } from "../base/options.ts";
import { type Explains, formatHistory, judgeHistory, parseHistory } from "../check/judge.ts";
import { editFor } from "../planted/catalogue.ts";
import type { RunResult } from "../result.ts";
import { parseChanges } from "./changes.ts";
import { runMany } from "./many.ts";
import { shrinkSeed } from "./shrink.ts";
import { measureSpeed } from "./speed.ts";

const usage = `./dev sim OPTIONS: whole members on a simulated clock, network and disk

One of --seed, --seeds and --minutes says what is run; --check and --speed run nothing. Ends with 1 if a
promise was broken or a history could not be decided, with 2 if the command line makes no sense.`;

const { values } = readArguments(usage, {
  ...inGroup("One run:", {
    seed: valueOption(
      "its options, what came of it, and the hash over all its events; the same seed and commit give the same run",
    ),
    story: valueOption("also the last N events of each member"),
    picture: valueOption("also an HTML picture of the part of the clients' history that fails"),
    history: valueOption("also the whole history, for --check"),
    shrink: switchOption("looks for the least that makes the run fail"),
  }),
  ...inGroup("Many runs:", {
    seeds: valueOption("so many from --from on, or these"),
    minutes: valueOption("as many as there is time for"),
    from: valueOption("the first seed (1)"),
    workers: valueOption("processors to use (all)"),
    summary: valueOption("adds a line of JSON with the sums to the file"),
  }),
  ...inGroup("What is run:", {
    set: {
      ...valueOption(
        "an option other than the seed draws it, as in --set members=5; may be given again",
      ),
      array: true,
    },
    without: {
      ...valueOption("without a kind of fault, as in --without kill; may be given again"),
      array: true,
    },
    bug: valueOption("with a planted bug; of many seeds, until it is found"),
  }),
  ...inGroup("Other:", {
    check: valueOption("judges a history in a file (with --picture)"),
    speed: switchOption("measures how much faster than real time a cluster is simulated"),
  }),
});

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** A number of the command line. */
function numberOf(
  name: "seed" | "from" | "story" | "minutes" | "workers",
  otherwise: number,
): number {
  const text = values[name];
  const number = text === undefined ? otherwise : Number(text);
  if (Number.isNaN(number) || number < 0)
    throw new Error(`--${name} ${text}: it is a number, 0 or more`);
  return number;
}

/** A build of the world with the bug in it. */
async function load(): Promise<typeof import("../run-seed.ts").runSeed> {
  const edit = editFor(values.bug);
  if (edit !== undefined) plantEdit(edit);
  return (await import("../run-seed.ts")).runSeed;
}

function check(path: string): boolean {
  const { violation, undecided, answered, unknown, failing, picture } = judgeHistory(
    parseHistory(readFileSync(path, "utf8")),
    {
      title: path,
    },
  );
  print(`${answered} operations answered, ${unknown} writes of unknown outcome`);
  if (picture !== undefined && values.picture !== undefined) {
    writeFileSync(values.picture, picture);
    print(`a picture of the ${failing!.length} operations that fail is in ${values.picture}`);
  }
  if (undecided.length > 0)
    print(`UNDECIDED ${undecided.join(" and ")}: the search ended at its bound`);
  print(violation === undefined ? "nothing wrong was found" : `VIOLATION\n${violation}`);
  return violation === undefined && undecided.length === 0;
}

/** --seeds N, or --seeds A..B. */
function rangeOf(text: string): { first: number; count: number } {
  const [first, last] = text.split("..").map(Number);
  const range =
    last === undefined
      ? { first: numberOf("from", 1), count: first }
      : { first, count: last - first + 1 };
  if (!(range.count >= 1))
    throw new Error(
      `--seeds ${text}: it is a number of seeds, or the first and the last as in 1..500`,
    );
  return range;
}

async function main(): Promise<boolean> {
  const { bug } = values;
  const changes = parseChanges(values.set ?? [], values.without ?? []);
  if (values.check !== undefined) return check(values.check);
  if (values.speed) {
    await measureSpeed(print);
    return true;
  }
  if (values.seed !== undefined) {
    const seed = numberOf("seed", 1);
    if (values.shrink) {
      const least = await shrinkSeed(seed, bug, changes, await load(), print);
      if (least === undefined) print("all promises held: there is nothing to shrink");
      return least === undefined;
    }
    const how = {
      storyLines: numberOf("story", 0),
      pictureFile: values.picture,
      historyFile: values.history,
      print,
    };
    return runOne(optionsOf(seed, bug, changes), await load(), how);
  }
  if (values.seeds === undefined && values.minutes === undefined)
    throw new Error("one of --seed N, --seeds N, --minutes M is needed");
  const totals = await runMany({
    ...(values.seeds === undefined
      ? { first: numberOf("from", 1), count: Number.POSITIVE_INFINITY }
      : rangeOf(values.seeds)),
    forMs:
      values.minutes === undefined ? Number.POSITIVE_INFINITY : numberOf("minutes", 1) * 60_000,
    workers: numberOf("workers", availableParallelism()),
    bug,
    changes,
    summaryFile: values.summary,
    print,
    note: (line) => process.stderr.write(`${line}\n`),
  });
  return totals.failed.size === 0 && totals.undecided === 0;
}

process.exitCode = (await main()) ? 0 : 1;

/** What to report of a run beside its result. */
interface OneOptions {
  /** Events of each member. */
  readonly storyLines: number;
  /** Files for the picture of a history that fails, and for the history itself. */
  readonly pictureFile: string | undefined;
  readonly historyFile: string | undefined;
  print(line: string): void;
}

/** Runs a seed's options. Returns true if all promises held. */
async function runOne(
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
