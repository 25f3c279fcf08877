/**
 * etcd 21417: answers to a heartbeat of before a read must not confirm it, however often the same
 * read is asked for again.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ReadOnly } from "../src/reads.ts";

const read = (name: number) => ({ from: 2n, context: new Uint8Array([name]) });
const names = (confirmed: readonly { context: Uint8Array }[]): number[] =>
  confirmed.map(({ context }) => context[0]);

test("a read that is asked for again gets a round of its own; answers to its first round confirm no read that came later", () => {
  const reads = new ReadOnly(100);
  reads.add(read(1), 10);
  reads.startRound();
  assert.deepEqual(names(reads.takeConfirmed(1)), [1]);
  // The response is lost; another read arrives, and then the first one again, because no response
  // was of it.
  reads.add(read(2), 10);
  reads.startRound();
  reads.add(read(1), 10);
  reads.startRound();
  // Late answers to the very first heartbeat: the machines that sent them may have elected another
  // leader since.
  assert.deepEqual(names(reads.takeConfirmed(1)), []);
  assert.deepEqual(names(reads.takeConfirmed(2)), [2]);
  assert.deepEqual(names(reads.takeConfirmed(3)), [1]);
});
