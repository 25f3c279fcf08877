/** Hunts a planted bug by random histories, in a thread with its own build of the Cacher. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { editOf } from "@quorate/sim";
import type { CacherBug } from "../../mutants.ts";
import type { Caught, Hunt } from "./planted-worker.ts";

const MAX_SEEDS = 40;

/** The first seed that shows the bug; undefined if none of 40 does. */
export async function hunt(
  bug: CacherBug,
  place: Hunt["place"] = "storage",
): Promise<Caught | undefined> {
  const { below } = bug;
  const workerData: Hunt = { edit: editOf(bug), below, maxSeeds: MAX_SEEDS, place };
  const worker = new Worker(new URL("./planted-worker.ts", import.meta.url), { workerData });
  const [caught] = (await once(worker, "message")) as [Caught | undefined];
  await worker.terminate();
  return caught;
}
