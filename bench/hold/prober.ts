/**
 * A worker thread that puts one small key again and again, a few milliseconds after each answer,
 * and reports how long the puts took: the other client, which has nothing to do with the heavy
 * call. Its own thread, so that a large answer to the heavy call does not delay it.
 */
import { parentPort, workerData } from "node:worker_threads";
import { KVService } from "@quorate/proto";
import type { ClientIdentity } from "../../scripts/cluster/health.ts";
import { putTemplate } from "../calls.ts";
import { Connection } from "../connection.ts";
import { keyOf, randomValue } from "../keys.ts";

export interface ProberData {
  readonly url: string;
  readonly identity: ClientIdentity;
  readonly pauseMs: number;
}

/** Of the puts that were under way or began since the last question. */
export interface ProberReport {
  readonly puts: number;
  readonly failed: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly worstMs: number;
}

const { url, identity, pauseMs } = workerData as ProberData;
const template = putTemplate(randomValue(64));
const key = keyOf("p", 1);
let latenciesMs: number[] = [];
let failed = 0;
let startedMs = 0;
let isWaiting = false;

const connection = await Connection.open({
  url,
  paths: [KVService.methods.Put.path],
  identity,
  done: (_slot, ok) => {
    isWaiting = false;
    if (ok) latenciesMs.push(performance.now() - startedMs);
    else failed++;
    setTimeout(put, pauseMs);
  },
  failed: (error) => {
    throw error;
  },
});

function put(): void {
  startedMs = performance.now();
  isWaiting = true;
  connection.call(0, template, key);
  connection.flush();
}

parentPort!.on("message", () => {
  // The put under way counts with what it has taken so far.
  const sorted = [...latenciesMs, ...(isWaiting ? [performance.now() - startedMs] : [])].sort(
    (a, b) => a - b,
  );
  const report: ProberReport = {
    puts: latenciesMs.length,
    failed,
    p50Ms: sorted[sorted.length >> 1] ?? Number.NaN,
    p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN,
    worstMs: sorted.at(-1) ?? Number.NaN,
  };
  latenciesMs = [];
  failed = 0;
  parentPort!.postMessage(report);
});
put();
parentPort!.postMessage("ready");
