/** When output is written: at the end of a callback, or of a turn. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Flusher, MAX_FLUSHED_IN_TURN } from "../node/engine/flusher.ts";

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test("output of a callback is written behind its promises, that of a turn behind all of them", async () => {
  const flusher = new Flusher();
  const order: string[] = [];
  const one = (name: string) => ({ flush: () => void order.push(name) });
  flusher.addToTurn(one("turn"));
  flusher.add(one("callback"));
  await Promise.resolve().then(() => order.push("promise"));
  await new Promise<void>((resolve) => process.nextTick(resolve));
  order.push("later");
  await turn();
  assert.deepEqual(order, ["promise", "callback", "later", "turn"]);
});

test("one turn writes a bounded number of connections, in their order, and what comes meanwhile behind them", async () => {
  const flusher = new Flusher();
  const order: number[] = [];
  const count = 2 * MAX_FLUSHED_IN_TURN + 1;
  const add = (i: number) => flusher.addToTurn({ flush: () => void order.push(i) });
  for (let i = 0; i < count; i++) add(i);
  await turn();
  assert.equal(order.length, MAX_FLUSHED_IN_TURN);
  add(count);
  await turn();
  assert.equal(order.length, 2 * MAX_FLUSHED_IN_TURN);
  await turn();
  assert.deepEqual(
    order,
    Array.from({ length: count + 1 }, (_, i) => i),
  );
  await turn();
  add(0);
  await turn();
  assert.equal(order.length, count + 2);
});
