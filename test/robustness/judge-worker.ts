/** Judges a history in a thread of its own, so that the proxies and clients of the next round are not held up. */
import { parentPort, workerData } from "node:worker_threads";
import { judge } from "./judge.ts";
import { readHistory } from "./recorder.ts";

parentPort!.postMessage(judge(readHistory(workerData as string)));
