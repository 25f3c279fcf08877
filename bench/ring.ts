/**
 * ./dev bench ring: two threads, a ring each way, and ways to wake the one that sleeps.
 *
 *     ./dev bench ring [--seconds 2] [--busy]
 *
 * The worker keeps requests in flight, this thread answers each, as a front-end and a member do.
 * The rows have round trips a second, and the processor time of each thread for one of them.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type MessagePort, parentPort, Worker, workerData } from "node:worker_threads";
import { RingReader, RingWriter, ringMemory } from "@quorate/front";
import { count, readArguments, switchOption, valueOption } from "../scripts/dev/command-line.ts";
import { threadClock } from "./hold/thread-clock.ts";
import { align } from "./report.ts";

const WAYS = ["port", "waitAsync", "socket"] as const;
type Way = (typeof WAYS)[number];
const IN_FLIGHT = [1, 16, 256] as const;
/** A put of a small value, and its response. */
const PAYLOAD_BYTES = 64;
const WARM_UP_MS = 300;

interface Task {
  readonly way: Way;
  readonly inFlight: number;
  readonly requests: SharedArrayBuffer;
  readonly responses: SharedArrayBuffer;
  /** A word for each side, for Atomics.waitAsync. */
  readonly bells: SharedArrayBuffer;
  readonly path: string;
  readonly measureMs: number;
}

interface Result {
  readonly roundTrips: number;
  readonly seconds: number;
  readonly workerMicros: number;
}

/** The other thread, as a port. */
interface Port {
  on(event: "message", listener: () => void): unknown;
  postMessage(message: number): void;
}

/** Sends wake-ups to the other side, and calls `woken` for those that come. */
async function bell(
  way: Way,
  side: 0 | 1,
  task: Task,
  port: Port,
  woken: () => void,
): Promise<() => void> {
  if (way === "port") {
    port.on("message", woken);
    return () => port.postMessage(0);
  }
  if (way === "waitAsync") {
    const words = new Int32Array(task.bells);
    const listen = (): void => {
      const seen = Atomics.load(words, side);
      const result = Atomics.waitAsync(words, side, seen);
      const heard = () => {
        listen();
        woken();
      };
      if (result.async) void result.value.then(heard);
      else queueMicrotask(heard);
    };
    listen();
    return () => {
      Atomics.add(words, 1 - side, 1);
      Atomics.notify(words, 1 - side);
    };
  }
  const socket = await socketOf(side, task.path);
  socket.on("data", woken);
  socket.on("error", () => {});
  const byte = Buffer.from([0]);
  return () => socket.write(byte);
}

function socketOf(side: 0 | 1, path: string): Promise<Socket> {
  return new Promise((resolve) => {
    if (side === 1) {
      const socket = connect(path, () => resolve(socket));
      return;
    }
    const server = createServer((socket) => {
      server.close();
      resolve(socket);
    });
    server.listen(path);
  });
}

const HEAD = { kind: 1, detail: 2, call: 3, value: 4, timeMs: 5 };

async function runWorker(task: Task, port: MessagePort): Promise<void> {
  const requests = new RingWriter(task.requests);
  const responses = new RingReader(task.responses);
  const payload = new Uint8Array(PAYLOAD_BYTES);
  let answered = 0;
  let isOver = false;
  const woken = (): void => {
    do {
      while (responses.readBatch()) {
        while (responses.next()) {
          answered++;
          if (!isOver) requests.write(HEAD, payload, PAYLOAD_BYTES, true);
        }
        if (requests.publish()) ring();
      }
    } while (!responses.sleep());
  };
  const ring = await bell(task.way, 1, task, port, woken);
  const alive = setInterval(() => {}, 1000);
  const cpuNow = threadClock();
  woken();
  for (let i = 0; i < task.inFlight; i++) requests.write(HEAD, payload, PAYLOAD_BYTES, true);
  if (requests.publish()) ring();
  await new Promise((resolve) => setTimeout(resolve, WARM_UP_MS));
  const before = { answered, cpu: cpuNow(), at: performance.now() };
  await new Promise((resolve) => setTimeout(resolve, task.measureMs));
  const roundTrips = answered - before.answered;
  const result: Result = {
    roundTrips,
    seconds: (performance.now() - before.at) / 1000,
    workerMicros: (1000 * (cpuNow() - before.cpu)) / roundTrips,
  };
  isOver = true;
  clearInterval(alive);
  port.postMessage(result);
}

async function measure(way: Way, inFlight: number, measureMs: number): Promise<string[]> {
  const dir = mkdtempSync(join(tmpdir(), "ring-"));
  const task: Task = {
    way,
    inFlight,
    requests: ringMemory(),
    responses: ringMemory(),
    bells: new SharedArrayBuffer(8),
    path: join(dir, "bell"),
    measureMs,
  };
  const requests = new RingReader(task.requests);
  const responses = new RingWriter(task.responses);
  const payload = new Uint8Array(PAYLOAD_BYTES);
  let served = 0;
  let wakeUps = 0;
  let ring = (): unknown => 0;
  const woken = (): void => {
    wakeUps++;
    do {
      while (requests.readBatch()) {
        while (requests.next()) {
          served++;
          responses.write(HEAD, payload, PAYLOAD_BYTES, true);
        }
        if (responses.publish()) ring();
      }
    } while (!requests.sleep());
  };
  const opening = way === "socket" ? bell(way, 0, task, undefined as never, woken) : undefined;
  const worker = new Worker(new URL(import.meta.url), { workerData: task });
  const result = new Promise<Result>((resolve, reject) => {
    worker.on("message", (message) => message !== 0 && resolve(message as Result));
    worker.on("error", reject);
  });
  const cpuNow = threadClock();
  ring = await (opening ?? bell(way, 0, task, worker, woken));
  const startCpu = cpuNow();
  woken();
  const { roundTrips, seconds, workerMicros } = await result;
  const memberMicros = (1000 * (cpuNow() - startCpu)) / served;
  await worker.terminate();
  rmSync(dir, { recursive: true, force: true });
  return [
    way,
    String(inFlight),
    Math.round(roundTrips / seconds).toLocaleString("en-US"),
    (served / wakeUps).toFixed(1),
    memberMicros.toFixed(2),
    workerMicros.toFixed(2),
  ];
}

async function main(): Promise<void> {
  const { values } = readArguments("./dev bench ring [OPTIONS]: the rings between two threads", {
    seconds: valueOption("for each row", "2"),
    busy: switchOption("two more threads take all they get"),
  });
  const measureMs = 1000 * count("seconds", values.seconds);
  const spinners = values.busy ? [1, 2].map(() => new Worker("for (;;);", { eval: true })) : [];
  const head = ["wake-up", "in flight", "round trips/s", "a wake-up", "member us", "front us"];
  const rows = [head];
  for (const inFlight of IN_FLIGHT)
    for (const way of WAYS) rows.push(await measure(way, inFlight, measureMs));
  console.log(align(rows, [0]));
  for (const one of spinners) await one.terminate();
}

if (parentPort === null) await main();
else await runWorker(workerData as Task, parentPort);
