/**
 * Compaction on whole members: by time, by revisions, in short steps, and over a restart.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Clock, silentLogger, Turns } from "@quorate/host";
import { ManualClock, MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import type { AutoCompaction } from "@quorate/member";
import { AutoCompactor, Compactor, StoreRef } from "@quorate/member/testing";
import { Counter, Gauge, Histogram } from "@quorate/metrics";
import {
  CompactionRequest,
  CompactionResponse,
  errorOf,
  fromUtf8,
  InternalRaftRequest,
  PutRequest,
  raftpb,
} from "@quorate/proto";
import { type Applied, MAX_PENDING_OPS, NONE_AWAITED, Store } from "@quorate/store";
import { call, put, World } from "./support/world.ts";

const MINUTE_MS = 60_000;
/** For so long a compaction may hold the loop. */
const MOST_HOLD_MS = 10;

async function started(size: number, flags: readonly string[]): Promise<World> {
  const world = new World(size, flags);
  await world.startAll();
  return world;
}

/** One put, and time until the next: a revision for each `everyMs`. */
async function putFor(world: World, totalMs: number, everyMs: number): Promise<void> {
  for (let passed = 0; passed < totalMs; passed += everyMs) {
    const startMs = world.clock.monotonicMs();
    await world.settled(put(world.leader()!.member!, "k", `${passed}`));
    await world.run(everyMs - (world.clock.monotonicMs() - startMs));
  }
}

const freshMetrics = () => ({
  compactionPause: new Histogram([1]),
  compactionDuration: new Histogram([1]),
  compactionLastSeconds: new Gauge(),
  compactionKeys: new Counter(),
});

test("by time: nothing in the first period, then what is older than the period, once a period", async () => {
  const world = await started(3, ["--auto-compaction-retention", "10s"]);
  const { mvcc } = world.leader()!.member!.store;
  await putFor(world, 9500, 500);
  assert.equal(mvcc.compactRevision, -1);
  await putFor(world, 2000, 500);
  const first = mvcc.compactRevision;
  assert.ok(first >= 1 && first <= 4, `${first}: the revision of 10 s ago`);
  await putFor(world, 7000, 500);
  assert.equal(mvcc.compactRevision, first, "not again before the period is over");
  await putFor(world, 3000, 500);
  assert.ok(
    Math.abs(mvcc.compactRevision - first - 20) <= 2,
    `${mvcc.compactRevision}: two revisions a second`,
  );
  await world.until(() =>
    world.nodes.every(
      ({ member }) => member!.store.mvcc.compactedRevision === mvcc.compactRevision,
    ),
  );
  await world.stopAll();
});

test("by time: a new leader goes on with what it has noted as a follower", async () => {
  const world = await started(3, ["--auto-compaction-retention", "10s"]);
  await putFor(world, 9000, 500);
  const old = world.leader()!;
  await world.settled(old.member!.handOver());
  await world.until(() => world.leader() !== undefined && world.leader() !== old);
  await putFor(world, 2500, 500);
  assert.ok(world.leader()!.member!.store.mvcc.compactRevision > 0);
  await world.stopAll();
});

/** An automatic compactor alone, over a store that gets a revision every `revisionEveryMs`. */
function alone(mode: AutoCompaction, revisionEveryMs: number) {
  const clock = new ManualClock();
  const compacted: number[] = [];
  let answer: Applied["error"];
  const compactor = new AutoCompactor(mode, {
    currentRevision: () => 1 + Math.floor(clock.monotonicMs() / revisionEveryMs),
    isLeader: () => true,
    propose: async (request) => {
      compacted.push(CompactionRequest.decode(request).revision);
      const common = { requestId: 1n, kind: "compaction" } as const;
      if (answer !== undefined) return { ...common, response: undefined, error: answer };
      return { ...common, response: CompactionResponse.create(), error: undefined };
    },
    clock,
    logger: silentLogger,
  });
  compactor.start();
  /** Passes time in minutes, with a turn for promises after each. */
  const pass = async (minutes: number) => {
    for (let i = 0; i < minutes; i++) {
      clock.advance(MINUTE_MS);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return compacted.splice(0);
  };
  return {
    pass,
    stop: () => compactor.stop(),
    fail: (error: Applied["error"]) => {
      answer = error;
    },
  };
}

test("by revisions: all but the newest are compacted, every five minutes", async () => {
  const world = alone({ mode: "revision", retentionRevisions: 10 }, 3 * MINUTE_MS);
  // The eleventh revision comes after half an hour.
  assert.deepEqual(await world.pass(29), []);
  assert.deepEqual(await world.pass(16), [1, 2, 4, 6]);
  // What a client has compacted meanwhile is well; what failed is tried again.
  world.fail(errorOf("Compacted"));
  assert.deepEqual(await world.pass(5), [7]);
  world.fail(errorOf("Timeout"));
  assert.deepEqual(await world.pass(10), [9, 11]);
  world.stop();
  assert.deepEqual(await world.pass(60), []);
});

test("by time: a long period is compacted every hour, a failure is tried again after a tenth", async () => {
  // A revision is a minute.
  const world = alone({ mode: "periodic", retentionMs: 120 * MINUTE_MS }, MINUTE_MS);
  assert.deepEqual(await world.pass(119), []);
  assert.deepEqual(await world.pass(60), [1]);
  // That of two hours ago, and one note more.
  assert.deepEqual(await world.pass(1), [55]);
  world.fail(errorOf("Timeout"));
  assert.deepEqual(await world.pass(66), [115, 121]);
  world.fail(undefined);
  assert.deepEqual(await world.pass(12), [127]);
});

test("by time: a short period is compacted as often as it is long; a store that stands still is left alone", async () => {
  const world = alone({ mode: "periodic", retentionMs: 10 * MINUTE_MS }, MINUTE_MS);
  assert.deepEqual(await world.pass(41), [1, 10, 20, 30]);
  const still = alone({ mode: "periodic", retentionMs: 10 * MINUTE_MS }, 1000 * MINUTE_MS);
  assert.deepEqual(await still.pass(100), [1]);
});

test("physical: the call is answered when the records are gone, durably", async () => {
  const world = await started(3, []);
  const member = world.leader()!.member!;
  for (let i = 0; i < 50; i++) await world.settled(put(member, "hot", `${i}`));
  const before = member.store.liveBytes;
  const bytes = CompactionRequest.encode({ revision: 51, physical: true });
  const answer = CompactionResponse.decode(
    await world.settled(call(member, "/etcdserverpb.KV/Compact", bytes)),
  );
  assert.equal(answer.header?.revision, 51);
  assert.equal(member.store.mvcc.compactedRevision, 51);
  assert.ok(member.store.liveBytes < before / 20);
  // What was answered survives a crash: the walk does not begin again.
  const node = world.leader()!;
  node.disk.crash(world.random.fork("crash"));
  const again = await Store.open(node.keyspaces, "/data/member/store");
  assert.equal(again.mvcc.isCompacting, false);
  await again.close({ flush: false });
});

/**
 * A store with one put for each revision, of `keys` keys in turn, that is about to be compacted
 * whole.
 */
async function bigStore(
  keyspaces: MemoryKeyspaceOpener,
  keys: number,
  revisions: number,
): Promise<Store> {
  const store = await Store.open(keyspaces, "/store");
  for (let i = 0; i < revisions; i++) {
    const bytes = PutRequest.encode({ key: fromUtf8(`k${i % keys}`), value: fromUtf8(`${i}`) });
    const data = InternalRaftRequest.encode({
      header: { ID: 1n, username: "", authRevision: 0 },
      put: bytes,
    });
    store.apply({ type: raftpb.EntryType.EntryNormal, index: i + 1, term: 1, data }, NONE_AWAITED);
    if (store.isFlushDue) await store.flush();
  }
  const compaction = InternalRaftRequest.encode({
    header: { ID: 1n, username: "", authRevision: 0 },
    compaction: CompactionRequest.encode({ revision: revisions + 1 }),
  });
  store.apply({
    type: raftpb.EntryType.EntryNormal,
    index: revisions + 1,
    term: 1,
    data: compaction,
  });
  await store.flush();
  return store;
}

/** CPU time of this thread in milliseconds. */
function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/**
 * Compacts a store of 40,000 revisions whole; returns how long each step computed, in milliseconds.
 */
async function compactWhole(keys: number): Promise<number[]> {
  const store = await bigStore(new MemoryKeyspaceOpener(new MemoryDisk()), keys, 60_000);
  // The time that this thread computes, which a busy machine does not stretch.
  const steps: number[] = [];
  const clock = new ManualClock();
  const pause = new Histogram([1000]);
  const observe = pause.observe.bind(pause);
  pause.observe = (ms) => {
    steps.push(ms);
    observe(ms);
  };
  const endOfTurn = (task: () => void) => clock.endOfTurn(task);
  const real: Clock = {
    turns: new Turns({ monotonicMs: threadMs, endOfTurn }),
    wallMs: () => 0,
    monotonicMs: threadMs,
    after: (ms, task) => clock.after(ms, task),
    every: (ms, task) => clock.every(ms, task),
    endOfTurn,
  };
  let finished = false;
  const compactionKeys = new Counter();
  const compactor = new Compactor({
    store: new StoreRef(store),
    clock: real,
    logger: silentLogger,
    metrics: {
      compactionPause: pause,
      compactionDuration: new Histogram([1]),
      compactionLastSeconds: new Gauge(),
      compactionKeys,
    },
    // As if an operator had asked for all at once.
    batchLimit: 1_000_000,
    pauseMs: 1,
    flush: () => void store.flush(),
    finished: () => {
      finished = true;
    },
    fatal: (error) => assert.fail(String(error)),
  });
  compactor.run();
  for (let i = 0; !finished && i < 100_000; i++) {
    clock.advance(1);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.ok(finished);
  assert.equal(compactionKeys.value, 60_000 - keys);
  await store.close({ flush: true });
  return steps;
}

/**
 * A collection of garbage may fall into one step of a run, but a step that is too long by itself is
 * so in each.
 */
const ATTEMPTS = 3;

for (const [title, keys] of [
  ["many keys", 20_000],
  ["one key with a long history", 1],
] as const) {
  test(`no step of a compaction takes longer than its bound: ${title}`, async (t) => {
    let least = Number.POSITIVE_INFINITY;
    for (let i = 0; i < ATTEMPTS && least >= MOST_HOLD_MS; i++) {
      const steps = await compactWhole(keys);
      const most = Math.max(...steps);
      t.diagnostic(`${steps.length} steps, the longest ${most.toFixed(1)} ms`);
      least = Math.min(least, most);
    }
    assert.ok(least < MOST_HOLD_MS, `in each of ${ATTEMPTS} runs a step took ${least} ms or more`);
  });
}

test("while the disk is behind, a compaction leaves half of a batch to requests", async () => {
  const clock = new ManualClock();
  let writeMs = 0;
  const keyspaces = new MemoryKeyspaceOpener(new MemoryDisk(), {
    clock,
    writeDelayMs: () => writeMs,
  });
  const run = async <T>(task: Promise<T>): Promise<T> => {
    let isOver = false;
    void task.finally(() => {
      isOver = true;
    });
    for (let i = 0; !isOver && i < 100_000; i++) {
      clock.advance(1);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return task;
  };
  const store = await run(bigStore(keyspaces, 10, 30_000));
  writeMs = 60_000;
  const compactor = new Compactor({
    store: new StoreRef(store),
    clock,
    logger: silentLogger,
    metrics: freshMetrics(),
    batchLimit: 1000,
    pauseMs: 1,
    flush: () => void store.flush(),
    finished: () => {},
    fatal: (error) => assert.fail(String(error)),
  });
  compactor.run();
  for (let ms = 0; ms < 200; ms++) {
    clock.advance(1);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(store.isBusy, true);
  assert.equal(store.isFull, false);
  assert.ok(store.pendingOps <= MAX_PENDING_OPS / 2 + 1000, `${store.pendingOps} changes wait`);
  writeMs = 0;
  await run(compactor.idle());
  assert.equal(store.mvcc.compactedRevision, 30_001);
  await run(store.close({ flush: true }));
});

test("a compaction goes on after a restart, and ends with the same result", async () => {
  const keyspaces = new MemoryKeyspaceOpener(new MemoryDisk());
  let store = await bigStore(keyspaces, 100, 3000);
  const hashes = new Set<number>();
  let starts = 0;
  while (store.mvcc.isCompacting) {
    starts++;
    store.mvcc.compactStep(300);
    hashes.add((await store.mvcc.hashKV(0)).hash);
    await store.close({ flush: true });
    store = await Store.open(keyspaces, "/store");
  }
  assert.ok(starts > 5, `${starts} starts`);
  assert.equal(hashes.size, 1, "how far it has come shows in no hash");
  assert.equal(store.mvcc.compactedRevision, 3001);
  await store.close({ flush: false });
});

test("a compaction that fails ends the member, and the waiting request gets the error", async () => {
  const fault = new Error("an invariant does not hold");
  const mvcc = {
    isCompacting: true,
    droppedRecords: 0,
    compactStep: () => {
      throw fault;
    },
  };
  const fatal: unknown[] = [];
  const compactor = new Compactor({
    store: new StoreRef({ mvcc, isBusy: false } as unknown as Store),
    clock: new ManualClock(),
    logger: silentLogger,
    metrics: freshMetrics(),
    batchLimit: 1,
    pauseMs: 1,
    flush: () => {},
    finished: () => {},
    fatal: (error) => fatal.push(error),
  });
  compactor.run();
  await assert.rejects(compactor.idle(), { message: errorOf("Stopped").message });
  assert.deepEqual(fatal, [fault]);
  await compactor.stop();
});

test("a compaction that rests for an hour between batches stops at once, and goes on", async () => {
  let steps = 0;
  const mvcc = { isCompacting: true, droppedRecords: 0, compactStep: () => ++steps === 3 };
  const compactor = new Compactor({
    store: new StoreRef({ mvcc, isBusy: false, isFlushDue: false } as unknown as Store),
    clock: new ManualClock(),
    logger: silentLogger,
    metrics: freshMetrics(),
    batchLimit: 1,
    pauseMs: 3_600_000,
    flush: () => {},
    finished: () => {},
    fatal: (error) => assert.fail(String(error)),
  });
  for (const expected of [1, 2]) {
    compactor.run();
    await compactor.stop();
    assert.equal(steps, expected);
  }
  compactor.run();
  await compactor.idle();
  assert.equal(steps, 3);
});
