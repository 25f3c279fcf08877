/** Entries are applied in slices, and what follows from each is told to those whom it concerns. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { errorOf, type LeaseGrantResponse, raftpb } from "@quorate/proto";
import { type AppliedEntry, InvalidRequestError, type RequestKind } from "@quorate/store";
import {
  APPLY_LIMITS,
  AppliedEntries,
  Applier,
  type ApplierParts,
  type ApplyLimits,
} from "../src/apply/applier.ts";
import { Flusher, type FlusherDeps } from "../src/apply/persistence.ts";

const { EntryNormal, EntryConfChange } = raftpb.EntryType;

const entry = (index: number, bytes = 10, type: raftpb.EntryType = EntryNormal): raftpb.Entry => ({
  type,
  index,
  term: 1,
  data: new Uint8Array(bytes),
});
const NOTHING: AppliedEntry = {
  requestId: 0n,
  kind: undefined,
  response: undefined,
  error: undefined,
};

/** An applier whose entries take `msOf` each, or several steps of a millisecond. */
function applying(limits: Partial<ApplyLimits> = {}) {
  const clock = new ManualClock();
  const state = {
    msOf: (_index: number) => 0,
    stepsOf: (_index: number) => 0,
    isFull: false,
    isFlushDue: false,
    flushes: 0,
    done: [] as (readonly [index: number, beganMs: number, doneMs: number])[],
    configurations: [] as number[],
    slices: [] as (readonly [index: number, bytes: number])[],
    keeper: 0,
    pauses: 0,
    spent: [] as number[],
    standstill: { holdsEntries: false, isInEntry: false },
  };
  clock.turns.spent = (ms: number) => void state.spent.push(ms);
  function* steps(count: number) {
    for (let step = 0; step < count; step++) {
      clock.advance(1);
      yield;
    }
    clock.advance(1);
    return NOTHING;
  }
  const applier = new Applier({
    clock,
    limits: { ...APPLY_LIMITS, ...limits },
    faults: (point: string) => {
      assert.equal(point, "between-apply-slices");
      state.pauses++;
    },
    store: {
      current: {
        get isFull() {
          return state.isFull;
        },
        get isFlushDue() {
          return state.isFlushDue;
        },
        begin: ({ index }: raftpb.Entry) => {
          const count = state.stepsOf(index);
          if (count > 0) return steps(count);
          clock.advance(state.msOf(index));
          return NOTHING;
        },
      },
    },
    proposals: {},
    standstill: state.standstill,
    configuration: {
      apply: ({ index }: raftpb.Entry) => {
        state.configurations.push(index);
        clock.advance(1);
      },
    },
    applied: {
      applied: ({ index }: raftpb.Entry, _applied: AppliedEntry, beganMs: number, doneMs: number) =>
        state.done.push([index, beganMs, doneMs]),
    },
    space: { keeper: { applied: () => state.keeper++ } },
    marks: { applied: (index: number, bytes: number) => state.slices.push([index, bytes]) },
    flusher: { flush: () => state.flushes++ },
  } as unknown as ApplierParts);
  return { clock, state, applier };
}

test("a slice takes entries in order until its time is used up", () => {
  const { clock, state, applier } = applying();
  assert.equal(applier.canRun, false);
  assert.equal(applier.run(0), undefined);
  assert.deepEqual(state.slices, []);
  state.msOf = () => 2;
  applier.push([entry(7, 1), entry(8, 2, EntryConfChange), entry(9, 4)]);
  applier.push([entry(10, 8)]);
  assert.equal(applier.run(clock.monotonicMs()), 9, "4 ms are over within the third");
  assert.deepEqual(state.configurations, [8]);
  assert.deepEqual(state.done, [
    [7, 0, 2],
    [9, 3, 5],
  ]);
  assert.deepEqual(state.slices, [[9, 7]]);
  assert.deepEqual(state.spent.at(-1), 5);
  assert.equal(state.flushes, 0);
  applier.push([entry(11)]);
  state.isFlushDue = true;
  assert.equal(applier.run(clock.monotonicMs()), 11, "what was applied is not applied again");
  assert.deepEqual([state.flushes, state.keeper, state.slices.at(-1)], [1, 2, [11, 18]]);
  assert.equal(state.spent.at(-1), 4, "of this slice alone");
  assert.equal(applier.canRun, false);
});

test("a slice is over after its time, to the millisecond", () => {
  const { clock, state, applier } = applying({ maxSliceMs: 4 });
  state.msOf = () => 4;
  applier.push([entry(1), entry(2)]);
  assert.equal(applier.run(clock.monotonicMs()), 1);
  assert.equal(applier.isSliceOver(clock.monotonicMs() - 4), true);
  assert.equal(applier.isSliceOver(clock.monotonicMs() - 3), false);
});

test("an entry with much work takes several slices, and holds what follows", () => {
  const { clock, state, applier } = applying({ maxSliceMs: 2 });
  state.stepsOf = (index) => (index === 5 ? 4 : 0);
  applier.push([entry(5), entry(6)]);
  assert.equal(applier.run(clock.monotonicMs()), undefined);
  assert.deepEqual([state.standstill.isInEntry, state.pauses, state.slices], [true, 1, []]);
  state.isFull = true;
  assert.equal(applier.canRun, true, "what has begun goes on");
  state.standstill.holdsEntries = true;
  assert.equal(applier.run(clock.monotonicMs()), undefined);
  assert.equal(clock.monotonicMs(), 4);
  assert.equal(applier.run(clock.monotonicMs()), 5);
  assert.deepEqual([state.standstill.isInEntry, state.pauses], [false, 2]);
  assert.deepEqual(state.done, [[5, 0, 5]]);
  assert.equal(applier.canRun, false, "entries are held");
  state.standstill.holdsEntries = false;
  assert.equal(applier.canRun, false, "the store is full");
  state.isFull = false;
  assert.equal(applier.run(clock.monotonicMs()), 6);
});

test("a slice takes one step at least, and so many at most where that is set", () => {
  const late = applying({ maxSliceMs: 2 });
  late.state.stepsOf = () => 4;
  late.applier.push([entry(1)]);
  late.clock.advance(10);
  assert.equal(late.applier.run(0), undefined);
  assert.equal(late.clock.monotonicMs(), 11);
  const { clock, state, applier } = applying({ maxSliceSteps: 2, maxSliceMs: 1000 });
  state.stepsOf = (index) => (index === 2 ? 2 : 0);
  applier.push([entry(1), entry(2), entry(3)]);
  assert.equal(applier.run(0), 1, "one entry in each");
  assert.equal(applier.run(0), undefined);
  assert.equal(clock.monotonicMs(), 2);
  assert.equal(applier.run(0), 2);
  assert.equal(applier.run(0), 3);
});

test("what is given up is not applied", () => {
  const { clock, state, applier } = applying({ maxSliceMs: 1 });
  state.stepsOf = (index) => (index === 2 ? 4 : 0);
  state.msOf = () => 1;
  applier.push([entry(1), entry(2), entry(3)]);
  applier.run(clock.monotonicMs());
  applier.run(clock.monotonicMs());
  assert.equal(state.standstill.isInEntry, true);
  applier.clear();
  assert.deepEqual([applier.canRun, state.standstill.isInEntry], [false, false]);
  applier.push([entry(9)]);
  assert.equal(applier.run(clock.monotonicMs()), 9);
  assert.deepEqual(
    state.done.map(([index]) => index),
    [1, 9],
  );
});

/** What follows from applied entries, in words. */
function following() {
  const notes: string[] = [];
  const histogram = (...labels: string[]) => ({
    observe: (value: number) => notes.push([...labels, value].join(" ")),
  });
  const note = (text: string) => () => void notes.push(text);
  const proposed = new Map([[5n, 100]]);
  const applied = new AppliedEntries({
    metrics: {
      slowApply: { add: note("slow") },
      leasesGranted: { add: note("granted") },
      leasesRevoked: { add: note("revoked") },
      leaseTtls: histogram("ttl"),
      applyDuration: { with: (...labels: string[]) => histogram("applied", ...labels) },
      requestDuration: { with: (...labels: string[]) => histogram("answered", ...labels) },
    },
    logger: {
      ...silentLogger,
      warn: (_text: string, { took, request }: Record<string, string>) =>
        notes.push(`${request} took ${took}`),
    },
    warningMs: 100,
    malformed: note("malformed"),
    proposals: {
      settle: (id: bigint) => {
        notes.push(`settled ${id}`);
        return proposed.get(id);
      },
    },
    space: { compactionScheduled: note("compaction"), alarmsChanged: note("space alarm") },
    publication: { versionMayBeKnown: note("version") },
    corruption: { alarmsChanged: note("corruption alarm") },
  } as unknown as ConstructorParameters<typeof AppliedEntries>[0]);
  return (more: Partial<AppliedEntry>, startMs = 0, nowMs = 0) => {
    applied.applied(entry(1), { ...NOTHING, ...more } as AppliedEntry, startMs, nowMs);
    return notes.splice(0);
  };
}

test("those whom a request concerns are told, unless it failed", () => {
  const follow = following();
  const of = (kind: RequestKind) => follow({ kind }).slice(1);
  assert.deepEqual(of("put"), []);
  assert.deepEqual(of("compaction"), ["compaction"]);
  assert.deepEqual(of("clusterVersionSet"), ["version"]);
  assert.deepEqual(of("alarm"), ["space alarm", "corruption alarm"]);
  const error = errorOf("NoSpace");
  for (const kind of ["compaction", "clusterVersionSet", "alarm", "leaseRevoke"] as const)
    assert.equal(follow({ kind, error }).length, 1);
  assert.deepEqual(follow({ error: new InvalidRequestError("broken") }), ["malformed"]);
});

test("results and durations are counted by kind", () => {
  const follow = following();
  assert.deepEqual(follow({}), []);
  assert.deepEqual(follow({ kind: "put" }, 10, 13), ["applied v3 Put true 0.003"]);
  assert.deepEqual(follow({ kind: "put", error: errorOf("NoSpace") }, 10, 13), [
    "applied v3 Put false 0.003",
  ]);
  const late = errorOf("Compacted");
  assert.deepEqual(follow({ kind: "compaction", error: late }), ["applied v3 Compaction true 0"]);
  const response: LeaseGrantResponse = { ID: 1n, TTL: 60, error: "", header: undefined };
  assert.deepEqual(follow({ kind: "leaseGrant", response }), [
    "applied v3 LeaseGrant true 0",
    "granted",
    "ttl 60",
  ]);
  assert.deepEqual(follow({ kind: "leaseRevoke" }), ["applied v3 LeaseRevoke true 0", "revoked"]);
});

test("who waits for a request has its result, and the time since it was proposed counts", () => {
  const follow = following();
  assert.deepEqual(follow({ kind: "put", requestId: 5n }, 110, 115), [
    "applied v3 Put true 0.005",
    "settled 5",
    "answered Put true 0.015",
  ]);
  assert.deepEqual(follow({ requestId: 5n }), ["settled 5"]);
  assert.deepEqual(follow({ kind: "put", requestId: 6n }), ["applied v3 Put true 0", "settled 6"]);
});

test("what takes longer than the warning is logged and counted", () => {
  const follow = following();
  assert.equal(follow({ kind: "put" }, 10, 110).length, 1);
  assert.deepEqual(follow({ kind: "put" }, 10, 111).slice(1), ["slow", "put took 101.0ms"]);
  assert.deepEqual(follow({}, 10, 111), ["slow", " took 101.0ms"]);
});

/** A flusher whose batches are written when the test says so. */
function flushing() {
  const clock = new ManualClock();
  const writes: PromiseWithResolvers<void>[] = [];
  const state = {
    needsFlush: true,
    exchange: { isRunning: false },
    points: [] as string[],
    took: [] as number[],
    wakes: 0,
    ended: undefined as unknown,
  };
  const flusher = new Flusher(100, {
    clock,
    store: {
      current: {
        get needsFlush() {
          return state.needsFlush;
        },
        flush: () => {
          const write = Promise.withResolvers<void>();
          writes.push(write);
          return write.promise;
        },
      },
    },
    exchange: state.exchange,
    faults: (point: string) => void state.points.push(point),
    duration: { observe: (seconds: number) => state.took.push(seconds) },
    turns: { wake: () => state.wakes++ },
    lifetime: {
      end: (error: unknown) => {
        state.ended = error;
      },
    },
  } as unknown as FlusherDeps);
  return { clock, state, writes, flusher };
}

test("batches are written at intervals, two at a time, where there is anything to write", async () => {
  const { clock, state, writes, flusher } = flushing();
  flusher.start();
  await clock.advanceAsync(99);
  assert.equal(writes.length, 0);
  await clock.advanceAsync(1);
  await clock.advanceAsync(400);
  assert.equal(writes.length, 2);
  writes[0].resolve();
  await clock.settle();
  assert.deepEqual([state.took, state.wakes], [[0.4], 1]);
  state.needsFlush = false;
  await clock.advanceAsync(100);
  assert.equal(writes.length, 2);
  state.needsFlush = true;
  state.exchange.isRunning = true;
  await clock.advanceAsync(100);
  assert.equal(writes.length, 2, "the store is being replaced");
  state.exchange.isRunning = false;
  await clock.advanceAsync(100);
  assert.equal(writes.length, 3);
  assert.deepEqual(new Set(state.points), new Set(["before-backend-flush", "after-backend-flush"]));
  writes[2].resolve();
  await clock.settle();
  flusher.stop();
  await clock.advanceAsync(1000);
  assert.equal(writes.length, 3);
  writes[1].reject(new Error("disk"));
  await clock.advanceAsync(1000);
  assert.equal(writes.length, 3);
  assert.match(String(state.ended), /disk/);
});
