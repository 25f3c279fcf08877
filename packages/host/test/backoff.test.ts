import assert from "node:assert/strict";
import { test } from "node:test";
import { Backoff, SeededRandom } from "@quorate/host";

test("pauses double up to the most, and begin again after a success", () => {
  const backoff = new Backoff({ firstMs: 25, mostMs: 1000 });
  const pauses = () => Array.from({ length: 8 }, () => backoff.nextMs());
  assert.deepEqual(pauses(), [25, 50, 100, 200, 400, 800, 1000, 1000]);
  backoff.reset();
  assert.equal(backoff.nextMs(), 25);
  for (let i = 0; i < 2000; i++) backoff.nextMs();
  assert.equal(backoff.nextMs(), 1000);
});

test("a first attempt may be quick, and pauses differ where they are drawn", () => {
  const options = { quickMs: 10, firstMs: 100, mostMs: 1000 };
  const backoff = new Backoff(options, new SeededRandom(1n));
  const longest = [10, 100, 200, 400, 800, 1000, 1000, 1000];
  const waits = longest.map(() => backoff.nextMs());
  waits.forEach((wait, i) => {
    assert.ok(wait >= longest[i]! / 2 && wait <= longest[i]!, `${wait} of ${longest[i]}`);
  });
  assert.notEqual(waits[5], waits[6]);
  backoff.reset();
  assert.ok(backoff.nextMs() <= 10);
  const other = new Backoff(options, new SeededRandom(1n));
  assert.deepEqual(
    longest.map(() => other.nextMs()),
    waits,
    "the same seed waits the same",
  );
});
