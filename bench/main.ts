/**
 * npm run bench: one and three members of ours and of etcd in turn, the same loads on each, and a table.
 *
 *   npm run bench -- --quick                 one short round
 *   npm run bench -- --only etcd --size 1    one program, one size
 *   npm run bench -- --help
 */
import { execFileSync } from "node:child_process";
import { statfsSync, writeFileSync } from "node:fs";
import * as os from "node:os";
import { parseArgs } from "node:util";
import { MaintenanceService } from "@quorate/proto";
import { TestClient } from "../test/support/client.ts";
import { startCluster, type TestCluster } from "../test/support/cluster.ts";
import { type Executable, etcd, quorate } from "../test/support/executables.ts";
import { createKeySpace, type KeySpace, type Operation, preload, revisionOf, runLoad } from "./load.ts";
import { formatTable, type Measurement } from "./report.ts";
import { cpuSeconds, residentBytes } from "./usage.ts";

const help = `npm run bench -- [options]
  --quick            one round of short loads
  --rounds N         rounds, 3 unless told; the programs take turns to go first
  --seconds S        measured seconds of each load, 5 unless told (1.5 if quick), after 2 s of warm-up (a third of it if quick)
  --only NAME        quorate or etcd alone
  --size N           1 or 3 members alone
  --load TEXT        only loads whose name holds the text, such as "put" or "1000"
  --keys N           keys of 8 bytes, 10000 unless told
  --value-bytes N    bytes of each value, 256 unless told
  --tls              mutual TLS for clients and peers
  --json FILE        also write every measurement to a file
`;

interface Load {
  readonly name: string;
  readonly operation: Operation;
  readonly clients: number;
  readonly connections: number;
}

/** As etcd's own benchmarks do it: up to 100 connections, which 1000 clients share. */
const loads: readonly Load[] = [
  { name: "put, 1 client", operation: "put", clients: 1, connections: 1 },
  { name: "put, 100 clients", operation: "put", clients: 100, connections: 100 },
  { name: "put, 1000 clients", operation: "put", clients: 1000, connections: 100 },
  { name: "get linearizable, 1000 clients", operation: "get", clients: 1000, connections: 100 },
  { name: "get serializable, 1000 clients", operation: "get-serializable", clients: 1000, connections: 100 },
];

const { values: args } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    rounds: { type: "string" },
    seconds: { type: "string" },
    only: { type: "string" },
    size: { type: "string" },
    load: { type: "string", default: "" },
    keys: { type: "string", default: "10000" },
    "value-bytes": { type: "string", default: "256" },
    tls: { type: "boolean", default: false },
    json: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

const say = (text: string): void => console.log(text);

async function main(): Promise<void> {
  if (args.help) return say(help);
  const rounds = Number(args.rounds ?? (args.quick ? 1 : 3));
  const seconds = Number(args.seconds ?? (args.quick ? 1.5 : 5));
  const keys = createKeySpace(Number(args.keys), Number(args["value-bytes"]));
  const programs = [quorate, etcd].filter((one) => one !== undefined).filter((one) => args.only === undefined || one.name === args.only);
  const sizes = args.size === undefined ? [1, 3] : [Number(args.size)];
  const chosen = loads.filter((load) => load.name.includes(args.load));
  if (programs.length === 0 || chosen.length === 0) throw new Error(`nothing to run\n${help}`);
  if (etcd === undefined) say("etcd is not installed (Debian: apt-get install etcd-server): there is nothing to compare with");
  say(environment(programs));

  const measurements: Measurement[] = [];
  for (let round = 1; round <= rounds; round++) {
    for (const size of sizes) {
      const order = round % 2 === 1 ? programs : programs.toReversed();
      for (const executable of order) {
        const cluster = await startCluster({ executable, size, tls: args.tls });
        try {
          measurements.push(...(await measureCluster(cluster, executable, round, chosen, keys, seconds)));
        } catch (error) {
          console.error(cluster.logTails());
          throw error;
        } finally {
          await cluster.destroy();
        }
      }
    }
  }
  say(`\n${formatTable(measurements.toSorted((a, b) => a.members - b.members))}`);
  if (args.json !== undefined)
    writeFileSync(args.json, `${JSON.stringify({ environment: environment(programs), measurements }, null, 2)}\n`);
}

async function measureCluster(
  cluster: TestCluster,
  executable: Executable,
  round: number,
  chosen: readonly Load[],
  keys: KeySpace,
  seconds: number,
): Promise<Measurement[]> {
  const leader = await leaderUrl(cluster);
  await preload(leader, cluster.identity, keys, 100);
  const results: Measurement[] = [];
  for (const load of chosen) {
    const pids = cluster.members.map((member) => member.pid!);
    let cpuS = 0;
    let residentMiB = 0;
    const before = await revisionOf(leader, cluster.identity);
    const result = await runLoad({
      ...load,
      keys,
      // A single client goes to the leader, so that luck does not decide whether its writes make one hop more.
      endpoints: load.connections === 1 ? [leader] : cluster.endpoints,
      identity: cluster.identity,
      // A server runs for months: what its first second costs, on a cold compiler, is not what is asked here.
      warmUpMs: args.quick ? seconds * 333 : 2000,
      durationMs: seconds * 1000,
      onPhase: (phase) => {
        if (phase === "measure") cpuS = cpuSeconds(pids);
        else {
          cpuS = cpuSeconds(pids) - cpuS;
          residentMiB = residentBytes(pids) / pids.length / 2 ** 20;
        }
      },
    });
    const written = (await revisionOf(leader, cluster.identity)) - before;
    const expected = load.operation === "put" ? result.answeredInAll : 0;
    if (result.failed === 0 && written !== expected) {
      throw new Error(`${executable.name} says that ${expected} puts were done, but its revision went up by ${written}`);
    }
    const one: Measurement = {
      round,
      executable: executable.name,
      members: cluster.members.length,
      load: load.name,
      ratePerS: (result.answered * 1000) / result.elapsedMs,
      p50Ms: result.p50Ms,
      p99Ms: result.p99Ms,
      cpuSPerThousand: (cpuS * 1000) / result.answered,
      residentMiB,
      generatorCpu: (result.generatorCpuS * 1000) / result.elapsedMs,
      failed: result.failed,
    };
    results.push(one);
    const failures = one.failed > 0 ? `, ${one.failed} failed` : "";
    say(
      `round ${round}, ${one.members} x ${one.executable}, ${one.load}: ${Math.round(one.ratePerS)} per s, ` +
        `p50 ${one.p50Ms.toFixed(2)} ms, p99 ${one.p99Ms.toFixed(2)} ms, ` +
        `${one.cpuSPerThousand.toFixed(4)} CPU s a thousand, ${one.residentMiB.toFixed(0)} MiB${failures}`,
    );
  }
  return results;
}

async function leaderUrl(cluster: TestCluster): Promise<string> {
  for (const member of cluster.members) {
    const client = new TestClient(member.clientAddress, cluster.identity);
    const status = await client.call(MaintenanceService.methods.Status, {}).finally(() => client.close());
    if (status.leader !== 0n && status.leader === status.header!.memberId) return member.clientUrl;
  }
  throw new Error("no member says that it leads");
}

/** The ground the figures stand on. */
function environment(programs: readonly Executable[]): string {
  const version = (executable: Executable): string =>
    execFileSync(executable.command[0]!, [...executable.command.slice(1), "--version"], { encoding: "utf8" }).split("\n")[0]!;
  const memoryGiB = Math.round(os.totalmem() / 2 ** 30);
  // The type of the file system, as statfs(2) numbers it: tmpfs makes every fdatasync free.
  const isTmpfs = statfsSync(os.tmpdir()).type === 0x0102_1994;
  return [
    `${os.cpus().length} x ${os.cpus()[0]?.model ?? "unknown processor"}, ${memoryGiB} GiB, ${os.type()} ${os.release()}`,
    `Node ${process.versions.node}; ${programs.map((one) => `${one.name}: ${version(one)}`).join("; ")}`,
    `values of ${args["value-bytes"]} bytes, ${args.keys} keys of 8 bytes, ${args.tls ? "mutual TLS" : "plain connections"}`,
    `data in ${os.tmpdir()}${isTmpfs ? ", which is in memory: a disk would be slower (set TMPDIR)" : ""}`,
  ].join("\n");
}

await main();
