/** A table of members: selects columns that fit, sets widths, sorts rows. */

import type { Style } from "@quorate/cli";
import { defined } from "@quorate/proto";
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

interface SizedColumn {
  readonly column: TopColumn;
  readonly cells: ReadonlyMap<Row, Cell>;
  readonly width: number;
}

/** The title line, and a line per row. */
export function table(
  columns: readonly TopColumn[],
  rows: readonly Row[],
  ageOf: (row: Row) => RowAge,
  options: TableOptions,
): Line[] {
  const sorted = sortedRows(columns, rows, ageOf, options);
  const all = columns.map((column): SizedColumn => {
    const cells = new Map(sorted.map((row) => [row, cellOf(column, row, rows, ageOf(row))]));
    const widths = [...cells.values()].map(({ text }) => widthOf(text));
    return { column, cells, width: Math.max(column.title.length + 1, ...widths) };
  });
  const shown = fitting(all, options.width);
  const used = shown.reduce((sum, { width }) => sum + width + GAP, -GAP);
  const free =
    options.width === undefined || options.trend !== true
      ? 0
      : Math.min(MAX_TREND, options.width - used - GAP);
  const trendWidth = free >= MIN_TREND ? free : 0;
  const heads = shown.flatMap(({ column, width }, at): Span[] => {
    const isSorted = column.title === options.sortBy;
    const title = column.title + (isSorted ? (options.descending === true ? "▼" : "▲") : "");
    return spaced(
      at,
      span(pad(title, width, column), "bold", ...(isSorted ? (["cyan"] as const) : [])),
    );
  });
  const lines = sorted.map((row): Line => {
    const spans = shown.flatMap((one, at) => spaced(at, cellSpan(one, row, ageOf(row))));
    if (trendWidth === 0) return spans;
    return [...spans, span("  "), span(sparkline(row.calls.last(trendWidth), trendWidth), "blue")];
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

function cellSpan({ column, cells, width }: SizedColumn, row: Row, age: RowAge): Span {
  const cell = defined(cells.get(row), "the cell");
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
function fitting(all: readonly SizedColumn[], width: number | undefined): readonly SizedColumn[] {
  if (width === undefined) return all;
  const kept = new Set<SizedColumn>();
  let used = -GAP;
  for (const one of all.toSorted((a, b) => a.column.rank - b.column.rank)) {
    if (used + GAP + one.width > width && one.column.rank > 0) continue;
    kept.add(one);
    used += GAP + one.width;
  }
  return all.filter((one) => kept.has(one));
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
