import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Logger, silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { SLOW_DISK_REST_MS, SLOW_DISK_WINDOW_MS, SLOW_DISK_WINDOWS, SlowDisk } from "../src/member/slow-disk.ts";
import { Counter } from "../src/metrics/registry.ts";
import { put, World } from "./support/world.ts";

function setUp(boundMs = 100) {
  const clock = new ManualClock();
  const state = { leads: true, sinceMs: undefined as number | undefined, reports: [] as object[] };
  const logger: Logger = {
    ...silentLogger,
    warn: (_msg, fields) => void state.reports.push([fields?.["slow-fsyncs"], fields?.["fsyncs"]]),
  };
  const handOvers = new Counter();
  const disk = new SlowDisk(boundMs, {
    clock,
    logger,
    metrics: { slowDiskHandovers: handOvers },
    syncingSinceMs: () => state.sinceMs,
    isLeader: () => state.leads,
    handOver: async () => {},
  });
  disk.start();
  /** A window with so many syncs, some of them slow. */
  const window = (syncs: number, slow: number) => {
    for (let i = 0; i < syncs; i++) disk.observe(i < slow ? boundMs + 1 : boundMs);
    clock.advance(SLOW_DISK_WINDOW_MS);
  };
  return { clock, disk, state, window };
}

describe("a slow disk", () => {
  it("is told after three slow windows in a row, with what the last one held", () => {
    const { state, window } = setUp();
    window(1000, 11);
    window(1000, 11);
    assert.deepEqual(state.reports, []);
    window(50, 1);
    assert.deepEqual(state.reports, [[1, 50]]);
  });

  it("is not told where the 99th percentile is within the bound, or a window in between is", () => {
    const { state, window } = setUp();
    for (let i = 0; i < 2 * SLOW_DISK_WINDOWS; i++) window(1000, 10);
    for (let i = 0; i < 2 * SLOW_DISK_WINDOWS; i++) window(100, i % 3 === 2 ? 0 : 100);
    window(0, 0);
    assert.deepEqual(state.reports, []);
  });

  it("is told of a sync that never ends", () => {
    const { clock, state, window } = setUp();
    state.sinceMs = clock.monotonicMs();
    for (let i = 0; i < SLOW_DISK_WINDOWS; i++) window(0, 0);
    assert.deepEqual(state.reports, [[1, 1]]);
  });

  it("concerns leaders only, once in a while, and not at all with a bound of 0", () => {
    const { state, window } = setUp();
    state.leads = false;
    for (let i = 0; i < 5; i++) window(10, 10);
    assert.equal(state.reports.length, 0);
    state.leads = true;
    window(10, 10);
    assert.equal(state.reports.length, 1);
    for (let ms = 0; ms < SLOW_DISK_REST_MS - SLOW_DISK_WINDOW_MS; ms += SLOW_DISK_WINDOW_MS) window(10, 10);
    assert.equal(state.reports.length, 1);
    window(10, 10);
    assert.equal(state.reports.length, 2);
    const off = setUp(0);
    for (let i = 0; i < 5; i++) off.window(10, 10);
    assert.equal(off.state.reports.length, 0);
  });
});

it("a leader whose disk stands still hands leadership over, and writes go on", async () => {
  const world = new World(3, ["--slow-fsync-handover", "500ms"]);
  await world.startAll();
  const slow = world.leader()!;
  slow.syncMs = 2000;
  for (let i = 0; i < 8 && world.leader() === slow; i++) {
    await world.settled(put(slow.member!, `k${i}`, "v"));
    await world.run(4000);
  }
  const next = world.leader();
  assert.ok(next !== undefined && next !== slow);
  assert.equal(slow.member!.metrics.slowDiskHandovers.value, 1);
  await world.settled(put(next.member!, "after", "v"));
  await world.stopAll();
});
