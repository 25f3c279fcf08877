/**
 * A random history from a seed: two Cachers on one store, clients that write, read and watch,
 * faults, and a judge for everything that a client has seen.
 *
 *     10 s   clients and faults
 *      2 s   clients without faults
 *      quiet: everything has been sent; then a minute later the bookmarks
 */
import { SeededRandom } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { History } from "../support/history.ts";
import { widget } from "../support/object.ts";
import { Run } from "./actor.ts";
import type { Below } from "./below.ts";
import { disturb, heal } from "./nemesis.ts";
import { read } from "./readers.ts";
import { WatchClient } from "./watch-clients.ts";
import { Increments, write } from "./writers.ts";

const FAULTY_MS = 10_000;
const HEALED_MS = 2000;
/** Bookmarks come each minute, and the stores report progress each half one. */
const BOOKMARKS_MS = 125_000;
const WATCHERS = 8;

export interface HistoryResult {
  readonly problems: readonly string[];
  readonly counts: ReadonlyMap<string, number>;
  readonly revision: number;
}

export async function runHistory(seed: bigint, below: Below = "fake"): Promise<HistoryResult> {
  const random = new SeededRandom(seed);
  const clock = new ManualClock();
  const run = new Run(clock, new History(), random, below);
  for (let i = 0; i < 5; i++) {
    const key = run.key(random);
    const object = widget(key, run.labels(random), run.spec(random));
    const update = run.servers[0].cacher.guaranteedUpdate(key, () => ({ object }), {
      ignoreNotFound: true,
    });
    await clock.advanceAsync(200);
    await update;
  }
  await clock.advanceAsync(2000);
  run.startRevision = run.history.revision;
  const increments = new Increments();
  const clients = Array.from({ length: WATCHERS }, (_, i) => {
    return new WatchClient(run, random.fork(`watcher ${i}`));
  });
  const actors: Promise<void>[] = [disturb(run, random.fork("nemesis"))];
  for (const i of [0, 1]) {
    actors.push(write(run, random.fork(`writer ${i}`)));
    actors.push(read(run, random.fork(`reader ${i}`)));
  }
  for (const i of [0, 1, 2]) actors.push(increments.increment(run, random.fork(`counter ${i}`)));
  for (const client of clients) actors.push(client.watch());
  const failed = Promise.all(actors).then(
    () => {},
    (error: Error) => run.problem(`${error.stack}`),
  );
  await clock.advanceAsync(FAULTY_MS);
  heal(run);
  await clock.advanceAsync(HEALED_MS);
  run.isOver = true;
  await clock.advanceAsync(10_000);
  await failed;
  increments.judge(run);
  const ends = Promise.all(clients.map((client) => client.judgeEnd()));
  await clock.advanceAsync(10_000);
  await ends;
  if (run.problems.length === 0) {
    await clock.advanceAsync(BOOKMARKS_MS);
    for (const client of clients) client.judgeBookmark();
  }
  for (const { cacher, connection } of run.servers) {
    for (const { name, value, labels } of cacher.metrics.samples())
      if (value > 0) run.count(`metric ${name} ${labels["fallback"] ?? ""}`);
    if (cacher.watcherCount > 0 && run.problems.length === 0)
      run.problem(`${cacher.watcherCount} watchers are left`);
    await cacher.close();
    await clock.settle();
    if (connection.watchCount > 0) run.problem("a watch of the store is left");
  }
  return { problems: run.problems, counts: run.counts, revision: run.history.revision };
}
