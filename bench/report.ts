/** Rounds to medians, medians to a table. */

/** One load on one cluster in one round. */
export interface Measurement {
  readonly round: number;
  readonly executable: "quorate" | "etcd";
  readonly members: number;
  readonly load: string;
  readonly ratePerS: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of all members together. */
  readonly cpuSPerThousand: number;
  /** Of one member, the mean. */
  readonly residentMiB: number;
  /** CPU seconds a second that the generator itself used: near 1 it is the generator that is measured. */
  readonly generatorCpu: number;
  readonly failed: number;
}

/** The middle value, or the mean of the two middle ones; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

const columns = ["rate/s", "p50 ms", "p99 ms", "CPU s/1000", "MiB/member", "generator CPU"] as const;
const figures: readonly ((one: Measurement) => number)[] = [
  (one) => one.ratePerS,
  (one) => one.p50Ms,
  (one) => one.p99Ms,
  (one) => one.cpuSPerThousand,
  (one) => one.residentMiB,
  (one) => one.generatorCpu,
];
const formats: readonly ((value: number) => string)[] = [
  (value) => Math.round(value).toLocaleString("en"),
  (value) => value.toFixed(2),
  (value) => value.toFixed(2),
  (value) => value.toFixed(4),
  (value) => value.toFixed(0),
  (value) => `${(100 * value).toFixed(0)} %`,
];
/** Figures that are set against etcd's: all but the generator's own. */
const comparedFigures = 5;

/**
 * The table in Markdown, aligned: for each load a line of medians for each program and, where both ran, a line of ratios ours/etcd. A
 * ratio is the median over the rounds of each round's own ratio, because both shared that round's weather.
 */
export function formatTable(measurements: readonly Measurement[]): string {
  const rows: string[][] = [["members", "load", "", ...columns]];
  const groups = new Map<string, Measurement[]>();
  for (const one of measurements) {
    const key = `${one.members}\t${one.load}`;
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  for (const [key, group] of groups) {
    const [members, load] = key.split("\t") as [string, string];
    const ours = group.filter((one) => one.executable === "quorate");
    const etcds = group.filter((one) => one.executable === "etcd");
    for (const [name, runs] of [
      ["quorate", ours],
      ["etcd", etcds],
    ] as const) {
      if (runs.length === 0) continue;
      rows.push([members, load, name, ...figures.map((figure, index) => show(median(runs.map(figure)), formats[index]!))]);
    }
    if (ours.length > 0 && etcds.length > 0) rows.push([members, load, "ratio", ...ratios(ours, etcds), ""]);
  }
  return align(rows);
}

function ratios(ours: readonly Measurement[], etcds: readonly Measurement[]): string[] {
  return figures.slice(0, comparedFigures).map((figure) => {
    const each = ours.flatMap((our) => {
      const partner = etcds.find((one) => one.round === our.round);
      return partner === undefined ? [] : [figure(our) / figure(partner)];
    });
    return show(median(each), (value) => `${value.toFixed(2)} x`);
  });
}

function show(value: number, format: (value: number) => string): string {
  return Number.isNaN(value) ? "-" : format(value);
}

/** Words to the left, figures to the right. */
function align(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length), 3));
  const lines = rows.map(
    (row) => `| ${row.map((cell, column) => (column < 3 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!))).join(" | ")} |`,
  );
  const rule = `|${widths.map((width, column) => (column < 3 ? "-".repeat(width + 2) : `${"-".repeat(width + 1)}:`)).join("|")}|`;
  return [lines[0], rule, ...lines.slice(1)].join("\n");
}
