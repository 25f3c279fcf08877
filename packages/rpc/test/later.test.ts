/** Results that come later: one receiver gets them, however early they come. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Later } from "@quorate/rpc";

function receiver() {
  const got: string[] = [];
  return {
    got,
    resolved: (value: string) => void got.push(value),
    rejected: (error: unknown) => void got.push(`error ${error}`),
  };
}

test("a receiver gets a result, and an error, at once when it comes", () => {
  for (const [end, expected] of [
    [(later: Later<string>) => later.resolved("done"), "done"],
    [(later: Later<string>) => later.rejected("no"), "error no"],
  ] as const) {
    const later = new Later<string>();
    const one = receiver();
    later.deliver(one);
    assert.deepEqual(one.got, []);
    end(later);
    assert.deepEqual(one.got, [expected]);
  }
});

test("what comes before there is a receiver waits for it", () => {
  const answer = new Later<string>();
  answer.resolved("early");
  const one = receiver();
  answer.deliver(one);
  const refusal = new Later<string>();
  refusal.rejected("early");
  refusal.deliver(one);
  assert.deepEqual(one.got, ["early", "error early"]);
});

test("it can be awaited, before its result and after", async () => {
  const before = new Later<string>();
  const waiting = (async () => await before)();
  before.resolved("later");
  assert.equal(await waiting, "later");
  const after = new Later<string>();
  after.rejected(new Error("refused"));
  await assert.rejects(async () => await after, /refused/);
});
