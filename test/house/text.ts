/** Rules over plain text: line width and leftovers. */
import { codeOnly, withoutLiterals } from "./scan.ts";
import { type Finding, isCode, lineAt, type SourceFile } from "./tree.ts";

/** Columns a line of code or shell may have. */
export const maxLineColumns = 100;

/** Columns that a line may have where the text of a literal makes it wide, and in shell. */
export const maxLiteralColumns = 140;

/**
 * Lines wider than `maxLineColumns`. Biome does not break literals: a line that is narrow enough
 * without the text of its strings and regular expressions, or has a template in it, may have
 * `maxLiteralColumns`, and so may a command in shell. Of comments, only orders to
 * Biome may, and the line for sh at the top of bin/.
 */
export function checkLineWidth(files: readonly SourceFile[]): Finding[] {
  return files.flatMap((file) => {
    if (isCode(file)) return wideLines(file, bareColumns(file));
    if (!file.path.endsWith(".sh") && file.path !== ".ci/run") return [];
    return wideLines(file, (line) => (/^\s*#/.test(line) ? columnsOf(line) : 0));
  });
}

const columnsOf = (line: string): number => [...line].length;

function wideLines(file: SourceFile, bare: (line: string, at: number) => number): Finding[] {
  return file.text.split("\n").flatMap((line, at) => {
    const columns = columnsOf(line);
    const allowed = bare(line, at) > maxLineColumns ? maxLineColumns : maxLiteralColumns;
    if (columns <= allowed) return [];
    return [{ where: `${file.path}:${at + 1}`, what: `${columns} columns, more than ${allowed}` }];
  });
}

/** The columns of a line without the text of its literals. */
function bareColumns(file: SourceFile): (line: string, at: number) => number {
  let lines: string[] | undefined;
  return (line, at) => {
    if (columnsOf(line) <= maxLineColumns || /`|biome-ignore|^\/\/usr\/bin\/env/.test(line))
      return 0;
    lines ??= withoutLiterals(file.text).split("\n");
    return columnsOf(lines[at]);
  };
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
