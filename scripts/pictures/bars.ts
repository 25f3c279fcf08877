/**
 * A chart of bars from a table of docs/internals/benchmarks.md: each load of the first table with
 * the ratios of two columns, on one scale, and a line where both programs are equal.
 */
import { escapeHtml } from "@quorate/proto";
import { picture } from "./svg.ts";

/** A column of the table that is drawn. */
export interface Series {
  readonly name: string;
  /** The number of the column, 0 for that of the loads. */
  readonly column: number;
  readonly fill: string;
}

const WIDTH = 760;
const LEFT = 290;
const TOP = 56;
const BAR = 11;
const GAP = 14;

/**
 * The chart of the first table of a page whose cells are ratios like 1.36x.
 *
 * @param page the text of the page
 * @throws Error if the page has no such table
 */
export function barsPicture(title: string, page: string, series: readonly Series[]): string {
  const rows = ratiosOf(page);
  const values = rows.flatMap(({ ratios }) => series.map(({ column }) => ratios[column - 1]!));
  const most = Math.ceil(Math.max(...values));
  const scale = (WIDTH - LEFT - 60) / most;
  const height = BAR * series.length + GAP;
  const bottom = TOP + rows.length * height;
  const body = [
    label(20, 24, title, 'font-weight="bold"'),
    ...series.map(({ name, fill }, i) =>
      [
        `<rect x="${LEFT + 190 * i}" y="34" width="10" height="10" fill="${fill}"/>`,
        label(LEFT + 190 * i + 16, 43, name, 'font-size="11"'),
      ].join("\n"),
    ),
    ...Array.from({ length: most + 1 }, (_, at) =>
      [
        `<line x1="${LEFT + at * scale}" y1="${TOP - 4}" x2="${LEFT + at * scale}" y2="${bottom}" stroke="${at === 1 ? "#334" : "#dde"}"/>`,
        label(LEFT + at * scale - 6, bottom + 16, `${at}x`, 'font-size="11" fill="#334"'),
      ].join("\n"),
    ),
    ...rows.flatMap(({ load, ratios }, row) => [
      label(20, TOP + row * height + height / 2, load),
      ...series.map(({ column, fill }, i) => {
        const y = TOP + row * height + i * BAR;
        const width = Math.round(ratios[column - 1]! * scale);
        return [
          `<rect x="${LEFT}" y="${y}" width="${width}" height="${BAR - 1}" fill="${fill}"/>`,
          label(
            LEFT + width + 5,
            y + BAR - 2,
            `${ratios[column - 1]!.toFixed(2)}x`,
            'font-size="10"',
          ),
        ].join("\n");
      }),
    ]),
  ];
  return picture(WIDTH, bottom + 28, title, body);
}

/** The rows of a page's first table of ratios. */
function ratiosOf(page: string): { load: string; ratios: number[] }[] {
  const rows = page
    .split("\n\n")
    .map((paragraph) =>
      [...paragraph.matchAll(/^\| ([^|]+) \|((?: [\d.]+x \|)+)$/gm)].map(([, load, cells]) => ({
        load: load!,
        ratios: cells!.split("x |").slice(0, -1).map(Number),
      })),
    )
    .find((found) => found.length > 0);
  if (rows === undefined) throw new Error("the page has no table of ratios");
  return rows;
}

function label(x: number, y: number, content: string, attributes = ""): string {
  return `<text x="${x}" y="${y}" ${attributes}>${escapeHtml(content)}</text>`;
}
