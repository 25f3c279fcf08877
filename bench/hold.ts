/**
 * ./dev bench hold: how long one call of one client makes all others wait. A store of many small
 * keys gets each call of the API in turn, in its heaviest form, while another client puts a key
 * every few milliseconds.
 *
 *     ./dev bench hold --help
 *
 * For each call: how long it took, the longest put meanwhile beside that of an idle store, the
 * longest turn of the member's event loop (of ours) and its longest pause for garbage, the most
 * memory that the member has had so far, and whether it kept its leadership.
 */

import { rmSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { fromUtf8, KVService, LeaseService, MaintenanceService } from "@quorate/proto";
import {
  count,
  readArguments,
  refuse,
  switchOption,
  valueOption,
} from "../scripts/dev/command-line.ts";
import { CallError, TestClient } from "../test/support/client.ts";
import { startCluster, type TestCluster } from "../test/support/cluster.ts";
import { type Executable, etcd, quorate } from "../test/support/executables.ts";
import { type HeavyCall, heavyCalls, type Scene } from "./hold/calls.ts";
import { each, putMany, unsortedValues } from "./hold/fill.ts";
import { readHttp } from "./hold/http.ts";
import { Prober } from "./hold/other-client.ts";
import { pinToOneProcessor } from "./hold/pin.ts";
import type { ProberReport } from "./hold/prober.ts";
import { takeSnapshot } from "./hold/snapshot.ts";
import { longestTurn, probeSocket, type Turns } from "./hold/turns.ts";
import { watchAll } from "./hold/watch.ts";
import { align } from "./report.ts";
import { peakResidentBytes } from "./usage.ts";

const help = `./dev bench hold [OPTIONS]: what each call of the API does to the other clients, ours and etcd's in turn`;

const { values: args } = readArguments(help, {
  keys: valueOption("keys in the store", "500000"),
  leased: valueOption("keys of one lease", "100000"),
  leases: valueOption("leases beside it", "100000"),
  size: valueOption("members; the calls go to the leader", "1"),
  calls: valueOption('only the calls whose names hold one of these texts, parted by ";"', ""),
  only: valueOption("quorate or etcd alone"),
  spin: switchOption(
    "measures turns of the event loop in processor time too, for which the member never sleeps",
  ),
  profile: switchOption("prints what the longest turns did (with --spin); the profiler costs time"),
  list: switchOption("the names of the calls"),
  markdown: switchOption(
    "the table for docs/internals/benchmarks.md (progress goes to standard error)",
  ),
});
const keys = count("keys", args.keys);
const leased = count("leased", args.leased);
const leases = count("leases", args.leases);
const size = count("size", args.size);
const wanted = args.calls.split(";").filter((text) => text !== "");
const calls = heavyCalls.filter(
  ({ name }) => wanted.length === 0 || wanted.some((text) => name.includes(text)),
);
const MIB = 2 ** 20;
const VALUE_BYTES = 64;
const IDLE_MS = 5000;
const PUT_PAUSE_MS = 2;
const LIMIT_MS = 180_000;
const say = (text: string): void => console.error(text);

interface Row {
  readonly program: Executable["name"];
  readonly call: string;
  readonly tookMs: number;
  readonly outcome: string;
  readonly puts: ProberReport;
  /** Above the longest put on the idle store. */
  readonly delayMs: number;
  readonly turns: Turns;
  readonly peakMiB: number;
  readonly leaderChanged: boolean;
}

async function fill(
  client: TestClient,
  program: string,
  leader: TestCluster["members"][number],
  cluster: TestCluster,
): Promise<Scene> {
  const startMs = performance.now();
  const valueAt = unsortedValues(VALUE_BYTES);
  const { ID: lease } = await client.call(LeaseService.methods.LeaseGrant, { TTL: 36_000 });
  await putMany(client, "k", { first: 0, total: keys }, valueAt);
  const { header } = await client.call(KVService.methods.Range, { key: fromUtf8("k") });
  await putMany(client, "k", { first: 0, total: Math.floor(keys / 5) }, valueAt);
  await putMany(client, "l", { first: 0, total: leased }, valueAt, lease);
  await each(leases, 512, () =>
    client.call(LeaseService.methods.LeaseGrant, { TTL: 36_000 }, LIMIT_MS),
  );
  say(
    `${program}: ${keys} keys, ${leased} of a lease, ${leases} leases are in after ${((performance.now() - startMs) / 1000).toFixed(0)} s`,
  );
  const { clientAddress } = leader;
  return {
    keys,
    lease,
    leasedKeys: leased,
    firstRevision: header!.revision,
    limitMs: LIMIT_MS,
    snapshot: () => takeSnapshot(clientAddress, cluster.identity, LIMIT_MS),
    watch: () => watchAll(clientAddress, cluster.identity, LIMIT_MS),
    http: (method, path, body, reading) =>
      readHttp(clientAddress, { method, path, body }, LIMIT_MS, reading),
  };
}

async function leaderOf(
  cluster: TestCluster,
): Promise<{ member: TestCluster["members"][number]; term: number }> {
  for (const member of cluster.members) {
    const client = new TestClient(member.clientAddress, cluster.identity);
    const status = await client
      .call(MaintenanceService.methods.Status, {}, LIMIT_MS)
      .finally(() => client.close());
    if (status.leader !== 0n && status.leader === status.header!.memberId)
      return { member, term: status.raftTerm };
  }
  throw new Error("no member says that it leads");
}

/** "" for a call that succeeded, else its error. */
function outcomeOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => "",
    (error: unknown) => (error instanceof CallError ? error.details : String(error)),
  );
}

/** The environment of a member with a probe. */
function probed(name: string): Record<string, string> {
  const probe = `--import=${new URL("./hold/probe.ts", import.meta.url).href}`;
  return {
    NODE_OPTIONS: `--disable-warning=ExperimentalWarning ${probe}`,
    QUORATE_BENCH_HOLD_SOCKET: probeSocket(name),
    ...(args.spin ? { QUORATE_BENCH_HOLD_SPIN: "1" } : {}),
    ...(args.profile ? { QUORATE_BENCH_HOLD_PROFILE: "1" } : {}),
  };
}

async function measure(executable: Executable, asked: readonly HeavyCall[]): Promise<Row[]> {
  const program = executable.name;
  const cluster = await startCluster({
    executable,
    size,
    flags: ["--quota-backend-bytes=8589934592"],
    envOf: (name) => (program === "quorate" ? probed(name) : {}),
  });
  const rows: Row[] = [];
  let client: TestClient | undefined;
  let prober: Prober | undefined;
  try {
    let { member, term } = await leaderOf(cluster);
    if (args.spin && !pinToOneProcessor(member.pid!))
      say("taskset is missing: processor time of turns is less exact");
    client = new TestClient(member.clientAddress, cluster.identity);
    const scene = await fill(client, program, member, cluster);
    // What the filling has left to be done: flushes, files that are joined.
    await delay(IDLE_MS);
    prober = await Prober.start({
      url: member.clientUrl,
      identity: cluster.identity,
      pauseMs: PUT_PAUSE_MS,
    });
    await delay(1000);
    let idleWorstMs = 0;
    const run = async (name: string, task: () => Promise<unknown>): Promise<Row> => {
      await prober!.report();
      await longestTurn(probeSocket(member.name));
      const startMs = performance.now();
      const outcome = await outcomeOf(task());
      const tookMs = performance.now() - startMs;
      // A put that began before the call's end.
      await delay(20);
      const puts = await prober!.report();
      const turns = await longestTurn(probeSocket(member.name));
      const now = await leaderOf(cluster);
      const row: Row = {
        program,
        call: name,
        tookMs,
        outcome,
        puts,
        delayMs: Math.max(0, puts.worstMs - idleWorstMs),
        turns,
        peakMiB: peakResidentBytes([member.pid!]) / MIB,
        leaderChanged: now.term !== term,
      };
      term = now.term;
      rows.push(row);
      say(`${program}: ${cellsOf(row).join("  ")}`);
      if (turns.profile !== "") say(turns.profile);
      return row;
    };
    idleWorstMs = (await run("nothing", () => delay(IDLE_MS))).puts.worstMs;
    for (const call of asked) {
      if (program === "etcd" && call.suitsEtcd === false) continue;
      await run(call.name, () => call.run(client!, scene));
      await delay(500);
    }
    return rows;
  } catch (error) {
    console.error(cluster.logTails(20));
    throw error;
  } finally {
    client?.close();
    await prober?.stop();
    for (const { name } of cluster.members) rmSync(probeSocket(name), { force: true });
    await cluster.destroy();
  }
}

function cellsOf(row: Row): string[] {
  const ms = (value: number): string =>
    Number.isNaN(value) ? "-" : value.toFixed(value < 100 ? 1 : 0);
  const { puts } = row;
  return [
    row.call,
    row.program,
    ms(row.tookMs),
    ms(puts.worstMs),
    row.call === "nothing" ? "" : ms(row.delayMs),
    ms(puts.p50Ms),
    ms(row.turns.wallMs),
    ...(args.spin ? [ms(row.turns.cpuMs), ms(row.turns.ownMs)] : []),
    ms(row.turns.pauseMs),
    row.turns.pauseOf,
    row.peakMiB.toFixed(0),
    [
      ...(row.leaderChanged ? ["leader changed"] : []),
      ...(puts.failed > 0 ? [`${puts.failed} puts failed`] : []),
      row.outcome,
    ]
      .filter((text) => text !== "")
      .join("; "),
  ];
}

const head = [
  "call",
  "",
  "took ms",
  "worst put ms",
  "above idle",
  "p50 ms",
  "longest turn ms",
  ...(args.spin ? ["of CPU ms", "without garbage"] : []),
  "garbage ms",
  "of",
  "MiB most",
  "",
];

if (args.list) {
  for (const { name } of heavyCalls) console.log(name);
  process.exit(0);
}
if (calls.length === 0) refuse(`no call is called "${args.calls}"; --list names them`);
const programs = [quorate, etcd]
  .filter((one) => one !== undefined)
  .filter((one) => args.only === undefined || one.name === args.only);
if (programs.length === 0) refuse(`there is no program ${args.only ?? ""} here`);
const all: Row[] = [];
for (const executable of programs) all.push(...(await measure(executable, calls)));
const lines = [...Map.groupBy(all, (row) => row.call).values()].flat().map(cellsOf);
if (args.markdown)
  console.log(
    `${keys.toLocaleString("en")} keys; ${size === 1 ? "1 member" : `${size} members`}.\n`,
  );
console.log(align([head, ...lines], [0, 1]));
