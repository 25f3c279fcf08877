/**
 * Tables for people at a terminal: aligned columns under a heading, or a block for each row where
 * the columns do not fit.
 */
import type { Paint, Table } from "@quorate/cli";

/** Where a table is to be shown. */
export interface Page {
  readonly paint: Paint;
  /** Its width in characters. */
  readonly columns: number;
}

const GAP = "  ";

/** The table as text. Columns whose cells are all empty are left out. */
export function layOut({ header, rows }: Table, { paint, columns }: Page): string {
  const shown = header
    .map((_, column) => column)
    .filter((column) => rows.length === 0 || rows.some((row) => row[column] !== ""));
  const titles = shown.map((column) => header[column].replaceAll("_", " ").toUpperCase());
  const cells = rows.map((row) => shown.map((column) => row[column]));
  const widths = titles.map((title, index) =>
    Math.max(title.length, ...cells.map((row) => row[index].length)),
  );
  const total = widths.reduce((sum, width) => sum + width + GAP.length, -GAP.length);
  if (total > columns && rows.length > 0) return blocks(titles, cells, paint);
  const line = (texts: readonly string[]): string =>
    texts
      .map((text, index) => text.padEnd(widths[index]))
      .join(GAP)
      .trimEnd();
  return [paint(line(titles), "bold"), ...cells.map(line)].map((text) => `${text}\n`).join("");
}

function blocks(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  paint: Paint,
): string {
  const width = Math.max(...titles.map((title) => title.length));
  return rows
    .map((row) =>
      titles
        .map((title, index) => `${paint(title.padEnd(width), "bold")}${GAP}${row[index]}\n`)
        .join(""),
    )
    .join("\n");
}
