/**
 * Compares patches and server-side apply with Kubernetes' own libraries, on random cases. Needs Go
 * and its module proxy.
 *
 *     ./dev compare apply --cases 5000 --seed 1
 *     ./dev compare apply --write
 *
 * --write renews packages/kube-apiserver/test/apply/fixtures/reference.jsonl, which a test replays.
 */

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readArguments, switchOption, valueOption } from "../../../../scripts/dev/command-line.ts";
import { CASE_TYPES, type Case, type CaseType, caseOf } from "./support/cases.ts";
import { difference } from "./support/compare.ts";
import { evaluate } from "./support/evaluate.ts";

const FIXTURES = join(import.meta.dirname, "fixtures/reference.jsonl");

/** Fixtures of each type. */
const WRITTEN: Readonly<Record<CaseType, number>> = {
  "json-patch": 120,
  "merge-patch": 40,
  "strategic-merge": 120,
  fields: 30,
  history: 30,
};

const MAX_OUTPUT_BYTES = 1 << 30;

/** Runs the reference over cases. */
function askReference(program: string, cases: readonly Case[]): unknown[] {
  const input = cases.map((each) => JSON.stringify(each)).join("\n");
  const { stdout, stderr, status } = spawnSync(program, { input, maxBuffer: MAX_OUTPUT_BYTES });
  if (status !== 0) throw new Error(`the reference failed: ${stderr}`);
  const lines = stdout.toString().trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line) as unknown);
}

function buildReference(directory: string): string {
  const program = join(directory, "reference");
  const built = spawnSync("go", ["build", "-o", program, "."], {
    cwd: join(import.meta.dirname, "../interop/go/reference"),
    env: { ...process.env, GOFLAGS: "-p=1" },
    stdio: ["ignore", "inherit", "inherit"],
  });
  if (built.error !== undefined) throw new Error("Go is not installed");
  if (built.status !== 0) throw new Error("the reference does not build");
  return program;
}

function writeFixtures(program: string): void {
  const lines: string[] = [];
  for (const type of CASE_TYPES) {
    const seeds = Array.from({ length: WRITTEN[type] }, (_, at) => at * 31 + 7);
    const results = askReference(
      program,
      seeds.map((seed) => caseOf(type, seed)),
    );
    results.forEach((result, at) => {
      lines.push(JSON.stringify({ type, seed: seeds[at], result }));
    });
  }
  writeFileSync(FIXTURES, `${lines.join("\n")}\n`);
}

/** Returns how many cases differ; prints the first ones. */
async function compare(program: string, count: number, first: number): Promise<number> {
  let different = 0;
  for (const type of CASE_TYPES) {
    const seeds = Array.from({ length: count }, (_, at) => first + at);
    const cases = seeds.map((seed) => caseOf(type, seed));
    const results = askReference(program, cases);
    let failed = 0;
    for (const [at, each] of cases.entries()) {
      const ours = await evaluate(each);
      const what = difference(type, ours, results[at]);
      if (what === undefined) continue;
      failed++;
      if (failed <= 3) console.log({ type, seed: seeds[at], what });
    }
    console.log(`${type}: ${count} cases, ${failed} differ`);
    different += failed;
  }
  return different;
}

const { values } = readArguments(
  "./dev compare apply [OPTIONS]: patches and server-side apply beside Kubernetes' own libraries",
  {
    cases: valueOption("cases of each kind", "2000"),
    seed: valueOption("the first seed", "1"),
    write: switchOption("renew the stored results"),
  },
);
const directory = mkdtempSync(join(tmpdir(), "reference-"));
try {
  const program = buildReference(directory);
  if (values.write) writeFixtures(program);
  process.exitCode =
    (await compare(program, Number(values.cases), Number(values.seed))) > 0 ? 1 : 0;
} finally {
  rmSync(directory, { recursive: true });
}
