/**
 * Regular expressions run on the thread that owns the log, over text that strangers send. So each
 * one is proved to take time linear in its text, the search for a start included, by recheck's
 * automata; patterns of users run through re2js instead. `new RegExp` is checked if its pattern
 * consists of constants of the file.
 *
 * recheck is there in JavaScript only, without its Java and native builds. A proof takes between
 * one millisecond and one second, so proofs are kept in node_modules/.cache.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { runInNewContext } from "node:vm";
import { checkSync } from "recheck";
import { codeOnly, regExpLiterals } from "./scan.ts";
import { type Finding, isCode, lineAt, repositoryRoot, type SourceFile } from "./tree.ts";

/** Longest time for a proof: a pattern whose automaton is so large is to be written simpler. */
const proofTimeoutMs = 30_000;

const cachePath = join(repositoryRoot, "node_modules/.cache/quorate-regexes.json");

process.env.RECHECK_SYNC_BACKEND = "pure";

/** Code whose regular expressions meet text from outside, or run in a release. */
function isChecked(path: string): boolean {
  return (
    /^(?:packages|scripts|bench|bin)\//.test(path) &&
    !/^packages\/[\w-]+\/test(?:ing)?\//.test(path)
  );
}

/**
 * Regular expressions of shipped code that are not proved linear, and those whose pattern is known
 * only when it runs.
 */
export function checkRegexes(files: readonly SourceFile[]): Finding[] {
  const proofs = new Proofs();
  const findings: Finding[] = [];
  for (const file of files) {
    if (!isCode(file) || !isChecked(file.path)) continue;
    for (const { offset, source, flags } of [...regExpLiterals(file.text), ...built(file.text)]) {
      const fault =
        source === undefined
          ? "a pattern that is known only when it runs: use constants of the file, or re2js"
          : proofs.faultOf(source, flags);
      if (fault === undefined) continue;
      const where = `${file.path}:${lineAt(file.text, offset)}`;
      findings.push({ where, what: source === undefined ? fault : `/${source}/${flags} ${fault}` });
    }
  }
  proofs.keep();
  return findings;
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

/** Answers of recheck; those that prove are kept between runs. */
class Proofs {
  readonly #prefix = `recheck ${versionOf("recheck")}: `;
  readonly #proved: Set<string>;
  #isChanged = false;

  constructor() {
    let kept: readonly string[] = [];
    try {
      kept = JSON.parse(readFileSync(cachePath, "utf8"));
    } catch {
      // Nothing is kept yet.
    }
    this.#proved = new Set(kept);
  }

  /** What is wrong with a pattern; undefined if it is linear. */
  faultOf(source: string, flags: string): string | undefined {
    const name = `${this.#prefix}/${source}/${flags}`;
    if (this.#proved.has(name)) return undefined;
    const answer = checkSync(source, flags, { checker: "automaton", timeout: proofTimeoutMs });
    if (answer.status === "vulnerable") {
      const { complexity, attack } = answer;
      return `is ${complexity.summary}: ${attack.pattern}`;
    }
    if (answer.status === "unknown") {
      const { error } = answer;
      return `is not proved linear: ${"message" in error ? error.message : error.kind}`;
    }
    this.#proved.add(name);
    this.#isChanged = true;
    return undefined;
  }

  /** Writes the proofs for the next run. */
  keep(): void {
    if (!this.#isChanged) return;
    mkdirSync(dirname(cachePath), { recursive: true });
    const path = `${cachePath}.${process.pid}`;
    writeFileSync(path, JSON.stringify([...this.#proved].sort(), undefined, 1));
    renameSync(path, cachePath);
  }
}

function versionOf(name: string): string {
  const text = readFileSync(join(repositoryRoot, "node_modules", name, "package.json"), "utf8");
  return JSON.parse(text).version;
}
