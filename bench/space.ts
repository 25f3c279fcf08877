/**
 * ./dev bench space: a full store, ours and etcd's in turn. The store is filled, then compacted
 * and defragmented while clients go on putting: what do they feel of it?
 *
 *     ./dev bench space --help
 *
 * Each key is written twice, so that half of what lies in the store is history that compaction
 * drops. Filling stops when its share of --minutes is over; the sizes in the table say how much
 * came in. A put counts for the phase in which it began.
 */

import { KVService, MaintenanceService } from "@quorate/proto";
import { positive, readArguments, valueOption } from "../scripts/dev/command-line.ts";
import { TestClient } from "../test/support/client.ts";
import { startCluster, type TestCluster } from "../test/support/cluster.ts";
import type { Executable } from "../test/support/executables.ts";
import { leaderUrl, putTemplate, revisionOf, type Target, UnaryLoad } from "./calls.ts";
import { comparison, markdown, programsOf } from "./comparison.ts";
import { keyOf, randomValue } from "./keys.ts";
import { runCount } from "./load.ts";
import { align } from "./report.ts";

const help = `./dev bench space [OPTIONS]: compaction and defragmentation of a full store under load, ours and etcd's in turn`;

const { values: args } = readArguments(help, {
  only: comparison.only,
  markdown,
  gib: valueOption("what is written, in GiB, each key twice", "2"),
  size: valueOption("members", "1"),
  clients: valueOption("clients that put without pause", "20"),
  "quiet-seconds": valueOption("how long they put before and after", "10"),
  minutes: valueOption(
    "the most that a program may take: filling stops when its share is over",
    "10",
  ),
});
const gib = positive("gib", args.gib);
const size = positive("size", args.size);
const clients = positive("clients", args.clients);
const quietMs = positive("quiet-seconds", args["quiet-seconds"]) * 1000;
const budgetMs = positive("minutes", args.minutes) * 60_000;
const fillValue = randomValue(4096);
const loadValue = randomValue(256);
const quotaFlag = "--quota-backend-bytes=17179869184";
/** Filling is cut into so many parts, with a line of progress after each. */
const parts = 20;
/** Filling may take this share of a program's time. */
const fillShare = 0.5;
const MIB = 2 ** 20;
const say = (text: string): void => console.error(text);

/** What the clients felt in one phase. */
interface Phase {
  readonly program: Executable["name"];
  readonly name: string;
  tookMs: number;
  readonly latenciesMs: number[];
  failed: number;
  sizeMiB: number;
  inUseMiB: number;
}

async function statusOf(cluster: TestCluster): Promise<{ sizeMiB: number; inUseMiB: number }> {
  const client = new TestClient(new URL(await leaderUrl(cluster)).host, cluster.identity);
  const { dbSize, dbSizeInUse } = await client.call(MaintenanceService.methods.Status, {}, 60_000);
  client.close();
  return { sizeMiB: dbSize / MIB, inUseMiB: dbSizeInUse / MIB };
}

async function fill(target: Target, program: string, deadlineMs: number): Promise<void> {
  const puts = Math.max(parts, Math.round((gib * 2 ** 30) / fillValue.length));
  const keys = Math.ceil(puts / 2);
  const template = putTemplate(fillValue);
  let next = 0;
  const step = () => ({ template, key: keyOf("f", next++ % keys), revisions: 1 as const });
  for (let part = 1; part <= parts; part++) {
    const until = Math.round((puts * part) / parts);
    await runCount(new UnaryLoad(target, 100, 20, step), until - next);
    say(
      `${program}: ${((next * fillValue.length) / MIB).toFixed(0)} MiB of ${(gib * 1024).toFixed(0)} are in`,
    );
    if (performance.now() > deadlineMs && part < parts) {
      say(`${program}: its time for filling is over`);
      break;
    }
  }
}

/** Clients that put without pause, and what each phase brought them. */
async function underLoad(
  target: Target,
  begin: (enter: (phase: Phase) => void) => Promise<void>,
): Promise<void> {
  let nextKey = 0;
  const template = putTemplate(loadValue);
  const load = new UnaryLoad(target, clients, Math.min(clients, 20), () => ({
    template,
    key: keyOf("l", nextKey++ % 10_000),
    revisions: 1 as const,
  }));
  const startedAt = new Float64Array(clients);
  const startedIn: (Phase | undefined)[] = [];
  let phase: Phase | undefined;
  let open = 0;
  let ending = false;
  const { promise: broken, reject: breakOff } = Promise.withResolvers<never>();
  broken.catch(() => {});
  const ended = Promise.withResolvers<void>();
  const start = (client: number): void => {
    open++;
    startedAt[client] = performance.now();
    startedIn[client] = phase;
    load.start(client);
  };
  const done = (client: number, ok: boolean): void => {
    open--;
    const began = startedIn[client];
    if (began !== undefined) {
      if (ok) began.latenciesMs.push(performance.now() - startedAt[client]);
      else began.failed++;
    }
    if (!ending) start(client);
    else if (open === 0) ended.resolve();
  };
  try {
    await Promise.race([load.open({ done, failed: breakOff }), broken]);
    for (let client = 0; client < clients; client++) start(client);
    load.flush();
    await Promise.race([
      begin((next) => {
        phase = next;
      }),
      broken,
    ]);
    ending = true;
    if (open > 0) await Promise.race([ended.promise, broken]);
  } finally {
    load.close();
  }
}

async function measure(executable: Executable, deadlineMs: number): Promise<Phase[]> {
  const program = executable.name;
  const cluster = await startCluster({ executable, size, flags: [quotaFlag] });
  const phases: Phase[] = [];
  const operators = cluster.members.map(
    (member) => new TestClient(member.clientAddress, cluster.identity),
  );
  try {
    const leader = await leaderUrl(cluster);
    const target: Target = { urls: [leader], identity: cluster.identity };
    await fill(target, program, performance.now() + (deadlineMs - performance.now()) * fillShare);
    const restMs = () => Math.max(60_000, deadlineMs - performance.now());
    await underLoad(target, async (enter) => {
      const run = async (name: string, task: () => Promise<unknown>): Promise<void> => {
        const phase: Phase = {
          program,
          name,
          tookMs: 0,
          latenciesMs: [],
          failed: 0,
          sizeMiB: 0,
          inUseMiB: 0,
        };
        const startMs = performance.now();
        enter(phase);
        await task();
        phase.tookMs = performance.now() - startMs;
        Object.assign(phase, await statusOf(cluster));
        phases.push(phase);
        say(`${program}: ${name} took ${(phase.tookMs / 1000).toFixed(1)} s, ${describe(phase)}`);
      };
      const wait = () => new Promise((resolve) => setTimeout(resolve, quietMs));
      await new Promise((resolve) => setTimeout(resolve, 2000));
      await run("puts alone, before", wait);
      await run("compaction, physical", async () => {
        const revision = await revisionOf(leader, cluster.identity);
        await operators[0].call(KVService.methods.Compact, { revision, physical: true }, restMs());
      });
      await run("defragment", async () => {
        for (const operator of operators)
          await operator.call(MaintenanceService.methods.Defragment, {}, restMs());
      });
      await run("puts alone, afterwards", wait);
    });
    return phases;
  } catch (error) {
    console.error(cluster.logTails(10));
    throw error;
  } finally {
    for (const operator of operators) operator.close();
    await cluster.destroy();
  }
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted.length === 0
    ? Number.NaN
    : sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

function cellsOf(phase: Phase): { rate: string; p50: string; p99: string; worst: string } {
  const sorted = Float64Array.from(phase.latenciesMs).sort();
  const all = [...sorted];
  const show = (ms: number): string => (Number.isNaN(ms) ? "-" : ms.toFixed(ms < 100 ? 2 : 0));
  return {
    rate: ((phase.latenciesMs.length * 1000) / phase.tookMs).toFixed(0),
    p50: show(quantile(all, 0.5)),
    p99: show(quantile(all, 0.99)),
    worst: show(quantile(all, 1)),
  };
}

function describe(phase: Phase): string {
  const { rate, p50, p99, worst } = cellsOf(phase);
  return `${rate} puts/s, p50 ${p50} ms, p99 ${p99} ms, worst ${worst} ms, ${phase.failed} failed, ${phase.sizeMiB.toFixed(0)} MiB on disk`;
}

const startedAtMs = performance.now();
const programs = programsOf(args.only);
const all: Phase[] = [];
for (const [i, executable] of programs.entries()) {
  const leftMs = budgetMs - (performance.now() - startedAtMs);
  all.push(...(await measure(executable, performance.now() + leftMs / (programs.length - i))));
}
const head = [
  "phase",
  "",
  "took s",
  "puts/s",
  "p50 ms",
  "p99 ms",
  "worst ms",
  "failed",
  "MiB on disk",
  "MiB in use",
];
const lines = [...Map.groupBy(all, (phase) => phase.name).values()].flat().map((phase) => {
  const { rate, p50, p99, worst } = cellsOf(phase);
  const sizes = [phase.sizeMiB.toFixed(0), phase.inUseMiB.toFixed(0)];
  return [
    phase.name,
    phase.program,
    (phase.tookMs / 1000).toFixed(1),
    rate,
    p50,
    p99,
    worst,
    String(phase.failed),
    ...sizes,
  ];
});
if (args.markdown) {
  const members = size === 1 ? "1 member" : `${size} members`;
  console.log(
    `${gib} GiB written, each key twice; ${members}; ${clients} clients that put 256 bytes without pause.\n`,
  );
}
console.log(align([head, ...lines], [0, 1]));
