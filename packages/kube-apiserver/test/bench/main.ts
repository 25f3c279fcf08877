/**
 * `quorate apiserver` and kube-apiserver in turn, each before a member of ours: the rates of
 * requests and their processor time, watches, memory, and the time until ready.
 *
 *     ./dev bench apiserver --help
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { install } from "../../../../bench/installed.ts";
import { align, median } from "../../../../bench/report.ts";
import { cpuSeconds, residentBytes } from "../../../../bench/usage.ts";
import { positive, readArguments, valueOption } from "../../../../scripts/dev/command-line.ts";
import { ApiClient, type LoadResult } from "./load.ts";
import {
  type ApiProgram,
  type ApiServer,
  type Installed,
  isInstalled,
  startApiProgram,
} from "./servers.ts";
import { Watchers } from "./watchers.ts";

const help = `./dev bench apiserver [OPTIONS]: quorate apiserver beside kube-apiserver of PATH`;

const { values: args } = readArguments(help, {
  rounds: valueOption("rounds; the programs take turns to go first", "3"),
  clients: valueOption("clients at a time", "50"),
  requests: valueOption("requests of each load", "3000"),
  "warm-up": valueOption("requests of each kind before the measured ones", "2000"),
  watchers: valueOption("watches of the changing objects", "1000"),
  changes: valueOption("changes that they see", "200"),
  objects: valueOption("objects for the figure of memory; made in the last round", "50000"),
  only: valueOption("quorate or kube-apiserver alone"),
});
const rounds = positive("rounds", args.rounds);
const clients = positive("clients", args.clients);
const requests = positive("requests", args.requests);
const warmUp = positive("warm-up", args["warm-up"]);
const watchers = positive("watchers", args.watchers);
const changes = positive("changes", args.changes);
const objects = positive("objects", args.objects);

const COLLECTION = "/api/v1/namespaces/default/configmaps";
const LISTED = 10_000;
const LISTS = 20;
const VALUE = "v".repeat(1000);

interface Figure {
  readonly program: ApiProgram;
  readonly name: string;
  readonly value: number;
}

function configMap(i: number, value: string): string {
  const metadata = { name: `object-${i}`, labels: { part: `${i % 10}` } };
  return JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata, data: { value } });
}

/** Of the warm-up, so that the measured objects do not exist before. */
const WARM_COLLECTION = "/api/v1/namespaces/kube-public/configmaps";

const createIn = (collection: string, i: number) =>
  ({ method: "POST", path: collection, body: configMap(i, VALUE) }) as const;
const create = (i: number) => createIn(COLLECTION, i);
const getIn = (collection: string, i: number) =>
  ({ method: "GET", path: `${collection}/object-${i}` }) as const;
const updateIn = (collection: string, i: number, value: string) =>
  ({ method: "PUT", path: `${collection}/object-${i}`, body: configMap(i, value) }) as const;

/** Lets a program that is compiled while it runs be compiled, and connections be opened. */
async function warmUpRequests(api: ApiClient): Promise<void> {
  await api.load(warmUp, clients, (i) => createIn(WARM_COLLECTION, i));
  await api.load(warmUp, clients, (i) => getIn(WARM_COLLECTION, i));
  await api.load(warmUp, clients, (i) => updateIn(WARM_COLLECTION, i, `${VALUE}2`));
}

async function measureRequests(api: ApiClient, add: (name: string, it: LoadResult) => void) {
  add("create", await api.load(requests, clients, create));
  add("get", await api.load(requests, clients, (i) => getIn(COLLECTION, i)));
  const update = (i: number) => updateIn(COLLECTION, i, `${VALUE}2`);
  add("update", await api.load(requests, clients, update));
  await api.load(Math.max(0, LISTED - requests), clients, (i) => create(requests + i));
  for (const [name, query] of [
    ["list 10,000", "resourceVersion=0"],
    ["list 10,000, consistent", ""],
  ] as const)
    add(name, await api.load(LISTS, 4, () => ({ method: "GET", path: `${COLLECTION}?${query}` })));
}

async function measureWatches(server: ApiServer, api: ApiClient): Promise<LoadResult> {
  const { metadata } = JSON.parse(
    await api.call({ method: "GET", path: `${COLLECTION}?limit=1` }),
  ) as { metadata: { resourceVersion: string } };
  const query = `watch=1&resourceVersion=${metadata.resourceVersion}`;
  const all = await Watchers.open(server, watchers, `${COLLECTION}?${query}`);
  const expected = watchers * changes;
  const [startMs, startCpu, ownCpu] = [
    performance.now(),
    cpuSeconds([server.pid]),
    process.cpuUsage(),
  ];
  await api.load(changes, 4, (i) => updateIn(COLLECTION, i, `${VALUE}3`));
  while (all.events < expected) {
    if (performance.now() - startMs > 120_000)
      throw new Error(`${all.events} of ${expected} events arrived in two minutes`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const seconds = (performance.now() - startMs) / 1000;
  all.close();
  const cpu = cpuSeconds([server.pid]) - startCpu;
  const { user, system } = process.cpuUsage(ownCpu);
  return {
    ratePerS: expected / seconds,
    cpuMsPerRequest: (cpu * 1000) / expected,
    generatorMsPerRequest: (user + system) / 1000 / expected,
  };
}

/** How long starts take, with the figures' names; the server is left running. */
async function started(
  program: ApiProgram,
  installed: Installed,
  figure: (name: string, value: number) => void,
): Promise<ApiServer> {
  const server = await startApiProgram(program, installed);
  figure("start to ready: ms", server.startMs);
  figure("start to ready: processor ms", server.startCpuSeconds * 1000);
  return server;
}

/** `quorate` with its own member: no other program has this, so the figures stand in its column. */
async function runOwnMember(installed: Installed): Promise<Figure[]> {
  const figures: Figure[] = [];
  const server = await started("quorate, own member", installed, (name, value) =>
    figures.push({ program: "quorate", name: `with its own member, ${name}`, value }),
  );
  await server.close();
  return figures;
}

async function run(program: ApiProgram, installed: Installed, isLast: boolean): Promise<Figure[]> {
  const figures: Figure[] = [];
  const figure = (name: string, value: number) => figures.push({ program, name, value });
  const add = (name: string, result: LoadResult) => {
    figure(`${name}: per second`, result.ratePerS);
    figure(`${name}: processor microseconds`, result.cpuMsPerRequest * 1000);
    figure(`${name}: the load's own`, result.generatorMsPerRequest * 1000);
  };
  const server = await started(program, installed, figure);
  const api = new ApiClient(server);
  try {
    figure("memory at rest: MiB", residentBytes([server.pid]) / 2 ** 20);
    await warmUpRequests(api);
    await measureRequests(api, add);
    add(`event to ${watchers} watchers`, await measureWatches(server, api));
    if (isLast) {
      const listed = Math.max(requests, LISTED);
      const made = listed + warmUp;
      await api.load(Math.max(0, objects - made), clients, (i) => create(listed + i));
      // Time for what is garbage by now to be collected.
      await new Promise((resolve) => setTimeout(resolve, 10_000));
      figure(
        `memory with ${Math.max(made, objects)} objects: MiB`,
        residentBytes([server.pid]) / 2 ** 20,
      );
    }
  } finally {
    await api.close();
    await server.close();
  }
  return figures;
}

const programs = (["quorate", "kube-apiserver"] as const).filter(
  (program) => (args.only ?? program) === program,
);
const missing = programs.filter((program) => !isInstalled(program));
if (missing.length > 0) console.log(`not on PATH, and left out: ${missing.join(", ")}`);
const present = programs.filter((program) => !missing.includes(program));
const found: Figure[] = [];
const dir = mkdtempSync(join(tmpdir(), "quorate-bench-installed-"));
try {
  const installed: Installed = { binDir: await install(dir), cacheDir: join(dir, "cache") };
  // Later starts find the program's files, and the compiled code that it keeps, in memory.
  for (const program of present) await (await startApiProgram(program, installed)).close();
  for (let round = 1; round <= rounds; round++) {
    for (const program of round % 2 === 1 ? present : present.toReversed()) {
      console.log(`round ${round} of ${rounds}: ${program}`);
      found.push(...(await run(program, installed, round === rounds)));
      if (program === "quorate") found.push(...(await runOwnMember(installed)));
    }
  }
} finally {
  rmSync(dir, { recursive: true, force: true });
}
const names = [...new Set(found.map(({ name }) => name))];
const valuesOf = (program: ApiProgram, name: string): number[] =>
  found.filter((it) => it.program === program && it.name === name).map(({ value }) => value);
const rows = names.map((name) => {
  const values = present.map((program) => valuesOf(program, name));
  const medians = values.map((all) => (all.length === 0 ? Number.NaN : median(all)));
  const cells = medians.map((it) => (Number.isNaN(it) ? "" : it.toFixed(it < 100 ? 1 : 0)));
  const ratio = medians[0] / medians[1];
  return [name, ...cells, Number.isFinite(ratio) ? ratio.toFixed(2) : ""];
});
console.log(align([["", ...present, "ratio"], ...rows], [0]));
