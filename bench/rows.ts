/** What is measured: each row of the table is a load on a running cluster. */
import {
  getTemplate,
  listTemplate,
  putTemplate,
  type Step,
  type Target,
  txnTemplate,
  UnaryLoad,
} from "./calls.ts";
import { keyOf, keysOf, listedLetter, loadedLetter, randomUint32, randomValue } from "./keys.ts";
import type { Load } from "./load.ts";
import { NpmClientLoad } from "./stock.ts";
import { FanOutLoad, KeepAliveLoad } from "./streams.ts";

/** What the rows share on one cluster. */
export interface Ground {
  readonly target: Target;
  /**
   * The leader's URL: a single client goes there, so that luck does not decide whether its writes
   * make one hop more.
   */
  readonly leader: string;
  readonly keys: readonly Buffer[];
  readonly value: Buffer;
  /** Keys and their values' size in the listing. */
  readonly listedKeys: number;
  /** The number of the next key of the sequential rows. */
  nextSequential: number;
}

/**
 * A load, and how many revisions its calls so far must have made; undefined if the load does not
 * know.
 */
export interface RunningLoad extends Load {
  readonly revisions: number;
}

export interface Row {
  readonly name: string;
  /** The goal: rate of ours by rate of etcd's; undefined where there is none. */
  readonly goal?: number;
  load(ground: Ground): RunningLoad;
}

export const listedValueBytes = 1024;
const sequentialLetter = "s";

/** Up to 100 connections, which 1000 clients share, as etcd's own benchmarks do it. */
const connectionsOf = (clients: number): number => Math.min(clients, 100);

function targetOf(ground: Ground, clients: number): Target {
  return clients === 1 ? { ...ground.target, urls: [ground.leader] } : ground.target;
}

function unary(ground: Ground, clients: number, next: () => Step): UnaryLoad {
  return new UnaryLoad(targetOf(ground, clients), clients, connectionsOf(clients), next);
}

/** Steps with one template and random keys of those that were loaded. */
function onRandomKeys(ground: Ground, step: Omit<Step, "key">): () => Step {
  const next = randomUint32(42);
  const steps = ground.keys.map((key) => ({ ...step, key }));
  return () => steps[next() % steps.length];
}

function putRandom(ground: Ground, clients: number): RunningLoad {
  return unary(
    ground,
    clients,
    onRandomKeys(ground, { template: putTemplate(ground.value), revisions: 1 }),
  );
}

function putSequential(ground: Ground, clients: number): RunningLoad {
  const template = putTemplate(ground.value);
  return unary(ground, clients, () => ({
    template,
    key: keyOf(sequentialLetter, ground.nextSequential++),
    revisions: 1,
  }));
}

function get(ground: Ground, serializable: boolean): RunningLoad {
  // An answer with a header alone would be smaller than the value.
  const leastAnswerBytes = ground.value.length;
  return unary(
    ground,
    1000,
    onRandomKeys(ground, { template: getTemplate(serializable), revisions: 0, leastAnswerBytes }),
  );
}

function list(ground: Ground): RunningLoad {
  const template = listTemplate(listedLetter.charCodeAt(0), false);
  const leastAnswerBytes = ground.listedKeys * listedValueBytes;
  const step: Step = { template, key: Buffer.alloc(0), revisions: 0, leastAnswerBytes };
  return unary(ground, 10, () => step);
}

function mixed(ground: Ground): RunningLoad {
  const gets = onRandomKeys(ground, { template: getTemplate(false), revisions: 0 });
  const puts = onRandomKeys(ground, { template: putTemplate(ground.value), revisions: 1 });
  const next = randomUint32(5);
  return unary(ground, 1000, () => (next() % 5 === 0 ? puts() : gets()));
}

function txn(ground: Ground): RunningLoad {
  return unary(
    ground,
    1000,
    onRandomKeys(ground, { template: txnTemplate(ground.value), revisions: 1 }),
  );
}

function keepAlive(ground: Ground): RunningLoad {
  return Object.assign(new KeepAliveLoad(ground.target, 1000, connectionsOf(1000)), {
    revisions: 0,
  });
}

/** All rows, in the order in which they run. */
export const rows: readonly Row[] = [
  { name: "put random, 1 client", goal: 1.2, load: (ground) => putRandom(ground, 1) },
  { name: "put random, 100 clients", goal: 2, load: (ground) => putRandom(ground, 100) },
  { name: "put random, 1000 clients", goal: 2, load: (ground) => putRandom(ground, 1000) },
  { name: "put sequential, 1 client", goal: 1.2, load: (ground) => putSequential(ground, 1) },
  { name: "put sequential, 100 clients", goal: 2, load: (ground) => putSequential(ground, 100) },
  { name: "put sequential, 1000 clients", goal: 2, load: (ground) => putSequential(ground, 1000) },
  { name: "get linearizable, 1000 clients", goal: 3, load: (ground) => get(ground, false) },
  { name: "get serializable, 1000 clients", load: (ground) => get(ground, true) },
  { name: "list 10,000 x 1 KiB, 10 clients", goal: 2, load: list },
  { name: "txn compare and put, 1000 clients", goal: 3, load: txn },
  { name: "mixed 80 % get 20 % put, 1000 clients", load: mixed },
  {
    name: "watch, 1000 on one prefix, 10 writers",
    goal: 2,
    load: ({ target, value }) =>
      new FanOutLoad(target, { watches: 1000, connections: 100, writers: 10, value }),
  },
  { name: "lease keep-alive, 1000 clients", goal: 2, load: keepAlive },
  {
    name: "put by npm's etcd3, 100 clients",
    load: ({ target, keys, value }) => new NpmClientLoad(target, 100, keys, value),
  },
];

/** Keys and values that the rows look for. */
export function ground(
  target: Target,
  leader: string,
  keyCount: number,
  valueBytes: number,
  listedKeys: number,
): Ground {
  return {
    target,
    leader,
    keys: keysOf(loadedLetter, keyCount),
    value: randomValue(valueBytes),
    listedKeys,
    nextSequential: 0,
  };
}

/** Puts that make the ground ready: every key once. */
export function preparation({ leader, target, keys, value, listedKeys }: Ground): {
  load: UnaryLoad;
  count: number;
} {
  const small = putTemplate(value);
  const large = putTemplate(randomValue(listedValueBytes));
  const steps: Step[] = [
    ...keys.map((key) => ({ template: small, key, revisions: 1 as const })),
    ...keysOf(listedLetter, listedKeys).map((key) => ({
      template: large,
      key,
      revisions: 1 as const,
    })),
  ];
  let at = 0;
  return {
    load: new UnaryLoad({ ...target, urls: [leader] }, 200, 10, () => steps[at++]),
    count: steps.length,
  };
}
