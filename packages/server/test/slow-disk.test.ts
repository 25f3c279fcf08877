/**
 * A member whose disk is slow.
 * @slow
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import {
  SLOW_DISK_MIN_MS,
  SLOW_DISK_REST_MS,
  SLOW_DISK_STUCK_MS,
  SLOW_DISK_WINDOW_MS,
  SlowDisk,
} from "@quorate/member/testing";
import { Counter } from "@quorate/metrics";
import { type Node, put, World } from "./support/world.ts";

function setUp(boundMs = 100) {
  const clock = new ManualClock();
  const handOvers = new Counter();
  const state = {
    leads: true,
    sinceMs: undefined as number | undefined,
    doneAtMs: Number.POSITIVE_INFINITY,
  };
  const disk = new SlowDisk(boundMs, {
    clock,
    logger: silentLogger,
    metrics: { slowDiskHandovers: handOvers },
    syncingSinceMs: () => state.sinceMs,
    othersAreDone: () => clock.monotonicMs() >= state.doneAtMs,
    leader: {
      get isLeader() {
        return state.leads;
      },
    },
    leadership: { handOver: async () => {} },
  });
  disk.start();
  /** A sync of this disk, whose entries the others have on theirs after `othersMs`. */
  const sync = (ownMs: number, othersMs: number) => {
    state.sinceMs = clock.monotonicMs();
    state.doneAtMs = state.sinceMs + othersMs;
    clock.advance(ownMs);
    state.sinceMs = undefined;
  };
  /** As many of them as fit. */
  const syncsFor = (ms: number, ownMs: number, othersMs: number, pauseMs = 10) => {
    const endMs = clock.monotonicMs() + ms;
    while (clock.monotonicMs() < endMs) {
      sync(ownMs, othersMs);
      clock.advance(pauseMs);
    }
  };
  return { clock, state, sync, syncsFor, handOvers: () => handOvers.value };
}

describe("a disk that is slower than the others'", () => {
  for (const ownMs of [300, 600, 1500]) {
    it(`is found within ten seconds at ${ownMs} ms a sync beside fast ones`, () => {
      const { syncsFor, handOvers } = setUp();
      syncsFor(10_000, ownMs, 5);
      assert.equal(handOvers(), 1);
    });
  }

  it("is found where little is written, too", () => {
    const { syncsFor, handOvers } = setUp();
    syncsFor(30_000, 1500, 5, 6000);
    assert.equal(handOvers(), 1);
  });

  it("is not found where all are as slow, or nearly", () => {
    for (const othersMs of [550, 600, 700, 300]) {
      const { syncsFor, handOvers } = setUp();
      syncsFor(3_600_000, 600, othersMs);
      assert.equal(handOvers(), 0, `${othersMs} ms`);
    }
  });

  it("is not found where its syncs are below the bound, or few of them are above it", () => {
    const { sync, syncsFor, handOvers } = setUp();
    syncsFor(60_000, 90, 1);
    for (let i = 0; i < 20; i++) {
      sync(2000, 5);
      syncsFor(SLOW_DISK_WINDOW_MS, 20, 5);
    }
    assert.equal(handOvers(), 0);
  });

  it("is found by one sync that never ends, and not by a stall that does", () => {
    const { clock, sync, handOvers } = setUp();
    sync(SLOW_DISK_STUCK_MS / 2, 5);
    clock.advance(SLOW_DISK_WINDOW_MS);
    assert.equal(handOvers(), 0);
    sync(SLOW_DISK_STUCK_MS + 500, 5);
    assert.equal(handOvers(), 1);
  });

  it("concerns leaders only, at most twelve times an hour, and none with a bound of 0", () => {
    const { state, syncsFor, handOvers } = setUp();
    state.leads = false;
    syncsFor(60_000, 600, 5);
    assert.equal(handOvers(), 0);
    state.leads = true;
    syncsFor(SLOW_DISK_MIN_MS / 2, 600, 5);
    assert.equal(handOvers(), 0, "what it saw as a follower does not count");
    syncsFor(3_600_000, 600, 5);
    assert.ok(
      handOvers() > 1 && handOvers() <= 3_600_000 / SLOW_DISK_REST_MS + 1,
      String(handOvers()),
    );
    const off = setUp(0);
    off.syncsFor(60_000, 600, 5);
    assert.equal(off.handOvers(), 0);
  });
});

const handOversOf = (world: World): number =>
  world.nodes.reduce((sum, { member }) => sum + (member?.metrics.slowDiskHandovers.value ?? 0), 0);

/** Writes for so long, one after the other, through the leader. */
async function writeFor(world: World, ms: number): Promise<void> {
  const endMs = world.clock.monotonicMs() + ms;
  for (let i = 0; world.clock.monotonicMs() < endMs; i++) {
    await world.until(() => world.leader() !== undefined);
    await world.settled(put(world.leader()!.member!, `k${i % 10}`, "v")).catch(() => undefined);
    await world.run(100);
  }
}

for (const slowMs of [600, 1500]) {
  it(`a leader at ${slowMs} ms a sync beside two fast members hands over once, and leadership stays`, async () => {
    const world = new World(3);
    await world.startAll();
    const slow = world.leader()!;
    slow.syncMs = slowMs;
    await writeFor(world, 15_000);
    const next = world.leader() as Node;
    assert.notEqual(next, slow);
    assert.equal(handOversOf(world), 1);
    await writeFor(world, 40_000);
    assert.equal(world.leader(), next);
    assert.equal(handOversOf(world), 1);
    await world.stopAll();
  });
}

it("where all disks are slow, or two of three, no leader hands over", async () => {
  for (const slowCount of [3, 2]) {
    const world = new World(3);
    await world.startAll();
    const leader = world.leader()!;
    const slow = [leader, ...world.nodes.filter((node) => node !== leader)].slice(0, slowCount);
    for (const [i, node] of slow.entries()) node.syncMs = 600 + 20 * i;
    await writeFor(world, 40_000);
    assert.equal(handOversOf(world), 0, `${slowCount} slow`);
    assert.equal(world.leader(), leader);
    await world.stopAll();
  }
});

it("a leader whose disk stands still hands leadership over, and writes go on", async () => {
  const world = new World(3, ["--slow-fsync-handover", "500ms"]);
  await world.startAll();
  const slow = world.leader()!;
  slow.syncMs = 30_000;
  // One that is alone is written in the same turn; those after it wait for a sync beside the loop.
  const stuck = Promise.all(
    [1, 2, 3, 4].map((i) => put(slow.member!, `k${i}`, "v").catch(() => undefined)),
  );
  await world.run(12_000);
  await world.until(() => world.leader() !== undefined && world.leader() !== slow);
  assert.equal(slow.member!.metrics.slowDiskHandovers.value, 1);
  await world.settled(put(world.leader()!.member!, "after", "v"));
  slow.syncMs = 1;
  await world.run(30_000);
  await world.settled(stuck);
  await world.stopAll();
});
