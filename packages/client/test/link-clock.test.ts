/** Delays that Node's timers do not take. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { timerMs } from "../node/engine-link.ts";

test("delays outside of what timers take are cut, without a warning", async () => {
  const warnings: string[] = [];
  const note = ({ name }: Error) => warnings.push(name);
  process.on("warning", note);
  for (const delayMs of [-5, -0.5, 2 ** 40, Number.POSITIVE_INFINITY])
    clearTimeout(setTimeout(() => {}, timerMs(delayMs)));
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", note);
  assert.deepEqual(warnings, []);
  // A lease of 30 days: a third of it, and all of it, are still in the future.
  assert.ok(timerMs(30 * 86_400_000) > 20 * 86_400_000);
  assert.equal(timerMs(5), 5);
});
