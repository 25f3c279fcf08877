/**
 * ./dev bench summary: the tables of docs/internals/benchmarks.md and
 * docs/internals/benchmarks/tables.md, from the files that `./dev bench --json FILE` has written.
 * Ratios are those of one round each, as in the report of a run.
 *
 *     ./dev bench summary one.json three.json life.json [--write]
 *
 * Without --write they are printed.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readArguments, refuse, switchOption } from "../scripts/dev/command-line.ts";
import { type Findings, figureTable, loadTable, type Measurement, ratio } from "./report.ts";

const { values: options, positionals: files } = readArguments(
  "./dev bench summary FILE... [OPTIONS]: the tables of docs/internals/benchmarks.md, from --json",
  {
    write: switchOption("write them to the pages, do not print"),
  },
  "FILE",
);
if (files.length === 0) refuse("a file is missing");
const runs = files.map((file) => JSON.parse(readFileSync(file, "utf8")) as Findings);
const measurements = runs.flatMap((run) => run.measurements);
const figures = runs.flatMap((run) => run.figures);

/** Figures of a load that are compared: throughput, latency, processor time. */
const compared = [
  (one: Measurement) => one.ratePerS,
  (one: Measurement) => one.p99Ms,
  (one: Measurement) => one.cpuSPerThousand,
] as const;

/** The three ratios of a load on one ground; dashes where it was not measured with both. */
function cells(load: string, members: number, tls: boolean): string[] {
  const group = measurements.filter(
    (one) => one.load === load && one.members === members && one.tls === tls,
  );
  const ours = group.filter((one) => one.executable === "quorate");
  const etcds = group.filter((one) => one.executable === "etcd");
  return compared.map((figure) => {
    const value = ratio(ours, etcds, figure);
    return Number.isFinite(value) ? `${value.toFixed(2)}x` : "-";
  });
}

function summary(): string {
  const isGo = (load: string): boolean => load.includes("by Go's clientv3");
  const all = [...new Set(measurements.map((one) => one.load))];
  // What a user of etcd's own client sees comes first.
  const loads = [...all.filter(isGo), ...all.filter((load) => !isGo(load))];
  const columns = ["throughput", "p99 latency", "CPU a request"];
  const head = ["load", ...columns, ...columns];
  head[1] = `1 member: ${head[1]}`;
  head[4] = `3 members, TLS: ${head[4]}`;
  const lines = loads.map((load) => [load, ...cells(load, 1, false), ...cells(load, 3, true)]);
  const text = (line: readonly string[]): string => `| ${line.join(" | ")} |`;
  return [text(head), "|---|---:|---:|---:|---:|---:|---:|", ...lines.map(text)].join("\n");
}

/** All figures, one table for each ground, and those that are no loads. */
function tables(): string {
  const grounds = Map.groupBy(measurements, ({ members, tls }) => `${members} ${tls}`);
  const parts = [...grounds.values()].map(loadTable);
  if (figures.length > 0) parts.push(figureTable(figures));
  return [...new Set(runs.map((run) => run.environment)), ...parts].join("\n\n");
}

/** Replaces what stands from `from` to `to`, both of which stay. */
function replace(path: string, [from, to]: readonly [string, string], text: string): void {
  const file = join(import.meta.dirname, "..", path);
  const before = readFileSync(file, "utf8");
  const start = before.indexOf(from);
  const end = before.indexOf(to, start + from.length);
  if (start < 0 || end < 0) throw new Error(`${path} has no "${from}" with "${to}" behind it`);
  writeFileSync(file, `${before.slice(0, start + from.length)}\n\n${text}\n\n${before.slice(end)}`);
}

if (options.write) {
  const marks = ["(../pictures/benchmarks-three.svg)", "Through Go's clientv3"] as const;
  replace("docs/internals/benchmarks.md", marks, summary());
  replace("docs/internals/benchmarks/tables.md", ["## Quorate and etcd 3.7.3", "\n## "], tables());
} else console.log(`${summary()}\n\n${tables()}`);
