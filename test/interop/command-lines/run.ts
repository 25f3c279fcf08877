/** Runs scenarios in one column: one pair of programs against one kind of member. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Executable } from "../../support/executables.ts";
import { freePorts } from "../../support/ports.ts";
import { type Names, normalise, showMessage } from "./normalise.ts";
import { expand, type Place, type Scenario, type Step, splitLine } from "./scenario.ts";
import { idNames, Stage } from "./stage.ts";
import type { Result, Running, Tool } from "./tools.ts";
import type { Outcome, Transcript } from "./transcript.ts";

/** One column of the comparison. */
export interface Column {
  readonly name: string;
  readonly member: Executable;
  readonly ctl: Tool;
  readonly utl: Tool;
  /** In scenarios that ask for processes, and for lines that are ended by a signal. */
  readonly ownCtl: Tool;
}

/** Revisions between the beginnings of two scenarios on a shared cluster. */
const SCENARIO_REVISIONS = 60;
/** So long may calls take where a scenario does not say otherwise: machines are busy. */
const LIMITS = ["--command-timeout=30s", "--dial-timeout=20s"];

/** What placeholders stand for until a command line has made one: ids that nothing has. */
const NONE_YET: readonly [string, string][] = [
  ["lease", "1"],
  ["added", "1"],
];

/** What is reported while it runs. */
export type OnStep = (column: string, scenario: string, line: string, outcome: Outcome) => void;

/** Runs all scenarios of a column, in order. */
export async function runColumn(
  column: Column,
  scenarios: readonly Scenario[],
  chosen: (name: string) => boolean,
  onStep: OnStep,
): Promise<Transcript> {
  const transcript = new Map<string, ReadonlyMap<string, Outcome>>();
  const stages = new Map<Place, Promise<Stage>>();
  const sizes = { one: 1, three: 3, fresh: 1 };
  const wanted = scenarios.filter(({ name }) => chosen(name));
  for (const place of ["one", "three"] as const) {
    if (wanted.some((one) => one.place === place))
      stages.set(place, Stage.start(column.member, sizes[place]));
  }
  try {
    // A later wait for them sees a failure; it must not end the process before.
    for (const stage of stages.values()) stage.catch(() => {});
    for (const [i, scenario] of scenarios.entries()) {
      if (!chosen(scenario.name)) continue;
      const own = scenario.place === "fresh" ? await Stage.start(column.member, 1) : undefined;
      const stage = own ?? (await stages.get(scenario.place));
      const dir = mkdtempSync(join(tmpdir(), "quorate-lines-"));
      try {
        const revision =
          (await stage?.prepare(
            own === undefined ? (i + 1) * SCENARIO_REVISIONS : undefined,
            scenario.alarm,
          )) ?? 0;
        transcript.set(
          scenario.name,
          await runScenario(column, scenario, { stage, dir, revision }, onStep),
        );
      } finally {
        rmSync(dir, { recursive: true, force: true });
        await own?.destroy();
      }
    }
  } finally {
    for (const stage of stages.values()) await (await stage.catch(() => undefined))?.destroy();
  }
  return transcript;
}

interface Scene {
  readonly stage: Stage | undefined;
  readonly dir: string;
  readonly revision: number;
}

async function runScenario(
  column: Column,
  scenario: Scenario,
  { stage, dir, revision }: Scene,
  onStep: OnStep,
) {
  const outcomes = new Map<string, Outcome>();
  const dead = `http://127.0.0.1:${(await freePorts(1))[0]}`;
  const values = new Map<string, string>([
    ...(stage?.values() ?? []),
    ["dir", dir],
    ["dead", dead],
    ["rev", String(revision)],
    ...NONE_YET,
  ]);
  const names: [string, string][] = [
    [dir, "{dir}"],
    [dead, "{dead}"],
    [dead.slice(7), "{deadaddress}"],
    ...((stage?.names() ?? []) as [string, string][]),
  ];
  const background: { key: string; line: string; lines: number; running: Running }[] = [];
  const finish = (key: string, line: string, result: Result): void => {
    learnLease(result, values, names);
    const outcome = outcomeOf(result, names, line, scenario.exitOnly);
    outcomes.set(key, outcome);
    onStep(column.name, scenario.name, key, outcome);
  };
  for (const step of scenario.steps) {
    let key = step.line;
    for (let n = 2; outcomes.has(key); n++) key = `${step.line} #${n}`;
    const { running, line } = start(column, scenario, step, stage !== undefined, values, dir);
    if (step.untilLines !== undefined) await running.printed(step.untilLines);
    if (step.background) {
      background.push({ key, line, lines: step.lastLines, running });
      outcomes.set(key, { exit: "", stdout: "", stderr: "" });
    } else finish(key, line, await running.end(step.untilLines !== undefined));
    const added = /^member add/.test(step.line) ? await stage?.added() : undefined;
    if (added !== undefined) {
      values.set("added", added.toString(16));
      names.push(...(idNames(added, "{added}") as [string, string][]));
      const last = outcomes.get(key)!;
      outcomes.set(key, { ...last, stdout: normalise(last.stdout, names) });
    }
  }
  for (const { key, line, lines, running } of background) {
    await running.printed(lines);
    finish(key, line, await running.end(true));
  }
  return outcomes;
}

function start(
  column: Column,
  scenario: Scenario,
  step: Step,
  hasCluster: boolean,
  values: ReadonlyMap<string, string>,
  dir: string,
) {
  const line = expand(step.line, values);
  const words = splitLine(line);
  const common =
    !hasCluster || scenario.bare || step.tool === "utl"
      ? []
      : [
          ...LIMITS,
          ...(/--endpoints/.test(line) ? [] : [`--endpoints=${values.get("endpoint0")}`]),
        ];
  const isSignalled = step.background || step.untilLines !== undefined;
  const tool =
    step.tool === "utl"
      ? column.utl
      : scenario.ownProcess || isSignalled
        ? column.ownCtl
        : column.ctl;
  return {
    line,
    running: tool.start(
      { ...words, args: [...common, ...words.args] },
      expand(step.input, values),
      dir,
    ),
  };
}

/** Remembers the lease that was granted. */
function learnLease(
  { stdout }: Result,
  values: Map<string, string>,
  names: [string, string][],
): void {
  const lease = /\blease ([0-9a-f]{8,16}) granted/.exec(Buffer.from(stdout).toString())?.[1];
  if (lease === undefined) return;
  values.set("lease", lease);
  const older =
    names.filter(([, name]) => name.startsWith("{lease")).length / idNames(0n, "").length;
  names.push(
    ...(idNames(BigInt(`0x${lease}`), older === 0 ? "{lease}" : `{lease${older + 1}}`) as [
      string,
      string,
    ][]),
  );
}

function outcomeOf(
  { exit, stdout, stderr }: Result,
  names: Names,
  line: string,
  exitOnly: boolean,
): Outcome {
  const text = /protobuf/.test(line) ? showMessage(stdout) : Buffer.from(stdout).toString();
  // A shell returns 130 for both.
  const shown = {
    exit: exit === "SIGINT" ? "130" : String(exit),
    stdout: normalise(text, names),
    stderr: normalise(stderr, names),
  };
  const presence = (one: string): string => (one === "" ? "" : "{text}\n");
  return exitOnly ? { ...shown, stdout: presence(text), stderr: presence(stderr) } : shown;
}
