/**
 * 10,000 watchers on one member, ours and etcd in turn: what a watcher costs in memory, and how
 * many events reach the clients when all watch one key, each its own, or 100 each of 100 prefixes.
 * A few callers put keys in a closed loop, and the clock runs until the last event has come.
 *
 *     ./dev bench watch --help
 *
 * Events for each second of the member's CPU is the figure that other programs on the machine, and
 * this generator, disturb least.
 */

import {
  fromUtf8,
  KVService,
  PutRequest,
  WatchCreateRequest,
  WatchRequest,
  WatchService,
} from "@quorate/proto";
import { positive, readArguments, refuse, valueOption } from "../scripts/dev/command-line.ts";
import { startCluster } from "../test/support/cluster.ts";
import { type Executable, etcd } from "../test/support/executables.ts";
import { comparison, inTurn, markdown, programsOf } from "./comparison.ts";
import { Connection, type Template } from "./connection.ts";
import { align, median, ratio } from "./report.ts";
import { eachField } from "./streams.ts";
import { cpuSeconds, residentBytes } from "./usage.ts";

const help = `./dev bench watch [OPTIONS]: many watchers on one member, ours and etcd's in turn`;

const { values: args } = readArguments(help, {
  rounds: comparison.rounds,
  only: comparison.only,
  markdown,
  watchers: valueOption("how many", "10000"),
  streams: valueOption("on how many streams", "20"),
  events: valueOption("events that are aimed at", "400000"),
  case: valueOption('only the cases whose name holds it: "one key", "own key", "prefixes"', ""),
});
const watchers = positive("watchers", args.watchers);
const streams = positive("streams", args.streams);
const events = positive("events", args.events);
const rounds = positive("rounds", args.rounds);
const callers = 64;
const callerConnections = 8;
const minPuts = 400;
const maxPuts = 60_000;
const value = Buffer.alloc(100, "v");
const digits = 8;
const number = (index: number): string => String(index).padStart(digits, "0");

/**
 * What is watched, and what is put. Keys of one case have one length, so that one request serves
 * for all.
 */
interface Case {
  readonly name: string;
  /** Watchers that one put reaches. */
  readonly reach: number;
  watch(index: number): { key: string; rangeEnd?: string };
  /** The key of the put with this number. */
  key(index: number): string;
}

const prefixes = Math.max(1, Math.round(watchers / 100));
const prefix = (index: number): string => number(index % prefixes);
const cases: readonly Case[] = [
  { name: "all on one key", reach: watchers, watch: () => ({ key: "key" }), key: () => "key" },
  {
    name: "each on its own key",
    reach: 1,
    watch: (i) => ({ key: number(i) }),
    key: (i) => number(i % watchers),
  },
  {
    name: `100 on each of ${prefixes} prefixes`,
    reach: 100,
    watch: (i) => ({ key: `${prefix(i)}/`, rangeEnd: `${prefix(i)}0` }),
    key: (i) => `${prefix(i)}/${number(i)}`,
  },
];

interface Result {
  readonly round: number;
  readonly program: Executable["name"];
  readonly load: string;
  readonly watcherBytes: number;
  readonly eventsPerS: number;
  readonly eventsPerCpuS: number;
  /** Of the member, at the end. */
  readonly residentMiB: number;
  /** CPU seconds a second that this process used: near 1 it is the generator that is measured. */
  readonly generatorCpu: number;
}

/** Fields of a WatchResponse. */
const createdField = 3;
const canceledField = 4;
const eventsField = 11;

async function measure(executable: Executable, one: Case, round: number): Promise<Result> {
  const cluster = await startCluster({ executable, size: 1 });
  const connections: Connection[] = [];
  try {
    const url = cluster.endpoints[0];
    const pids = [cluster.members[0].pid!];
    const { promise: broken, reject: failed } = Promise.withResolvers<never>();
    broken.catch(() => {});
    let created = 0;
    let counted = 0;
    let reached: () => void = () => {};
    const streamed = (_slot: number, message: Uint8Array): void => {
      eachField(message, 0, message.length, (field, start) => {
        if (field === eventsField) counted++;
        else if (field === createdField && message[start] === 1) created++;
        else if (field === canceledField && message[start] === 1)
          failed(new Error("a watch was cancelled"));
      });
      reached();
    };
    const until = (isDone: () => boolean): Promise<void> =>
      Promise.race([
        broken,
        new Promise<void>((resolve) => {
          reached = () => {
            if (isDone()) resolve();
          };
          reached();
        }),
      ]);

    const watching: { connection: Connection; stream: number }[] = [];
    const create = (at: number, request: { key: string; rangeEnd?: string }): void => {
      const asked = WatchCreateRequest.create({
        key: fromUtf8(request.key),
        rangeEnd: fromUtf8(request.rangeEnd ?? ""),
      });
      const { connection, stream } = watching[at];
      connection.send(
        stream,
        WatchRequest.encode({ requestUnion: { case: "createRequest", value: asked } }),
      );
    };
    const flush = (): void => {
      for (const { connection } of watching) connection.flush();
    };
    for (let slot = 0; slot < streams; slot++) {
      const paths = [WatchService.methods.Watch.path];
      const connection = await Connection.open({
        url,
        paths,
        identity: {},
        done: () => {},
        streamed,
        failed,
      });
      connections.push(connection);
      watching.push({ connection, stream: connection.openStream(slot, 0) });
    }
    // The streams stand before the memory is looked at: their watchers are what is asked.
    for (let slot = 0; slot < streams; slot++) create(slot, { key: "first" });
    flush();
    await until(() => created === streams);
    const before = residentBytes(pids);
    // In portions that fit the window of a connection.
    const portion = 100 * streams;
    for (let index = 0; index < watchers; ) {
      const end = Math.min(watchers, index + portion);
      for (; index < end; index++) create(index % streams, one.watch(index));
      flush();
      await until(() => created === streams + end);
    }
    const watcherBytes = (residentBytes(pids) - before) / watchers;

    const puts = Math.min(Math.max(Math.ceil(events / one.reach), minPuts), maxPuts);
    const message = PutRequest.encode({ key: fromUtf8(one.key(0)), value }).slice();
    const template: Template = { path: 0, message, patchAt: [2] };
    const putting: Connection[] = [];
    let begun = 0;
    let answered = 0;
    let wanted = 0;
    const next = (caller: number): void => {
      if (begun < wanted)
        putting[caller % callerConnections].call(caller, template, fromUtf8(one.key(begun++)));
    };
    const done = (caller: number, ok: boolean): void => {
      if (!ok) failed(new Error("a put was refused"));
      answered++;
      next(caller);
      reached();
    };
    for (let i = 0; i < callerConnections; i++) {
      putting.push(
        await Connection.open({
          url,
          paths: [KVService.methods.Put.path],
          identity: {},
          done,
          failed,
        }),
      );
      connections.push(putting[i]);
    }
    /** Puts so many keys; resolves when they are answered and every event has come. */
    const run = async (count: number): Promise<void> => {
      wanted += count;
      for (let caller = 0; caller < callers; caller++) next(caller);
      for (const connection of putting) connection.flush();
      const due = wanted * one.reach;
      await until(() => counted >= due && answered === wanted);
      if (counted > due) throw new Error(`${counted} events came, and ${due} are due`);
    };
    // A server runs for months: what its first second costs, on a cold compiler, is not what is
    // asked here.
    await run(Math.ceil(puts / 4));
    const cpuBefore = cpuSeconds(pids);
    const ownBefore = process.cpuUsage();
    const startMs = performance.now();
    await run(puts);
    const tookS = (performance.now() - startMs) / 1000;
    const own = process.cpuUsage(ownBefore);
    const due = puts * one.reach;
    return {
      round,
      program: executable.name,
      load: one.name,
      watcherBytes,
      eventsPerS: due / tookS,
      eventsPerCpuS: due / (cpuSeconds(pids) - cpuBefore),
      residentMiB: residentBytes(pids) / 2 ** 20,
      generatorCpu: (own.user + own.system) / 1e6 / tookS,
    };
  } finally {
    for (const connection of connections) connection.close();
    await cluster.destroy();
  }
}

const whole = (figure: number): string => Math.round(figure).toLocaleString("en");
const columns: readonly {
  title: string;
  figure: (one: Result) => number;
  format: (figure: number) => string;
}[] = [
  { title: "bytes a watcher", figure: (one) => one.watcherBytes, format: whole },
  { title: "events/s", figure: (one) => one.eventsPerS, format: whole },
  { title: "events/CPU s", figure: (one) => one.eventsPerCpuS, format: whole },
  { title: "MiB", figure: (one) => one.residentMiB, format: whole },
  {
    title: "generator",
    figure: (one) => one.generatorCpu,
    format: (figure) => `${(100 * figure).toFixed(0)} %`,
  },
];

/** Medians of the rounds, and of each round's ratios. */
function table(results: readonly Result[]): string {
  const lines: string[][] = [[`${watchers} watchers`, "", ...columns.map(({ title }) => title)]];
  for (const [load, group] of Map.groupBy(results, (one) => one.load)) {
    const ours = group.filter(({ program }) => program === "quorate");
    const etcds = group.filter(({ program }) => program === "etcd");
    for (const runs of [ours, etcds]) {
      if (runs.length > 0)
        lines.push([
          load,
          runs[0].program,
          ...columns.map(({ figure, format }) => format(median(runs.map(figure)))),
        ]);
    }
    if (ours.length === 0 || etcds.length === 0) continue;
    const ratios = columns
      .slice(0, -1)
      .map(({ figure }) => `${ratio(ours, etcds, (one) => figure(one)).toFixed(2)} x`);
    lines.push([load, "ratio", ...ratios, ""]);
  }
  return align(lines, [0, 1]);
}

const say = args.markdown ? console.error : console.log;
const programs = programsOf(args.only);
const chosen = cases.filter(({ name }) => name.includes(args.case));
if (chosen.length === 0)
  refuse(`--case ${args.case}: the cases are ${cases.map(({ name }) => name).join(", ")}`);
if (etcd === undefined)
  say(
    "etcd is not installed (Debian: apt-get install etcd-server): there is nothing to compare with",
  );
const results: Result[] = [];
for (let round = 0; round < rounds; round++) {
  for (const one of chosen) {
    for (const executable of inTurn(programs, round)) {
      const result = await measure(executable, one, round);
      results.push(result);
      const figures = columns.map(
        ({ title, figure, format }) => `${title} ${format(figure(result))}`,
      );
      say(`round ${round + 1}, ${result.program}, ${result.load}: ${figures.join(", ")}`);
    }
  }
}
console.log(`${args.markdown ? "" : "\n"}${table(results)}`);
