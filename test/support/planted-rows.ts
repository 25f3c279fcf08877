/** Rows of docs/evidence/planted-bugs.md, to be compared with a catalogue of planted bugs. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

const PAGE = join(import.meta.dirname, "../../docs/evidence/planted-bugs.md");
const HEADS: readonly string[] = ["planted bug", "bug", "option"];

/**
 * The names of the bugs in the tables below a title, without what a bracket explains, sorted. Empty
 * where there is no such title.
 */
export function plantedRows(title: string): string[] {
  const sections = readFileSync(PAGE, "utf8").split(/^## /m);
  const section = sections.find((text) => text.startsWith(`${title}\n`)) ?? "";
  return [...section.matchAll(/^\| ([^|]+?)(?: \([^|]*\))? \|/gm)]
    .map((row) => row[1])
    .filter((name) => !HEADS.includes(name) && !name.startsWith("`"))
    .sort();
}
