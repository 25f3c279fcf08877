/**
 * Two Cachers over EtcdStore on a simulated cluster, with clients that write, read and watch, while
 * members crash, networks part and history is compacted. What they see is compared with the
 * simulator's model of the store:
 *
 *     members apply -> model -> History
 *     clients -> Cacher -> EtcdStore -> SimConnection -> members
 */
import { fromLatin1, toUtf8 } from "@quorate/proto";
import {
  type GuestDeps,
  type Guests,
  optionsOf,
  Process,
  ProcessClock,
  type RunResult,
  runSeed,
  Violation,
} from "@quorate/sim";
import type { KubeObject } from "../../../src/meta/object.ts";
import { Run } from "../history/actor.ts";
import { read } from "../history/readers.ts";
import { WatchClient } from "../history/watch-clients.ts";
import { Increments, write } from "../history/writers.ts";
import { ROOT } from "../support/cluster-connection.ts";
import { History } from "../support/history.ts";
import { RESOURCE_PREFIX } from "../support/object.ts";
import { SimConnection } from "./sim-connection.ts";

const WATCHERS = 6;
/** Bookmarks come each minute, and the stores report progress each half one. */
const BOOKMARKS_MS = 100_000;
/** For so long after the faults the clients go on. */
const HEALED_MS = 2000;
const PREFIX = `${ROOT}${RESOURCE_PREFIX}/`;

class ApiServers implements Guests {
  readonly run: Run;
  readonly #deps: GuestDeps;
  readonly #history = new History();
  readonly #increments = new Increments();
  readonly #watchers: WatchClient[];
  #actors: Promise<unknown> = Promise.resolve();
  #reported = 0;
  /** The keys of the resource at the history's revision. */
  #present: ReadonlySet<string> = new Set();

  constructor(deps: GuestDeps, faultPhaseMs: number) {
    this.#deps = deps;
    const clock = new ProcessClock(deps.scheduler, new Process("apiserver"), 1);
    const compactor = new SimConnection(deps, deps.random.fork("compactor"));
    this.run = new Run(clock, this.#history, deps.random, {
      connect: (number, random) => new SimConnection(deps, random.fork(`server ${number}`)),
      compact: (revision) => void compactor.compact(revision),
    });
    // Until both caches are filled they may begin anywhere.
    this.run.startRevision = Number.POSITIVE_INFINITY;
    this.#watchers = Array.from(
      { length: WATCHERS },
      (_, i) => new WatchClient(this.run, deps.random.fork(`watcher ${i}`)),
    );
    deps.scheduler.after(0, () => this.#start());
    deps.scheduler.after(faultPhaseMs, () => {
      this.run.isHealed = true;
    });
    deps.scheduler.after(faultPhaseMs + HEALED_MS, () => {
      this.run.isOver = true;
    });
  }

  #start(): void {
    const { run } = this;
    const fork = (name: string) => this.#deps.random.fork(name);
    const actors: Promise<void>[] = this.#watchers.map((client) => client.watch());
    for (const i of [0, 1]) {
      actors.push(write(run, fork(`writer ${i}`)), read(run, fork(`reader ${i}`)));
      actors.push(this.#increments.increment(run, fork(`counter ${i}`)));
    }
    actors.push(this.#compact(), this.#awaitFilled());
    this.#actors = Promise.all(actors).catch((error) => this.#deps.fail(error));
  }

  async finish(): Promise<void> {
    const { run } = this;
    await this.#actors;
    this.#increments.judge(run);
    await Promise.all(this.#watchers.map((client) => client.judgeEnd()));
    this.#report();
    await run.pause(BOOKMARKS_MS);
    for (const client of this.#watchers) client.judgeBookmark();
    for (const { cacher, connection } of run.servers) {
      if (cacher.watcherCount > 0) run.problem(`${cacher.watcherCount} watchers are left`);
      await cacher.close();
      await run.pause(10);
      if (connection.watchCount > 0) run.problem("a watch of the store is left");
    }
    this.#report();
  }

  /** The first problem ends the run. */
  #report(): void {
    if (this.run.problems.length <= this.#reported) return;
    this.#reported = this.run.problems.length;
    throw new Violation(`API-1: ${this.run.problems[0]}`);
  }

  /** What the model of the cluster has becomes the history that the clients are judged by. */
  look(): void {
    const { safety } = this.#deps;
    const history = this.#history;
    history.compactRevision = safety.compactRevision;
    while (history.revision < safety.lastState.revision) this.#follow(history.revision + 1);
  }

  #follow(revision: number): void {
    const { keys } = this.#deps.safety.stateAt(revision)!;
    const present = new Set<string>();
    for (const [key, { mod, value }] of keys) {
      if (!key.startsWith(PREFIX)) continue;
      present.add(key);
      if (mod === revision) this.#changed(key, JSON.parse(toUtf8(fromLatin1(value))), revision);
    }
    for (const key of this.#present) if (!present.has(key)) this.#changed(key, undefined, revision);
    this.#present = present;
    this.#history.revision = revision;
  }

  #changed(key: string, object: KubeObject | undefined, revision: number): void {
    this.#history.revision = revision - 1;
    this.#history.write(key.slice(ROOT.length), object);
  }

  async #awaitFilled(): Promise<void> {
    const { run } = this;
    while (run.servers.some(({ cacher }) => cacher.readiness() !== undefined)) await run.pause(50);
    run.startRevision = this.#history.revision;
  }

  async #compact(): Promise<void> {
    const { run } = this;
    const random = this.#deps.random.fork("compactions");
    while (!run.isOver) {
      await run.pause(300 + random.below(2500));
      if (!run.isHealed) run.compact(this.#history.revision - random.below(30));
    }
  }
}

export interface ClusterRun {
  readonly result: RunResult;
  /** How often what happened. */
  readonly counts: ReadonlyMap<string, number>;
  readonly revision: number;
}

/** Faults that a cluster may meet without losing or altering data. */
export async function runInCluster(seed: number, faultPhaseMs = 6000): Promise<ClusterRun> {
  const options = optionsOf(seed, undefined, {
    set: {
      faultPhaseMs,
      members: 3,
      clients: 1,
      watchers: 0,
      leaseClients: 0,
      keys: 3,
      wholeApi: false,
      valueBytes: 20,
      thinkMs: 400,
      compactions: 0,
      quotaBytes: 0,
      sabotageEveryMs: 0,
      harshDisks: 0,
      losesMajority: false,
      restores: false,
      hostileEveryMs: 0,
      poisonEveryMs: 0,
      archiveEveryMs: 0,
      operatorEveryMs: 0,
      membershipEveryMs: 0,
      replaceEveryMs: 0,
      churnEveryMs: 0,
      clientWires: false,
      corruption: 0,
      oneWayDials: false,
      theme: "mixed",
    },
  });
  let servers: ApiServers | undefined;
  const result = await runSeed(options, false, (deps) => {
    servers = new ApiServers(deps, faultPhaseMs);
    return servers;
  });
  const { counts, history } = servers!.run;
  return { result, counts, revision: history.revision };
}
