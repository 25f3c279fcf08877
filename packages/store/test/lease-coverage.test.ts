/** What is remembered of permissions for the keys of a lease, against a look at all of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import {
  DeleteRangeRequest,
  fromUtf8,
  LeaseGrantRequest,
  LeaseRevokeRequest,
  PutRequest,
  raftpb,
} from "@quorate/proto";
import { isSteps } from "../src/apply.ts";
import { runSteps, STEP_KEYS, type Steps } from "../src/backend/steps.ts";
import { MAX_FORGOTTEN_KEYS, MAX_LEASE_COVERAGES } from "../src/lease/lease-coverage.ts";
import { Store } from "../src/store.ts";
import { Prng } from "./mvcc-history.ts";
import { Log } from "./store-log.ts";

const LEASE = 9n;

/** A store with a lease, and entries that change its keys. */
class World {
  readonly log = new Log();
  store!: Store;

  static async open(): Promise<World> {
    const world = new World();
    world.store = await Store.open(new MemoryKeyspaceOpener(new MemoryDisk()), "/store");
    world.request({ leaseGrant: LeaseGrantRequest.encode({ ID: LEASE, TTL: 60 }) });
    return world;
  }

  begin(request: Parameters<Log["request"]>[0]): ReturnType<Store["begin"]> {
    this.log.request(request);
    return this.store.begin(raftpb.Entry.create(this.log.entries.at(-1)!));
  }

  request(request: Parameters<Log["request"]>[0]): void {
    const outcome = this.begin(request);
    const { error } = isSteps(outcome) ? runSteps(outcome) : outcome;
    assert.equal(error, undefined);
  }

  put(key: string, lease = LEASE): void {
    this.request({ put: PutRequest.encode({ key: fromUtf8(key), lease }) });
  }

  delete(key: string, rangeEnd = ""): void {
    this.request({
      deleteRange: DeleteRangeRequest.encode({ key: fromUtf8(key), rangeEnd: fromUtf8(rangeEnd) }),
    });
  }

  /** Asks whether keys below a bound are all that the lease has. @returns how many it looked at */
  ask(bound: Bound): { verdict: boolean; looks: number; steps: number } {
    let [looks, steps] = [0, 1];
    const work = this.store.lessor.coversKeysOf(LEASE, bound, "write", (key) => {
      looks++;
      return key < bound.below;
    });
    for (; ; steps++) {
      const step = work.next();
      if (step.done === true) return { verdict: step.value, looks, steps };
    }
  }
}

interface Bound {
  readonly below: string;
}

/** The `covers` of a remembered coverage is the first one: count over all of them. */
function counted(world: World, bound: Bound, looked: { count: number }): Steps<boolean> {
  return world.store.lessor.coversKeysOf(LEASE, bound, "write", (key) => {
    looked.count++;
    return key < bound.below;
  });
}

test("random puts, deletions and questions: the verdict is that of all keys (seed 14)", async () => {
  for (let run = 0; run < 20; run++) {
    const prng = new Prng(1400 + run);
    const world = await World.open();
    const bounds = [{ below: "k3" }, { below: "k9" }, { below: "k" }, { below: "z" }];
    const name = () => `k${prng.below(10)}${String(prng.below(30)).padStart(3, "0")}`;
    for (let i = 0; i < 2 * MAX_FORGOTTEN_KEYS; i++) world.put(`k0${String(i).padStart(3, "0")}`);
    for (let step = 0; step < 300; step++) {
      const key = name();
      const kind = prng.below(5);
      if (kind < 2) world.put(key);
      else if (kind === 2) world.put(key, 0n);
      else if (kind === 3) world.delete(key);
      else if (prng.below(10) === 0) world.delete(key, `${key.slice(0, 2)}~`);
      const bound = bounds[prng.below(bounds.length)];
      const keys = world.store.lessor.keysOf(LEASE);
      assert.equal(
        world.ask(bound).verdict,
        keys.every((one) => one < bound.below),
        `run ${run}, step ${step}, ${bound.below}`,
      );
    }
    await world.store.close({ flush: false });
  }
});

test("of a lease with many keys each is looked at once, in steps, whatever is asked how often", async () => {
  const world = await World.open();
  const keyCount = 5 * STEP_KEYS;
  for (let i = 0; i < keyCount; i++) world.put(`k${String(i).padStart(6, "0")}`);
  const bound = { below: "m" };
  const looked = { count: 0 };
  const work = counted(world, bound, looked);
  let steps = 0;
  while (work.next().done !== true) {
    steps++;
    assert.ok(looked.count <= steps * STEP_KEYS, "a step looks at a bounded number of keys");
  }
  assert.deepEqual([steps, looked.count], [5, keyCount]);

  for (let i = 0; i < 100; i++) {
    world.put(`l${i}`);
    assert.equal(world.ask(bound).verdict, true);
  }
  assert.equal(looked.count, keyCount + 100, "a new key is looked at when it comes");
  world.put("n");
  for (let i = 0; i < 100; i++) {
    assert.equal(world.ask(bound).verdict, false);
    world.put(`k${String(i).padStart(6, "0")}`);
  }
  assert.equal(
    looked.count,
    keyCount + 101,
    "a refusal costs nothing, nor does a key that is put again",
  );
  world.delete("n");
  assert.equal(world.ask(bound).verdict, true);
  assert.equal(looked.count, keyCount + 101);
  await world.store.close({ flush: false });
});

test("a refusal remembers where it stopped, and goes on there when the key is gone", async () => {
  const world = await World.open();
  for (let i = 0; i < 3 * STEP_KEYS; i++) {
    const isForeign = i === STEP_KEYS || i === 2 * STEP_KEYS;
    world.put(`${isForeign ? "n" : "k"}${String(i).padStart(6, "0")}`);
  }
  const [bound, looked] = [{ below: "m" }, { count: 0 }];
  assert.equal(runSteps(counted(world, bound, looked)), false);
  assert.equal(looked.count, STEP_KEYS + 1);
  world.delete(`n${String(STEP_KEYS).padStart(6, "0")}`);
  assert.equal(runSteps(counted(world, bound, looked)), false);
  assert.equal(looked.count, 2 * STEP_KEYS + 1);
  world.delete("n", "o");
  assert.equal(runSteps(counted(world, bound, looked)), true);
  assert.equal(looked.count, 3 * STEP_KEYS);
  await world.store.close({ flush: false });
});

test("sets of permissions beyond the bound are forgotten, the longest unused first", async () => {
  const world = await World.open();
  for (let i = 0; i <= MAX_FORGOTTEN_KEYS; i++) world.put(`k${i}`);
  const bounds = Array.from({ length: MAX_LEASE_COVERAGES + 1 }, () => ({ below: "m" }));
  for (const bound of bounds) assert.equal(world.ask(bound).looks, MAX_FORGOTTEN_KEYS + 1);
  assert.equal(world.ask(bounds[1]).looks, 0);
  assert.equal(world.ask(bounds[0]).looks, MAX_FORGOTTEN_KEYS + 1);
  assert.equal(world.ask(bounds[2]).looks, MAX_FORGOTTEN_KEYS + 1, "it was the oldest");
  assert.equal(world.ask(bounds[1]).looks, 0);
  await world.store.close({ flush: false });
});

test("while an entry is unfinished, what it detaches still counts, and its keys are copied in steps", async () => {
  const world = await World.open();
  const keyCount = 4 * STEP_KEYS;
  for (let i = 0; i < keyCount; i++) world.put(`n${String(i).padStart(6, "0")}`);
  const bound = { below: "m" };
  const { lessor } = world.store;
  const revocation = world.begin({ leaseRevoke: LeaseRevokeRequest.encode({ ID: LEASE }) });
  assert.ok(isSteps(revocation));
  let asked = 0;
  for (;;) {
    const step = revocation.next();
    if (step.done === true) break;
    asked++;
    assert.equal(world.ask(bound).verdict, false);
    assert.equal(lessor.keysOf(LEASE).length, keyCount);
    assert.ok(lessor.mostKeysOf(LEASE) >= keyCount);
    const copy = lessor.keysInSteps(LEASE);
    let steps = 0;
    let result = copy.next();
    for (; result.done !== true; result = copy.next()) steps++;
    assert.deepEqual([result.value.length, steps], [keyCount, 4]);
  }
  assert.ok(asked > 4, `${asked} steps`);
  assert.deepEqual([world.ask(bound).verdict, lessor.mostKeysOf(LEASE)], [true, 0]);
  await world.store.close({ flush: false });
});
