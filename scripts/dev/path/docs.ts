/**
 * The lists of docs/internals/architecture.md, between marks: a paragraph with the totals, and the
 * files in the order of their first calls, those of one package in a row.
 */
import { defined } from "@quorate/proto";
import { KINDS } from "./kinds.ts";
import type { RanFile } from "./measure.ts";

const COLUMNS = 100;
const beginOf = (kind: string): string => `<!-- path ${kind}: written by ./dev path --write -->`;
const endOf = (kind: string): string => `<!-- path ${kind}: end -->`;

/** The text between the marks. */
export function sectionOf(kind: string, files: readonly RanFile[]): string {
  const sum = (of: (file: RanFile) => number): string =>
    files.reduce((total, file) => total + of(file), 0).toLocaleString("en");
  const lines = [
    `**${kind}**: ${KINDS[kind].about}. ${files.length} files of ${sum((file) => file.fileLines)} lines;`,
    `${sum((file) => file.functions.length)} functions of ${sum((file) => file.ranLines)} lines run.`,
    "",
    "```text",
  ];
  let line = "";
  let open = "";
  for (const { path } of files) {
    const [, name, rest] = defined(/^packages\/([\w-]+)\/(.*)$/.exec(path), "a match");
    if (name !== open) {
      if (line !== "") lines.push(line);
      line = `${name}:`;
      open = name;
    }
    if (line.length + 1 + rest.length > COLUMNS) {
      lines.push(line);
      line = "   ";
    }
    line += ` ${rest}`;
  }
  lines.push(line, "```");
  return lines.join("\n");
}

/** The files that a page lists for a kind. @throws Error where the page has no such marks */
export function listedFiles(page: string, kind: string): Set<string> {
  const [from, to] = marksOf(page, kind);
  const [, block = ""] = page.slice(from, to).split("```text\n");
  const files = new Set<string>();
  let name = "";
  for (const word of block.replace("```", "").split(/\s+/)) {
    if (word.endsWith(":")) name = word.slice(0, -1);
    else if (word !== "") files.add(`packages/${name}/${word}`);
  }
  return files;
}

/** The page with another section of that kind. @throws Error where the page has no such marks */
export function withSection(page: string, kind: string, section: string): string {
  const [from, to] = marksOf(page, kind);
  return `${page.slice(0, from)}\n\n${section}\n\n${page.slice(to)}`;
}

function marksOf(page: string, kind: string): [from: number, to: number] {
  const begin = page.indexOf(beginOf(kind));
  const end = page.indexOf(endOf(kind));
  if (begin < 0 || end < begin) throw new Error(`the page has no place for the path "${kind}"`);
  return [begin + beginOf(kind).length, end];
}
