/**
 * grpc-proxy, ours and etcd's in turn, before one member of ours: requests of 100 clients, and
 * watchers of one key. What is compared is the processor time of the proxy itself.
 *
 *     ./dev bench proxy --help
 */

import { type ChildProcess, spawn } from "node:child_process";
import {
  fromUtf8,
  KVService,
  PutRequest,
  WatchCreateRequest,
  WatchRequest,
  WatchService,
} from "@quorate/proto";
import { positive, readArguments, valueOption } from "../scripts/dev/command-line.ts";
import { startCluster, type TestCluster } from "../test/support/cluster.ts";
import { quorate } from "../test/support/executables.ts";
import { freePorts } from "../test/support/ports.ts";
import { until } from "../test/support/until.ts";
import { getTemplate, putTemplate, type Step, UnaryLoad } from "./calls.ts";
import { comparison, inTurn, programsOf } from "./comparison.ts";
import { Connection } from "./connection.ts";
import { keyOf, randomValue } from "./keys.ts";
import { runLoad } from "./load.ts";
import { align, median } from "./report.ts";
import { eachField } from "./streams.ts";
import { cpuSeconds, residentBytes } from "./usage.ts";

const help = `./dev bench proxy [OPTIONS]: grpc-proxy, ours and etcd's in turn, before one member`;

const { values: args } = readArguments(help, {
  rounds: comparison.rounds,
  seconds: { ...comparison.seconds, default: "3" },
  watchers: valueOption("watchers of one key", "10000"),
  puts: valueOption("puts of that key", "200"),
});
const [rounds, seconds] = [positive("rounds", args.rounds), positive("seconds", args.seconds)];
const [watchers, puts] = [positive("watchers", args.watchers), positive("puts", args.puts)];
const streams = 20;
const clients = 100;
const connections = 10;
const attempts = 3;

interface Figure {
  readonly program: string;
  readonly name: string;
  readonly value: number;
}

/** A proxy in a process of its own. */
interface RunningProxy {
  readonly url: string;
  readonly pids: readonly number[];
  close(): Promise<void>;
}

async function startProxy(command: readonly string[], member: string): Promise<RunningProxy> {
  const [port] = await freePorts(1);
  const address = `127.0.0.1:${port}`;
  const flags = ["--endpoints", member, "--listen-addr", address];
  const child: ChildProcess = spawn(
    command[0],
    [...command.slice(1), "grpc-proxy", "start", ...flags, "--advertise-client-url", address],
    { stdio: "ignore" },
  );
  const exit = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const url = `http://${address}`;
  await until("the proxy serves", async () => {
    const response = await fetch(`${url}/health`).catch(() => undefined);
    return response?.ok === true;
  });
  return {
    url,
    pids: [child.pid!],
    async close() {
      child.kill("SIGKILL");
      await exit;
    },
  };
}

/** Calls of 100 clients: how many a second, and what each takes of the proxy. */
async function measureCalls(
  proxy: RunningProxy,
  name: string,
  template: Step["template"],
): Promise<Omit<Figure, "program">[]> {
  let at = 0;
  const next = (): Step => ({ template, key: keyOf("k", at++ % 1000), revisions: 0 });
  let before = 0;
  let usedS = 0;
  const load = new UnaryLoad({ urls: [proxy.url], identity: {} }, clients, connections, next);
  const result = await runLoad(load, {
    warmUpMs: 1500,
    durationMs: seconds * 1000,
    onPhase: (phase) => {
      if (phase === "measure") before = cpuSeconds(proxy.pids);
      else usedS = cpuSeconds(proxy.pids) - before;
    },
  });
  return [
    { name: `${name}, requests/s`, value: (result.answered * 1000) / result.elapsedMs },
    { name: `${name}, proxy CPU us a request`, value: (usedS * 1e6) / result.answered },
  ];
}

/** Watchers of one key on 20 streams: events a second, and what they take of the proxy. */
async function measureWatchers(
  proxy: RunningProxy,
  cluster: TestCluster,
): Promise<Omit<Figure, "program">[]> {
  const idleBytes = residentBytes(proxy.pids);
  let [created, events] = [0, 0];
  let check: () => void = () => {};
  const open: Connection[] = [];
  let broken: Error | undefined;
  const failed = (error: Error): void => {
    broken = error;
    check();
  };
  const reach = (isDone: () => boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      check = () => {
        if (broken !== undefined) reject(broken);
        else if (isDone()) resolve();
      };
      check();
    });
  const streamed = (_slot: number, message: Uint8Array): void => {
    eachField(message, 0, message.length, (field, start) => {
      if (field === 11) events++;
      else if (field === 3 && message[start] === 1) created++;
    });
    check();
  };
  const value = WatchCreateRequest.create({ key: fromUtf8("key") });
  const create = WatchRequest.encode({ requestUnion: { case: "createRequest", value } }).slice();
  const paths = [WatchService.methods.Watch.path];
  const { url } = proxy;
  try {
    for (let slot = 0; slot < streams; slot++) {
      const one = await Connection.open({ url, paths, identity: {}, done() {}, streamed, failed });
      open.push(one);
      const stream = one.openStream(slot, 0);
      for (let i = 0; i < watchers / streams; ) {
        for (const end = i + 100; i < end; i++) one.send(stream, create);
        one.flush();
        await reach(() => created === slot * (watchers / streams) + i);
      }
    }
    const page = await (await fetch(`${cluster.endpoints[0]}/metrics`)).text();
    const upstream = Number(
      /\netcd_debugging_mvcc_watcher_total (\d+)/.exec(page)?.[1] ?? Number.NaN,
    );
    const watchingBytes = residentBytes(proxy.pids) - idleBytes;
    let answered = 0;
    const putting = await Connection.open({
      url: cluster.endpoints[0],
      paths: [KVService.methods.Put.path],
      identity: {},
      failed,
      done: () => {
        answered++;
        check();
      },
    });
    open.push(putting);
    const message = PutRequest.encode({
      key: fromUtf8("key"),
      value: Buffer.alloc(100, "v"),
    }).slice();
    const run = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) {
        const [wasAnswered, wereEvents] = [answered, events];
        putting.call(0, { path: 0, message, patchAt: [] });
        putting.flush();
        await reach(() => answered > wasAnswered && events === wereEvents + watchers);
      }
    };
    await run(Math.ceil(puts / 4));
    const [cpuBefore, startMs] = [cpuSeconds(proxy.pids), performance.now()];
    await run(puts);
    const tookS = (performance.now() - startMs) / 1000;
    const usedS = cpuSeconds(proxy.pids) - cpuBefore;
    const figures = [
      { name: `${watchers} watchers of one key: watches of the member`, value: upstream },
      { name: "bytes a watcher", value: watchingBytes / watchers },
      { name: "events/s", value: (puts * watchers) / tookS },
      { name: "events/CPU s of the proxy", value: (puts * watchers) / usedS },
      { name: "proxy MiB at the end", value: residentBytes(proxy.pids) / 2 ** 20 },
    ];
    return figures;
  } finally {
    for (const one of open) one.close();
  }
}

/**
 * The figures of watchers, and how many attempts ended because the proxy ended a stream: etcd's
 * does so when a watcher's channel stays full for 50 ms, so a busy machine needs another attempt.
 */
async function tryWatchers(
  command: readonly string[],
  cluster: TestCluster,
): Promise<Omit<Figure, "program">[]> {
  for (let ended = 0; ; ended++) {
    const proxy = await startProxy(command, cluster.members[0].clientAddress);
    try {
      const figures = await measureWatchers(proxy, cluster);
      return [...figures, { name: "attempts in which the proxy ended a stream", value: ended }];
    } catch (error) {
      console.error(`${watchers} watchers: ${(error as Error).message}`);
      if (ended === attempts - 1)
        return [{ name: "attempts in which the proxy ended a stream", value: attempts }];
    } finally {
      await proxy.close();
    }
  }
}

async function measure(program: string, command: readonly string[]): Promise<Figure[]> {
  const cluster = await startCluster({ executable: quorate, size: 1 });
  const proxy = await startProxy(command, cluster.members[0].clientAddress);
  try {
    const calls = [
      ...(await measureCalls(proxy, "put, 100 clients", putTemplate(randomValue(256)))),
      ...(await measureCalls(proxy, "linearizable get, 100 clients", getTemplate(false))),
      ...(await measureCalls(proxy, "serializable get, 100 clients", getTemplate(true))),
    ];
    await proxy.close();
    const figures = [...calls, ...(await tryWatchers(command, cluster))];
    return figures.map((figure) => ({ program, ...figure }));
  } finally {
    await proxy.close();
    await cluster.destroy();
  }
}

const programs = programsOf(undefined);
const results: Figure[] = [];
for (let round = 0; round < rounds; round++) {
  for (const { name, command } of inTurn(programs, round)) {
    results.push(...(await measure(name, command)));
    console.error(`round ${round + 1}: ${name} is measured`);
  }
}
const shown = (value: number): string =>
  value < 100 ? value.toFixed(1) : Math.round(value).toLocaleString("en");
const lines = [["", ...programs.map(({ name }) => name), "ratio"]];
for (const name of new Set(results.map((one) => one.name))) {
  const medians = programs.map((program) =>
    median(
      results
        .filter((one) => one.name === name && one.program === program.name)
        .map(({ value }) => value),
    ),
  );
  lines.push([name, ...medians.map(shown), (medians[0] / (medians[1] ?? Number.NaN)).toFixed(2)]);
}
console.log(align(lines, [0]));
