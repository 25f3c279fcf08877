/**
 * The faults: what each does to the cluster and how it ends. A fault takes its targets (a member's
 * process, its disk, the wires of a pair) for itself while it lasts, so that two never undo each
 * other; faults of different targets overlap freely.
 */
import type { Random } from "@quorate/host";
import type { Node, RunningCluster } from "./members.ts";
import { addNobody, moveLeader, removeNobody } from "./membership.ts";
import { OPEN_WIRE, type WireCondition } from "./proxy.ts";

/** One fault, ready to begin. */
export interface Fault {
  /** For people. */
  readonly text: string;
  readonly durationMs: number;
  /** What it takes for itself. */
  readonly targets: readonly string[];
  /** Members that cannot do their part while it lasts. */
  readonly breaks: readonly string[];
  begin(): Promise<void> | void;
  end(): Promise<void> | void;
}

/** What a fault is made from. */
export interface FaultSource {
  readonly running: RunningCluster;
  readonly random: Random;
  /** The member that leads, if anybody knows. */
  readonly leader: string | undefined;
  /** The longest that a process stays stopped. */
  readonly maxPauseMs: number;
}

type Make = (source: FaultSource) => Fault;

const STOP_LIMIT_MS = 60_000;
const CHANGE_LIMIT_MS = 3000;

const between = (random: Random, lowest: number, highest: number): number =>
  lowest + random.below(highest - lowest + 1);

/** The leader as often as another. */
function victim({ running, random, leader }: FaultSource): Node {
  const { nodes } = running;
  const others = nodes.filter(({ name }) => name !== leader);
  return leader !== undefined && random.below(2) === 0
    ? running.node(leader)
    : others[random.below(others.length)];
}

/**
 * A member of ours: what is done to a disk and to a log reaches etcd's not, whose program makes its
 * system calls itself and waits for what reads its log.
 */
function victimOfOurs(source: FaultSource): Node {
  const ours = source.running.nodes.filter(({ program }) => program.name === "quorate");
  const node = victim(source);
  return ours.includes(node) ? node : ours[source.random.below(ours.length)];
}

const role = (node: Node, source: FaultSource): string =>
  node.name === source.leader ? `${node.name} (leader)` : node.name;

const pair = (a: string, b: string): string => `wires ${[a, b].sort().join("-")}`;

function kill(source: FaultSource): Fault {
  const node = victim(source);
  return {
    text: `kill -9 ${role(node, source)}`,
    durationMs: between(source.random, 0, 5000),
    targets: [`process ${node.name}`],
    breaks: [node.name],
    begin: () => node.kill(),
    end: () => node.start(),
  };
}

function killAll(source: FaultSource): Fault {
  const { nodes } = source.running;
  return {
    text: "kill -9 all",
    durationMs: between(source.random, 0, 2000),
    targets: nodes.map(({ name }) => `process ${name}`),
    breaks: [],
    begin: async () => {
      await Promise.all(nodes.map((node) => node.kill()));
    },
    end: () => {
      for (const node of nodes) node.start();
    },
  };
}

function stop(source: FaultSource): Fault {
  const node = victim(source);
  return {
    text: `stop ${role(node, source)}`,
    durationMs: between(source.random, 0, 3000),
    targets: [`process ${node.name}`],
    breaks: [node.name],
    begin: () => node.stop(STOP_LIMIT_MS),
    end: () => node.start(),
  };
}

function pause(source: FaultSource): Fault {
  const node = victim(source);
  return {
    text: `SIGSTOP ${role(node, source)}`,
    durationMs: between(source.random, 1000, source.maxPauseMs),
    targets: [`process ${node.name}`],
    breaks: [node.name],
    begin: () => node.freeze(),
    end: () => node.thaw(),
  };
}

/** What reads a member's log stops: no reason for the member to do so. */
function stopLogReader(source: FaultSource): Fault {
  const node = victimOfOurs(source);
  return {
    text: `SIGSTOP log reader of ${role(node, source)}`,
    durationMs: between(source.random, 1000, source.maxPauseMs),
    targets: [`log ${node.name}`],
    breaks: [],
    begin: () => node.test.signalLogReader("SIGSTOP"),
    end: () => node.test.signalLogReader("SIGCONT"),
  };
}

/** Sets wires of pairs, and opens them again. */
function disturbWires(
  source: FaultSource,
  text: string,
  wires: readonly (readonly [from: string, to: string])[],
  condition: Partial<WireCondition>,
  breaks: readonly string[] = [],
): Fault {
  const all = wires.map(([from, to]) => source.running.wires.wire(from, to));
  return {
    text,
    durationMs: between(source.random, 1000, 12_000),
    targets: [...new Set(wires.map(([from, to]) => pair(from, to)))],
    breaks,
    begin: () => {
      for (const wire of all) wire.set({ ...OPEN_WIRE, ...condition });
    },
    end: () => {
      for (const wire of all) wire.set(OPEN_WIRE);
    },
  };
}

function isolate(source: FaultSource): Fault {
  const node = victim(source);
  const others = source.running.nodes
    .filter(({ name }) => name !== node.name)
    .map(({ name }) => name);
  const state = source.random.below(2) === 0 ? "cut" : "blackhole";
  const wires = others.flatMap((name) => [[node.name, name] as const, [name, node.name] as const]);
  return disturbWires(source, `isolate ${role(node, source)} (${state})`, wires, { state }, [
    node.name,
  ]);
}

/** Everybody from everybody. */
function isolateAll(source: FaultSource): Fault {
  const names = source.running.nodes.map(({ name }) => name);
  const wires = names.flatMap((from) =>
    names.filter((to) => to !== from).map((to) => [from, to] as const),
  );
  return {
    ...disturbWires(source, "isolate all", wires, {
      state: source.random.below(2) === 0 ? "cut" : "blackhole",
    }),
  };
}

/** Two members by chance, the leader among them half of the time. */
function twoOf(source: FaultSource): [string, string] {
  const first = victim(source).name;
  const others = source.running.nodes.filter(({ name }) => name !== first);
  const second = others[source.random.below(others.length)].name;
  return source.random.below(2) === 0 ? [first, second] : [second, first];
}

function cutPair(source: FaultSource): Fault {
  const [a, b] = twoOf(source);
  return disturbWires(
    source,
    `cut ${a} from ${b}`,
    [
      [a, b],
      [b, a],
    ],
    { state: "cut" },
  );
}

function oneWay(source: FaultSource): Fault {
  const [from, to] = twoOf(source);
  return disturbWires(source, `lose ${from}>${to}`, [[from, to]], { state: "blackhole" });
}

function stall(source: FaultSource): Fault {
  const [from, to] = twoOf(source);
  return disturbWires(source, `stall ${from}>${to}`, [[from, to]], { state: "stalled" });
}

function slow(source: FaultSource): Fault {
  const [a, b] = twoOf(source);
  const delayMs = between(source.random, 5, 300);
  const jitterMs = between(source.random, 0, 2 * delayMs);
  const wires = [[a, b] as const, ...(source.random.below(2) === 0 ? [[b, a] as const] : [])];
  return disturbWires(source, `slow ${a}>${b} by ${delayMs}+${jitterMs} ms`, wires, {
    delayMs,
    jitterMs,
  });
}

function throttle(source: FaultSource): Fault {
  const [from, to] = twoOf(source);
  const bytesPerSecond = 1000 * between(source.random, 2, 100);
  return disturbWires(
    source,
    `throttle ${from}>${to} to ${bytesPerSecond / 1000} kB/s`,
    [[from, to]],
    { bytesPerSecond },
  );
}

function slowDisk(source: FaultSource): Fault {
  const node = victimOfOurs(source);
  const syncDelayMs = between(source.random, 20, 700);
  return {
    text: `slow disk of ${role(node, source)}: ${syncDelayMs} ms a sync`,
    durationMs: between(source.random, 1000, 10_000),
    targets: [`syncs ${node.name}`],
    breaks: [],
    begin: () => node.disk.slow(syncDelayMs),
    end: () => node.disk.slow(0),
  };
}

/** Another member leads. */
function otherLeader(source: FaultSource): Fault {
  const { running, random } = source;
  const leader = source.leader === undefined ? victim(source) : running.node(source.leader);
  const others = running.nodes.filter((node) => node !== leader);
  const next = others[random.below(others.length)];
  return {
    text: `${next.name} shall lead after ${role(leader, source)}`,
    durationMs: 0,
    targets: ["leadership"],
    breaks: [],
    begin: () => moveLeader(leader, next, running.cluster.identity),
    end: () => {},
  };
}

/** A learner is added that never comes, and removed. */
function nobody(source: FaultSource): Fault {
  return {
    text: "a learner that never comes",
    durationMs: between(source.random, 1000, 8000),
    targets: ["membership"],
    breaks: [],
    begin: () => addNobody(source.running, CHANGE_LIMIT_MS),
    // At the end of a round it is removed for sure.
    end: () => removeNobody(source.running, CHANGE_LIMIT_MS).catch(() => {}),
  };
}

/**
 * Of the first member, which has a small disk, where it is ours. It is started again when there is
 * space, as an operator would.
 */
function fullDisk(source: FaultSource): Fault {
  const [node] = source.running.nodes;
  if (node.program.name !== "quorate") return nobody(source);
  return {
    text: `full disk of ${role(node, source)}`,
    durationMs: between(source.random, 2000, 9000),
    targets: [`process ${node.name}`],
    breaks: [node.name],
    begin: () => node.disk.fill(),
    end: async () => {
      node.disk.free();
      // One that could go on is started again as well: what it wrote meanwhile must have been
      // whole.
      if (node.test.isRunning) await node.kill();
      node.disk.wasFull = false;
      node.start();
    },
  };
}

/**
 * All kinds, by name, with how often each is chosen against the others. Those of the whole cluster
 * are chosen apart.
 */
export const FAULTS: Readonly<Record<string, { readonly weight: number; readonly make: Make }>> = {
  kill: { weight: 4, make: kill },
  stop: { weight: 1, make: stop },
  pause: { weight: 3, make: pause },
  isolate: { weight: 3, make: isolate },
  cut: { weight: 2, make: cutPair },
  oneWay: { weight: 2, make: oneWay },
  stall: { weight: 2, make: stall },
  slow: { weight: 2, make: slow },
  throttle: { weight: 2, make: throttle },
  slowDisk: { weight: 2, make: slowDisk },
  fullDisk: { weight: 1.5, make: fullDisk },
  stopLogReader: { weight: 1, make: stopLogReader },
  otherLeader: { weight: 2, make: otherLeader },
  nobody: { weight: 1.5, make: nobody },
};

export const WHOLE_CLUSTER_FAULTS: Readonly<Record<string, Make>> = { killAll, isolateAll };
