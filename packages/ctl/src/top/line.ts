/**
 * Lines as pieces of text with styles, so that they can be measured and cut before colours add
 * invisible characters.
 */
import type { Paint, Style } from "@quorate/cli";

/** A text with its styles. */
export interface Span {
  readonly text: string;
  readonly styles?: readonly Style[];
}

export type Line = readonly Span[];

export function span(text: string, ...styles: Style[]): Span {
  return { text, styles };
}

/** The width of a text in characters; wide characters count as one. */
export function widthOf(text: string): number {
  return [...text].length;
}

export function lineWidth(line: Line): number {
  return line.reduce((sum, { text }) => sum + widthOf(text), 0);
}

/** The first `width` characters of a line; the last one is "…" if the line was cut. */
export function cutLine(line: Line, width: number): Line {
  if (lineWidth(line) <= width) return line;
  const kept: Span[] = [];
  let left = Math.max(0, width - 1);
  for (const { text, styles = [] } of line) {
    if (left <= 0) break;
    const part = [...text].slice(0, left).join("");
    kept.push({ text: part, styles });
    left -= widthOf(part);
  }
  return width <= 0 ? [] : [...kept, { text: "…", styles: ["dim"] }];
}

/** A line of exactly `width` characters. */
export function fitLine(line: Line, width: number): Line {
  const cut = cutLine(line, width);
  const missing = width - lineWidth(cut);
  return missing > 0 ? [...cut, { text: " ".repeat(missing) }] : cut;
}

/** The line as text with escape sequences. */
export function shownLine(line: Line, paint: Paint): string {
  return line.map(({ text, styles = [] }) => paint(text, ...styles)).join("");
}

/** Lines in a border with a title, `width` characters wide. */
export function boxed(title: string, note: string, lines: readonly Line[], width: number): Line[] {
  const inner = width - 4;
  const head: Line = [
    span("╭─ ", "dim"),
    span(title, "bold", "cyan"),
    ...(note !== "" && widthOf(title) + widthOf(note) + 10 <= width
      ? [span(" ─ ", "dim"), span(note, "dim")]
      : []),
    span(" ", "dim"),
  ];
  const rule = Math.max(0, width - lineWidth(head) - 1);
  return [
    cutLine([...head, span(`${"─".repeat(rule)}╮`, "dim")], width),
    ...lines.map((line): Line => [span("│ ", "dim"), ...fitLine(line, inner), span(" │", "dim")]),
    [span(`╰${"─".repeat(Math.max(0, width - 2))}╯`, "dim")],
  ];
}
