/** A crowd of handshakes: how many are begun before others have their turn. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { HandshakeLine, MAX_HANDSHAKES_A_TURN } from "../node/engine/handshake-line.ts";

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test("a few handshakes are begun in a turn, in the order in which they came", async () => {
  const line = new HandshakeLine();
  const begun: number[] = [];
  const count = 3 * MAX_HANDSHAKES_A_TURN + 1;
  for (let i = 0; i < count; i++) line.add(() => void begun.push(i));
  assert.equal(begun.length, MAX_HANDSHAKES_A_TURN, "the first ones wait for nothing");
  for (let turns = 2; begun.length <= count; turns++) {
    await turn();
    assert.equal(begun.length, Math.min(count + 1, turns * MAX_HANDSHAKES_A_TURN));
    // One that comes meanwhile is the last.
    if (turns === 2) line.add(() => void begun.push(count));
  }
  await turn();
  assert.deepEqual(
    begun,
    Array.from({ length: count + 1 }, (_, i) => i),
  );
  await turn();
  line.add(() => void begun.push(0));
  assert.equal(begun.length, count + 2, "and at rest one waits for nothing");
});
