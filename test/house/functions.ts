/** Lengths of functions, measured by Biome. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "./tree.ts";

/** Lines of code a function may have; comments do not count. */
export const maxFunctionLines = 70;

const rule = "complexity/noExcessiveLinesPerFunction";

/** The parts of Biome's JSON report that are read. */
interface Report {
  readonly diagnostics: readonly {
    readonly message: string;
    readonly category: string | null;
    readonly location: { readonly path: string; readonly start: { readonly line: number } };
  }[];
}

/** One function over the limit. */
export interface LongFunction {
  readonly path: string;
  readonly line: number;
  readonly lines: number;
}

/**
 * Functions of more than `maxFunctionLines` lines below `places`, paths relative to `root`.
 * The body of a describe() or suite() is no function in this sense.
 *
 * @throws if Biome fails to run or its report cannot be read
 */
export function longFunctions(root: string, places: readonly string[]): LongFunction[] {
  const config = join(repositoryRoot, "test/house/functions.biome.json");
  const biome = join(repositoryRoot, "node_modules/.bin/biome");
  const result = spawnSync(
    biome,
    [
      "lint",
      `--config-path=${config}`,
      `--only=${rule}`,
      "--reporter=json",
      "--max-diagnostics=none",
      ...places,
    ],
    { cwd: root, encoding: "utf8", maxBuffer: 64 << 20 },
  );
  if (result.error !== undefined) throw result.error;
  let report: Report;
  try {
    report = JSON.parse(result.stdout);
  } catch {
    throw new Error(`biome wrote no report: ${result.stderr}`);
  }
  const long: LongFunction[] = [];
  for (const { message, category, location } of report.diagnostics) {
    if (category !== `lint/${rule}`) throw new Error(`biome: ${location.path}: ${message}`);
    const { path, start } = location;
    const line = readFileSync(join(root, path), "utf8").split("\n")[start.line - 1];
    if (/\b(?:describe|suite)\(/.test(line)) continue;
    const lines = Number(/\((\d+)\)/.exec(message)![1]);
    // Outside the repository Biome falls back to its own, lower limit.
    if (lines > maxFunctionLines) long.push({ path, line: start.line, lines });
  }
  return long;
}
