/**
 * Builds a frame of top as lines from the data of one moment, without terminal and clock. On 80
 * columns:
 *
 *     quoratectl top  3 members  m1 leads in term 4  revision 1,204                 10:00:00Z
 *     writes/s   412 ▁▂▃▄▅▆▇█▇▆▅▄▃▂▁▂   reads/s 1,904 ▁▂▃▄▅▆▇█▇▆▅▄▃▂▁▂
 *     ╭─ members ─ 1 of 4 ───────────────────────────────────────────────────────────────────╮
 *     │ MEMBER▲  ROLE        LAG  CALLS/S    FSYNC   CPU  MEMORY  QUOTA                      │
 *     │ m1       leader        0      812  1.98 ms   31%  190 MB    42%                      │
 *     ╰──────────────────────────────────────────────────────────────────────────────────────╯
 *     ...graphs and other tables where they fit, then the problems, and the keys
 */

import type { Paint } from "@quorate/cli";
import { idToHex } from "@quorate/proto";
import { refusedLogin } from "../observe/login.ts";
import { hasResponded } from "../observe/responded.ts";
import { shownAge, type TopColumn, type View, viewAt, views } from "./columns.ts";
import { figures } from "./figures.ts";
import type { ScreenState } from "./keys.ts";
import { boxed, cutLine, type Line, lineWidth, type Span, shownLine, span } from "./line.ts";
import { grouped, shownRate } from "./numbers.ts";
import { ageOf, isFresh, leaderOf, type Picture } from "./picture.ts";
import type { Row } from "./row.ts";
import { graph, peak, sparkline } from "./spark.ts";
import { table } from "./table.ts";

/** The size of a frame, in characters. */
export interface FrameSize {
  readonly columns: number;
  readonly rows: number;
}

/** Smaller frames have only a title and a plain table. */
const LEAST_BOXED: FrameSize = { columns: 30, rows: 12 };
/** Lines of a graph inside its border. */
const MIN_GRAPH_LINES = 3;
const MAX_GRAPH_LINES = 16;
/** From this width on two graphs are side by side. */
const SIDE_BY_SIDE_COLUMNS = 76;
const MAX_TROUBLES = 4;

/** The lines of a frame, which fit `size`. */
export function frame(
  picture: Picture,
  state: ScreenState,
  size: FrameSize,
  paint: Paint,
): string[] {
  const lines =
    size.columns < LEAST_BOXED.columns || size.rows < LEAST_BOXED.rows
      ? bare(picture, state, size)
      : full(picture, state, size);
  return lines.slice(0, size.rows).map((line) => shownLine(cutLine(line, size.columns), paint));
}

/** Plain text for a pipe: all tables with all columns. */
export function plainFrame(picture: Picture): string[] {
  const ages = (row: Row) => ageOf(row, picture);
  const rows = [...picture.rows].sort((a, b) =>
    a.label.localeCompare(b.label, "en", { numeric: true }),
  );
  const tables = views.flatMap(({ columns }, i) => {
    const shown =
      i === 0
        ? columns
        : columns.filter(({ title }) => title === "MEMBER" || !isShownBefore(title, i));
    return [[], ...table(shown, rows, ages, { width: undefined })];
  });
  const troubles = troublesOf(picture);
  const lines: Line[] = [
    titleLine(picture, undefined),
    ratesLine(picture, undefined),
    ...tables,
    ...(troubles.length > 0 ? [[], ...troubles] : []),
  ];
  return lines.map((line) => shownLine(line, (text) => text).trimEnd());
}

function isShownBefore(title: string, view: number): boolean {
  return views
    .slice(0, view)
    .some(({ columns }) => columns.some((column) => column.title === title));
}

function bare(picture: Picture, state: ScreenState, size: FrameSize): Line[] {
  const { columns } = viewAt(state.view);
  const rows = table(columns, picture.rows, (row) => ageOf(row, picture), {
    width: size.columns,
    ...sorting(state),
  });
  return [
    titleLine(picture, size.columns),
    ...scrolled(rows, state, size.rows - 2),
    ...troublesOf(picture),
  ];
}

function full(picture: Picture, state: ScreenState, size: FrameSize): Line[] {
  const troubles = troublesOf(picture).slice(0, MAX_TROUBLES);
  const top = [titleLine(picture, size.columns), ratesLine(picture, size.columns)];
  const bottom = [...troubles, footer(state, size)];
  let left = size.rows - top.length - bottom.length;
  const view = viewAt(state.view);
  const shownRows = Math.max(1, Math.min(picture.rows.length, left - 3));
  const main = tableBox(picture, state, view, size.columns, shownRows);
  left -= main.length;
  const others: Line[][] = [];
  for (const other of views) {
    const needed = picture.rows.length + 3;
    if (other === view || left < needed + MIN_GRAPH_LINES + 2) continue;
    others.push(tableBox(picture, state, other, size.columns, picture.rows.length));
    left -= needed;
  }
  const graphs =
    left >= MIN_GRAPH_LINES + 2
      ? graphBoxes(picture, size.columns, Math.min(MAX_GRAPH_LINES, left - 2))
      : [];
  const middle = [...main, ...graphs, ...others.flat()];
  const blanks = Math.max(0, size.rows - top.length - middle.length - bottom.length);
  return [...top, ...middle, ...new Array<Line>(blanks).fill([]), ...bottom];
}

function sorting({ sortBy, descending }: ScreenState): { sortBy: string; descending: boolean } {
  return { sortBy, descending };
}

function tableBox(
  picture: Picture,
  state: ScreenState,
  view: View,
  width: number,
  rows: number,
): Line[] {
  const at = views.indexOf(view);
  const columns: readonly TopColumn[] = view.columns;
  const all = table(columns, picture.rows, (row) => ageOf(row, picture), {
    width: width - 4,
    trend: at === 0,
    ...sorting(state),
  });
  const hidden = picture.rows.length - rows;
  const note = [
    `key ${at + 1}`,
    ...(hidden > 0 ? [`${rows} of ${picture.rows.length}, scroll with the arrows`] : []),
  ].join(", ");
  return boxed(view.name, note, scrolled(all, state, rows), width);
}

/** The title line and as many others as fit. */
function scrolled(
  [head, ...rows]: readonly Line[],
  { scrolled: past }: ScreenState,
  count: number,
): Line[] {
  const from = Math.max(0, Math.min(past, rows.length - count));
  return [head ?? [], ...rows.slice(from, from + Math.max(0, count))];
}

function titleLine(picture: Picture, width: number | undefined): Line {
  const { rows, wallMs } = picture;
  const responding = rows
    .filter(hasResponded)
    .filter((row) => ageOf(row, picture).silentMs === undefined);
  const revision = Math.max(0, ...responding.map(({ status }) => status.header?.revision ?? 0));
  const isAll = responding.length === rows.length;
  const isAsking = rows.every((row) => row.status === undefined && row.failure === undefined);
  const refusing = rows.filter((row) => refusedLogin(row) !== undefined);
  const members = isAll
    ? `${rows.length} member${rows.length === 1 ? "" : "s"}`
    : refusing.length > 0
      ? `${refusing.length} of ${rows.length} members need a login`
      : `${responding.length} of ${rows.length} members respond`;
  const clock = new Date(wallMs).toISOString().replace(/\.\d+Z$/, "Z");
  const parts: Span[] = isAsking
    ? [span(`polling ${rows.length} endpoint${rows.length === 1 ? "" : "s"}`, "dim")]
    : [
        span(members, isAll ? "green" : "yellow"),
        leaderSpan(picture),
        span(`revision ${grouped(revision)}`),
      ];
  let spans: Line = [span("quoratectl top", "bold")];
  for (const [i, part] of parts.entries()) {
    const longer = [...spans, span("  "), part];
    // The last parts are dropped first; a cut line shows it.
    if (i < 2 || width === undefined || lineWidth(longer) <= width) spans = longer;
  }
  if (width === undefined) return [...spans, span("  "), span(clock.replace("T", " "))];
  const time = width >= 110 ? clock.replace("T", " ") : clock.slice(11);
  const blanks = width - lineWidth(spans) - time.length;
  return blanks < 2 ? spans : [...spans, span(" ".repeat(blanks)), span(time, "dim")];
}

function leaderSpan(picture: Picture): Span {
  const leader = leaderOf(picture);
  if (leader === undefined) return span("no leader", "bold", "red");
  const id =
    picture.rows.find((row) => row.status?.raftTerm === leader.term && row.status.leader !== 0n)
      ?.status?.leader ?? 0n;
  const name = leader.row?.label ?? idToHex(id);
  if (leader.isSilent)
    return span(`${name} leads in term ${leader.term}, but is silent`, "bold", "red");
  return span(`${name} leads in term ${leader.term}`, "green");
}

function ratesLine(picture: Picture, width: number | undefined): Line {
  const fresh = picture.rows.filter((row) => isFresh(row, picture));
  const { puts, reads, txns, deletes } = figures;
  if (width === undefined || width < 60) {
    const parts = [
      `${shownRate(puts(fresh))} puts/s`,
      `${shownRate(reads(fresh))} ranges/s`,
      `${shownRate(txns(fresh))} txns/s`,
    ];
    return [span([...parts, `${shownRate(deletes(fresh))} deletes/s`].join("   "))];
  }
  const texts = [
    [" puts/s ", shownRate(puts(fresh))],
    ["  deletes/s ", shownRate(deletes(fresh))],
    ["  txns/s ", shownRate(txns(fresh))],
    ["  ranges/s ", shownRate(reads(fresh))],
  ] as const;
  const spans = texts.flatMap(([name, value]) => [span(name, "dim"), span(value, "bold")]);
  const free = Math.min(60, Math.floor((width - lineWidth(spans) - 20) / 2));
  if (free < 8) return spans;
  return [
    ...spans,
    span("   writes ", "dim"),
    span(sparkline(picture.writes, free), "green"),
    span("  reads ", "dim"),
    span(sparkline(picture.reads, free), "blue"),
  ];
}

function graphBoxes(picture: Picture, width: number, height: number): Line[] {
  const box = (
    name: string,
    values: readonly number[],
    style: "green" | "blue",
    boxWidth: number,
    lines: number,
  ): Line[] => {
    const shown = values.slice(-(boxWidth - 4));
    const newest = shown.at(-1) ?? Number.NaN;
    const current = Number.isNaN(newest) ? "not known" : shownRate(newest);
    const note = `${current}, peak ${shownRate(peak(shown))} in ${shownAge(shown.length * picture.intervalMs)}`;
    return boxed(
      name,
      note,
      graph(shown, boxWidth - 4, lines).map((text): Line => [span(text, style)]),
      boxWidth,
    );
  };
  if (width < SIDE_BY_SIDE_COLUMNS) {
    const half = Math.floor((height - 2) / 2);
    if (half < MIN_GRAPH_LINES) return box("writes/s", picture.writes, "green", width, height);
    return [
      ...box("writes/s", picture.writes, "green", width, half),
      ...box("reads/s", picture.reads, "blue", width, half),
    ];
  }
  const leftWidth = Math.floor(width / 2);
  const left = box("writes/s", picture.writes, "green", leftWidth, height);
  const right = box("reads/s", picture.reads, "blue", width - leftWidth, height);
  return left.map((line, i) => [...line, ...(right[i] ?? [])]);
}

/** Alarms, silent members with the reason, and the number of hidden members. */
function troublesOf(picture: Picture): Line[] {
  const { rows, leftOut } = picture;
  const errors = new Set(
    rows.flatMap((row) =>
      ageOf(row, picture).silentMs === undefined ? (row.status?.errors ?? []) : [],
    ),
  );
  const alarms = [...errors].map((text) => namedAlarm(text, rows));
  const silent = rows.flatMap((row) => {
    const { silentMs } = ageOf(row, picture);
    if (row.isNeverStarted) return [`${row.label}: added, but never started`];
    if (silentMs === undefined) return [];
    const since = row.status === undefined ? "" : `; its figures are ${shownAge(silentMs)} old`;
    return [`${row.label}: ${row.failure ?? "no response yet"}${since}`];
  });
  const more = leftOut > 0 ? [`${leftOut} more members are not shown`] : [];
  return [...alarms, ...silent, ...more].map((text): Line => [span(text, "red")]);
}

/** "memberID:123 alarm:NOSPACE" with the member's name. */
function namedAlarm(text: string, rows: readonly Row[]): string {
  const [, id, kind] = /^memberID:(\d+)\s+alarm:(\w+)/.exec(text) ?? [];
  if (id === undefined) return text;
  const row = rows.find(({ memberId }) => memberId === BigInt(id));
  return `alarm ${kind} of ${row?.label ?? idToHex(BigInt(id))}: see quoratectl doctor`;
}

function footer({ isPaused }: ScreenState, { columns }: FrameSize): Line {
  const keys = [
    ["q", "quit"],
    ["?", "help"],
    ["1-4", "tables"],
    ["s", "sort"],
    ["r", "reverse"],
    ["space", "refresh"],
    ["p", isPaused ? "continue" : "pause"],
  ] as const;
  let line: Line = isPaused ? [span(" PAUSED ", "inverse"), span(" ")] : [];
  for (const [key, what] of keys) {
    const longer = [...line, span(key, "bold", "cyan"), span(` ${what}  `, "dim")];
    if (lineWidth(longer) <= columns) line = longer;
  }
  return cutLine(line, columns);
}
