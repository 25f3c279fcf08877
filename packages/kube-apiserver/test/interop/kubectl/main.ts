/**
 * The command `./dev compare kubectl`: the same command lines of kubectl on Kubernetes' API server
 * and on Quorate's.
 */

import { readFileSync, writeFileSync } from "node:fs";
import {
  readArguments,
  switchOption,
  valueOption,
} from "../../../../../scripts/dev/command-line.ts";
import { findProgram } from "../../../../../test/support/executables.ts";
import { knownDifferences, readScenarios, runAll, transcriptPath } from "./files.ts";
import { formatTranscript, parseTranscript } from "./scenario.ts";
import { kubectl, minorOf, serveKubernetes, serveOurs } from "./tools.ts";

const HELP = `./dev compare kubectl [OPTIONS]

Runs the command lines of scenarios.txt with kubectl on Quorate's API server, and compares what they
print with the transcript of Kubernetes' own.

KUBECTL, KUBE_APISERVER and ETCD select other programs than those on PATH.`;

async function record(minor: number): Promise<void> {
  const program = process.env["KUBE_APISERVER"] ?? findProgram("kube-apiserver");
  if (program === undefined) throw new Error("kube-apiserver is not installed");
  await using served = await serveKubernetes(program);
  writeFileSync(transcriptPath(minor), formatTranscript(await runAll(served, "")));
}

/** Prints the lines that differ; returns how many scenarios do without a known reason. */
function compare(ours: ReadonlyMap<string, string>, theirs: ReadonlyMap<string, string>): number {
  let different = 0;
  const known = knownDifferences();
  for (const [name, text] of ours) {
    const expected = theirs.get(name);
    if (expected === text) continue;
    if (!known.has(name)) different++;
    console.log(`== ${name}${known.has(name) ? `: ${known.get(name)}` : ""}`);
    if (expected === undefined) console.log("not recorded");
    else printDifference(expected.split("\n"), text.split("\n"));
  }
  return different;
}

function printDifference(expected: readonly string[], got: readonly string[]): void {
  let start = 0;
  while (start < got.length && expected[start] === got[start]) start++;
  let end = 0;
  const most = Math.min(expected.length, got.length) - start;
  while (end < most && expected.at(-1 - end) === got.at(-1 - end)) end++;
  for (const line of expected.slice(start, expected.length - end)) console.log(`- ${line}`);
  for (const line of got.slice(start, got.length - end)) console.log(`+ ${line}`);
}

async function run(): Promise<number> {
  const { values } = readArguments(HELP, {
    only: valueOption("only scenarios whose name contains TEXT", ""),
    record: switchOption("run them on kube-apiserver, and store the transcript"),
  });
  if (kubectl === undefined) throw new Error("kubectl is not installed");
  const minor = minorOf(kubectl);
  if (minor === undefined) throw new Error("kubectl does not print its version");
  if (values.record) await record(minor);
  await using served = await serveOurs();
  const theirs = parseTranscript(readFileSync(transcriptPath(minor), "utf8"));
  const different = compare(await runAll(served, values.only), theirs);
  console.log(
    `${different} of ${readScenarios(values.only).length} scenarios differ for unknown reasons`,
  );
  return different > 0 ? 1 : 0;
}

process.exitCode = await run();
