/** Requests about leases where there is no leader, or one that has not taken over yet. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "@quorate/host";
import { ManualClock, MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import { errorOf, LeaseTimeToLiveRequest } from "@quorate/proto";
import { Store } from "@quorate/store";
import { LEASE_BOUNDS } from "../src/lease/bounds.ts";
import { NotPrimaryError } from "../src/lease/keeper.ts";
import { Leases, type LeasesDeps } from "../src/lease/leases.ts";
import { StoreRef } from "../src/reads/store-ref.ts";

const TIMEOUT_MS = 100;

async function setUp(leader: { isLeader: boolean; urls?: readonly string[] }) {
  const clock = new ManualClock();
  const store = await Store.open(new MemoryKeyspaceOpener(new MemoryDisk()), "/store");
  let reads = 0;
  let remainingMs: number | undefined;
  const keeper = {
    isPrimary: false,
    renew: async () => {
      throw new NotPrimaryError();
    },
    remainingMs: () => remainingMs,
    ttlOf: () => 10,
    expiryMs: () => undefined,
  };
  const leases = new Leases({
    clock,
    keeper,
    call: () => Promise.reject(new Error("nobody is there")),
    timeoutMs: TIMEOUT_MS,
    store: new StoreRef(store),
    slices: { run: async (_share: unknown, work: () => Generator) => drained(work()) },
    leader: { isLeader: leader.isLeader, peerUrls: () => leader.urls },
    reads: {
      wait: async () => {
        reads++;
        remainingMs = 7900;
      },
    },
    bounds: LEASE_BOUNDS,
    logger: silentLogger,
  } as unknown as LeasesDeps);
  return { clock, leases, store, reads: () => reads };
}

function drained(steps: Generator): unknown {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

for (const [what, leader, error] of [
  ["there is no leader", { isLeader: false }, "NoLeader"],
  ["the leader does not answer", { isLeader: false, urls: ["http://one"] }, "Timeout"],
  ["this leader does not take over", { isLeader: true }, "Timeout"],
] as const) {
  test(`a renewal is tried until its time is up where ${what}`, async () => {
    const { clock, leases } = await setUp(leader);
    const renewed = Promise.resolve(leases.renew({} as never, 1n));
    const failures: string[] = [];
    renewed.catch((reason: Error) => failures.push(reason.message));
    await clock.advanceAsync(TIMEOUT_MS - 1);
    assert.deepEqual(failures, []);
    await clock.advanceAsync(1);
    assert.deepEqual(failures, [errorOf(error).message]);
  });
}

test("what is left of a lease is said when the log was read up to now", async () => {
  const { leases, store, reads } = await setUp({ isLeader: true });
  store.lessor.grant(1n, 10);
  const found = await leases.timeToLive(LeaseTimeToLiveRequest.create({ ID: 1n }));
  assert.deepEqual([found?.TTL, found?.grantedTTL, reads()], [7, 10, 1]);
});

test("another member's question that does not decode is refused", async () => {
  const { leases } = await setUp({ isLeader: true });
  const ask = leases.peerEndpoints().get("/leases/internal")!;
  const answer = await ask({ method: "POST", body: Uint8Array.of(0xff) } as never);
  assert.deepEqual([answer.status, answer.body], [400, "error unmarshalling request\n"]);
});

test("leases whose time is not counted are listed by id, a few in one step", async () => {
  const { leases, store } = await setUp({ isLeader: false });
  for (const id of [5n, 2n, 9n]) store.lessor.grant(id, 10);
  const steps = leases.list();
  assert.deepEqual(steps.next(), { done: true, value: [2n, 5n, 9n] });
});
