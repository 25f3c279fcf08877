/**
 * `quorate apiserver` and kube-apiserver in turn, each before a member of ours: the rates of
 * requests and their processor time, watches, memory, and the time until ready.
 *
 *     npm run bench:apiserver -- --help
 */
import { ApiClient, type LoadResult } from "./apiserver/load.ts";
import {
  type ApiProgram,
  type ApiServer,
  isInstalled,
  startApiProgram,
} from "./apiserver/servers.ts";
import { Watchers } from "./apiserver/watchers.ts";
import { positive, readArguments } from "./arguments.ts";
import { align, median } from "./report.ts";
import { cpuSeconds, residentBytes } from "./usage.ts";

const help = `npm run bench:apiserver -- [options]: quorate apiserver beside kube-apiserver of PATH
  --rounds N      rounds (default: 3); the programs take turns to go first
  --clients N     clients at a time (default: 50)
  --requests N    requests of each load (default: 3000)
  --watchers N    watches of the changing objects (default: 1000)
  --changes N     changes that they see (default: 200)
  --objects N     objects for the figure of memory (default: 50000); made in the last round
  --only NAME     quorate or kube-apiserver alone`;

const { values: args } = readArguments(help, {
  rounds: { type: "string", default: "3" },
  clients: { type: "string", default: "50" },
  requests: { type: "string", default: "3000" },
  watchers: { type: "string", default: "1000" },
  changes: { type: "string", default: "200" },
  objects: { type: "string", default: "50000" },
  only: { type: "string" },
});
const rounds = positive("rounds", args.rounds);
const clients = positive("clients", args.clients);
const requests = positive("requests", args.requests);
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

const create = (i: number) =>
  ({ method: "POST", path: COLLECTION, body: configMap(i, VALUE) }) as const;

async function measureRequests(api: ApiClient, add: (name: string, it: LoadResult) => void) {
  add("create", await api.load(requests, clients, create));
  add(
    "get",
    await api.load(requests, clients, (i) => ({
      method: "GET",
      path: `${COLLECTION}/object-${i}`,
    })),
  );
  add(
    "update",
    await api.load(requests, clients, (i) => ({
      ...{ method: "PUT", path: `${COLLECTION}/object-${i}` },
      body: configMap(i, `${VALUE}2`),
    })),
  );
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
  const [startMs, startCpu] = [performance.now(), cpuSeconds([server.pid])];
  await api.load(changes, 4, (i) => ({
    ...{ method: "PUT", path: `${COLLECTION}/object-${i}` },
    body: configMap(i, `${VALUE}3`),
  }));
  while (all.events < expected) {
    if (performance.now() - startMs > 120_000)
      throw new Error(`${all.events} of ${expected} events arrived in two minutes`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const seconds = (performance.now() - startMs) / 1000;
  all.close();
  const cpu = cpuSeconds([server.pid]) - startCpu;
  return { ratePerS: expected / seconds, cpuMsPerRequest: (cpu * 1000) / expected };
}

async function run(program: ApiProgram, isLast: boolean): Promise<Figure[]> {
  const figures: Figure[] = [];
  const figure = (name: string, value: number) => figures.push({ program, name, value });
  const add = (name: string, { ratePerS, cpuMsPerRequest }: LoadResult) => {
    figure(`${name}: per second`, ratePerS);
    figure(`${name}: processor microseconds`, cpuMsPerRequest * 1000);
  };
  const server = await startApiProgram(program);
  const api = new ApiClient(server, clients);
  try {
    figure("start to ready: ms", server.startMs);
    figure("start to ready: processor ms", server.startCpuSeconds * 1000);
    figure("memory at rest: MiB", residentBytes([server.pid]) / 2 ** 20);
    await measureRequests(api, add);
    add(`event to ${watchers} watchers`, await measureWatches(server, api));
    if (isLast) {
      const made = Math.max(requests, LISTED);
      await api.load(Math.max(0, objects - made), clients, (i) => create(made + i));
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
for (let round = 1; round <= rounds; round++) {
  for (const program of round % 2 === 1 ? present : present.toReversed()) {
    console.log(`round ${round} of ${rounds}: ${program}`);
    found.push(...(await run(program, round === rounds)));
  }
}
const names = [...new Set(found.map(({ name }) => name))];
const medianOf = (program: ApiProgram, name: string): number =>
  median(
    found.filter((it) => it.program === program && it.name === name).map(({ value }) => value),
  );
const rows = names.map((name) => {
  const values = present.map((program) => medianOf(program, name));
  const ratio = values.length === 2 ? (values[0] / values[1]).toFixed(2) : "";
  return [name, ...values.map((value) => value.toFixed(value < 100 ? 1 : 0)), ratio];
});
console.log(align([["", ...present, "ratio"], ...rows], [0]));
