/** The simulator's command: what it takes is in `help` below. */
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { optionsOf } from "../base/options.ts";
import { judgeHistory, parseHistory } from "../check/judge.ts";
import { bugOf, plant } from "../planted/planted.ts";
import { parseChanges } from "./changes.ts";
import { runMany } from "./many.ts";
import { runOne } from "./one.ts";
import { shrinkSeed } from "./shrink.ts";
import { measureSpeed } from "./speed.ts";

const help = `npm run sim -- OPTIONS: whole members on a simulated clock, network and disk

One run:
  --seed N              its options, what came of it, and the hash over all its events; the same seed and commit give the same run
  --story N             also the last N events of each member
  --picture FILE        also an HTML picture of the part of the clients' history that fails
  --history FILE        also the whole history, for --check
  --shrink              looks for the least that makes the run fail

Many runs:
  --seeds N | A..B      so many from --from on, or these
  --minutes M           as many as there is time for
  --from N              the first seed (1)
  --workers N           processors to use (all)
  --summary FILE        adds a line of JSON with the sums to the file

What is run:
  --set NAME=VALUE      an option other than the seed draws it, as in --set members=5; may be given again
  --without FAULT       without a kind of fault, as in --without kill; may be given again
  --bug NAME            with a planted bug; of many seeds, until it is found

Other:
  --check FILE          judges a history in a file (with --picture)
  --speed               measures how much faster than real time a cluster is simulated
  --help                prints this

Ends with 1 if a promise was broken or a history could not be decided, with 2 if the command line makes no sense.`;

const { values } = readArgs();

/** The command line; ends the process where it cannot be understood. */
function readArgs() {
  try {
    return parse();
  } catch (error) {
    process.stderr.write(`sim: ${(error as Error).message.split(". To specify")[0]}\n\n${help}\n`);
    process.exit(2);
  }
}

function parse() {
  return parseArgs({
    options: {
      help: { type: "boolean" },
      seed: { type: "string" },
      seeds: { type: "string" },
      minutes: { type: "string" },
      from: { type: "string" },
      story: { type: "string" },
      picture: { type: "string" },
      history: { type: "string" },
      shrink: { type: "boolean" },
      speed: { type: "boolean" },
      check: { type: "string" },
      bug: { type: "string" },
      set: { type: "string", multiple: true },
      without: { type: "string", multiple: true },
      workers: { type: "string" },
      summary: { type: "string" },
    },
  });
}

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
  plant(bugOf(values.bug));
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
  const bug = bugOf(values.bug);
  const changes = parseChanges(values.set ?? [], values.without ?? []);
  if (values.check !== undefined) return check(values.check);
  if (values.speed === true) {
    await measureSpeed(print);
    return true;
  }
  if (values.seed !== undefined) {
    const seed = numberOf("seed", 1);
    if (values.shrink === true) {
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

if (values.help === true) {
  print(help);
} else {
  process.exitCode = (await main()) ? 0 : 1;
}
