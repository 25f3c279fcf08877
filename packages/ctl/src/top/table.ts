/** A table of members: selects columns that fit, sets widths, sorts rows. */
import type { Style } from "@quorate/cli";
import { cellText, type Level, levelOf, type RowAge, type TopColumn } from "./columns.ts";
import { leads } from "./figures.ts";
import { type Line, type Span, span, widthOf } from "./line.ts";
import type { Row } from "./row.ts";
import { sparkline } from "./spark.ts";

/** Blanks between columns. */
const GAP = 2;
/** Least and greatest width of the sparkline in the space on the right. */
const MIN_TREND = 8;
const MAX_TREND = 100;
/** Longest cell, in characters. */
const MAX_CELL_CHARS = 32;

export interface TableOptions {
  /** Undefined for a pipe: all columns, no sparkline. */
  readonly width: number | undefined;
  /** The title of the sort column; absent, rows keep their order. */
  readonly sortBy?: string | undefined;
  readonly descending?: boolean;
  /** Whether a sparkline of each member's calls may be added. */
  readonly trend?: boolean;
}

interface Cell {
  readonly text: string;
  readonly level: Level | undefined;
  readonly isOld: boolean;
}

/** The title line, and a line per row. */
export function table(
  columns: readonly TopColumn[],
  rows: readonly Row[],
  ageOf: (row: Row) => RowAge,
  options: TableOptions,
): Line[] {
  const sorted = sortedRows(columns, rows, ageOf, options);
  const cells = sorted.map((row) => columns.map((column) => cellOf(column, row, rows, ageOf(row))));
  const widths = columns.map(({ title }, i) =>
    Math.max(title.length + 1, ...cells.map((row) => widthOf(row[i].text))),
  );
  const shown = fitting(columns, widths, options.width);
  const used = shown.reduce((sum, i) => sum + widths[i] + GAP, -GAP);
  const free =
    options.width === undefined || options.trend !== true
      ? 0
      : Math.min(MAX_TREND, options.width - used - GAP);
  const trendWidth = free >= MIN_TREND ? free : 0;
  const heads = shown.flatMap((i, at): Span[] => {
    const isSorted = columns[i].title === options.sortBy;
    const title = columns[i].title + (isSorted ? (options.descending === true ? "▼" : "▲") : "");
    return spaced(
      at,
      span(pad(title, widths[i], columns[i]), "bold", ...(isSorted ? (["cyan"] as const) : [])),
    );
  });
  const lines = cells.map((row, at): Line => {
    const spans = shown.flatMap((i, n) =>
      spaced(n, cellSpan(row[i], widths[i], columns[i], sorted[at], ageOf(sorted[at]))),
    );
    if (trendWidth === 0) return spans;
    return [
      ...spans,
      span("  "),
      span(sparkline(sorted[at].calls.last(trendWidth), trendWidth), "blue"),
    ];
  });
  const trendHead =
    trendWidth === 0
      ? []
      : [
          span("  "),
          span("CALLS/S, NEWEST RIGHT".slice(0, trendWidth).padStart(trendWidth), "bold"),
        ];
  return [[...heads, ...trendHead], ...lines];
}

function spaced(at: number, one: Span): Span[] {
  return at === 0 ? [one] : [span(" ".repeat(GAP)), one];
}

function pad(text: string, width: number, { isText }: TopColumn): string {
  const blanks = " ".repeat(Math.max(0, width - widthOf(text)));
  return isText === true ? text + blanks : blanks + text;
}

function cellOf(column: TopColumn, row: Row, all: readonly Row[], age: RowAge): Cell {
  const value = column.value(row, all, age);
  const chars = [...cellText(column, value)];
  return {
    text:
      chars.length <= MAX_CELL_CHARS
        ? chars.join("")
        : `${chars.slice(0, MAX_CELL_CHARS - 1).join("")}…`,
    level: levelOf(column, value),
    isOld: age.silentMs !== undefined || (column.from === "metrics" && age.hasOldMetrics),
  };
}

function cellSpan(cell: Cell, width: number, column: TopColumn, row: Row, age: RowAge): Span {
  const text = pad(cell.text, width, column);
  const isRole = column.title === "ROLE";
  if (isRole && (age.silentMs !== undefined || cell.text === "no leader"))
    return span(text, "bold", "red");
  if (cell.isOld) return span(text, "dim");
  if (cell.level !== undefined) return span(text, ...levelStyles[cell.level]);
  if (column.title === "MEMBER") return span(text, "bold");
  if (isRole && leads(row)) return span(text, "green");
  return span(text);
}

const levelStyles: Readonly<Record<Level, readonly Style[]>> = {
  warn: ["yellow"],
  bad: ["bold", "red"],
};

/** The columns that fit, chosen by lowest rank, in their own order. */
function fitting(
  columns: readonly TopColumn[],
  widths: readonly number[],
  width: number | undefined,
): number[] {
  const all = columns.map((_, i) => i);
  if (width === undefined) return all;
  const kept = new Set<number>();
  let used = -GAP;
  for (const i of [...all].sort((a, b) => columns[a].rank - columns[b].rank || a - b)) {
    if (used + GAP + widths[i] > width && columns[i].rank > 0) continue;
    kept.add(i);
    used += GAP + widths[i];
  }
  return all.filter((i) => kept.has(i));
}

/** Unknown values sort last in either direction. */
function sortedRows(
  columns: readonly TopColumn[],
  rows: readonly Row[],
  ageOf: (row: Row) => RowAge,
  options: TableOptions,
): Row[] {
  const column = columns.find(({ title }) => title === options.sortBy);
  if (column === undefined) return [...rows];
  const sign = options.descending === true ? -1 : 1;
  const keyed = rows.map((row) => ({ row, key: column.value(row, rows, ageOf(row)) }));
  keyed.sort((a, b) => {
    if (a.key === undefined || b.key === undefined)
      return Number(a.key === undefined) - Number(b.key === undefined);
    const order =
      typeof a.key === "number" && typeof b.key === "number"
        ? a.key - b.key
        : compareTexts(String(a.key), String(b.key));
    return sign * order;
  });
  return keyed.map(({ row }) => row);
}

/** Compares numbers in texts by value: m2 before m10. */
function compareTexts(a: string, b: string): number {
  return a.localeCompare(b, "en", { numeric: true });
}
