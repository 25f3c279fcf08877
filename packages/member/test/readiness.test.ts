/** When the store may be read: not while another takes its place, nor before it is healed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { Readiness, type StoreExchange } from "../src/apply/store-exchange.ts";

test("reads wait for an exchange, and what clients see for a healing too", async () => {
  const [exchanged, healed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const state = { isRunning: true, isHealing: true };
  const readiness = new Readiness(
    {
      get isRunning() {
        return state.isRunning;
      },
      over: () => exchanged.promise,
    } as StoreExchange,
    {
      get isHealing() {
        return state.isHealing;
      },
      healed: () => healed.promise,
    },
  );
  const seen: string[] = [];
  void readiness.readable().then(() => seen.push("readable"));
  void readiness.servable().then(() => seen.push("servable"));
  await turn();
  assert.deepEqual([seen, readiness.isServable], [[], false]);
  healed.resolve();
  state.isHealing = false;
  await turn();
  assert.deepEqual([seen, readiness.isServable], [[], false]);
  exchanged.resolve();
  state.isRunning = false;
  await turn();
  assert.deepEqual([seen, readiness.isServable], [["readable", "servable"], true]);
  state.isHealing = true;
  assert.equal(readiness.isServable, false);
});

test("what clients see waits for a healing, which reads do not", async () => {
  const healed = Promise.withResolvers<void>();
  const readiness = new Readiness(
    { isRunning: false, over: async () => {} } as unknown as StoreExchange,
    { isHealing: true, healed: () => healed.promise },
  );
  let isServable = false;
  const servable = readiness.servable().then(() => {
    isServable = true;
  });
  await readiness.readable();
  await turn();
  assert.equal(isServable, false);
  healed.resolve();
  await servable;
});
