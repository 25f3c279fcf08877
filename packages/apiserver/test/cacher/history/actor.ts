/** What the parts of a random history share: stores, caches, time and the list of problems. */
import { type Random, silentLogger } from "@quorate/host";
import type { ManualClock } from "@quorate/host/testing";
import { Cacher } from "../../../src/cacher/cacher.ts";
import { ApiError } from "../../../src/meta/status.ts";
import { StorageError } from "../../../src/storage/errors.ts";
import { FakeStorage } from "../support/fake-storage.ts";
import type { History, Interest } from "../support/history.ts";
import { WIDGETS } from "../support/world.ts";

/** Small, so that its edges are reached all the time. */
const WINDOW = {
  lowerCapacity: 8,
  upperCapacity: 32,
  freshMs: 2000,
  maxBytes: 2500,
  snapshotInterval: 5,
};
export const { lowerCapacity: LEAST_WINDOW } = WINDOW;

export const NAMESPACES = ["a", "b", "c"];
const NAMES = ["u", "v", "w", "x", "y", "z"];
const COLORS = ["red", "green"];
const NODES = ["n1", "n2", "n3"];

/** A Cacher and the storage below it. */
export interface Server {
  readonly storage: FakeStorage;
  readonly cacher: Cacher;
}

export class Run {
  readonly clock: ManualClock;
  readonly history: History;
  readonly random: Random;
  readonly servers: readonly Server[];
  readonly problems: string[] = [];
  /** The latest revision when both caches had been filled. */
  startRevision = 0;
  /** How often what happened, for the summary. */
  readonly counts = new Map<string, number>();
  /** Actors begin nothing new. */
  isOver = false;
  /** Nothing fails and no client is slow. */
  isHealed = false;

  constructor(clock: ManualClock, history: History, random: Random) {
    this.clock = clock;
    this.history = history;
    this.random = random;
    this.servers = [0, 1].map((number) => this.#server(number));
  }

  #server(number: number): Server {
    const random = this.random.fork(`server ${number}`);
    const delays = { callMs: random.below(20), eventMs: random.below(60) };
    const storage = new FakeStorage(this.history, this.clock, random.fork("storage"), delays);
    const cacher = new Cacher(
      { ...WIDGETS, window: WINDOW, fill: random.below(2) === 0 ? "list" : "watch-list" },
      { storage, clock: this.clock, random: random.fork("cacher"), logger: silentLogger },
    );
    return { storage, cacher };
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  problem(text: string): void {
    this.problems.push(
      `at ${this.clock.monotonicMs()} ms, revision ${this.history.revision}: ${text}`,
    );
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.clock.after(ms, resolve);
    });
  }

  server(random: Random): Server {
    return this.servers[random.below(this.servers.length)];
  }

  key(random: Random): string {
    return `/widgets/${pick(random, NAMESPACES)}/${pick(random, NAMES)}`;
  }

  labels(random: Random): { color: string } {
    return { color: pick(random, COLORS) };
  }

  spec(random: Random): { node: string } {
    return { node: pick(random, NODES) };
  }

  /** One object, a namespace or all, with or without selectors. */
  interest(random: Random): Interest {
    const key = pick(random, [
      "/widgets/",
      "/widgets/",
      `/widgets/${pick(random, NAMESPACES)}/`,
      this.key(random),
    ]);
    return {
      key,
      color: random.below(3) === 0 ? pick(random, COLORS) : "",
      node: random.below(4) === 0 ? pick(random, NODES) : "",
    };
  }
}

export function pick<T>(random: Random, choices: readonly T[]): T {
  return choices[random.below(choices.length)];
}

/** The code of an error that faults explain; rethrows others. */
export function expectedCode(error: unknown): string {
  if (error instanceof StorageError || error instanceof ApiError) return error.code;
  throw error;
}
