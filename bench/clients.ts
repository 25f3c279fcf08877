/**
 * ./dev bench clients: clients of one member beside each other, each in a process of its own: npm's
 * etcd3, its shape over our client, our client; and what they rest on: @grpc/grpc-js, node:http2
 * and our engine with one encoded request. And the memory of a watch.
 *
 *     ./dev bench clients [--seconds 3] [--rounds 3] [--watches 10000] [--clients "npm etcd3,ours"]
 *     ./dev bench clients --only watches
 */

import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import {
  count,
  positive,
  readArguments,
  switchOption,
  valueOption,
} from "../scripts/dev/command-line.ts";
import { withCluster } from "../test/support/cluster.ts";
import { type Executable, etcdNewest, quorate } from "../test/support/executables.ts";
import {
  CALLERS,
  type CallerName,
  type ClientFigures,
  runCaller,
  WATCHING,
} from "./client-callers.ts";
import { median } from "./report.ts";
import { peakResidentBytes, residentBytes } from "./usage.ts";

const OPERATIONS = ["put", "get"] as const;
const IN_FLIGHT = [1, 100, 1000];

const help = "./dev bench clients [OPTIONS]: our client beside npm's etcd3, and their transports";
const { values: args } = readArguments(help, {
  seconds: valueOption("seconds of each row", "3"),
  rounds: valueOption("rounds, for medians", "3"),
  watches: valueOption("watches of a client", "10000"),
  clients: valueOption("which ones", Object.keys(CALLERS).join(",")),
  only: {
    type: "string",
    choices: ["calls", "watches"],
    requiresArg: true,
    describe: "one of the tables",
  },
  etcd: switchOption("on etcd instead of Quorate"),
  run: {
    type: "string",
    requiresArg: true,
    describe: "one of them, in this process",
    hidden: true,
  },
});

/** A run of one client in a process of its own. */
async function measure(words: readonly string[]): Promise<ClientFigures> {
  const own = ["--expose-gc", import.meta.filename, `--run=${words.join(",")}`];
  const child = spawn(process.execPath, own, { stdio: ["ignore", "pipe", "inherit"] });
  return JSON.parse(await text(child.stdout)) as ClientFigures;
}

async function table(endpoint: string, clients: readonly string[]): Promise<void> {
  const seconds = positive("seconds", args.seconds);
  const rounds = count("rounds", args.rounds);
  console.log("| operation | in flight | client | calls a second | processor µs a call |");
  console.log("|---|---:|---|---:|---:|");
  for (const operation of OPERATIONS)
    for (const inFlight of IN_FLIGHT) {
      const seen = new Map<string, ClientFigures[]>(clients.map((one) => [one, []]));
      // Round by round, so that what else the machine does meets all of them.
      for (let round = 0; round < rounds; round++)
        for (const [client, figures] of seen)
          figures.push(await measure([client, endpoint, operation, `${inFlight}`, `${seconds}`]));
      for (const [client, figures] of seen) {
        const [rate, cpu] = [
          median(figures.map(({ perSecond }) => perSecond)),
          median(figures.map(({ cpuMicros }) => cpuMicros)),
        ];
        console.log(
          `| ${operation} | ${inFlight} | ${client} | ${Math.round(rate)} | ${cpu.toFixed(0)} |`,
        );
      }
    }
}

/** Each client has a new member, whose memory is the highest while the watches are there. */
async function watches(executable: Executable, clients: readonly string[]): Promise<void> {
  console.log(`KiB for each of ${args.watches} watches of one client:\n`);
  console.log("| client | live heap of the client | memory of the client | memory of the member |");
  console.log("|---|---:|---:|---:|");
  for (const client of WATCHING) {
    if (!clients.includes(client)) continue;
    await withCluster({ executable, size: 1 }, async ({ endpoints: [endpoint = ""], members }) => {
      const pids = members.map(({ pid }) => pid!);
      const before = residentBytes(pids);
      const { watchHeapBytes, watchBytes } = await measure([
        client,
        endpoint,
        "watch",
        args.watches,
        "0",
      ]);
      const memberBytes = (peakResidentBytes(pids) - before) / count("watches", args.watches);
      const figures = [watchHeapBytes, watchBytes, memberBytes];
      const cells = figures.map((bytes) => (bytes / 1024).toFixed(1));
      console.log(`| ${client} | ${cells.join(" | ")} |`);
    });
  }
}

if (args.run !== undefined) {
  const [client = "", endpoint = "", operation = "", number = "", seconds = ""] =
    args.run.split(",");
  const figures = await runCaller(client as CallerName, endpoint, {
    operation: operation as "put",
    number: Number(number),
    seconds: Number(seconds),
  });
  console.log(JSON.stringify(figures));
  process.exit(0);
}
const clients = args.clients.split(",");
const executable = args.etcd ? etcdNewest : quorate;
if (executable === undefined) throw new Error("QUORATE_TEST_ETCD_NEWEST has no path of etcd");
if (args.only !== "watches")
  await withCluster({ executable, size: 1 }, async ({ endpoints: [endpoint = ""] }) => {
    await table(endpoint, clients);
  });
if (args.only !== "calls") await watches(executable, clients);
