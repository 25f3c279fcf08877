/**
 * ./dev bench sizes: a store of many keys, ours and etcd's in turn: what filling it, keeping it,
 * reading it, starting it again and copying it to a new member takes, and what another client's
 * puts feel meanwhile.
 */
import { setTimeout as delay } from "node:timers/promises";
import { ClusterService, KVService } from "@quorate/proto";
import { count, positive, readArguments, valueOption } from "../scripts/dev/command-line.ts";
import { TestClient } from "../test/support/client.ts";
import { startCluster, type TestCluster } from "../test/support/cluster.ts";
import type { Executable } from "../test/support/executables.ts";
import { comparison, programsOf } from "./comparison.ts";
import { callsNamed, sceneOf } from "./hold/calls.ts";
import { distinctValues, putMany } from "./hold/fill.ts";
import { Prober } from "./hold/other-client.ts";
import { keyOf } from "./keys.ts";
import { sizeOf } from "./life.ts";
import { align } from "./report.ts";
import { cpuSeconds, peakResidentBytes, residentBytes } from "./usage.ts";

const help = `./dev bench sizes [OPTIONS]: a store of many keys, ours and etcd's in turn`;

const { values: args } = readArguments(help, {
  only: comparison.only,
  keys: valueOption("keys of 8 bytes, or 9", "10000000"),
  "value-bytes": valueOption("bytes of each value, which do not compress", "256"),
});
const keys = count("keys", args.keys);
const valueBytes = positive("value-bytes", args["value-bytes"]);

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const PUT_PAUSE_MS = 2;
const IDLE_MS = 5000;
/** What a step may take. */
const LIMIT_MS = 3_600_000;
/** The part of the keys that gets a second revision, so that a compaction has work. */
const REWRITTEN = 10;
/** Progress is told after each of so many parts of the filling. */
const PARTS = 20;
/** Files take up to three times what was written, while LevelDB merges them. */
const quotaFlag = `--quota-backend-bytes=${3 * keys * (valueBytes + 100) + 2 * GIB}`;

/** In this order; each is one of ./dev bench hold. */
const CALLS = [
  "range of all, count only",
  "list of 10,000 in the middle",
  "HashKV",
  "snapshot",
  "compaction, physical",
].map((name) => callsNamed(name)[0]);

/** A figure, or the duration of a step with the other client's puts: p50, p99 and longest. */
type Line = readonly [name: string, value: string, putsMs?: string];

const say = (text: string): void => console.error(text);
const seconds = (fromMs: number): string => ((performance.now() - fromMs) / 1000).toFixed(2);

/** Resolves with the time that `step` took and what another client's puts took meanwhile. */
async function beside(prober: Prober, step: () => Promise<unknown>): Promise<[string, string]> {
  await prober.report();
  const fromMs = performance.now();
  await step();
  const took = seconds(fromMs);
  const { p50Ms, p99Ms, worstMs, failed } = await prober.report();
  const puts = [p50Ms, p99Ms, worstMs].map((ms) => ms.toFixed(1)).join(" / ");
  return [took, failed > 0 ? `${puts}, ${failed} failed` : puts];
}

async function fill(client: TestClient, program: string): Promise<void> {
  const valueAt = distinctValues(valueBytes);
  const fromMs = performance.now();
  for (let part = 0; part < PARTS; part++) {
    const first = Math.floor((keys * part) / PARTS);
    const total = Math.floor((keys * (part + 1)) / PARTS) - first;
    await putMany(client, "k", { first, total }, valueAt);
    say(`${program}: ${(first + total).toLocaleString("en")} keys after ${seconds(fromMs)} s`);
  }
  await putMany(client, "k", { first: 0, total: Math.floor(keys / REWRITTEN) }, valueAt);
}

/** A second member, a learner, from its addition until it has what the first one has. */
async function join(cluster: TestCluster, client: TestClient): Promise<number> {
  const [first] = cluster.members;
  const second = await cluster.prepareMember("follower");
  const peerURLs = [second.options.peerUrl];
  await client.call(ClusterService.methods.MemberAdd, { peerURLs, isLearner: true }, LIMIT_MS);
  second.start([
    `--initial-cluster=${first.name}=${first.options.peerUrl},${second.name}=${peerURLs[0]}`,
    "--initial-cluster-state=existing",
  ]);
  // A learner is never ready for all: it serves no linearizable reads.
  await reaches(client, second.clientAddress);
  return residentBytes([second.pid!]);
}

/** Resolves when the member at `address` has applied what the first one has by now. */
async function reaches(client: TestClient, address: string): Promise<void> {
  const revisionOf = async (of: TestClient): Promise<number> =>
    (await of.call(KVService.methods.Range, { key: keyOf("k", 0), serializable: true }, LIMIT_MS))
      .header!.revision;
  const wanted = await revisionOf(client);
  const other = new TestClient(address, {});
  try {
    while ((await revisionOf(other).catch(() => 0)) < wanted) await delay(100);
  } finally {
    other.close();
  }
}

async function measure(executable: Executable): Promise<Line[]> {
  const program = executable.name;
  const cluster = await startCluster({ executable, size: 1, flags: [quotaFlag] });
  const lines: Line[] = [];
  const tell = (...line: Line): void => {
    lines.push(line);
    say(`${program}: ${line.join("  ")}`);
  };
  const [member] = cluster.members;
  let client = new TestClient(member.clientAddress, cluster.identity);
  let prober: Prober | undefined;
  try {
    const mib = (bytes: number): string => (bytes / MIB).toFixed(0);
    const fromMs = performance.now();
    await fill(client, program);
    tell("filled, s", seconds(fromMs));
    tell("processor time of that, us a key", ((cpuSeconds([member.pid!]) * 1e6) / keys).toFixed(1));
    await delay(IDLE_MS);
    tell("memory, MiB", mib(residentBytes([member.pid!])));
    tell("most memory, MiB", mib(peakResidentBytes([member.pid!])));
    tell("files, MiB", mib(sizeOf(member.options.dataDir)));
    await member.terminate(LIMIT_MS);
    const startMs = performance.now();
    member.start();
    await member.waitReady(LIMIT_MS);
    tell("restart to ready, s", seconds(startMs));
    tell("processor time of that, s", cpuSeconds([member.pid!]).toFixed(1));
    client.close();
    client = new TestClient(member.clientAddress, cluster.identity);
    const readMs = performance.now();
    await client.call(KVService.methods.Range, { key: keyOf("k", keys >> 1) }, LIMIT_MS);
    tell("first read, ms", (performance.now() - readMs).toFixed(1));
    await delay(IDLE_MS);
    tell("memory after the restart, MiB", mib(residentBytes([member.pid!])));
    const { identity } = cluster;
    prober = await Prober.start({ url: member.clientUrl, identity, pauseMs: PUT_PAUSE_MS });
    const one = prober;
    tell("nothing, s", ...(await beside(one, () => delay(IDLE_MS))));
    const scene = sceneOf(keys, member.clientAddress, cluster.identity);
    for (const { name, run } of CALLS) {
      tell(`${name}, s`, ...(await beside(one, () => run(client, scene))));
    }
    let joinedBytes = 0;
    const joining = async (): Promise<void> => {
      joinedBytes = await join(cluster, client);
    };
    tell("a new member has all, s", ...(await beside(one, joining)));
    tell("memory of the new member, MiB", mib(joinedBytes));
    tell("most memory so far, MiB", mib(peakResidentBytes([member.pid!])));
    return lines;
  } catch (error) {
    console.error(cluster.logTails(20));
    throw error;
  } finally {
    await prober?.stop();
    client.close();
    await cluster.destroy();
  }
}

const tables: [string, Line[]][] = [];
for (const executable of programsOf(args.only))
  tables.push([executable.name, await measure(executable)]);
const [, first] = tables[0];
const cells = first.map(([name], row) => [
  name,
  ...tables.flatMap(([, lines]) => [lines[row][1], lines[row][2] ?? ""]),
]);
const head = ["", ...tables.flatMap(([name]) => [name, "puts meanwhile, p50 / p99 / longest, ms"])];
console.log(`${keys.toLocaleString("en")} keys, values of ${valueBytes} bytes, one member\n`);
console.log(align([head, ...cells], [0]));
