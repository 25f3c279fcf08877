/**
 * How many steps a turn of a simulated member takes, how much of a thing it does at a time, and how
 * much memory it plans with.
 */
import { SeededRandom } from "@quorate/host";
import { MEMBER_BOUNDS, type MemberBounds, type MemberDeps, WATCH_LIMITS } from "@quorate/member";
import { SLICE_LIMITS } from "@quorate/member/testing";
import { MAX_PENDING_OPS } from "@quorate/store";
import type { SimOptions } from "./base/options.ts";
import type { LeaseCheckOptions } from "./check/lease-lives.ts";

/** Entries are applied, and ranges read, key by key, so that small ones take many slices too. */
const EVERY_STEP = { maxSliceMs: Number.POSITIVE_INFINITY, stepKeys: 1 };

/** Of applying entries; undefined: as in the product. */
export function applyLimitsOf({ applySteps, readSteps }: SimOptions): MemberDeps["applyLimits"] {
  if (applySteps === 0 && readSteps === 0) return undefined;
  return { ...EVERY_STEP, maxSliceSteps: applySteps === 0 ? Number.POSITIVE_INFINITY : applySteps };
}

/** Of reading ranges; undefined: as in the product. */
export function sliceLimitsOf(options: SimOptions): MemberDeps["sliceLimits"] {
  const { readSteps, smallSteps } = options;
  if (readSteps === 0 && !smallSteps) return undefined;
  const steps = { turnSteps: readSteps, quantumSteps: 1, mostSmallKeys: 0 };
  return {
    ...SLICE_LIMITS,
    ...(readSteps === 0 ? {} : steps),
    ...(smallSteps ? drawn(options.seed, "slices", SLICE_LIMITS, SMALL_SLICES) : {}),
  };
}

/** What a few requests of the simulator's clients reach. */
const SMALL_LOG: MemberDeps["logMemory"] = {
  maxQueuedBytes: 64_000,
  maxUncommittedBytes: 2000,
  maxLogBytes: 20_000,
  maxCatchUpBytes: 4000,
};

const SMALL_WATCHES: MemberDeps["watchLimits"] = {
  ...WATCH_LIMITS,
  maxStreamBacklogBytes: 2000,
  maxTotalBacklogBytes: 8000,
  maxResponseRevisions: 3,
  maxResponseBytes: 1000,
  maxRecentEvents: 8,
  maxRecentBytes: 4000,
  maxSliceEvents: 4,
  maxWatchersAtOnce: 1,
};

/** Bounds in bytes; those that are undefined are as in a machine with much memory. */
export function memoryLimitsOf({
  smallBounds,
}: SimOptions): Pick<MemberDeps, "logMemory" | "watchLimits"> {
  return smallBounds ? { logMemory: SMALL_LOG, watchLimits: SMALL_WATCHES } : {};
}

/** Of reads; how many steps they take has options of its own. */
const SMALL_SLICES = {
  runningPerConnection: [1, 2],
  turnGets: [1, 2],
  maxPerClient: [3, 10],
  maxTotal: [6, 20],
  maxFetches: [1, 2],
};

/** Values of each bound that a few requests of the simulator's clients reach. */
const SMALL: {
  readonly [Part in keyof MemberBounds]: {
    readonly [Bound in keyof MemberBounds[Part]]: readonly number[];
  };
} = {
  raft: {
    maxMessageBytes: [1, 100, 2000],
    maxInflightMessages: [1, 2, 8],
    maxInflightBytes: [1, 300, 5000],
    maxCommittedBytesPerReady: [1, 100, 2000],
    maxPendingReads: [1, 4],
  },
  loop: {
    maxWaitingProposals: [4, 20],
    maxWaitingReads: [4, 20],
    maxApplyGapEntries: [3, 20],
    maxPreferredGapEntries: [4, 30],
    maxBatchBytes: [1, 100, 2000],
    maxTurnBytes: [1, 200, 3000],
    maxSuccessions: [1, 2],
    maxReadysPerTurn: [1, 2],
    byteMarkEveryBytes: [1, 1000],
    maxSnapshotFiles: [1, 2],
  },
  lease: {
    maxRevokesPerSecond: [2, 20],
    maxHurriedRevokesPerSecond: [4, 30],
    maxInflightRevokes: [1, 4],
    maxInflightCheckpoints: [1, 2],
    maxCheckpointLeases: [1, 3],
    maxRevokesPerTurn: [1, 2],
    maxLooksPerTurn: [1, 3],
    maxBatchLeases: [1, 3],
    maxInflightBatches: [1, 2],
    maxWaitingRenewals: [2, 8],
  },
  store: {
    stepRecords: [1, 3],
    stepMemoryRecords: [1, 3],
    stepBytes: [1, 500],
    batchBytes: [1, 1000],
    syncRecords: [1, 2],
    fetchedRecords: [1, 3],
    sliceBytes: [1, 300],
    openChanges: [1, 2],
    stepUsers: [1, 2],
    pendingBytes: [500, 20_000],
  },
};

/**
 * A third of the bounds is as in the product, the others are small, each by its own stream: one
 * more bound changes no other. Undefined: all as in the product.
 */
export function boundsOf({ seed, smallSteps }: SimOptions): MemberBounds | undefined {
  if (!smallSteps) return undefined;
  const { raft, loop, lease, store } = MEMBER_BOUNDS;
  const machine = drawn(seed, "raft", raft, SMALL.raft);
  const { maxInflightBytes, maxMessageBytes } = machine;
  return {
    raft: { ...machine, maxInflightBytes: Math.max(maxInflightBytes, maxMessageBytes) },
    loop: drawn(seed, "loop", loop, SMALL.loop),
    lease: drawn(seed, "lease", lease, SMALL.lease),
    store: drawn(seed, "store", store, SMALL.store),
  };
}

/** Draws those bounds that have small values, each of a stream of its own. */
function drawn<T extends object>(
  seed: number,
  part: string,
  product: T,
  small: Readonly<Record<string, readonly number[]>>,
): T {
  const random = new SeededRandom(BigInt(seed)).fork("bounds");
  const result = { ...product } as Record<string, number>;
  for (const [name, choices] of Object.entries(small)) {
    const own = random.fork(`${part} ${name}`);
    if (own.below(3) > 0) result[name] = choices[own.below(choices.length)];
  }
  return result as T;
}

/** What a judge of leases has to know of a run. */
export function leaseCheckOptionsOf(options: SimOptions): LeaseCheckOptions {
  const { maxRevokesPerSecond } = (boundsOf(options) ?? MEMBER_BOUNDS).lease;
  return { ...options, maxRevokesPerSecond };
}

/** --backend-batch-limit. */
export function batchOpsOf({ seed, smallSteps }: SimOptions): number {
  if (!smallSteps) return MAX_PENDING_OPS;
  const random = new SeededRandom(BigInt(seed)).fork("bounds").fork("batch limit");
  return [MAX_PENDING_OPS, 2, 20][random.below(3)];
}
