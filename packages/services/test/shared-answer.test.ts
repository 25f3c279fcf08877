/** An answer for many: made rarely, never stale. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "@quorate/host/testing";
import { SharedAnswer } from "../src/http/shared-answer.ts";

test("a flood has it made a quarter of the time, each answer is of later than its question", async () => {
  const clock = new ManualClock();
  let made = 0;
  const answer = new SharedAnswer(clock, async () => {
    made++;
    const madeMs = clock.monotonicMs();
    await new Promise<void>((resolve) => void clock.after(10, resolve));
    return madeMs;
  });
  let answered = 0;
  for (let ms = 0; ms < 1000; ms++) {
    for (let i = 0; i < 20; i++) {
      const askedMs = clock.monotonicMs();
      void answer.ask().then((madeMs) => {
        assert.ok(madeMs >= askedMs);
        answered++;
      });
    }
    await clock.advanceAsync(1);
  }
  await clock.advanceAsync(1000);
  assert.equal(answered, 20_000);
  assert.ok(made >= 22 && made <= 28, `${made} times`);
});

test("one that fails is an error for those who asked, and is made again for others", async () => {
  const clock = new ManualClock();
  let fails = true;
  const answer = new SharedAnswer(clock, async () => {
    if (fails) throw new Error("no");
    return "yes";
  });
  await assert.rejects(answer.ask(), { message: "no" });
  fails = false;
  assert.equal(await answer.ask(), "yes");
});
