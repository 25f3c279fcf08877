/**
 * The table of mutants in docs/evidence/planted-bugs.md, between two marks; rows that were not
 * run again stay as they are.
 */
import type { Found } from "./layers.ts";
import type { Outcome } from "./results.ts";

const BEGIN = "<!-- mutants: written by ./dev mutants --write -->";
const END = "<!-- mutants: end -->";
const HEAD = [
  "| bug | tests of the package | simulator, and Raft's random clusters |",
  "|---|---|---|",
];

const NOT_RUN = "not run";
const NOT_CAUGHT = "-";

/**
 * Puts rows into the text of the page; a layer that was not run keeps its cell. Throws an Error
 * where the page has no place for them.
 */
export function mergeTable(page: string, found: ReadonlyMap<string, Outcome>): string {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) throw new Error(`the page has no lines ${BEGIN} and ${END}`);
  const rows = new Map<string, readonly string[]>();
  for (const line of page.slice(begin, end).split("\n")) {
    const [, name, ...cells] = line.split("|").map((cell) => cell.trim());
    if (name !== undefined && name !== "bug" && cells.length === 3)
      rows.set(name, cells.slice(0, 2));
  }
  for (const [name, { tests, search }] of found) {
    const [oldTests = NOT_RUN, oldSearch = NOT_RUN] = rows.get(name) ?? [];
    rows.set(name, [cellOf(tests) ?? oldTests, cellOf(search) ?? oldSearch]);
  }
  rows.delete("---");
  const lines = [...rows].map(([name, cells]) => `| ${name} | ${cells.join(" | ")} |`);
  return `${page.slice(0, begin)}${[BEGIN, "", ...HEAD, ...lines, "", END].join("\n")}${page.slice(end + END.length)}`;
}

function cellOf(found: Found | null | undefined): string | undefined {
  if (!found) return found === null ? NOT_CAUGHT : undefined;
  const { layer, by, seeds, seconds } = found;
  const seed = seeds === undefined ? "" : `seed ${seeds}, `;
  const which = layer === "random clusters" ? "random clusters: " : "";
  return `${which}${seed}${seconds.toFixed(0)} s: ${by.replaceAll("|", "/").slice(0, 90).trim()}`;
}
