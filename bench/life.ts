/**
 * The rows that are no loads: how long a member takes to start, what an idle cluster costs, and
 * what a store of many keys costs in time and memory, before and after a restart.
 */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { connect } from "@quorate/client/node";
import { type TestCluster, withCluster } from "../test/support/cluster.ts";
import type { Executable } from "../test/support/executables.ts";
import { putTemplate, range, type Step, UnaryLoad } from "./calls.ts";
import { keyOf, loadedLetter, randomValue } from "./keys.ts";
import { runCount } from "./load.ts";
import { type Figure, median } from "./report.ts";
import { cpuSeconds, peakResidentBytes, residentBytes } from "./usage.ts";

const mib = 2 ** 20;
const settleMs = 1500;
/** The median of so many snapshots counts. */
const snapshotRuns = 3;

function pidsOf(cluster: TestCluster): number[] {
  return cluster.members.map((member) => member.pid!);
}

/**
 * A member of its own: from its start to its readiness, what it has used by then, and what it holds
 * at rest.
 */
export async function measureStart(executable: Executable): Promise<Figure[]> {
  return withCluster({ executable, size: 1 }, async (cluster) => {
    const member = cluster.members[0];
    await member.terminate();
    const from = performance.now();
    member.start();
    await member.waitReady();
    const readyMs = performance.now() - from;
    const cpuMs = 1000 * cpuSeconds(pidsOf(cluster));
    await delay(settleMs);
    return [
      { name: "empty member, start to ready, ms", value: readyMs },
      { name: "empty member, CPU to start, ms", value: cpuMs },
      { name: "empty member, at rest, MiB", value: residentBytes(pidsOf(cluster)) / mib },
    ];
  });
}

/**
 * Three members without clients: processor time of each, in per cent of one processor, over
 * `seconds`.
 */
export async function measureIdle(executable: Executable, seconds: number): Promise<Figure[]> {
  return withCluster({ executable, size: 3 }, async (cluster) => {
    await delay(settleMs);
    const pids = pidsOf(cluster);
    const before = cpuSeconds(pids);
    await delay(seconds * 1000);
    const used = cpuSeconds(pids) - before;
    return [
      {
        name: "idle cluster of 3, CPU % a member",
        value: (100 * used) / seconds / pids.length,
        goal: 1,
      },
    ];
  });
}

/** The time of `Snapshot` to a client that keeps nothing, and what the member used for it. */
async function measureSnapshot(cluster: TestCluster, what: string): Promise<Figure[]> {
  const client = connect({ endpoints: cluster.endpoints });
  const times: number[] = [];
  const cpu: number[] = [];
  try {
    for (let run = 0; run < snapshotRuns; run++) {
      const beforeS = cpuSeconds(pidsOf(cluster));
      const from = performance.now();
      for await (const { blob } of client.snapshot()) if (blob.length === 0) break;
      times.push((performance.now() - from) / 1000);
      cpu.push(cpuSeconds(pidsOf(cluster)) - beforeS);
    }
  } finally {
    client.close();
  }
  return [
    { name: `${what}, snapshot, s`, value: median(times), goal: "etcd" },
    { name: `${what}, CPU of a snapshot, s`, value: median(cpu), goal: "etcd" },
  ];
}

/** A store of so many puts: of a key each, or all of one key. */
export interface ManyPuts {
  readonly puts: number;
  readonly valueBytes: number;
  readonly isOneKey: boolean;
}

/** Puts by 1000 clients; time, memory and files; snapshots; then a restart. */
export async function measureManyPuts(
  executable: Executable,
  { puts, valueBytes, isOneKey }: ManyPuts,
): Promise<Figure[]> {
  const keyCount = isOneKey ? 1 : puts;
  return withCluster({ executable, size: 1 }, async (cluster) => {
    const member = cluster.members[0];
    const target = { urls: cluster.endpoints, identity: cluster.identity };
    const template = putTemplate(randomValue(valueBytes));
    let at = 0;
    const key = (): Buffer => keyOf(loadedLetter, isOneKey ? 0 : at++);
    const next = (): Step => ({ template, key: key(), revisions: 1 });
    const loadMs = await runCount(new UnaryLoad(target, 1000, 100, next), puts);
    const loadCpuS = cpuSeconds(pidsOf(cluster));
    await delay(settleMs);
    const loaded = {
      rest: residentBytes(pidsOf(cluster)),
      peak: peakResidentBytes(pidsOf(cluster)),
    };
    const amount = puts.toLocaleString("en");
    const what = `${amount} ${isOneKey ? "revisions of a key" : "keys"} x ${valueBytes} B`;
    const snapshot = await measureSnapshot(cluster, what);
    await member.terminate(120_000);
    const diskBytes = sizeOf(member.options.dataDir);
    const from = performance.now();
    member.start();
    await member.waitReady(300_000);
    const readyMs = performance.now() - from;
    const startCpuS = cpuSeconds(pidsOf(cluster));
    const { count } = await range(member.clientUrl, cluster.identity, {
      key: Buffer.alloc(1),
      rangeEnd: Buffer.alloc(1),
      countOnly: true,
    });
    if (count !== keyCount)
      throw new Error(`${executable.name} has ${count} keys after the restart, not ${keyCount}`);
    await delay(settleMs);
    const restarted = {
      rest: residentBytes(pidsOf(cluster)),
      peak: peakResidentBytes(pidsOf(cluster)),
    };
    return [
      { name: `${what}, loaded in, s`, value: loadMs / 1000 },
      { name: `${what}, CPU to load, s`, value: loadCpuS },
      { name: `${what}, after loading, MiB`, value: loaded.rest / mib, goal: "etcd" },
      { name: `${what}, most while loading, MiB`, value: loaded.peak / mib },
      { name: `${what}, files, MiB`, value: diskBytes / mib },
      ...snapshot,
      { name: `${what}, restart to ready, s`, value: readyMs / 1000 },
      { name: `${what}, CPU to restart, s`, value: startCpuS, goal: "etcd" },
      { name: `${what}, after the restart, MiB`, value: restarted.rest / mib, goal: "etcd" },
      { name: `${what}, most in the restart, MiB`, value: restarted.peak / mib },
    ];
  });
}

/**
 * Bytes of the disk that the files below a directory take (a file of zeros that were never written
 * takes none).
 */
export function sizeOf(dir: string): number {
  let bytes = 0;
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) bytes += statSync(join(entry.parentPath, entry.name)).blocks * 512;
  }
  return bytes;
}
