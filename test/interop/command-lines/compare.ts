/**
 * The comparison: etcdctl against etcd is what is right; quoratectl against Quorate and etcdctl
 * against Quorate must come out the same, but for what the list of differences has. What etcd 3.7's
 * own programs printed is kept (etcd-3.7.txt), so that quoratectl, which does as they do, is held
 * to that as well where only an older etcdctl is installed; a difference whose reason begins with
 * "3.7:" must be in it.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { quoratectl, quorateutl } from "@quorate/ctl";
import { type Executable, findProgram, quorate } from "../../support/executables.ts";
import { type Difference, judge, type KnownDifference, parseDifferences } from "./differences.ts";
import { type Column, type OnStep, runColumn } from "./run.ts";
import { parseScenarios, type Scenario } from "./scenario.ts";
import { innerTool, processTool } from "./tools.ts";
import { type Outcome, parseTranscript, type Transcript } from "./transcript.ts";

const path = (name: string): string => join(import.meta.dirname, name);

/** The reference's programs: those that the environment names, or those that are installed. */
export interface Reference {
  readonly etcdctl: string;
  readonly etcdutl: string;
  readonly etcd: Executable;
}

/** The reference, or why there is none. */
export function reference(
  env: Readonly<Record<string, string | undefined>> = process.env,
): Reference | string {
  const etcdctl = env["ETCDCTL"] ?? findProgram("etcdctl");
  const etcd = env["ETCD"] ?? findProgram("etcd");
  if (etcdctl === undefined || etcd === undefined)
    return "etcd and etcdctl are not installed (Debian: apt-get install etcd-server etcd-client)";
  return { etcdctl, etcdutl: env["ETCDUTL"] ?? etcdctl, etcd: { name: "etcd", command: [etcd] } };
}

/** The scenarios; those of formats.txt too, for which a build has no time. */
export function readScenarios(withFormats = false): Scenario[] {
  const files = withFormats ? ["scenarios.txt", "formats.txt"] : ["scenarios.txt"];
  return files.flatMap((name) => parseScenarios(readFileSync(path(name), "utf8")));
}

/** The three columns; the first is the reference. */
export function columnsOf({
  etcdctl,
  etcdutl,
  etcd,
}: Reference): readonly [Column, Column, Column] {
  const theirs = {
    ctl: processTool([etcdctl]),
    utl: processTool([etcdutl]),
    ownCtl: processTool([etcdctl]),
  };
  const ctlPath = join(import.meta.dirname, "../../../bin/quoratectl.js");
  const ours = {
    ctl: innerTool(quoratectl),
    utl: innerTool(quorateutl),
    ownCtl: processTool([process.execPath, ctlPath]),
  };
  return [
    { name: "etcd", member: etcd, ...theirs },
    { name: "quoratectl", member: quorate, ...ours },
    { name: "etcdctl", member: quorate, ...theirs },
  ];
}

/** Columns that run at a time. */
const PARALLEL_COLUMNS = 2;

/** Runs the columns and returns their transcripts by name. */
export async function runColumns(
  columns: readonly Column[],
  scenarios: readonly Scenario[],
  chosen: (name: string) => boolean,
  onStep: OnStep,
): Promise<Map<string, Transcript>> {
  const waiting = [...columns];
  const transcripts = new Map<string, Transcript>();
  const work = async (): Promise<void> => {
    for (let column = waiting.shift(); column !== undefined; column = waiting.shift()) {
      transcripts.set(column.name, await runColumn(column, scenarios, chosen, onStep));
    }
  };
  await Promise.all(Array.from({ length: PARALLEL_COLUMNS }, work));
  return transcripts;
}

/** A difference with both sides. */
export interface SeenDifference extends Difference {
  readonly expected: Outcome;
  readonly actual: Outcome;
}

const PARTS = ["exit", "stdout", "stderr"] as const;

/**
 * Where `actual` came out otherwise than `expected`; lines that only one of them has are passed
 * over.
 */
export function differencesOf(
  expected: Transcript,
  actual: Transcript,
  column: string,
): SeenDifference[] {
  const seen: SeenDifference[] = [];
  for (const [scenario, lines] of actual) {
    for (const [line, outcome] of lines) {
      const right = expected.get(scenario)?.get(line);
      if (right === undefined) continue;
      const what = PARTS.filter((part) => right[part] !== outcome[part]).join(",");
      if (what !== "")
        seen.push({ scenario, line, column, what, expected: right, actual: outcome });
    }
  }
  return seen;
}

/** The release whose programs the kept transcript is of. */
export const KEPT_RELEASE = "3.7";
const KEPT = path("etcd-3.7.txt");

export function keptTranscript(): Transcript {
  return parseTranscript(readFileSync(KEPT, "utf8"));
}

/** The list for a reference: "3.4" or "3.7". */
export function knownDifferences(release: string): KnownDifference[] {
  return parseDifferences(readFileSync(path(`differences-${release}.txt`), "utf8"));
}

/** What is wrong, as texts for people; none if all is as it is listed. */
export function verdict(
  seen: readonly SeenDifference[],
  known: readonly KnownDifference[],
  chosen: (name: string) => boolean,
): string[] {
  const { unknown, gone, listed } = judge(
    seen,
    known.filter(({ scenario }) => chosen(scenario)),
  );
  const kept = keptTranscript();
  const wrongReason = listed.filter(
    ({ seen: one, known: { reason } }) =>
      reason.startsWith(`${KEPT_RELEASE}:`) && !isAsKept(one, kept),
  );
  return [
    ...unknown.map((one) => `not listed: ${describe(one)}`),
    ...gone.map(
      ({ scenario, line, column, what }) =>
        `listed, but happens no more: ${scenario} | ${line} | ${column} | ${what}`,
    ),
    ...wrongReason.map(
      ({ seen: one }) => `listed as what ${KEPT_RELEASE} does, which it does not: ${describe(one)}`,
    ),
  ];
}

/** Whether it came out as the kept transcript has it. */
export function isAsKept({ scenario, line, actual }: SeenDifference, kept: Transcript): boolean {
  const there = kept.get(scenario)?.get(line);
  return there !== undefined && PARTS.every((part) => there[part] === actual[part]);
}

/** A difference as people read it: both sides of what differs. */
export function describe({
  scenario,
  line,
  column,
  what,
  expected,
  actual,
}: SeenDifference): string {
  const sides = what.split(",").flatMap((part) => {
    const key = part as (typeof PARTS)[number];
    return [
      `  ${key} of etcd:`,
      indent(expected[key]),
      `  ${key} of ${column}:`,
      indent(actual[key]),
    ];
  });
  return [`${scenario} | ${line} | ${column} | ${what}`, ...sides].join("\n");
}

function indent(text: string): string {
  return text
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => `    ${line}`)
    .join("\n");
}
