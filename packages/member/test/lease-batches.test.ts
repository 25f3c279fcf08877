/**
 * Keep-alives on their way to the leader: what shares a request, what is retried, and the
 * bounds.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { ManualClock } from "@quorate/host/testing";
import type { PeerAnswer } from "@quorate/transport";
import { LEASE_BOUNDS, MAX_BATCH_LEASES } from "../src/lease/bounds.ts";
import { answerBatch, RETRY, RenewBatches } from "../src/lease/renew-batches.ts";

const BOUNDS = {
  ...LEASE_BOUNDS,
  maxBatchLeases: 7,
  maxInflightBatches: 3,
  maxWaitingRenewals: 100,
};

interface Asked {
  readonly url: string;
  readonly body: Uint8Array;
  answer(status: number, body: Uint8Array): void;
  fail(): void;
}

function bench(urls: readonly string[] = ["http://one", "http://two"]) {
  const clock = new ManualClock();
  const asked: Asked[] = [];
  const call = (url: string, _path: string, body: Uint8Array = new Uint8Array(0)) =>
    new Promise<PeerAnswer>((resolve, reject) => {
      asked.push({
        url,
        body,
        answer: (status, answered) => resolve({ status, body: answered }),
        fail: () => reject(new Error("lost")),
      });
    });
  const batches = new RenewBatches({
    clock,
    call,
    leader: { peerUrls: () => urls },
    store: { current: { followsEtcd: false } },
    timeoutMs: 1000,
    bounds: BOUNDS,
  });
  const settle = async () => {
    clock.advance(1);
    for (let i = 0; i < 5; i++) await turn();
  };
  return { asked, batches, settle };
}

const renewed = (body: Uint8Array) => answerBatch(body, async (id) => Number(id) * 2);

test("renewals of a turn share a request and get their own answers", async () => {
  const { asked, batches, settle } = bench();
  const results = [3n, -4n, 5n].map((id) => batches.renew(id));
  await settle();
  assert.equal(asked.length, 1);
  asked[0].answer(200, (await renewed(asked[0].body))!);
  assert.deepEqual(await Promise.all(results), [6, -8, 10]);
});

test("the next URL is tried; without an answer, or with one that does not fit, it is retried", async () => {
  const { asked, batches, settle } = bench();
  const first = batches.renew(1n);
  await settle();
  asked[0].fail();
  await settle();
  assert.equal(asked[1].url, "http://two");
  asked[1].answer(200, (await renewed(asked[1].body))!);
  assert.equal(await first, 2);
  const second = batches.renew(1n);
  await settle();
  asked[2].answer(200, new Uint8Array(16));
  await settle();
  asked[3].answer(500, new Uint8Array(8));
  assert.equal(await second, RETRY);
});

test("without a leader no request is sent", async () => {
  const { asked, batches, settle } = bench([]);
  const result = batches.renew(1n);
  await settle();
  assert.equal(await result, RETRY);
  assert.equal(asked.length, 0);
});

test("a request has a bound, so has the number of them, so has what waits", async () => {
  const { asked, batches, settle } = bench();
  const first = batches.renew(1n);
  for (let i = 1; i < BOUNDS.maxWaitingRenewals; i++) void batches.renew(2n);
  assert.throws(() => batches.renew(2n), { message: "etcdserver: too many requests" });
  await settle();
  assert.equal(asked.length, BOUNDS.maxInflightBatches);
  for (const { body } of asked) assert.equal(body.length, 8 * BOUNDS.maxBatchLeases);
  asked[0].answer(200, (await renewed(asked[0].body))!);
  assert.equal(await first, 2);
  await settle();
  assert.equal(asked.length, BOUNDS.maxInflightBatches + 1);
});

test("a body that is no batch, or a longer one than the bound, is refused", async () => {
  assert.equal(await renewed(new Uint8Array(7)), undefined);
  assert.equal(await renewed(new Uint8Array(8 * (MAX_BATCH_LEASES + 1))), undefined);
  assert.equal((await renewed(new Uint8Array(8 * MAX_BATCH_LEASES)))!.length, 8 * MAX_BATCH_LEASES);
});
