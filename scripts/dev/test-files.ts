/**
 * The test files of a build. Files that take long carry the tag slow, with an at sign before it, in
 * the comment at their head: a build runs an eighth of them, by its commit, so that a few builds
 * in a row run nearly all and each one stays short.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { freshSeed } from "../../test/support/fresh-seed.ts";

const PATTERNS = ["packages/*/test/**/*.test.ts", "test/**/*.test.ts"];
/** A build runs one of so many parts of the slow files. */
export const TURNS = 8;

export interface TestFiles {
  readonly files: readonly string[];
  /** Slow ones whose turn it is not. */
  readonly leftOut: readonly string[];
}

/** Whether the comment at the head of a test file has the tag. */
export const isSlow = (source: string): boolean =>
  source.startsWith("/**") && source.slice(0, source.indexOf("*/")).includes("\n * @slow\n");

/** @param turn which part of the slow files belongs to the build; undefined for all */
export function testFilesOf(root: string, turn: number | undefined): TestFiles {
  const all = PATTERNS.flatMap((pattern) => globSync(pattern, { cwd: root })).sort();
  const slow = all.filter((file) => isSlow(readFileSync(join(root, file), "utf8")));
  const leftOut = turn === undefined ? [] : slow.filter((_, place) => place % TURNS !== turn);
  const isLeftOut = new Set(leftOut);
  return { files: all.filter((file) => !isLeftOut.has(file)), leftOut };
}

/** Files of packages and scripts of which a build runs a part; QUORATE_SOAK runs all of each. */
export const shortenedTests = (root: string): readonly string[] =>
  ["packages/*/test/**/*.test.ts", "test/scripts/*.test.ts"]
    .flatMap((pattern) => globSync(pattern, { cwd: root }))
    .filter((file) => readFileSync(join(root, file), "utf8").includes('env["QUORATE_SOAK"]'))
    .sort();

/** The part of a build at this commit. */
export const turnOfBuild = (): number => freshSeed() % TURNS;
