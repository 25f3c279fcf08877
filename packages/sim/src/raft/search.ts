/** Runs random clusters with a bug in them, in a thread with its own build of Raft. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { SourceEdit } from "@quorate/host/testing";

/** Which seeds are run, with which bug. */
export interface Search {
  readonly edit: SourceEdit;
  readonly first: number;
  readonly count: number;
}

/** A seed that shows the bug, and the first line of what it shows. */
export interface Found {
  readonly seed: number;
  readonly problem: string;
}

/** The first seed that shows the bug; undefined if none does. */
export async function searchClusters(search: Search): Promise<Found | undefined> {
  const worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData: search });
  const [found] = (await once(worker, "message")) as [Found | undefined];
  await worker.terminate();
  return found;
}
