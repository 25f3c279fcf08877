/**
 * ./dev bench cacher: the cache of the API server by itself, over a source in this process.
 *
 *     ./dev bench cacher [--objects 50000] [--watchers 1000] [--events 5000]
 *
 * Each row has its rate, and the longest time for which it held the event loop, in processor time
 * of the thread.
 */

import { silentLogger } from "@quorate/host";
import { nodeClock, nodeRandom } from "@quorate/host/node";
import {
  Cacher,
  EVERYTHING,
  type Selector,
  type Watch,
  type WatchEvent,
} from "@quorate/kube-storage";
import { count, readArguments, valueOption } from "../scripts/dev/command-line.ts";
import { BenchSource, benchAttributes, KIND, keyOf, PREFIX } from "./cacher-source.ts";
import { align } from "./report.ts";

const help = `./dev bench cacher [OPTIONS]: the watch cache by itself`;
const { values } = readArguments(help, {
  objects: valueOption("objects in the cache", "50000"),
  watchers: valueOption("watchers", "1000"),
  events: valueOption("changes of each row", "5000"),
});
const objects = count("objects", values.objects);
const watcherCount = count("watchers", values.watchers);
const events = count("events", values.events);
const LIST_ROUNDS = 20;

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** Processor time of this thread: others on the machine do not count as holding the loop. */
function cpuNow(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** Runs `work`, and adds its row. @param units what the rate counts */
async function row(name: string, units: number, work: () => Promise<unknown>): Promise<void> {
  let isDone = false;
  let longestMs = 0;
  const probe = (async () => {
    for (let last = cpuNow(); !isDone; ) {
      await nextTurn();
      const now = cpuNow();
      longestMs = Math.max(longestMs, now - last);
      last = now;
    }
  })();
  await nextTurn();
  const before = cpuNow();
  await work();
  const cpuMs = cpuNow() - before;
  isDone = true;
  await probe;
  const rate = Math.round((units * 1000) / cpuMs);
  rows.push([name, rate.toLocaleString("en"), cpuMs.toFixed(0), longestMs.toFixed(1)]);
}

const rows: string[][] = [["what", "per CPU second", "CPU ms", "CPU ms of the longest turn"]];

function memoryMiB(): number {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / (1 << 20);
}

const color = (value: string): Selector => ({
  isEmpty: false,
  matches: (labels) => labels["color"] === value,
  exactValue: (label) => (label === "color" ? value : undefined),
  toString: () => `color=${value}`,
});

interface Asked {
  readonly label?: Selector | undefined;
  readonly resourceVersion?: string;
  readonly initial?: boolean;
  readonly recursive?: boolean;
}

function options(asked: Asked = {}) {
  const { label = EVERYTHING, resourceVersion = "0", initial, recursive = true } = asked;
  return {
    resourceVersion: initial === true ? "" : resourceVersion,
    resourceVersionMatch: initial === true ? ("NotOlderThan" as const) : ("" as const),
    recursive,
    sendInitialEvents: initial,
    predicate: {
      label,
      field: EVERYTHING,
      limit: 0,
      continueToken: "",
      allowWatchBookmarks: true,
    },
  };
}

const source = new BenchSource(objects);
const empty = memoryMiB();
const cacher = new Cacher(
  {
    kind: KIND,
    resource: { group: "", resource: "widgets" },
    resourcePrefix: PREFIX,
    attributesOf: benchAttributes,
  },
  { storage: source, clock: nodeClock, random: nodeRandom(), logger: silentLogger },
);
await row(`fill with ${objects} objects`, objects, async () => {
  while (cacher.readiness() !== undefined) await nextTurn();
});
const filled = memoryMiB();

let delivered = 0;
let bytes = 0;
const encoded = new WeakSet<WatchEvent>();
async function watches(key: (i: number) => string, label?: Selector): Promise<() => void> {
  const started: Watch[] = [];
  for (let i = 0; i < watcherCount; i++) {
    const resourceVersion = String(source.revision);
    const recursive = key(i) === PREFIX;
    const watch = await cacher.watch(key(i), options({ label, resourceVersion, recursive }));
    watch.start({
      event: (event) => {
        delivered++;
        if (!encoded.has(event)) {
          encoded.add(event);
          bytes += event.object.json().length;
        }
        return true;
      },
      ended: (error) => {
        throw error ?? new Error("a watch ended");
      },
    });
    started.push(watch);
  }
  await nextTurn();
  return () => {
    for (const watch of started) watch.stop();
  };
}

async function changes(name: string, key: (i: number) => string, label?: Selector): Promise<void> {
  const stop = await watches(key, label);
  delivered = 0;
  await row(`${name}: events`, events, () => source.change(events));
  rows.at(-1)![0] += ` (${delivered.toLocaleString("en")} deliveries)`;
  stop();
}

await row("events without a watcher", events, () => source.change(events));
const before = memoryMiB();
await (async () => {
  const stop = await watches(() => PREFIX);
  const after = memoryMiB();
  rows.push([`memory of ${watcherCount} watchers: ${(after - before).toFixed(1)} MiB`, "", "", ""]);
  stop();
})();
await changes(`${watcherCount} watchers of all`, () => PREFIX);
await changes(`${watcherCount} watchers with a selector`, () => PREFIX, color("red"));
await changes(`${watcherCount} watchers of one object each`, (i) => keyOf(i));

const list = (key: string, label?: Selector, resourceVersion = "0") =>
  cacher.getList(key, options({ label, resourceVersion }));
const repeat = async (work: () => Promise<unknown>) => {
  for (let i = 0; i < LIST_ROUNDS; i++) {
    await work();
    await nextTurn();
  }
};
const tenThousand = `${PREFIX}/ns0`;
const { items } = await list(tenThousand);
await row(`list of ${items.length}`, LIST_ROUNDS, () => repeat(() => list(tenThousand)));
await row(`list of ${items.length}, selected`, LIST_ROUNDS, () =>
  repeat(() => list(tenThousand, color("red"))),
);
await row(`list of ${items.length}, consistent`, LIST_ROUNDS, () =>
  repeat(() => list(tenThousand, undefined, "")),
);
const revision = String(source.revision - 1500);
await row(`list of ${items.length} at an exact revision`, LIST_ROUNDS, () =>
  repeat(() =>
    cacher.getList(tenThousand, {
      ...options({ resourceVersion: revision }),
      resourceVersionMatch: "Exact",
    }),
  ),
);
await row("events, each followed by a list", 2000, async () => {
  for (let i = 0; i < 2000; i++) {
    await source.change(1);
    await list(keyOf(0).replace(/\/[^/]*$/, "/none"));
  }
});
await row(`100 watches with ${items.length} initial events`, 100 * items.length, async () => {
  let ends = 0;
  for (let i = 0; i < 100; i++) {
    const watch = await cacher.watch(tenThousand, options({ initial: true }));
    watch.start({
      event: ({ type }) => {
        if (type === "BOOKMARK") {
          ends++;
          watch.stop();
        }
        return true;
      },
      ended: () => {},
    });
  }
  while (ends < 100) await nextTurn();
});

console.log(align(rows, [0]));
console.log(`cache of ${objects} objects: ${(filled - empty).toFixed(1)} MiB`);
console.log(`their stored bytes: ${(source.storedBytes / (1 << 20)).toFixed(1)} MiB`);
if (globalThis.gc === undefined) console.log("(memory without --expose-gc is too high)");
await cacher.close();
if (bytes === 0) throw new Error("nothing was encoded");
