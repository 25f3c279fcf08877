/** Judges a history in a thread, and draws what is wrong with it within a time. */
import { writeFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import type { Judgement } from "./judge.ts";
import type { JudgeOrder } from "./judge-worker.ts";

/** How long the search for the smallest part that fails may take. */
const SMALLEST_LIMIT_MS = 90_000;

/** Does it in a thread; undefined if that has not ended after `limitMs`. */
function inThread<T>(order: JudgeOrder, limitMs?: number): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./judge-worker.ts", import.meta.url), { workerData: order });
    const timer = limitMs === undefined ? undefined : setTimeout(() => worker.terminate(), limitMs);
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.once("exit", () => {
      clearTimeout(timer);
      resolve(undefined);
    });
  });
}

/** Judges the history in a file. */
export async function judgeFile(path: string): Promise<Judgement> {
  return (await inThread<Judgement>({ path, what: "judge" }))!;
}

/**
 * Draws what is wrong with a history beside its file; returns the page's path, or undefined if the
 * calls themselves are well.
 */
export async function drawFile(path: string, violation: string): Promise<string | undefined> {
  if (!/^(HIST|not linearizable)/.test(violation)) return undefined;
  const around = await inThread<string>({ path, what: "draw around", violation });
  const page =
    (await inThread<string>({ path, what: "draw smallest" }, SMALLEST_LIMIT_MS)) ?? around;
  if (page === undefined) return undefined;
  const picturePath = path.replace(/(\.jsonl)?$/, ".html");
  writeFileSync(picturePath, page);
  return picturePath;
}
