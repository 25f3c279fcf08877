/**
 * Keys over HTTP/1.1 with keep-alive connections: /kv of ours, and the JSON gateways of ours and
 * etcd, in turn; with --v2 etcd's v2 API. Each connection sends its next request when it has the
 * response to the last.
 *
 *     ./dev bench http --help
 *
 * Processor microseconds of the member for a request are what other programs on the machine, and
 * this generator, disturb least.
 */

import {
  positive,
  readArguments,
  refuse,
  switchOption,
  valueOption,
} from "../scripts/dev/command-line.ts";
import { startCluster } from "../test/support/cluster.ts";
import { type Executable, etcd, quorate } from "../test/support/executables.ts";
import { comparison, inTurn, markdown, programsOf } from "./comparison.ts";
import { HttpConnection } from "./http1.ts";
import { align, median } from "./report.ts";
import { cpuSeconds } from "./usage.ts";

const help = `./dev bench http [OPTIONS]: puts and gets over HTTP/1.1, ours and etcd's in turn`;

const { values: args } = readArguments(help, {
  ...comparison,
  markdown,
  connections: valueOption("numbers of connections", "100,1000"),
  v2: switchOption("the v2 API; ETCD34 is the path of etcd 3.4, which has it too"),
});
const counts = args.connections.split(",").map((text) => positive("connections", text));
const seconds = positive("seconds", args.seconds);
const rounds = positive("rounds", args.rounds);
const value = "v".repeat(100);
const KEYS = 1000;

const base64 = (text: string): string => Buffer.from(text).toString("base64");
const keyOf = (index: number): string => `bench/${String(index % KEYS).padStart(6, "0")}`;

function request(method: string, path: string, body?: string, type?: string): Buffer {
  const length = body === undefined ? "" : `Content-Length: ${body.length}\r\n`;
  const fields = `Host: bench\r\n${type === undefined ? "" : `Content-Type: ${type}\r\n`}${length}`;
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${fields}\r\n${body ?? ""}`);
}

const form = (method: string, path: string, body: string): Buffer =>
  request(method, `/v2/keys/${path}`, body, "application/x-www-form-urlencoded");

/** A load: the program that serves it, and its requests. */
interface Load {
  readonly name: string;
  readonly programs: readonly Executable["name"][];
  readonly make: (index: number) => Buffer;
}

const BOTH = ["quorate", "etcd"] as const;
const v2Loads: readonly Load[] = [
  {
    name: "PUT, 1,000 keys",
    programs: BOTH,
    make: (index) => form("PUT", keyOf(index), `value=${value}`),
  },
  {
    name: "GET",
    programs: BOTH,
    make: (index) => request("GET", `/v2/keys/${keyOf(index)}`),
  },
  {
    name: "GET with quorum",
    programs: BOTH,
    make: (index) => request("GET", `/v2/keys/${keyOf(index)}?quorum=true`),
  },
  {
    name: "POST in one directory",
    programs: BOTH,
    make: () => form("POST", "queue", `value=${value}`),
  },
  {
    name: "PUT with prevExist on one key",
    programs: BOTH,
    make: () => form("PUT", keyOf(0), `value=${value}&prevExist=true`),
  },
];

const kvLoads: readonly Load[] = [
  {
    name: "put, /kv",
    programs: ["quorate"],
    make: (index) => request("PUT", `/kv/${keyOf(index)}`, value),
  },
  {
    name: "put, gateway",
    programs: BOTH,
    make: (index) => {
      const body = { key: base64(keyOf(index)), value: base64(value) };
      return request("POST", "/v3/kv/put", JSON.stringify(body));
    },
  },
  {
    name: "get, /kv",
    programs: ["quorate"],
    make: (index) => request("GET", `/kv/${keyOf(index)}`),
  },
  {
    name: "get, gateway",
    programs: BOTH,
    make: (index) => request("POST", "/v3/kv/range", JSON.stringify({ key: base64(keyOf(index)) })),
  },
];

const loads = args.v2 ? v2Loads : kvLoads;

interface Result {
  readonly rate: number;
  readonly microseconds: number;
}

async function measure(
  address: string,
  pid: number,
  load: Load,
  connections: number,
): Promise<Result> {
  const { promise: broken, reject } = Promise.withResolvers<never>();
  let [index, done] = [0, 0];
  const send = (connection: HttpConnection): void => {
    const answered = (): void => {
      done++;
      next();
    };
    const next = (): void => connection.send(load.make((index = (index + 7919) % KEYS)), answered);
    next();
  };
  const opened: HttpConnection[] = [];
  while (opened.length < connections) opened.push(await HttpConnection.open(address, reject));
  for (const one of opened) send(one);
  const pause = (ms: number) =>
    Promise.race([broken, new Promise((resolve) => setTimeout(resolve, ms))]);
  // The first second warms up.
  await pause(1000);
  const before = { done, cpu: cpuSeconds([pid]), at: performance.now() };
  await pause(seconds * 1000);
  const count = done - before.done;
  const cpu = cpuSeconds([pid]) - before.cpu;
  const elapsed = (performance.now() - before.at) / 1000;
  for (const one of opened) one.close();
  return { rate: count / elapsed, microseconds: (cpu * 1e6) / count };
}

/** Writes every key once. */
async function fill(url: string): Promise<void> {
  for (let index = 0; index < KEYS; index++) {
    const response = args.v2
      ? await fetch(`${url}/v2/keys/${keyOf(index)}`, {
          method: "PUT",
          body: new URLSearchParams({ value }),
        })
      : await fetch(`${url}/v3/kv/put`, {
          method: "POST",
          body: JSON.stringify({ key: base64(keyOf(index)), value: base64(value) }),
        });
    if (!response.ok) refuse(`the keys cannot be written: ${response.status}`);
    await response.arrayBuffer();
  }
}

const results = new Map<string, Result[]>();

async function round(executable: Executable): Promise<void> {
  const flags = args.v2 ? ["--enable-v2"] : [];
  const cluster = await startCluster({ executable, size: 1, flags });
  try {
    const [member] = cluster.members;
    await fill(member.clientUrl);
    for (const load of loads) {
      if (!load.programs.includes(executable.name)) continue;
      for (const connections of counts) {
        const name = `${load.name}, ${connections} connections\t${executable.name}`;
        const result = await measure(member.clientAddress, member.pid!, load, connections);
        console.error(
          `${name}: ${Math.round(result.rate)}/s, ${result.microseconds.toFixed(1)} us`,
        );
        results.set(name, [...(results.get(name) ?? []), result]);
      }
    }
  } finally {
    await cluster.destroy();
  }
}

const v2Path = process.env["ETCD34"];
const v2Etcd: Executable | undefined = v2Path ? { name: "etcd", command: [v2Path] } : undefined;
const programs = programsOf(args.only, [quorate, args.v2 ? v2Etcd : etcd]);
for (let i = 0; i < rounds; i++) for (const one of inTurn(programs, i)) await round(one);
const rows = [...results].map(([name, all]) => {
  const [row, program] = name.split("\t");
  const rate = median(all.map((one) => one.rate));
  const cpu = median(all.map((one) => one.microseconds));
  return [row, program, String(Math.round(rate)), cpu.toFixed(1)];
});
const table = [["load", "program", "requests/s", "processor us a request"], ...rows];
if (!args.markdown) console.log(align(table, [0, 1]));
else {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  console.log([line(table[0]), "|---|---|---|---|", ...rows.map(line)].join("\n"));
}
