/**
 * ./dev bench http-engine: the HTTP/1.1 engine beside node:http, and etcd's /health if etcd runs:
 * requests that need no work, on keep-alive connections; and what an idle event stream costs.
 *
 *     ./dev bench http-engine [--seconds 4] [--rounds 3] [--etcd PORT --etcd-pid PID]
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { count, positive, readArguments, valueOption } from "../scripts/dev/command-line.ts";
import { HttpConnection } from "./http1.ts";
import { align, median } from "./report.ts";
import { cpuSeconds, residentBytes } from "./usage.ts";

const help = `./dev bench http-engine [OPTIONS]: requests without work over HTTP/1.1`;
const { values: args } = readArguments(help, {
  seconds: valueOption("measured seconds of each row", "4"),
  rounds: valueOption("rounds, of which the table shows medians", "3"),
  streams: valueOption("idle event streams", "10000"),
  etcd: valueOption("the client port of an etcd, for GET /version"),
  "etcd-pid": valueOption("its process"),
});
const seconds = positive("seconds", args.seconds);
const rounds = count("rounds", args.rounds);
const streams = count("streams", args.streams);

const HEADERS = "Host: 127.0.0.1\r\nUser-Agent: curl/8.0\r\nAccept: */*\r\n";
const body = JSON.stringify({ key: "Zm9v".repeat(8), value: "YmFy".repeat(32) });
const GET = Buffer.from(`GET /version HTTP/1.1\r\n${HEADERS}\r\n`);
const POST = Buffer.from(
  `POST /v3/kv/put HTTP/1.1\r\n${HEADERS}Content-Type: application/json\r\n` +
    `Content-Length: ${body.length}\r\n\r\n${body}`,
);

interface Target {
  readonly name: string;
  readonly port: number;
  readonly pid: number;
  readonly child?: ChildProcess;
}

async function startServer(name: string): Promise<Target> {
  const file = new URL("./engine-servers.ts", import.meta.url).pathname;
  const child = spawn(process.execPath, [file, name], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(child.stdout, "data");
  return { name, port: Number(String(line)), pid: child.pid!, child };
}

interface Figures {
  readonly perSecond: number;
  readonly cpuMicros: number;
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Requests one after the other on each connection, until `isOver`. */
async function measure(target: Target, connections: number, request: Buffer): Promise<Figures> {
  let responses = 0;
  let isOver = false;
  let failure: Error | undefined;
  const open = await Promise.all(
    Array.from({ length: connections }, () =>
      HttpConnection.open(`127.0.0.1:${target.port}`, (error) => {
        if (!isOver) failure = error;
      }),
    ),
  );
  for (const one of open) {
    const next = (): void => {
      responses++;
      one.send(request, next);
    };
    one.send(request, next);
  }
  await sleep(1000);
  const before = { responses, cpu: cpuSeconds([target.pid]), at: Date.now() };
  await sleep(seconds * 1000);
  const done = responses - before.responses;
  const cpu = cpuSeconds([target.pid]) - before.cpu;
  const elapsed = (Date.now() - before.at) / 1000;
  isOver = true;
  for (const one of open) one.close();
  if (failure !== undefined) throw failure;
  return { perSecond: done / elapsed, cpuMicros: (cpu / done) * 1e6 };
}

/** Resident memory of a fresh server for each response that has begun and does not end. */
async function streamBytes(name: string): Promise<number> {
  const target = await startServer(name);
  const before = residentBytes([target.pid]);
  const sockets: Socket[] = [];
  for (let i = 0; i < streams; i++) {
    // More than one address: a port has too few ephemeral ports for one.
    const socket = connect({ port: target.port, host: "127.0.0.1", localAddress: address(i) });
    sockets.push(socket);
    socket.write("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    await once(socket, "data");
  }
  const bytes = (residentBytes([target.pid]) - before) / streams;
  for (const socket of sockets) socket.destroy();
  target.child?.kill();
  return bytes;
}

function address(i: number): string {
  return `127.0.0.${1 + (i % 16)}`;
}

const own = [await startServer("engine"), await startServer("node-http")];
const etcd: Target[] =
  args.etcd === undefined
    ? []
    : [{ name: "etcd /version", port: Number(args.etcd), pid: Number(args["etcd-pid"]) }];
const rows: string[][] = [["connections", "request", "server", "requests/s", "cpu us/request"]];
for (const connections of [100, 1000]) {
  for (const [name, request] of [["GET", GET] as const, ["POST", POST] as const]) {
    for (const target of name === "GET" ? [...own, ...etcd] : own) {
      const all: Figures[] = [];
      for (let i = 0; i < rounds; i++) all.push(await measure(target, connections, request));
      rows.push([
        String(connections),
        name,
        target.name,
        String(Math.round(median(all.map((one) => one.perSecond)))),
        median(all.map((one) => one.cpuMicros)).toFixed(1),
      ]);
    }
  }
}
console.log(align(rows, [1, 2]));
for (const { child } of own) child?.kill();
for (const { name } of own)
  console.log(`${name}: ${Math.round(await streamBytes(name))} bytes for an idle stream`);
