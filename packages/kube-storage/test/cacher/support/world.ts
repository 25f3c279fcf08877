/** A Cacher over a fake storage, on a manual clock. */
import { type Random, SeededRandom, silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { Cacher, type CacherOptions } from "../../../src/cacher/cacher.ts";
import {
  EVERYTHING,
  SELECT_ALL,
  type SelectionPredicate,
  type Selector,
} from "../../../src/meta/selectors.ts";
import type { ApiError } from "../../../src/meta/status.ts";
import type { ListOptions, Watch } from "../../../src/storage/interface.ts";
import { FakeStorage } from "./fake-storage.ts";
import { History, type Interest, type Seen } from "./history.ts";
import { attributesOf, RESOURCE_PREFIX, WIDGET } from "./object.ts";

export const WIDGETS: CacherOptions = {
  kind: WIDGET,
  resource: { group: WIDGET.group, resource: "widgets" },
  resourcePrefix: RESOURCE_PREFIX,
  attributesOf,
  indexFields: ["spec.node"],
  historyRevisions: 0,
};

export class World {
  readonly clock = new ManualClock();
  readonly history = new History();
  readonly random: Random;
  readonly storage: FakeStorage;
  readonly cacher: Cacher;

  constructor(options: Partial<CacherOptions> = {}, seed = 1n, start?: (world: World) => void) {
    this.random = new SeededRandom(seed);
    this.storage = this.connect("storage");
    start?.(this);
    this.cacher = this.cacherOver(this.storage, options);
  }

  connect(name: string): FakeStorage {
    const delays = { callMs: 2, eventMs: 2 };
    return new FakeStorage(this.history, this.clock, this.random.fork(name), delays);
  }

  cacherOver(storage: FakeStorage, options: Partial<CacherOptions> = {}): Cacher {
    return new Cacher(
      { ...WIDGETS, ...options },
      { storage, clock: this.clock, random: this.random.fork("cacher"), logger: silentLogger },
    );
  }

  /** Moves time, and lets promises settle. */
  async run(ms: number): Promise<void> {
    await this.clock.advanceAsync(ms);
    await this.clock.settle();
  }

  /** The result of a call, for which time moves on. */
  async finish<T>(call: Promise<T>, maxMs = 10_000): Promise<T> {
    let isDone = false;
    const done = () => {
      isDone = true;
    };
    call.then(done, done);
    for (let ms = 0; ms < maxMs && !isDone; ms += 5) await this.run(5);
    if (!isDone) throw new Error(`a call is not done after ${maxMs} ms`);
    return call;
  }
}

/** A selector that demands one value of an attribute; "" for any. */
export function demands(attribute: string, value: string): Selector {
  if (value === "") return EVERYTHING;
  return {
    isEmpty: false,
    matches: (attributes) => attributes[attribute] === value,
    exactValue: (asked) => (asked === attribute ? value : undefined),
    toString: () => `${attribute}=${value}`,
  };
}

export function predicateOf(
  { color, node }: Pick<Interest, "color" | "node">,
  more: Partial<SelectionPredicate> = {},
): SelectionPredicate {
  return {
    ...SELECT_ALL,
    label: demands("color", color),
    field: demands("spec.node", node),
    ...more,
  };
}

export function listOptions(more: Partial<ListOptions> = {}): ListOptions {
  return {
    resourceVersion: "",
    resourceVersionMatch: "",
    predicate: SELECT_ALL,
    recursive: true,
    ...more,
  };
}

/** Records what a watch sends. */
export class Recorder {
  readonly seen: Seen[] = [];
  /** Of each bookmark, whether it ends the initial events. */
  readonly initialEnds: boolean[] = [];
  ended: { readonly error: ApiError | undefined } | undefined;
  readonly watch: Watch;
  isSlow = false;

  constructor(watch: Watch) {
    this.watch = watch;
    watch.start({
      event: ({ type, object }) => {
        const text = new TextDecoder().decode(object.json());
        this.seen.push({ type, key: object.key, revision: object.resourceVersion, text });
        if (type === "BOOKMARK")
          this.initialEnds.push(
            object.object().metadata.annotations?.["k8s.io/initial-events-end"] === "true",
          );
        return !this.isSlow;
      },
      ended: (error) => {
        this.ended = { error };
      },
    });
  }

  /** "ADDED a@5", … */
  get lines(): string[] {
    return this.seen.map(
      ({ type, key, revision }) => `${type} ${key.split("/").slice(2).join("/")}@${revision}`,
    );
  }
}
