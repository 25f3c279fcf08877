/** The order of v2's writes of one node: planned behind each other, bounded, and again in order. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Begun,
  type Chainable,
  Chains,
  MAX_CHAIN_WRITES,
  MAX_CHAINED_WRITES,
} from "../src/chains.ts";

/** A write of a counter: behind `tail` it leaves tail + 1. Its results come when the test says so. */
class Write implements Chainable<number, number> {
  isAlone = false;
  readonly tails: (number | undefined)[] = [];
  waits = false;
  isBeside = false;
  #end = Promise.withResolvers<number | undefined>();

  begin(tail: number | undefined): Begun<number, number> | undefined {
    if (tail !== undefined && this.waits) return undefined;
    this.tails.push(tail);
    this.#end = Promise.withResolvers();
    return { done: this.#end.promise, tail: this.isBeside ? "beside" : (tail ?? 0) + 1 };
  }

  /** Ends it; without a result it begins again. */
  async end(result?: number): Promise<void> {
    this.#end.resolve(result);
    await new Promise(setImmediate);
  }

  async fail(): Promise<void> {
    this.#end.reject(new Error("refused"));
    await new Promise(setImmediate);
  }
}

function begun(chains: Chains<number, number>, count: number) {
  const writes = Array.from({ length: count }, () => new Write());
  const results = writes.map((write) => chains.run("k", write));
  for (const result of results) result.catch(() => {});
  return { writes, results };
}

test("each is planned behind the tail of the one before; keys wait for their own only", async () => {
  const chains = new Chains<number, number>();
  const { writes, results } = begun(chains, 3);
  const other = new Write();
  const done = chains.run("other", other);
  assert.deepEqual(
    [...writes, other].map(({ tails }) => tails),
    [[undefined], [1], [2], [undefined]],
  );
  for (const [i, write] of writes.entries()) await write.end(i);
  await other.end(7);
  assert.deepEqual(await Promise.all([...results, done]), [0, 1, 2, 7]);
  assert.equal(chains.size, 0);
});

test("a broken chain begins again in its order once none is on its way", async () => {
  const chains = new Chains<number, number>();
  const { writes } = begun(chains, 3);
  await writes[0].end();
  await writes[1].end();
  assert.deepEqual(
    writes.map(({ tails }) => tails.length),
    [1, 1, 1],
  );
  await writes[2].end();
  assert.deepEqual(
    writes.map(({ tails }) => tails),
    [
      [undefined, undefined],
      [1, 1],
      [2, 2],
    ],
  );
});

test("a refused write breaks the chain, one beside it does not", async () => {
  const chains = new Chains<number, number>();
  const { writes, results } = begun(chains, 2);
  const beside = new Write();
  beside.isBeside = true;
  const refused = chains.run("k", beside);
  refused.catch(() => {});
  await beside.fail();
  await assert.rejects(refused);
  const behind = new Write();
  chains.run("k", behind);
  assert.deepEqual(behind.tails, [2]);
  await writes[0].fail();
  await assert.rejects(results[0]);
  const last = new Write();
  chains.run("k", last);
  assert.deepEqual(last.tails, []);
  await writes[1].end();
  await behind.end();
  assert.deepEqual(
    [writes[1], behind, last].map(({ tails }) => tails.at(-1)),
    [1, 2, undefined],
  );
});

test("a write that runs alone waits for those before it, and those behind it wait", async () => {
  const chains = new Chains<number, number>();
  const { writes } = begun(chains, 1);
  const alone = new Write();
  alone.isAlone = true;
  chains.run("k", alone);
  const behind = new Write();
  behind.waits = true;
  chains.run("k", behind);
  assert.deepEqual([alone.tails, behind.tails], [[], []]);
  await writes[0].end(1);
  assert.deepEqual([alone.tails, behind.tails], [[undefined], []]);
  await alone.end(1);
  assert.deepEqual(behind.tails, [undefined]);
});

test("writes on their way, and all writes, are bounded", async () => {
  const chains = new Chains<number, number>();
  const { writes, results } = begun(chains, MAX_CHAINED_WRITES);
  assert.equal(chains.isFull, true);
  const count = () => writes.filter(({ tails }) => tails.length > 0).length;
  assert.equal(count(), MAX_CHAIN_WRITES);
  await writes[0].end(0);
  assert.deepEqual([count(), chains.isFull], [MAX_CHAIN_WRITES + 1, false]);
  assert.equal(await results[0], 0);
});

test("a write that cannot begin is refused, and the next one begins", async () => {
  const chains = new Chains<number, number>();
  const broken = new Write();
  broken.begin = () => {
    throw new Error("too many plans");
  };
  await assert.rejects(chains.run("k", broken), /too many plans/);
  const { writes } = begun(chains, 1);
  assert.deepEqual(writes[0].tails, [undefined]);
});
