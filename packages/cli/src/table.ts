/** The table format: cells in a frame of box-drawing characters, as etcdctl draws it. */
import { escapeControls } from "@quorate/host";

export interface Table {
  readonly header: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/**
 * Draws a table: headings in capitals and centred, cells aligned right. Control characters in
 * cells become \xNN or \uNNNN.
 */
export function drawTable({ header, rows: texts }: Table): string {
  const rows = texts.map((row) => row.map(escapeControls));
  const titles = header.map((title) => title.replaceAll("_", " ").toUpperCase());
  const widths = titles.map((title, column) =>
    Math.max(...[title, ...rows.map((row) => row[column] ?? "")].map(width)),
  );
  const rule = (left: string, middle: string, right: string): string =>
    left + widths.map((size) => "─".repeat(size + 2)).join(middle) + right;
  const line = (cells: readonly string[], pad: (text: string, size: number) => string): string =>
    `│${cells.map((cell, column) => ` ${pad(cell, widths[column] ?? 0)} `).join("│")}│`;
  const body = rows.map((row) => line(row, padLeft));
  const lines = [
    rule("┌", "┬", "┐"),
    line(titles, centre),
    ...(rows.length > 0 ? [rule("├", "┼", "┤"), ...body] : []),
    rule("└", "┴", "┘"),
  ];
  return `${lines.join("\n")}\n`;
}

function width(text: string): number {
  return [...text].length;
}

function padLeft(text: string, size: number): string {
  return " ".repeat(size - width(text)) + text;
}

function centre(text: string, size: number): string {
  const free = size - width(text);
  const left = Math.floor(free / 2);
  return " ".repeat(left) + text + " ".repeat(free - left);
}
