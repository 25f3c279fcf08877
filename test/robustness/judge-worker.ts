/**
 * Judges and draws histories in a thread of its own, so that proxies and members are not held up.
 */
import { parentPort, workerData } from "node:worker_threads";
import { judge, pictureAround, smallestPicture } from "./judge.ts";
import { readHistory } from "./recorder.ts";

/** What to do with a history: judge it, or draw it, quickly or as small as can be. */
export interface JudgeOrder {
  readonly path: string;
  readonly what: "judge" | "draw around" | "draw smallest";
  /** What is to be drawn. */
  readonly violation?: string | undefined;
}

const { path, what, violation = "" } = workerData as JudgeOrder;
const lines = readHistory(path);
const title = `calls of ${path}`;
if (what === "judge") parentPort!.postMessage(judge(lines));
else
  parentPort!.postMessage(
    what === "draw around" ? pictureAround(lines, title, violation) : smallestPicture(lines, title),
  );
