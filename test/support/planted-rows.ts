/** Rows of docs/evidence/planted-bugs.md, to be compared with a catalogue of planted bugs. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

const PAGE = join(import.meta.dirname, "../../docs/evidence/planted-bugs.md");
const HEADS: readonly string[] = ["planted bug", "bug", "option"];

/**
 * The second cells of the rows in the tables below a title, by the name of the bug in the first
 * one, without what a bracket explains. Empty where there is no such title.
 */
export function plantedRows(title: string): Map<string, string> {
  const sections = readFileSync(PAGE, "utf8").split(/^## /m);
  const section = sections.find((text) => text.startsWith(`${title}\n`)) ?? "";
  const rows = section.matchAll(/^\| ([^|]+?)(?: \([^|]*\))? \| ([^|]*?) \|/gm);
  return new Map(
    [...rows]
      .map(([, name, second]) => [name!, second!] as const)
      .filter(([name]) => !HEADS.includes(name) && !name.startsWith("`")),
  );
}
