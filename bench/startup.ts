/**
 * ./dev bench startup: how long `get` of one key takes from the shell's point of view, most of
 * which is the program's start.
 *
 *     ./dev bench startup [--runs 20]
 *
 * quoratectl as a release installs it and as it runs from the sources, and etcdctl where it is
 * installed, in turn, against one member, with and without TLS. Node that does nothing is the
 * floor. Times are medians; processor time is user and system together.
 */

import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { count, readArguments, valueOption } from "../scripts/dev/command-line.ts";
import { root } from "../scripts/release/programs.ts";
import { startCluster, type TestCluster } from "../test/support/cluster.ts";
import { findProgram, quorate } from "../test/support/executables.ts";
import { install } from "./installed.ts";
import { align, median } from "./report.ts";

/** The most that `get` of an installed quoratectl may take. */
const GOAL_MS = 150;

const help = `./dev bench startup [OPTIONS]: the time of \`get\` of one key, beside etcdctl`;
const { values: args } = readArguments(help, {
  runs: valueOption("how often each program runs", "20"),
});
const runs = count("runs", args.runs);

interface Cost {
  readonly wallMs: number;
  readonly cpuMs: number;
}

/** Runs a command once; what it printed must end in `expected`. bash measures it. */
function costOf(command: readonly string[], expected: string): Cost {
  const { status, stdout, stderr } = spawnSync(
    "bash",
    ["-c", 'TIMEFORMAT="%R %U %S"; time "$@"', "bash", ...command],
    {
      encoding: "utf8",
      env: { ...process.env, ETCDCTL_API: "3" },
    },
  );
  const [, wall, user, system] =
    /^(\S+) (\S+) (\S+)$/.exec(stderr.trimEnd().split("\n").at(-1)!) ?? [];
  if (status !== 0 || !stdout.endsWith(expected) || wall === undefined)
    throw new Error(`${command.join(" ")} failed: ${stdout}${stderr}`);
  return { wallMs: Number(wall) * 1000, cpuMs: (Number(user) + Number(system)) * 1000 };
}

interface Row {
  readonly name: string;
  readonly command: readonly string[];
  readonly expected: string;
}

/** Runs all programs in turn against the cluster and adds what they cost to `rows`. */
function compare(
  installed: string,
  etcdctl: string | undefined,
  { members, certs }: TestCluster,
  rows: Map<string, Cost[]>,
): void {
  const tls =
    certs === undefined
      ? []
      : [`--cacert=${certs.ca}`, `--cert=${certs.client}`, `--key=${certs.clientKey}`];
  const flags = [`--endpoints=${members[0].clientUrl}`, ...tls];
  execFileSync(installed, [...flags, "put", "greeting", "hello"]);
  const get = (name: string, ...program: string[]): Row => ({
    name: certs === undefined ? name : `${name}, TLS`,
    command: [...program, ...flags, "get", "greeting"],
    expected: "greeting\nhello\n",
  });
  const programs = [
    get("quoratectl, installed", installed),
    get("quoratectl, from the sources", process.execPath, join(root, "bin/quoratectl.js")),
    ...(etcdctl === undefined ? [] : [get("etcdctl", etcdctl)]),
    ...(certs === undefined
      ? [{ name: "Node, which does nothing", command: [process.execPath, "-e", "0"], expected: "" }]
      : []),
  ];
  // Once for the file system's and the compiler's caches.
  for (const { command, expected } of programs) costOf(command, expected);
  for (let run = 0; run < runs; run++) {
    for (const { name, command, expected } of programs)
      rows.set(name, [...(rows.get(name) ?? []), costOf(command, expected)]);
  }
}

async function main(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "quorate-startup-"));
  const rows = new Map<string, Cost[]>();
  try {
    const installed = join(await install(dir), "quoratectl");
    const etcdctl = findProgram("etcdctl");
    if (etcdctl === undefined) console.error("etcdctl is not installed; its rows are left out");
    for (const tls of [false, true]) {
      const cluster = await startCluster({ executable: quorate, size: 1, tls });
      try {
        compare(installed, etcdctl, cluster, rows);
      } finally {
        await cluster.destroy();
      }
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  const ms = (values: readonly number[]): string => median(values).toFixed(0);
  const table = [...rows].map(([name, costs]) => {
    const walls = costs.map((cost) => cost.wallMs);
    return [name, ms(walls), Math.min(...walls).toFixed(0), ms(costs.map((cost) => cost.cpuMs))];
  });
  const head = ["`get` of one key", "wall ms", "least wall ms", "processor ms"];
  console.log(align([head, ...table], [0]));
  const installed = median((rows.get("quoratectl, installed") ?? []).map((cost) => cost.wallMs));
  console.log(
    `\n${runs} runs each, in turn. The goal of ${GOAL_MS} ms is ${installed <= GOAL_MS ? "met" : `missed: ${installed.toFixed(0)} ms`}.`,
  );
}

await main();
