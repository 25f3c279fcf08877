/** Rounds to medians, medians to tables. */

export type Program = "quorate" | "etcd";

/** One load on one cluster in one round. */
export interface Measurement {
  readonly round: number;
  readonly executable: Program;
  readonly members: number;
  readonly tls: boolean;
  readonly load: string;
  /** Our rate by etcd's that is aimed at. */
  readonly goal?: number | undefined;
  readonly ratePerS: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of all members together. */
  readonly cpuSPerThousand: number;
  /**
   * Bytes that the main threads of all members allocate in V8's heap for a call, and those that
   * collections of young objects copy; NaN or missing where there is no such heap.
   */
  readonly allocatedBytes?: number | undefined;
  readonly survivedBytes?: number | undefined;
  /** Of one member at the end of the load, the mean. */
  readonly residentMiB: number;
  /** The most that one member has had since it was started, the mean. */
  readonly peakMiB: number;
  /**
   * CPU seconds a second that the generator itself used: near 1 it is the generator that is
   * measured.
   */
  readonly generatorCpu: number;
  readonly failed: number;
}

/** One figure of a row that is no load; less is better. */
export interface Figure {
  readonly name: string;
  readonly value: number;
  /** At most this, or at most what etcd needs. */
  readonly goal?: number | "etcd" | undefined;
}

/** A figure of one program in one round. */
export interface FigureOf extends Figure {
  readonly round: number;
  readonly executable: Program;
}

/** All that a run has found. */
export interface Findings {
  readonly environment: string;
  readonly measurements: readonly Measurement[];
  readonly figures: readonly FigureOf[];
}

/** The middle value, or the mean of the two middle ones; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

interface Column {
  readonly title: string;
  readonly figure: (one: Measurement) => number;
  readonly format: (value: number) => string;
  /** Whether the line of ratios has it. */
  readonly isCompared: boolean;
}

const digits =
  (count: number) =>
  (value: number): string =>
    value.toLocaleString("en", { minimumFractionDigits: count, maximumFractionDigits: count });

const columns: readonly Column[] = [
  { title: "rate/s", figure: (one) => one.ratePerS, format: digits(0), isCompared: true },
  { title: "p50 ms", figure: (one) => one.p50Ms, format: digits(2), isCompared: true },
  { title: "p99 ms", figure: (one) => one.p99Ms, format: digits(2), isCompared: true },
  {
    title: "CPU s/1000",
    figure: (one) => one.cpuSPerThousand,
    format: digits(4),
    isCompared: true,
  },
  {
    title: "heap B",
    figure: (one) => one.allocatedBytes ?? Number.NaN,
    format: digits(0),
    isCompared: false,
  },
  {
    title: "kept B",
    figure: (one) => one.survivedBytes ?? Number.NaN,
    format: digits(0),
    isCompared: false,
  },
  { title: "MiB", figure: (one) => one.residentMiB, format: digits(0), isCompared: true },
  { title: "MiB most", figure: (one) => one.peakMiB, format: digits(0), isCompared: true },
  {
    title: "generator",
    figure: (one) => one.generatorCpu,
    format: (value) => `${(100 * value).toFixed(0)} %`,
    isCompared: false,
  },
];
const rateColumn = columns[0];
const p99Column = columns[2];
const memoryColumn = columns.find(({ title }) => title === "MiB")!;

const ratioFormat = (value: number): string => `${value.toFixed(2)} x`;

/**
 * The loads as a table in Markdown, aligned: for each load a line of medians for each program and,
 * where both ran, a line of ratios ours/etcd with the goals that it misses. A ratio is the median
 * over the rounds of each round's own ratio: both shared that weather.
 */
export function loadTable(measurements: readonly Measurement[]): string {
  const lines: string[][] = [
    ["members", "over", "load", "", ...columns.map((column) => column.title), "goals"],
  ];
  for (const group of Map.groupBy(
    measurements,
    (one) => `${one.members} ${one.tls} ${one.load}`,
  ).values()) {
    const { members, tls, load, goal } = group[0];
    const start = [String(members), tls ? "TLS" : "plain", load];
    const ours = group.filter((one) => one.executable === "quorate");
    const etcds = group.filter((one) => one.executable === "etcd");
    for (const runs of [ours, etcds]) {
      if (runs.length === 0) continue;
      const cells = columns.map((column) => show(median(runs.map(column.figure)), column.format));
      lines.push([...start, runs[0].executable, ...cells, ""]);
    }
    if (ours.length === 0 || etcds.length === 0) continue;
    const ratioOf = (column: Column): number => ratio(ours, etcds, column.figure);
    const missed = [
      goal !== undefined && !(ratioOf(rateColumn) >= goal) ? `rate ${goal.toFixed(1)} x` : "",
      ratioOf(p99Column) > 1 ? "p99" : "",
      ratioOf(memoryColumn) > 1 ? "memory" : "",
    ].filter((text) => text !== "");
    const cells = columns.map((column) =>
      column.isCompared ? show(ratioOf(column), ratioFormat) : "",
    );
    lines.push([
      ...start,
      "ratio",
      ...cells,
      missed.length === 0 ? "met" : `missed: ${missed.join(", ")}`,
    ]);
  }
  return align(lines, [0, 1, 2, 3, 4 + columns.length]);
}

/** The rows that are no loads, a line for each. */
export function figureTable(figures: readonly FigureOf[]): string {
  const lines: string[][] = [["what", "quorate", "etcd", "ratio", "goal"]];
  for (const [name, group] of Map.groupBy(figures, (one) => one.name)) {
    const ours = group.filter((one) => one.executable === "quorate");
    const etcds = group.filter((one) => one.executable === "etcd");
    const own = median(ours.map((one) => one.value));
    const both = ratio(ours, etcds, (one) => one.value);
    const { goal } = group[0];
    const isMet = goal === "etcd" ? both <= 1 : own <= (goal ?? Number.POSITIVE_INFINITY);
    const isKnown = !Number.isNaN(goal === "etcd" ? both : own);
    const verdict =
      goal === undefined || !isKnown
        ? ""
        : `${goal === "etcd" ? "1.00 x" : goal}: ${isMet ? "met" : "missed"}`;
    const format = digits(own < 100 ? 2 : 0);
    lines.push([
      name,
      show(own, format),
      show(median(etcds.map((one) => one.value)), format),
      show(both, ratioFormat),
      verdict,
    ]);
  }
  return align(lines, [0, 4]);
}

export function ratio<T extends { readonly round: number }>(
  ours: readonly T[],
  etcds: readonly T[],
  figure: (one: T) => number,
): number {
  const each = ours.flatMap((our) => {
    const partner = etcds.find((one) => one.round === our.round);
    return partner === undefined ? [] : [figure(our) / figure(partner)];
  });
  return median(each);
}

function show(value: number, format: (value: number) => string): string {
  return Number.isFinite(value) ? format(value) : "-";
}

/** Words (the columns named in `words`) to the left, figures to the right. */
export function align(lines: readonly (readonly string[])[], words: readonly number[]): string {
  const widths = lines[0].map((_, column) =>
    Math.max(...lines.map((line) => line[column].length), 3),
  );
  const pad = (cell: string, column: number): string =>
    words.includes(column) ? cell.padEnd(widths[column]) : cell.padStart(widths[column]);
  const text = lines.map((line) => `| ${line.map(pad).join(" | ")} |`);
  const rules = widths.map(
    (width, column) => "-".repeat(width + 1) + (words.includes(column) ? "-" : ":"),
  );
  return [text[0], `|${rules.join("|")}|`, ...text.slice(1)].join("\n");
}

/** The tables under their headings. */
export function report({ environment, measurements, figures }: Findings): string {
  const sorted = measurements.toSorted(
    (a, b) => a.members - b.members || Number(a.tls) - Number(b.tls),
  );
  const parts = [environment];
  if (sorted.length > 0) parts.push(`### Loads\n\n${loadTable(sorted)}`);
  if (figures.length > 0) parts.push(`### Start, rest and many keys\n\n${figureTable(figures)}`);
  return parts.join("\n\n");
}
