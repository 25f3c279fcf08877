/**
 * A frame of top as lines of text, from two samples: no terminal and no clock are touched here.
 *
 *     quoratectl top   3 members   m0 leads in term 4   revision 1,204   2026-11-22 10:00:00Z
 *     412 puts/s   1,904 ranges/s   3 txns/s   0 deletes/s
 *
 *     MEMBER  ROLE      VERSION  INDEX  LAG  DB SIZE  IN USE  QUOTA
 *     ...
 *     MEMBER  RANGES/S  REQUEST P99  APPLY P99  FSYNC P99  COMMIT P99  PEER P99
 *     ...
 *     MEMBER  WATCHERS  LEASES  CONNECTIONS  CPU  MEMORY  HEAP  LOOP P99
 */
import type { Paint } from "../terminal.ts";
import { latencyColumns, leads, type Pair, processColumns, rate, stateColumns, type TopColumn } from "./columns.ts";
import { grouped, shownRate } from "./numbers.ts";
import type { Sample } from "./sample.ts";

/** The room that a frame has. */
export interface FrameSize {
  readonly columns: number;
  readonly rows: number;
}

/**
 * The lines of a frame. Rates and latencies are those between the samples; without one before they are not known.
 * @param size cuts lines that are too wide and frames that are too long; undefined for a pipe
 */
export function frame(now: Sample, before: Sample | undefined, size: FrameSize | undefined, paint: Paint): string[] {
  const pairs = now.members.map((one): Pair => ({ now: one, before: before?.members.find((other) => other.label === one.label) }));
  const lines = header(now, pairs, size, paint);
  for (const columns of [stateColumns, latencyColumns, processColumns]) lines.push("", ...table(columns, pairs, size, paint));
  const alarms = new Set(pairs.flatMap(({ now: { status } }) => status?.errors ?? []));
  const troubles = [...alarms, ...pairs.flatMap(({ now: { label, failure } }) => (failure === undefined ? [] : [`${label}: ${failure}`]))];
  if (troubles.length > 0) lines.push("", ...troubles.map((text) => paint(cut(text, size), "red")));
  if (size === undefined || lines.length <= size.rows) return lines;
  return [...lines.slice(0, size.rows - 1), paint(cut("... there is more than fits", size), "dim")];
}

function header({ wallMs, members }: Sample, pairs: readonly Pair[], size: FrameSize | undefined, paint: Paint): string[] {
  const leader = members.find(leads);
  const revision = Math.max(0, ...members.map(({ status }) => status?.header?.revision ?? 0));
  const answering = members.filter(({ status }) => status !== undefined).length;
  const parts = [
    answering === members.length
      ? `${members.length} member${members.length === 1 ? "" : "s"}`
      : `${answering} of ${members.length} members answer`,
    leader === undefined ? "nobody leads" : `${leader.label} leads in term ${leader.status!.raftTerm}`,
    `revision ${grouped(revision)}`,
    new Date(wallMs)
      .toISOString()
      .replace("T", " ")
      .replace(/\.\d+Z$/, "Z"),
  ];
  const known = (metric: string): number[] => pairs.map((pair) => rate(pair, metric)).filter((one) => one !== undefined);
  // Every member applies every change, so the quickest tells how many there were; reads are each member's own.
  const most = (metric: string): string => shownRate(known(metric).reduce<number | undefined>((a, b) => Math.max(a ?? b, b), undefined));
  const sum = (metric: string): string => shownRate(known(metric).reduce<number | undefined>((a, b) => (a ?? 0) + b, undefined));
  const rates = [
    `${most("etcd_mvcc_put_total")} puts/s`,
    `${sum("etcd_mvcc_range_total")} ranges/s`,
    `${most("etcd_mvcc_txn_total")} txns/s`,
    `${most("etcd_mvcc_delete_total")} deletes/s`,
  ];
  const title = cut("quoratectl top", size);
  const rest = `   ${parts.join("   ")}`.slice(0, size === undefined ? undefined : size.columns - title.length);
  return [paint(title, "bold") + paint(rest, leader === undefined ? "red" : "green"), cut(rates.join("   "), size)];
}

function table(columns: readonly TopColumn[], pairs: readonly Pair[], size: FrameSize | undefined, paint: Paint): string[] {
  const rows = pairs.map((pair) => columns.map(({ cell }) => cell(pair, pairs)));
  const widths = columns.map(({ title }, i) => Math.max(title.length, ...rows.map((row) => row[i]!.length)));
  const line = (cells: readonly string[]): string => {
    const padded = cells.map((cell, i) => (columns[i]!.isText === true ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)));
    return cut(padded.join("  ").trimEnd(), size);
  };
  return [
    paint(line(columns.map(({ title }) => title)), "bold"),
    ...rows.map((row, i) => {
      const { now } = pairs[i]!;
      return now.status === undefined ? paint(line(row), "red") : leads(now) ? paint(line(row), "cyan") : line(row);
    }),
  ];
}

function cut(text: string, size: FrameSize | undefined): string {
  return size === undefined ? text : text.slice(0, size.columns);
}
