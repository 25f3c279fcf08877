/**
 * Regular expressions run on the thread that owns the log, over text that strangers send. So each
 * one is proved to take time linear in its text, the search for a start included, by recheck's
 * automata; patterns of users run through re2js instead. `new RegExp` is checked if its pattern
 * consists of constants of the file.
 *
 * recheck is there in JavaScript only, without its Java and native builds. A proof takes between
 * one millisecond and one second, and all of them a minute, so regexes-proved.json names the
 * expressions that are proved. `./dev gen` proves the new ones and adds them; each run of the rule
 * proves some of the list again.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runInNewContext } from "node:vm";
import { checkSync } from "recheck";
import { freshSeed } from "../support/fresh-seed.ts";
import { codeOnly, regExpLiterals } from "./scan.ts";
import { type Finding, isCode, lineAt, repositoryRoot, type SourceFile } from "./tree.ts";

/** Longest time for a proof: a pattern whose automaton is so large is to be written simpler. */
const proofTimeoutMs = 30_000;

/** The file with the expressions that are proved, from the repository's root. */
export const PROVED = "test/house/regexes-proved.json";

/** How many expressions of the list a run proves again. */
const SAMPLE = 5;

process.env.RECHECK_SYNC_BACKEND = "pure";

/** Code whose regular expressions meet text from outside, or run in a release. */
function isChecked(path: string): boolean {
  return (
    /^(?:packages|scripts|bench|bin)\//.test(path) &&
    !/^packages\/[\w-]+\/test(?:ing)?\//.test(path)
  );
}

/** What the list of proved expressions holds. */
export interface ProvedList {
  /** The version of recheck that proved them. */
  readonly recheck: string;
  /** Expressions as /source/flags, in order. */
  readonly expressions: readonly string[];
}

/**
 * Regular expressions of shipped code that are not proved linear, and those whose pattern is known
 * only when it runs.
 */
export function checkRegexes(files: readonly SourceFile[]): Finding[] {
  const proofs = new Proofs(readProved());
  const findings: Finding[] = [];
  for (const { where, source, flags } of expressionsOf(files)) {
    const fault =
      source === undefined
        ? "a pattern that is known only when it runs: use constants of the file, or re2js"
        : proofs.faultOf(source, flags);
    if (fault === undefined) continue;
    findings.push({ where, what: source === undefined ? fault : `/${source}/${flags} ${fault}` });
  }
  return findings;
}

/** Expressions of the list, another part of it for each commit, that recheck does not prove now. */
export function checkSample(): Finding[] {
  const { expressions } = readProved();
  const first = freshSeed() % expressions.length;
  const findings: Finding[] = [];
  for (const name of [...expressions.slice(first), ...expressions].slice(0, SAMPLE)) {
    const end = name.lastIndexOf("/");
    const fault = faultOf(name.slice(1, end), name.slice(end + 1));
    if (fault !== undefined) findings.push({ where: PROVED, what: `${name} ${fault}` });
  }
  return findings;
}

/**
 * The list of proved expressions as it should be.
 * @param list those that need no proof again
 */
export function provedList(files: readonly SourceFile[], list = readProved()): ProvedList {
  const proofs = new Proofs(list);
  const names = new Set<string>();
  for (const { source, flags } of expressionsOf(files))
    if (source !== undefined && proofs.faultOf(source, flags) === undefined)
      names.add(`/${source}/${flags}`);
  return { recheck: versionOf("recheck"), expressions: [...names].sort() };
}

/** The list of proved expressions; empty if another version of recheck made it. */
export function readProved(): ProvedList {
  const list = JSON.parse(readFileSync(join(repositoryRoot, PROVED), "utf8")) as ProvedList;
  const recheck = versionOf("recheck");
  return list.recheck === recheck ? list : { recheck, expressions: [] };
}

interface Expression {
  /** File and line. */
  readonly where: string;
  /** Undefined if it cannot be known. */
  readonly source: string | undefined;
  readonly flags: string;
}

function* expressionsOf(files: readonly SourceFile[]): Generator<Expression> {
  for (const file of files) {
    if (!isCode(file) || !isChecked(file.path)) continue;
    for (const { offset, source, flags } of [...regExpLiterals(file.text), ...built(file.text)])
      yield { where: `${file.path}:${lineAt(file.text, offset)}`, source, flags };
  }
}

interface Built {
  readonly offset: number;
  /** Undefined if it cannot be known. */
  readonly source: string | undefined;
  readonly flags: string;
}

/** The regular expressions that a text builds with RegExp(pattern, flags). */
function built(text: string): Built[] {
  const code = codeOnly(text);
  const constants = constantsOf(text, code);
  return [...code.matchAll(/(?<![.\w$])RegExp\(/g)].map(({ index, 0: call }) => {
    const from = index + call.length;
    const args = evaluated(`[${text.slice(from, bracketEnd(code, from))}]`, constants);
    const [source, flags = ""] = Array.isArray(args) ? args : [];
    const isKnown = typeof source === "string" && typeof flags === "string";
    return { offset: index, source: isKnown ? source : undefined, flags };
  });
}

/** Where the bracket that is open at `from` closes. */
function bracketEnd(code: string, from: number): number {
  let depth = 0;
  for (let at = from; at < code.length; at++) {
    if (/[([{]/.test(code[at])) depth++;
    else if (/[)\]}]/.test(code[at]) && depth-- === 0) return at;
  }
  return code.length;
}

/** The constants of a file that are texts or numbers, by name. */
function constantsOf(text: string, code: string): Record<string, unknown> {
  const constants: Record<string, unknown> = {};
  for (const match of code.matchAll(/^(?:export )?const (\w+)(?:: \w+)? =/gm)) {
    const from = match.index + match[0].length;
    const value = evaluated(text.slice(from, code.indexOf(";", from)), constants);
    if (typeof value === "string" || typeof value === "number") constants[match[1]] = value;
  }
  return constants;
}

function evaluated(expression: string, constants: Readonly<Record<string, unknown>>): unknown {
  // Only what consists of texts, constants and joins is evaluated.
  if (/[^=]=[^=]|=>|\b(?:new|await|function|import)\b/.test(codeOnly(expression))) return undefined;
  try {
    return JSON.parse(JSON.stringify(runInNewContext(`(${expression})`, { ...constants })));
  } catch {
    return undefined;
  }
}

/** Answers of recheck; it is asked once for each expression that is not proved yet. */
class Proofs {
  readonly #faults = new Map<string, string | undefined>();

  constructor({ expressions }: ProvedList) {
    for (const name of expressions) this.#faults.set(name, undefined);
  }

  /** The fault of a pattern; undefined if it is linear. */
  faultOf(source: string, flags: string): string | undefined {
    const name = `/${source}/${flags}`;
    if (!this.#faults.has(name)) this.#faults.set(name, faultOf(source, flags));
    return this.#faults.get(name);
  }
}

/** The fault that recheck finds in a pattern; undefined if it proves that the pattern is linear. */
function faultOf(source: string, flags: string): string | undefined {
  const result = checkSync(source, flags, { checker: "automaton", timeout: proofTimeoutMs });
  if (result.status === "vulnerable") {
    const { complexity, attack } = result;
    return `is ${complexity.summary}: ${attack.pattern}`;
  }
  if (result.status === "unknown") {
    const { error } = result;
    return `is not proved linear: ${"message" in error ? error.message : error.kind}`;
  }
  return undefined;
}

function versionOf(name: string): string {
  const text = readFileSync(join(repositoryRoot, "node_modules", name, "package.json"), "utf8");
  return JSON.parse(text).version;
}
