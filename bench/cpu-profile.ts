/** V8's CPU profiles (--cpu-prof): from samples in time to a tree of functions. */

/**
 * A profile as V8 writes it: a tree of call frames, and for each sample its leaf and the
 * microseconds since the one before.
 */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: {
      readonly functionName: string;
      readonly url: string;
      readonly lineNumber: number;
    };
    readonly children?: readonly number[];
  }[];
  /** Of the monotonic clock, in microseconds. */
  readonly startTime: number;
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** A profile of allocations as V8 samples it: bytes in a call frame itself, and its callees. */
export interface AllocationProfile {
  readonly head: AllocationNode;
}

interface AllocationNode {
  readonly callFrame: CpuProfile["nodes"][number]["callFrame"];
  readonly selfSize: number;
  readonly children: readonly AllocationNode[];
}

/** A function, as called from its parent. */
export interface Frame {
  /** Its name and where it is: "apply packages/store/src/apply.ts:20". */
  readonly name: string;
  /** Milliseconds (of an allocation profile: kilobytes) in itself, and with all that it called. */
  selfMs: number;
  totalMs: number;
  readonly children: Frame[];
}

/** The function under which V8 counts the time in which the loop waits for work. */
const idleName = "(idle)";

/**
 * The tree of what ran between two times of the monotonic clock (microseconds), and how long it
 * waited for work meanwhile.
 */
export function frames(
  profile: CpuProfile,
  fromUs: number,
  toUs: number,
  root: string,
): { tree: Frame; idleMs: number } {
  const selfMs = new Map<number, number>();
  let nowUs = profile.startTime;
  for (const [index, id] of profile.samples.entries()) {
    // A sample stands for the time up to the next one.
    nowUs += profile.timeDeltas[index];
    const untilUs = nowUs + (profile.timeDeltas[index + 1] ?? 0);
    const withinUs = Math.min(untilUs, toUs) - Math.max(nowUs, fromUs);
    if (withinUs > 0) selfMs.set(id, (selfMs.get(id) ?? 0) + withinUs / 1000);
  }
  const byId = new Map(profile.nodes.map((node) => [node.id, node]));
  let idleMs = 0;
  const build = (id: number): Frame | undefined => {
    const node = byId.get(id)!;
    const own = selfMs.get(id) ?? 0;
    if (node.callFrame.functionName === idleName) {
      idleMs += own;
      return undefined;
    }
    const children = (node.children ?? []).map(build).filter((child) => child !== undefined);
    const totalMs = children.reduce((total, child) => total + child.totalMs, own);
    if (totalMs === 0) return undefined;
    return {
      name: nameOf(node.callFrame, root),
      selfMs: own,
      totalMs,
      children: children.sort((a, b) => b.totalMs - a.totalMs),
    };
  };
  const top = build(profile.nodes[0].id) ?? {
    name: "(root)",
    selfMs: 0,
    totalMs: 0,
    children: [],
  };
  return { tree: top, idleMs };
}

/** The tree of what allocated: kilobytes in the place of milliseconds. */
export function allocationFrames({ head }: AllocationProfile, root: string): Frame {
  const build = ({ callFrame, selfSize, children }: AllocationNode): Frame => {
    const below = children.map(build).sort((a, b) => b.totalMs - a.totalMs);
    const selfMs = selfSize / 1000;
    const totalMs = below.reduce((total, child) => total + child.totalMs, selfMs);
    return { name: nameOf(callFrame, root), selfMs, totalMs, children: below };
  };
  return build(head);
}

function nameOf(
  { functionName, url, lineNumber }: CpuProfile["nodes"][number]["callFrame"],
  root: string,
): string {
  const name = functionName === "" ? "(anonymous)" : functionName;
  if (url === "") return name;
  const path = url.replace(/^file:\/\//, "");
  return `${name} ${path.startsWith(root) ? path.slice(root.length) : path}:${lineNumber + 1}`;
}

export interface FunctionTime {
  readonly name: string;
  readonly selfMs: number;
  readonly totalMs: number;
}

/**
 * Functions by the time in themselves, most first. A function that calls itself is counted once in
 * its total.
 */
export function functionTimes(tree: Frame): FunctionTime[] {
  const times = new Map<string, { name: string; selfMs: number; totalMs: number }>();
  const open = new Set<string>();
  const visit = (frame: Frame): void => {
    const time = times.get(frame.name) ?? { name: frame.name, selfMs: 0, totalMs: 0 };
    times.set(frame.name, time);
    time.selfMs += frame.selfMs;
    const isOuter = !open.has(frame.name);
    if (isOuter) {
      open.add(frame.name);
      time.totalMs += frame.totalMs;
    }
    for (const child of frame.children) visit(child);
    if (isOuter) open.delete(frame.name);
  };
  visit(tree);
  return [...times.values()].sort((a, b) => b.selfMs - a.selfMs);
}
