/** Rules over plain text: line width, leftovers, file size. */
import { codeOnly } from "./scan.ts";
import { type Finding, isCode, lineAt, type SourceFile } from "./tree.ts";

/** Columns a line of code or shell may have. */
export const maxLineColumns = 140;

/** Lines a file may have without standing in `largeFiles`. */
export const maxFileLines = 700;

/** Files that may be longer than `maxFileLines`, each with the reason. */
export const largeFiles: Readonly<Record<string, string>> = {};

/**
 * Lines wider than `maxLineColumns` in code and shell. A line whose width is one long URL or data
 * word is no exception.
 */
export function checkLineWidth(files: readonly SourceFile[]): Finding[] {
  return files
    .filter((file) => isCode(file) || file.path.endsWith(".sh") || file.path === ".ci/run")
    .flatMap((file) =>
      file.text
        .split("\n")
        .map((line, index) => ({ columns: [...line].length, line: index + 1 }))
        .filter(({ columns }) => columns > maxLineColumns)
        .map(({ columns, line }) => ({
          where: `${file.path}:${line}`,
          what: `${columns} columns, more than ${maxLineColumns}`,
        })),
    );
}

const markers = /\b(?:TODO|FIXME|XXX|HACK)\b/g;
const exclusive = /\b(?:test|it|describe|suite)\.only\(|\bonly:\s*true/g;
const unexplainedSkip =
  /\b(?:test|it|describe|suite)\.skip\(|\.skip\(\s*\)|\bskip:\s*true|\b(?:test|it|describe|suite)\.todo\(|\btodo:\s*true/g;

/** Leftover markers, tests that run alone, and tests skipped without a reason in words. */
export function checkLeftovers(files: readonly SourceFile[]): Finding[] {
  return files
    .filter(
      (file) =>
        (isCode(file) || file.path.endsWith(".sh") || file.path === ".ci/run") &&
        !file.path.startsWith("test/house/"),
    )
    .flatMap((file) => {
      const find = (text: string, pattern: RegExp, what: string): Finding[] =>
        [...text.matchAll(pattern)].map((match) => ({
          where: `${file.path}:${lineAt(file.text, match.index)}`,
          what: `${match[0]}: ${what}`,
        }));
      const code = isCode(file) ? codeOnly(file.text) : "";
      return [
        ...find(file.text, markers, "leftover marker"),
        ...find(code, exclusive, "a test that runs alone"),
        ...find(code, unexplainedSkip, "skipped without a reason"),
      ];
    });
}

/**
 * Code files over `maxFileLines` that `allowed` does not list, and entries of `allowed` that are no
 * longer needed.
 */
export function checkFileSize(
  files: readonly SourceFile[],
  allowed: Readonly<Record<string, string>> = largeFiles,
): Finding[] {
  const long = files
    .filter(isCode)
    .filter((file) => file.text.split("\n").length - 1 > maxFileLines);
  const tooLong = long
    .filter((file) => allowed[file.path] === undefined)
    .map((file) => ({
      where: file.path,
      what: `${file.text.split("\n").length - 1} lines, more than ${maxFileLines}`,
    }));
  const stale = Object.keys(allowed)
    .filter((path) => !long.some((file) => file.path === path))
    .map((path) => ({ where: path, what: "listed as a large file, but it is not one" }));
  return [...tooLong, ...stale];
}
