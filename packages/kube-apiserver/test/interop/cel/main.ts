/**
 * The command `./dev compare cel`: expressions of cel-spec's conformance files and of Kubernetes'
 * tests, evaluated here and by Kubernetes' own environment. Compares types, values, errors, and the
 * costs at run time and as estimated. Needs Go and its module proxy.
 *
 *     ./dev compare cel
 *     ./dev compare cel --all        shows each difference
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Json, Schema } from "@quorate/kube-storage";
import { readArguments } from "../../../../../scripts/dev/command-line.ts";
import { PER_CALL_BUDGET } from "../../../src/crd/cel/base/budget.ts";
import { loadCel } from "../../../src/crd/cel/engine.ts";
import { shownType } from "../../../src/crd/cel/lang/types.ts";
import { CompileError, compile } from "../../../src/crd/cel/program.ts";
import { celTypeOf } from "../../../src/crd/cel/types.ts";
import { type CelCase, celCases } from "./expressions.ts";

interface Result {
  readonly compile?: string;
  readonly type?: string;
  readonly value?: string;
  readonly error?: string;
  readonly cost: number;
  readonly max: number;
}

const MODULES = ["cel.dev/expr@v0.25.1", "k8s.io/apiserver@v0.36.3"];

function go(args: readonly string[], cwd: string): string | undefined {
  const env = { ...process.env, GOFLAGS: "-p=1" };
  const { status, stdout, error } = spawnSync("go", args, {
    cwd,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  return error !== undefined || status !== 0 ? undefined : stdout.toString().trim();
}

const engine = await loadCel();

function ours({ expr, schema, self }: CelCase): Result {
  const type = schema && celTypeOf(schema as Schema, false);
  const environment = type ? engine.base.extend().variable("self", type.type) : engine.base;
  try {
    const program = compile(expr, "any", environment, engine);
    const value = type?.convert(self as Json);
    const outcome = program.evaluate(
      (name) => (name === "self" ? value : undefined),
      PER_CALL_BUDGET,
    );
    const found = { type: shownType(program.type), max: program.maxCost(type?.type) };
    if (outcome.type === "exceeded") return { ...found, error: "exceeded", cost: 0 };
    if (outcome.type === "error") return { ...found, error: outcome.message, cost: outcome.cost };
    const shown = typeof outcome.value === "object" ? undefined : String(outcome.value);
    return { ...found, ...(shown === undefined ? {} : { value: shown }), cost: outcome.cost };
  } catch (error) {
    if (!(error instanceof CompileError)) throw error;
    return { compile: error.message, cost: 0, max: 0 };
  }
}

/** What differs for a known reason. */
const KNOWN: readonly RegExp[] = [
  // A constant key of bytes is refused when the program is made.
  /\[dyn\(b''\)\]/,
  // The type of an empty map follows from the order in which overloads are tried.
  /^\{\}\.transformMap/,
  // What has() of nothing costs.
  /^has\(\{\}\.\?x\.y\)$|^has\(optional\.of/,
  // Go says at which character an address is wrong.
  /^ip(?:\.isCanonical)?\("/,
  // A map's order is not defined, and a quantifier ends at the first key that decides.
  /^\{'key1':1, 'key2':2\}\.(?:exists|all)/,
];

const WELL_KNOWN = /google\.protobuf\.(?:Timestamp|Duration)/g;
const shortName = (name: string): string => name.slice("google.protobuf.".length).toLowerCase();

/** What differs; undefined for nothing. */
function difference(mine: Result, theirs: Result): string | undefined {
  if ((mine.compile === undefined) !== (theirs.compile === undefined)) return "compile";
  if (mine.compile !== undefined) {
    const isSyntax = mine.compile.includes("Syntax error") && theirs.compile?.includes("Syntax");
    const own = mine.compile.replace(/^(?:compilation|program instantiation) failed: /, "");
    return isSyntax || own === theirs.compile ? undefined : "text of the compiler";
  }
  if ((mine.error === undefined) !== (theirs.error === undefined)) return "error";
  if (mine.error !== undefined)
    return mine.error === theirs.error ? undefined : "text of the error";
  const [value, other] = [mine.value, theirs.value ?? ""];
  const isSame = value === other || Number(value) === Number(other.replace("Inf", "Infinity"));
  if (value !== undefined && value !== "null" && !isSame) return "value";
  if (mine.type !== theirs.type?.replace("null_type", "null").replace(WELL_KNOWN, shortName))
    return "type";
  if (mine.cost !== theirs.cost) return "cost";
  // Sums beyond 2^53 are approximate here.
  return mine.max === theirs.max || (mine.max > 2 ** 53 && theirs.max > 2 ** 53)
    ? undefined
    : "estimate";
}

const { values } = readArguments(
  "./dev compare cel [OPTIONS]: expressions beside Kubernetes' own CEL environment",
  { all: { type: "boolean", default: false, describe: "show each difference" } },
);
const source = join(import.meta.dirname, "../go/cel");
const modules = go(["env", "GOMODCACHE"], source);
if (modules === undefined || go(["mod", "download", ...MODULES], source) === undefined)
  console.log("skipped: Go or its module proxy is not there");
else {
  const directory = mkdtempSync(join(tmpdir(), "cel-"));
  try {
    const program = process.env["CEL_REFERENCE"] ?? join(directory, "cel");
    if (process.env["CEL_REFERENCE"] === undefined)
      if (go(["build", "-o", program, "."], source) === undefined)
        throw new Error("the reference does not build");
    const cases = celCases(modules) ?? [];
    const input = cases.map((each) => JSON.stringify(each)).join("\n");
    const { stdout } = spawnSync(program, { input, maxBuffer: 1 << 28 });
    const theirs = stdout
      .toString()
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Result);
    const found = new Map<string, number>();
    for (const [i, one] of cases.entries()) {
      const mine = ours(one);
      const isKnown = KNOWN.some((pattern) => pattern.test(one.expr));
      const other = difference(mine, theirs[i] as Result);
      const what = other === undefined ? "equal" : isKnown ? "known" : other;
      found.set(what, (found.get(what) ?? 0) + 1);
      if (values.all && what !== "equal") {
        console.log(`${what}: ${one.expr}`);
        console.log(`   ${JSON.stringify(mine)}\n   ${JSON.stringify(theirs[i])}`);
      }
    }
    console.log(`${cases.length} expressions:`, Object.fromEntries(found));
    const expected = (found.get("equal") ?? 0) + (found.get("known") ?? 0);
    process.exitCode = expected === cases.length ? 0 : 1;
  } finally {
    rmSync(directory, { recursive: true });
  }
}
