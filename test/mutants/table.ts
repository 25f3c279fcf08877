/** The table of mutants in docs/correctness.md, between two marks; rows that were not run again stay as they are. */
import type { Found } from "./layers.ts";

const BEGIN = "<!-- mutants: written by npm run mutants -- --write -->";
const END = "<!-- mutants: end -->";
const HEAD = ["| bug | tests of the package | simulator, and Raft's random clusters |", "|---|---|---|"];

/** Puts rows into the text of the page. Throws an Error where the page has no place for them. */
export function mergeTable(page: string, found: ReadonlyMap<string, readonly Found[]>): string {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) throw new Error(`the page has no lines ${BEGIN} and ${END}`);
  const rows = new Map<string, string>();
  for (const line of page.slice(begin, end).split("\n")) {
    const name = line.match(/^\| ([^|]+) \|/)?.[1];
    if (name !== undefined && name !== "bug") rows.set(name, line);
  }
  for (const [name, layers] of found) rows.set(name, rowOf(name, layers));
  return `${page.slice(0, begin)}${[BEGIN, "", ...HEAD, ...rows.values(), "", END].join("\n")}${page.slice(end + END.length)}`;
}

function rowOf(name: string, found: readonly Found[]): string {
  const text = (isTests: boolean) => {
    const cells = found
      .filter(({ layer }) => (layer === "tests") === isTests)
      .map(
        ({ by, seeds, seconds }) =>
          `${seeds === undefined ? "" : `seed ${seeds}, `}${seconds.toFixed(0)} s: ${by.replaceAll("|", "/").slice(0, 90)}`,
      );
    return cells.length === 0 ? "-" : cells.join("; ");
  };
  return `| ${name} | ${text(true)} | ${text(false)} |`;
}
