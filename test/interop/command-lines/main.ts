/**
 * The command `./dev compare commands`: the same command lines through etcdctl and quoratectl,
 * against etcd and Quorate.
 */

import { spawnSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readArguments, switchOption, valueOption } from "../../../scripts/dev/command-line.ts";
import {
  columnsOf,
  describe,
  differencesOf,
  isAsKept,
  KEPT_RELEASE,
  keptTranscript,
  knownDifferences,
  readScenarios,
  reference,
  runColumns,
  type SeenDifference,
  verdict,
} from "./compare.ts";
import { formatDifferences } from "./differences.ts";
import { formatTranscript } from "./transcript.ts";

const HELP = `./dev compare commands [OPTIONS]

Runs the command lines of test/interop/command-lines/scenarios.txt, and with etcd 3.7 those of
formats.txt (every command in every output format), with etcdctl on etcd, quoratectl on
Quorate and etcdctl on Quorate, and compares exit codes, standard output and standard error.

ETCDCTL, ETCDUTL and ETCD select other executables of etcd. Their release selects the list of
differences, differences-3.4.txt or differences-3.7.txt.`;

function releaseOf(etcdctl: string): string {
  const { stdout } = spawnSync(etcdctl, ["version"], {
    env: { ...process.env, ETCDCTL_API: "3" },
    encoding: "utf8",
  });
  const minor = Number(/version: 3\.(\d+)\./.exec(stdout)?.[1] ?? 4);
  // Its main branch calls itself by the release to come.
  return minor >= 7 ? KEPT_RELEASE : `3.${minor}`;
}

async function run(): Promise<boolean> {
  const { values } = readArguments(HELP, {
    only: valueOption("only scenarios whose name contains TEXT", ""),
    columns: valueOption(
      "only these of etcd,quoratectl,etcdctl (without etcd: the stored output of etcd 3.7)",
      "etcd,quoratectl,etcdctl",
    ),
    record: switchOption("store etcd's output in etcd-3.7.txt (needs the programs of etcd 3.7)"),
    write: switchOption(
      'write the observed differences to the list; keeps reasons, and adds "?" for new ones',
    ),
    verbose: {
      type: "boolean",
      alias: "v",
      default: false,
      describe: "print each command line with its outcome",
    },
  });
  const found = reference();
  if (typeof found === "string") throw new Error(found);
  const release = releaseOf(found.etcdctl);
  const scenarios = readScenarios(release === KEPT_RELEASE && values.columns.includes("etcd"));
  const chosen = (name: string): boolean => name.includes(values.only);
  const steps = scenarios
    .filter(({ name }) => chosen(name))
    .reduce((sum, one) => sum + one.steps.length, 0);
  if (steps === 0) throw new Error(`no scenario's name has ${JSON.stringify(values.only)} in it`);
  const columns = columnsOf(found).filter(({ name }) => values.columns.split(",").includes(name));
  console.log(`${steps} command lines, ${columns.length} columns; etcdctl ${release}`);
  let done = 0;
  const startMs = performance.now();
  const transcripts = await runColumns(
    columns,
    scenarios,
    chosen,
    (column, scenario, line, { exit, stdout, stderr }) => {
      done++;
      if (values.verbose)
        console.log(`[${column}] ${scenario}: ${line}\n  exit ${exit}\n${stdout}${stderr}`);
      else if (process.stderr.isTTY)
        process.stderr.write(`\r${done} of ${steps * columns.length} `);
    },
  );
  console.log(`\n${done} runs in ${((performance.now() - startMs) / 1000).toFixed(0)} s`);
  const theirs = transcripts.get("etcd");
  if (values.record && theirs !== undefined) {
    if (release !== KEPT_RELEASE)
      throw new Error(`--record needs etcd ${KEPT_RELEASE}; this is ${release}`);
    const kept = keptTranscript();
    const merged = new Map(
      readScenarios().flatMap(({ name }) => {
        const lines = theirs.get(name) ?? kept.get(name);
        return lines === undefined ? [] : [[name, lines] as const];
      }),
    );
    const heading = `# What etcd ${KEPT_RELEASE}'s programs print for scenarios.txt, normalised; written by main.ts --record.\n`;
    writeFileSync(
      join(import.meta.dirname, `etcd-${KEPT_RELEASE}.txt`),
      formatTranscript(merged, heading),
    );
  }
  const seen: SeenDifference[] = [];
  for (const [column, transcript] of transcripts) {
    if (column !== "etcd")
      seen.push(...differencesOf(theirs ?? keptTranscript(), transcript, column));
  }
  const listed = theirs === undefined ? KEPT_RELEASE : release;
  const listPath = join(import.meta.dirname, `differences-${listed}.txt`);
  const all = existsSync(listPath) ? knownDifferences(listed) : [];
  const known = all.filter(({ column }) => transcripts.has(column));
  if (values.write) {
    const kept = keptTranscript();
    for (const one of seen) console.log(describe(one));
    const reasons = new Map(
      known.map((one) => [formatDifferences([{ ...one, reason: "" }]), one.reason]),
    );
    const others = all.filter(
      ({ scenario, column }) => !chosen(scenario) || !transcripts.has(column),
    );
    const now = seen.map((one) => ({
      ...one,
      reason:
        reasons.get(formatDifferences([{ ...one, reason: "" }])) ??
        (isAsKept(one, kept) ? `${KEPT_RELEASE}: as etcd ${KEPT_RELEASE} does` : "?"),
    }));
    writeFileSync(listPath, formatDifferences([...others, ...now]));
  }
  const wrong = verdict(seen, known, chosen);
  for (const one of wrong) console.log(one);
  console.log(
    `${seen.length} differences, ${known.filter(({ scenario }) => chosen(scenario)).length} listed, ${wrong.length} wrong`,
  );
  return wrong.length === 0;
}

try {
  process.exitCode = (await run()) ? 0 : 1;
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 2;
}
// A scenario's background may hold the process open.
process.exit();
