/**
 * ./dev bench in-process: what a member in the program's own process costs, in processor time of
 * the process, which other work on the machine does not change much.
 *
 *     ./dev bench in-process [--runs 9] [--calls 5000] [--resets 300]
 *
 * Calls of startMember()'s client, which has no sockets, on a member in memory: medians over the
 * runs. Puts into a member with files, beside a bare fdatasync. And cluster.reset() to a named
 * point, after a test that has changed ten of a hundred keys.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { startMember } from "@quorate/embed/node";
import { nodeDisk } from "@quorate/host/node";
import { testCluster } from "@quorate/testing";
import { count, readArguments, valueOption } from "../scripts/dev/command-line.ts";
import { align, median } from "./report.ts";

const help = "./dev bench in-process [OPTIONS]: processor time of calls and resets without sockets";
const { values: args } = readArguments(help, {
  runs: valueOption("runs of each row", "9"),
  calls: valueOption("calls of a run", "5000"),
  resets: valueOption("resets of a row", "300"),
});

/** Processor microseconds of this process, all threads, while `run` runs. */
async function cpuMicros(run: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await run();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/** The median over the runs of what a call costs, with so many at once. */
async function costOf(call: () => Promise<unknown>, atOnce: number): Promise<number> {
  const calls = count("calls", args.calls);
  const run = async (): Promise<void> => {
    for (let done = 0; done < calls; done += atOnce)
      await Promise.all(Array.from({ length: atOnce }, call));
  };
  // What is compiled at first is no call's cost.
  await run();
  await run();
  const costs: number[] = [];
  for (let i = 0; i < count("runs", args.runs); i++) costs.push((await cpuMicros(run)) / calls);
  return median(costs);
}

/** What no put of a member with files can be quicker than. */
async function syncMs(dir: string): Promise<number> {
  const file = nodeDisk.open(join(dir, "sync"), "create");
  const block = new Uint8Array(4096);
  const tookMs: number[] = [];
  for (let i = 0; i < 300; i++) {
    const fromMs = performance.now();
    file.write([block], i * block.length);
    file.dataSyncNow();
    tookMs.push(performance.now() - fromMs);
  }
  file.close();
  return median(tookMs);
}

/** One put after the other into a member with files, beside a write with fdatasync alone. */
async function puts(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "quorate-bench-"));
  const tookMs: number[] = [];
  let cpuMs = 0;
  const floorMs = await syncMs(dir);
  {
    await using member = await startMember({ dataDir: join(dir, "data") });
    const client = member.client();
    const value = "x".repeat(256);
    for (let i = 0; i < 1000; i++) await client.put("key", value);
    const micros = await cpuMicros(async () => {
      for (let i = 0; i < 1000; i++) {
        const fromMs = performance.now();
        await client.put("key", value);
        tookMs.push(performance.now() - fromMs);
      }
    });
    cpuMs = micros / 1000 / 1000;
  }
  rmSync(dir, { recursive: true });
  console.log(
    align(
      [
        ["with files, one at once", "elapsed ms, p50", "processor ms"],
        ["put", median(tookMs).toFixed(3), cpuMs.toFixed(3)],
        ["write and fdatasync of 4 KiB alone", floorMs.toFixed(3), ""],
      ],
      [0],
    ),
  );
}

async function calls(): Promise<void> {
  await using member = await startMember({ dataDir: ":memory:" });
  const client = member.client();
  const value = "x".repeat(256);
  await client.put("key", value);
  const rows: [string, () => Promise<unknown>][] = [
    ["get, serializable", () => client.get("key", { serializable: true })],
    ["get", () => client.get("key")],
    ["put", () => client.put("key", value)],
  ];
  const cells: string[][] = [["call", "1 at once, µs", "100 at once, µs"]];
  for (const [name, call] of rows)
    cells.push([name, (await costOf(call, 1)).toFixed(1), (await costOf(call, 100)).toFixed(1)]);
  console.log(align(cells, [0]));
}

async function resets(members: 1 | 3): Promise<string[]> {
  await using cluster = await testCluster({ members });
  const client = cluster.client({ timeoutMs: 60_000 });
  for (let i = 0; i < 100; i++) await client.put(`key/${i}`, "as it was");
  await cluster.mark("seeded");
  const micros: number[] = [];
  const elapsedMs: number[] = [];
  for (let i = 0; i < count("resets", args.resets); i++) {
    await Promise.all(Array.from({ length: 10 }, (_, at) => client.put(`key/${at}`, `${i}`)));
    await turn();
    const fromMs = performance.now();
    micros.push(await cpuMicros(() => cluster.reset("seeded")));
    elapsedMs.push(performance.now() - fromMs);
  }
  const at = (of: number[], part: number): string =>
    of.toSorted((a, b) => a - b)[Math.floor(of.length * part)]!.toFixed(2);
  const cpuMs = micros.map((one) => one / 1000);
  return [`${members}`, at(cpuMs, 0.5), at(cpuMs, 0.99), at(elapsedMs, 0.5), at(elapsedMs, 0.99)];
}

await calls();
await puts();
console.log(
  align(
    [
      ["reset, members", "processor ms, p50", "p99", "elapsed ms, p50", "p99"],
      await resets(1),
      await resets(3),
    ],
    [0],
  ),
);
process.exit(0);
