/** Which connections get a slot, and which are closed. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  ConnectionSlots,
  SeededRandom,
  type Slot,
  type SlotConnection,
  type SlotLimits,
} from "@quorate/host";

class FakeConnection implements SlotConnection {
  readonly name: string;
  readonly #log: string[];
  idleMs: number | undefined = 0;
  slot!: Slot;

  constructor(name: string, log: string[]) {
    this.name = name;
    this.#log = log;
  }

  idleSinceMs(): number | undefined {
    return this.idleMs;
  }
  drain(): void {
    this.#log.push(`drain ${this.name}`);
  }
  leave(): void {
    this.#log.push(`leave ${this.name}`);
  }
  destroy(): void {
    this.#log.push(`destroy ${this.name}`);
  }
}

class Bench {
  readonly log: string[] = [];
  readonly slots: ConnectionSlots;

  constructor(limits: Partial<SlotLimits> = {}) {
    this.slots = new ConnectionSlots({
      maxConnections: 4,
      maxUnidentified: 3,
      stageTimeoutMs: 10_000,
      idleUnderPressureMs: 60_000,
      ...limits,
    });
  }

  open(name: string, address = "a", nowMs = 0): FakeConnection {
    const connection = new FakeConnection(name, this.log);
    connection.slot = this.slots.open(connection, address, nowMs, () =>
      this.log.push(`late ${name}`),
    );
    return connection;
  }

  /** A connection that is idle since `idleMs`, or busy for undefined. */
  identified(name: string, identity: string, idleMs: number | "busy" = 0): FakeConnection {
    const connection = this.open(name, identity);
    connection.idleMs = idleMs === "busy" ? undefined : idleMs;
    if (!this.slots.identify(connection.slot, identity)) this.log.push(`refused ${name}`);
    return connection;
  }

  taken(): string[] {
    return this.log.splice(0);
  }
}

describe("unidentified connections", () => {
  test("each stage has its own timeout, however busy the socket is", () => {
    const bench = new Bench();
    const one = bench.open("one");
    bench.slots.sweep(9_999);
    bench.slots.nextStage(one.slot, 9_999);
    bench.slots.sweep(19_998);
    assert.deepEqual(bench.taken(), []);
    bench.slots.sweep(19_999);
    assert.deepEqual(bench.taken(), ["late one", "destroy one"]);
    assert.equal(bench.slots.unidentified, 0);
  });

  test("a full share loses the oldest one of the address that has the most", () => {
    const bench = new Bench();
    bench.open("member", "10.0.0.2");
    bench.open("flood 1", "10.6.6.6");
    bench.open("flood 2", "10.6.6.6");
    bench.open("flood 3", "10.6.6.6");
    bench.open("flood 4", "10.6.6.6");
    assert.deepEqual(bench.taken(), ["destroy flood 1", "destroy flood 2"]);
    assert.equal(bench.slots.unidentified, 3);
    assert.equal(bench.slots.counters.displacedUnidentified, 2);
  });

  test("unidentified and identified connections have separate shares", () => {
    const bench = new Bench();
    for (let i = 0; i < 4; i++) bench.identified(`c${i}`, "a");
    for (let i = 0; i < 10; i++) bench.open(`u${i}`, "b");
    assert.deepEqual([bench.slots.identified, bench.slots.unidentified], [4, 3]);
    assert.ok(bench.taken().every((line) => line.startsWith("destroy u")));
  });

  test("an unidentified connection that is served has no deadline, but stays in its share", () => {
    const bench = new Bench();
    const one = bench.open("one");
    bench.slots.suspend(one.slot);
    bench.slots.sweep(1e9);
    for (const name of ["two", "three", "four"]) bench.open(name, "a", 1e9);
    assert.deepEqual(bench.taken(), ["destroy one"]);
  });
});

describe("identified connections", () => {
  test("a client with fewer connections displaces the longest idle one of the client with the most", () => {
    const bench = new Bench();
    bench.identified("m1", "many", 30);
    bench.identified("m2", "many", 10);
    bench.identified("m3", "many", 20);
    bench.identified("f1", "few", 1);
    bench.identified("new", "other", 40);
    assert.deepEqual(bench.taken(), ["leave m2"]);
    assert.equal(bench.slots.identified, 4);
  });

  test("a client with the most connections displaces its own idle ones, or is refused", () => {
    const bench = new Bench();
    bench.identified("m1", "many", "busy");
    bench.identified("m2", "many", 20);
    bench.identified("f1", "few", 0);
    bench.identified("f2", "few", 0);
    bench.identified("m3", "many", "busy");
    assert.deepEqual(bench.taken(), ["leave m2"]);
    bench.identified("m4", "many", "busy");
    assert.deepEqual(bench.taken(), ["refused m4"]);
    assert.equal(bench.slots.counters.refused, 1);
  });

  test("the newest connection of a client with all slots busy is closed, until the other has as many", () => {
    const bench = new Bench();
    for (let i = 0; i < 4; i++) bench.identified(`m${i}`, "many", "busy");
    for (let i = 0; i < 3; i++) bench.identified(`f${i}`, "few", "busy");
    assert.deepEqual(bench.taken(), ["leave m3", "leave m2", "destroy m3", "refused f2"]);
  });

  test("under pressure the longest idle are drained, once, and as many as needed", () => {
    const bench = new Bench({ maxConnections: 8 });
    for (let i = 0; i < 8; i++) bench.identified(`c${i}`, "a", i === 7 ? "busy" : 100 * (8 - i));
    bench.slots.sweep(60_099);
    assert.deepEqual(bench.taken(), []);
    bench.slots.sweep(60_250);
    assert.deepEqual(bench.taken(), ["drain c6"]);
    bench.slots.sweep(100_000);
    assert.deepEqual(bench.taken(), ["drain c5"]);
    bench.slots.sweep(100_000);
    assert.deepEqual(bench.taken(), []);
    assert.equal(bench.slots.counters.drained, 2);
  });

  test("closing connections are bounded too", () => {
    const bench = new Bench({ maxConnections: 32 });
    for (let i = 0; i < 36; i++) bench.identified(`c${i}`, "a", i);
    assert.deepEqual(bench.taken(), [
      "leave c0",
      "leave c1",
      "leave c2",
      "destroy c0",
      "leave c3",
      "destroy c1",
    ]);
  });
});

test("under random calls no bound is exceeded and nothing is counted twice", () => {
  const random = new SeededRandom(3n);
  const bench = new Bench({ maxConnections: 20, maxUnidentified: 7 });
  const open: FakeConnection[] = [];
  for (let step = 0; step < 20_000; step++) {
    const at = random.below(Math.max(1, open.length));
    switch (random.below(5)) {
      case 0:
      case 1:
        open.push(bench.open(String(step), `address ${random.below(4)}`, step * 10));
        break;
      case 2:
        if (open[at] !== undefined)
          bench.slots.identify(open[at].slot, `client ${random.below(3)}`);
        break;
      case 3:
        if (open[at] !== undefined) bench.slots.close(open[at].slot);
        open.splice(at, 1);
        break;
      default:
        if (open[at] !== undefined) open[at].idleMs = random.below(2) === 0 ? undefined : step * 10;
        bench.slots.sweep(step * 10);
    }
    assert.ok(bench.slots.identified <= 20 && bench.slots.unidentified <= 7);
    const stages = open.map(({ slot }) => slot.stage);
    assert.equal(stages.filter((stage) => stage === "identified").length, bench.slots.identified);
    assert.equal(
      stages.filter((stage) => stage === "unidentified").length,
      bench.slots.unidentified,
    );
  }
  for (const { slot } of open) bench.slots.close(slot);
  assert.deepEqual([bench.slots.identified, bench.slots.unidentified], [0, 0]);
});
