/**
 * The JSON gateways of Quorate and etcd in turn: put, range and txn on 100 and 1000 keep-alive
 * connections, and 1000 watch streams.
 *
 *     ./dev bench gateway --help
 *
 * Processor time and memory are the member's, as a release has it; memory also as its growth over
 * the start. The generator has one of two processors for its own, as far as it needs it: its
 * processor time for a request is a column, and bounds the rates of both programs.
 */

import { positive, readArguments, refuse, valueOption } from "../scripts/dev/command-line.ts";
import { bundledProgram } from "../test/support/bundled.ts";
import { startCluster } from "../test/support/cluster.ts";
import { type Executable, findProgram, quorate } from "../test/support/executables.ts";
import { comparison, inTurn, programsOf } from "./comparison.ts";
import { HttpConnection, post } from "./http1.ts";
import { align, median } from "./report.ts";
import { cpuSeconds, residentBytes } from "./usage.ts";

const help = `./dev bench gateway [OPTIONS]: the JSON gateways of Quorate and etcd in turn
ETCD selects etcd's program (default: etcd on the PATH).`;

const { values: args } = readArguments(help, {
  ...comparison,
  case: valueOption("only the cases whose name contains it", ""),
});
const seconds = positive("seconds", args.seconds);
const rounds = positive("rounds", args.rounds);
const WARM_SECONDS = 1;
const KEYS = 10_000;
const WATCHERS = 1000;
const WATCH_WRITERS = 8;

const base64 = (text: string): string => Buffer.from(text).toString("base64");
const value = base64("v".repeat(256));
const key = (i: number): string => base64(`key/${String(i % KEYS).padStart(8, "0")}`);

/** The body of the request with this number. */
type Body = (i: number) => string;
const BODIES: readonly (readonly [name: string, path: string, body: Body])[] = [
  ["put", "/v3/kv/put", (i) => `{"key":"${key(i)}","value":"${value}"}`],
  ["range", "/v3/kv/range", (i) => `{"key":"${key(i)}"}`],
  [
    "txn",
    "/v3/kv/txn",
    (i) =>
      `{"compare":[{"key":"${key(i)}","target":"VERSION","result":"GREATER","version":"-1"}],` +
      `"success":[{"request_put":{"key":"${key(i)}","value":"${value}"}}]}`,
  ],
];

interface Result {
  readonly program: Executable["name"];
  readonly load: string;
  readonly perS: number;
  readonly cpuUs: number;
  /** Of the generator. */
  readonly loadUs: number;
  readonly residentMiB: number;
  /** Above what the member had before the first request. */
  readonly grownMiB: number;
}

interface Member {
  readonly address: string;
  readonly pid: number;
  /** Resident memory before the first request. */
  readonly startBytes: number;
  readonly broken: Promise<never>;
  readonly open: () => Promise<HttpConnection>;
}

async function withMember<T>(executable: Executable, run: (member: Member) => Promise<T>) {
  const cluster = await startCluster({ executable, size: 1 });
  const connections: HttpConnection[] = [];
  const { promise: broken, reject } = Promise.withResolvers<never>();
  broken.catch(() => {});
  const { clientAddress: address, pid } = cluster.members[0];
  const open = async (): Promise<HttpConnection> => {
    const one = await HttpConnection.open(address, reject);
    connections.push(one);
    return one;
  };
  try {
    const startBytes = residentBytes([pid!]);
    return await Promise.race([run({ address, pid: pid!, startBytes, broken, open }), broken]);
  } finally {
    for (const one of connections) one.close();
    await cluster.destroy();
  }
}

const delay = (s: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, s * 1000));

/** Units of work, and what the member used, in the time that is measured. */
async function measured(
  { pid, startBytes }: Member,
  count: () => number,
): Promise<Omit<Result, "program" | "load">> {
  await delay(WARM_SECONDS);
  const pids = [pid, process.pid];
  const before = pids.map((one) => cpuSeconds([one]));
  const [startMs, startCount] = [performance.now(), count()];
  await delay(seconds);
  const units = count() - startCount;
  const [cpuUs, loadUs] = pids.map((one, i) => ((cpuSeconds([one]) - before[i]) * 1e6) / units);
  const resident = residentBytes([pid]);
  return {
    perS: (units * 1000) / (performance.now() - startMs),
    cpuUs,
    loadUs,
    residentMiB: resident / 2 ** 20,
    grownMiB: (resident - startBytes) / 2 ** 20,
  };
}

/** Each connection has one request under way. */
function load(
  connections: readonly HttpConnection[],
  requests: readonly Buffer[],
  isOver: () => boolean,
): { count: number } {
  const state = { count: 0 };
  let next = 0;
  for (const connection of connections) {
    const send = (): void => {
      if (isOver()) return;
      next = (next + 1) % requests.length;
      connection.send(requests[next], answered);
    };
    const answered = (): void => {
      state.count++;
      send();
    };
    send();
  }
  return state;
}

function requestsOf({ address }: Member, path: string, body: Body): Buffer[] {
  return Array.from({ length: KEYS }, (_, i) => post(address, path, body(i)));
}

async function fill(member: Member): Promise<void> {
  const requests = requestsOf(member, BODIES[0][1], BODIES[0][2]);
  const connections = await Promise.all(Array.from({ length: 64 }, () => member.open()));
  let isOver = false;
  const state = load(connections, requests, () => isOver);
  while (state.count < KEYS) await delay(0.05);
  isOver = true;
}

function unaryLoad(executable: Executable, connections: number, index: number): Promise<Result> {
  const [name, path, body] = BODIES[index];
  return withMember(executable, async (member) => {
    await fill(member);
    const requests = requestsOf(member, path, body);
    const opened: HttpConnection[] = [];
    while (opened.length < connections) opened.push(await member.open());
    let isOver = false;
    const state = load(opened, requests, () => isOver);
    const figures = await measured(member, () => state.count);
    isOver = true;
    return { program: executable.name, load: loadName(name, connections), ...figures };
  });
}

function watchLoad(executable: Executable): Promise<Result> {
  return withMember(executable, async (member) => {
    const body = JSON.stringify({ create_request: { key: key(0) } });
    const request = post(member.address, "/v3/watch", body);
    let created = 0;
    let events = 0;
    for (let i = 0; i < WATCHERS; i++) {
      const connection = await member.open();
      connection.onData = (chunk) => {
        for (
          let at = chunk.indexOf('"created":');
          at >= 0;
          at = chunk.indexOf('"created":', at + 1)
        )
          created++;
        // One for each event, also where several are in one response.
        for (let at = chunk.indexOf('{"kv":'); at >= 0; at = chunk.indexOf('{"kv":', at + 1))
          events++;
      };
      connection.send(request, () => {});
    }
    while (created < WATCHERS) await delay(0.05);
    const writers: HttpConnection[] = [];
    while (writers.length < WATCH_WRITERS) writers.push(await member.open());
    const puts = [post(member.address, BODIES[0][1], BODIES[0][2](0))];
    let isOver = false;
    load(writers, puts, () => isOver);
    const figures = await measured(member, () => events);
    isOver = true;
    return { program: executable.name, load: watchName, ...figures };
  });
}

const watchName = `events to ${WATCHERS} watch streams on one key`;
const loadName = (name: string, connections: number): string =>
  `${name}, ${connections} connections`;

const cases: readonly (readonly [name: string, run: (one: Executable) => Promise<Result>])[] = [
  ...[100, 1000].flatMap((connections) =>
    BODIES.map(
      ([name], i) =>
        [loadName(name, connections), (one: Executable) => unaryLoad(one, connections, i)] as const,
    ),
  ),
  [watchName, watchLoad],
];

const path = process.env["ETCD"] ?? findProgram("etcd");
const etcd: Executable | undefined = path ? { name: "etcd", command: [path] } : undefined;
const bundled = bundledProgram("quorate");
const ours: Executable = bundled === undefined ? quorate : { ...quorate, command: bundled };
const programs = programsOf(args.only, [ours, etcd]);
const chosen = cases.filter(([name]) => name.includes(args.case));
if (chosen.length === 0) refuse("there is nothing to run");

const results: Result[] = [];
for (let round = 0; round < rounds; round++) {
  for (const [, run] of chosen) {
    for (const one of inTurn(programs, round)) {
      const result = await run(one);
      results.push(result);
      console.error(
        `${result.program.padEnd(8)} ${result.load}: ${Math.round(result.perS)}/s, ` +
          `${result.cpuUs.toFixed(1)} us (load ${result.loadUs.toFixed(1)}), ` +
          `${Math.round(result.residentMiB)} MiB (+${Math.round(result.grownMiB)})`,
      );
    }
  }
}

type Figure = "perS" | "cpuUs" | "loadUs" | "residentMiB" | "grownMiB";
const figure = (load: string, program: string, of: Figure): number =>
  median(
    results.filter((one) => one.load === load && one.program === program).map((one) => one[of]),
  );
const times = (a: number, b: number): string => `${(a / b).toFixed(1)}x`;
const rows = chosen.map(([load]) => {
  const both = (of: Figure): [number, number] => [
    figure(load, "quorate", of),
    figure(load, "etcd", of),
  ];
  const [rate, etcdRate] = both("perS");
  const [cpu, etcdCpu] = both("cpuUs");
  const whole = (of: Figure): string =>
    both(of)
      .map((value) => Math.round(value))
      .join(" / ");
  return [
    load,
    `${Math.round(rate)} / ${Math.round(etcdRate)}`,
    times(rate, etcdRate),
    `${cpu.toFixed(1)} / ${etcdCpu.toFixed(1)}`,
    times(etcdCpu, cpu),
    both("loadUs")
      .map((value) => value.toFixed(1))
      .join(" / "),
    whole("residentMiB"),
    whole("grownMiB"),
  ];
});
const titles = [
  "load, Quorate / etcd",
  "a second",
  "times",
  "CPU us each",
  "times",
  "generator us",
  "MiB",
  "MiB more than at start",
];
console.log(align([titles, ...rows], [0]));
