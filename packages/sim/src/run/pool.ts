/**
 * Seeds on several processors: a few workers, each given its next seed when it is done with one.
 */
import { Worker } from "node:worker_threads";
import type { SourceEdit } from "@quorate/host/testing";
import { editFor } from "../planted/catalogue.ts";
import type { Order, Summary, WorkerData } from "./worker.ts";

/**
 * For what a run makes and drops: with Node's own 16 MiB a third more time goes into collecting it.
 */
const YOUNG_MIB = 96;

/** What to run, and who hears of it. */
export interface PoolOptions {
  readonly workers: number;
  /** The name of a planted bug. */
  readonly bug?: string | undefined;
  /** A change of the members' source; that of the bug unless said. */
  readonly edit?: SourceEdit | undefined;
  /** The next seed; undefined when there is none. */
  next(): Order | undefined;
  /** Called for each run, as it ends. */
  done(summary: Summary): void;
}

/** Resolves when no seed is left and the last run has ended; rejects if a worker fails. */
export async function runPool({
  workers,
  bug,
  edit = editFor(bug),
  next,
  done,
}: PoolOptions): Promise<void> {
  const work = () =>
    new Promise<void>((resolve, reject) => {
      const first = next();
      if (first === undefined) {
        resolve();
        return;
      }
      const workerData: WorkerData = { bug, edit };
      const worker = new Worker(new URL("./worker.ts", import.meta.url), {
        workerData,
        resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MIB },
      });
      worker.on("error", reject);
      worker.on("message", (summary: Summary) => {
        done(summary);
        const order = next();
        if (order !== undefined) worker.postMessage(order);
        else worker.terminate().then(() => resolve(), reject);
      });
      worker.postMessage(first);
    });
  await Promise.all(Array.from({ length: workers }, work));
}

/** The seeds from `first` on, `count` of them or until `isOver` is true. */
export function seedsFrom(
  first: number,
  count: number,
  isOver: () => boolean = () => false,
  changes?: Order["changes"],
): () => Order | undefined {
  let given = 0;
  return () => (given < count && !isOver() ? { seed: first + given++, changes } : undefined);
}
