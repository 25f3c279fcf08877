/**
 * Keys over HTTP/1.1 with keep-alive connections: /kv of ours, and the JSON gateways of ours and
 * etcd, in turn. Each connection sends its next request when it has the response to the last.
 *
 *     npm run bench:http -- --help
 *
 * Processor microseconds of the member for a request are what other programs on the machine, and
 * this generator, disturb least.
 */
import { connect, type Socket } from "node:net";
import { startCluster } from "../test/support/cluster.ts";
import { type Executable, etcd, quorate } from "../test/support/executables.ts";
import { positive, readArguments, refuse } from "./arguments.ts";
import { align, median } from "./report.ts";
import { cpuSeconds } from "./usage.ts";

const help = `npm run bench:http -- [options]: puts and gets over HTTP/1.1, ours and etcd's in turn
  --connections LIST   numbers of connections (default: 100,1000)
  --seconds N          of each measurement (default: 5)
  --rounds N           rounds (default: 3); the programs take turns to go first
  --only NAME          quorate or etcd alone
  --markdown           the table for docs/benchmarks.md (progress goes to standard error)`;

const { values: args } = readArguments(help, {
  connections: { type: "string", default: "100,1000" },
  seconds: { type: "string", default: "5" },
  rounds: { type: "string", default: "3" },
  only: { type: "string" },
  markdown: { type: "boolean", default: false },
});
const counts = args.connections.split(",").map((text) => positive("connections", text));
const seconds = positive("seconds", args.seconds);
const rounds = positive("rounds", args.rounds);
const value = "v".repeat(100);
const KEYS = 1000;

const base64 = (text: string): string => Buffer.from(text).toString("base64");
const keyOf = (index: number): string => `bench/${String(index % KEYS).padStart(6, "0")}`;

function request(method: string, path: string, body?: string): Buffer {
  const length = body === undefined ? "" : `Content-Length: ${body.length}\r\n`;
  return Buffer.from(`${method} ${path} HTTP/1.1\r\nHost: bench\r\n${length}\r\n${body ?? ""}`);
}

/** A load: the program that serves it, and its requests. */
interface Load {
  readonly name: string;
  readonly programs: readonly Executable["name"][];
  readonly make: (index: number) => Buffer;
}

const BOTH = ["quorate", "etcd"] as const;
const loads: readonly Load[] = [
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

/** One connection: a request, its response, the next request. */
class Caller {
  readonly #socket: Socket;
  readonly #next: () => Buffer;
  #buffered = "";
  /** Responses; and those of an error's status. */
  done = 0;
  failed = 0;

  private constructor(socket: Socket, next: () => Buffer) {
    this.#socket = socket;
    this.#next = next;
    socket.setNoDelay(true);
    socket.setEncoding("latin1");
    socket.on("data", (text) => this.#received(String(text)));
    socket.on("error", () => {});
    socket.write(next());
  }

  static open(port: number, next: () => Buffer): Promise<Caller> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, "127.0.0.1", () => resolve(new Caller(socket, next)));
      socket.once("error", reject);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #received(text: string): void {
    this.#buffered += text;
    for (;;) {
      const head = this.#buffered.indexOf("\r\n\r\n");
      if (head < 0) return;
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(this.#buffered)?.[1] ?? 0);
      if (this.#buffered.length < head + 4 + length) return;
      this.done++;
      if (this.#buffered[9] !== "2") this.failed++;
      this.#buffered = this.#buffered.slice(head + 4 + length);
      this.#socket.write(this.#next());
    }
  }
}

interface Result {
  readonly rate: number;
  readonly microseconds: number;
}

async function measure(
  port: number,
  pid: number,
  load: Load,
  connections: number,
): Promise<Result> {
  let index = 0;
  const next = () => load.make((index = (index + 7919) % KEYS));
  const callers = await Promise.all(
    Array.from({ length: connections }, () => Caller.open(port, next)),
  );
  const total = () => callers.reduce((sum, { done }) => sum + done, 0);
  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  // The first second warms up.
  await pause(1000);
  const before = { done: total(), cpu: cpuSeconds([pid]), at: performance.now() };
  await pause(seconds * 1000);
  const done = total() - before.done;
  const cpu = cpuSeconds([pid]) - before.cpu;
  const elapsed = (performance.now() - before.at) / 1000;
  for (const caller of callers) caller.close();
  const failed = callers.reduce((sum, one) => sum + one.failed, 0);
  if (failed > 0) refuse(`${failed} requests of "${load.name}" failed`);
  return { rate: done / elapsed, microseconds: (cpu * 1e6) / done };
}

/** Writes every key once. */
async function fill(url: string): Promise<void> {
  for (let index = 0; index < KEYS; index++) {
    const body = JSON.stringify({ key: base64(keyOf(index)), value: base64(value) });
    const response = await fetch(`${url}/v3/kv/put`, { method: "POST", body });
    if (!response.ok) refuse(`the keys cannot be written: ${response.status}`);
    await response.arrayBuffer();
  }
}

const results = new Map<string, Result[]>();

async function round(executable: Executable): Promise<void> {
  const cluster = await startCluster({ executable, size: 1 });
  try {
    const [member] = cluster.members;
    const port = Number(new URL(member.clientUrl).port);
    await fill(member.clientUrl);
    for (const load of loads) {
      if (!load.programs.includes(executable.name)) continue;
      for (const connections of counts) {
        const name = `${load.name}, ${connections} connections\t${executable.name}`;
        const result = await measure(port, member.pid!, load, connections);
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

const programs = [quorate, etcd]
  .filter((one) => one !== undefined)
  .filter(({ name }) => args.only === undefined || args.only === name);
if (programs.length === 0) refuse("there is nothing to run: the program is not installed");
for (let i = 0; i < rounds; i++)
  for (const one of i % 2 === 0 ? programs : programs.toReversed()) await round(one);
const rows = [...results].map(([name, all]) => {
  const [row, program] = name.split("\t");
  const rate = median(all.map((one) => one.rate));
  const cpu = median(all.map((one) => one.microseconds));
  return [row!, program!, String(Math.round(rate)), cpu.toFixed(1)];
});
const table = [["load", "program", "requests/s", "processor us a request"], ...rows];
if (!args.markdown) console.log(align(table, [0, 1]));
else {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  console.log([line(table[0]!), "|---|---|---|---|", ...rows.map(line)].join("\n"));
}
