/**
 * A history that fails is made small, goes on failing, and is drawn; a history in a file comes back
 * as it was.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import type { Operation } from "../../src/base/operation.ts";
import { checkHistory } from "../../src/check/by-revision.ts";
import { formatHistory, judgeHistory, parseHistory } from "../../src/check/judge.ts";
import { checkLinearizable } from "../../src/check/linearizable.ts";
import { shrinkHistory } from "../../src/check/shrink.ts";
import { isLinearizableNaively } from "./naive.ts";
import { randomHistory } from "./random-history.ts";

const fails = (operations: readonly Operation[]) =>
  checkLinearizable(operations).result === "not-linearizable";
const judge = (operations: readonly Operation[]) => ({ fails: fails(operations), steps: 1 });
const shape = { operations: 60, keys: 3, clients: 5, lost: 0.1, uniqueValues: true };

test("what fails gets small and goes on failing", () => {
  const random = new SeededRandom(11n);
  let failed = 0;
  let small = 0;
  for (let i = 0; i < 40; i++) {
    const history = randomHistory(random, { ...shape, wrong: 1 });
    if (!fails(history)) {
      assert.equal(shrinkHistory(history, judge).operations.length, history.length);
      continue;
    }
    failed++;
    const { operations: least, isBounded } = shrinkHistory(history, judge);
    assert.ok(fails(least));
    assert.equal(isBounded, false);
    // Nothing that stays is something else than it was, but for answers that were forgotten.
    for (const op of least) {
      const was = history.find(({ calledAt }) => calledAt === op.calledAt)!;
      assert.deepEqual(op.request, was.request);
      if (op.outcome?.kind === "answered") assert.deepEqual(op.outcome, was.outcome);
    }
    if (least.filter(({ outcome }) => outcome?.kind === "answered").length <= 4) small++;
    if (least.length <= 8) assert.equal(isLinearizableNaively(least, "ignored"), false);
  }
  assert.ok(failed > 12 && small > 0.8 * failed, `${failed} failed, ${small} are small`);
});

test("at its bound it returns the smallest it has", () => {
  const history = randomHistory(new SeededRandom(12n), { ...shape, wrong: 1 });
  let runs = 0;
  const { operations, isBounded } = shrinkHistory(
    history,
    (some) => {
      runs++;
      return { fails: some.length > 10, steps: 1 };
    },
    { maxRuns: 20 },
  );
  assert.equal(runs, 20);
  assert.ok(isBounded && operations.length > 10 && operations.length <= history.length);
});

test("the work of all attempts together is bounded, and that of each", () => {
  const history = randomHistory(new SeededRandom(12n), { ...shape, wrong: 1 });
  const steps: number[] = [];
  const { operations, isBounded } = shrinkHistory(
    history,
    (some, maxSteps) => {
      steps.push(maxSteps);
      return { fails: some.length > 10, steps: maxSteps };
    },
    { maxSteps: 50_000 },
  );
  assert.deepEqual(steps, [20_000, 20_000, 10_000]);
  assert.ok(isBounded && operations.length < history.length);
});

test("a judge that gives up at its bound says how much it did", () => {
  const history = randomHistory(new SeededRandom(12n), { ...shape, lost: 0.5, wrong: 0 });
  const whole = checkHistory(history);
  assert.ok(whole.decided && whole.steps > 40, `${whole.steps} steps`);
  const part = checkHistory(history, [], undefined, undefined, 20);
  assert.deepEqual([part.decided, part.violation], [false, undefined]);
  assert.ok(part.steps > 20 && part.steps < whole.steps, `${part.steps} of ${whole.steps} steps`);
});

test("all judges together: a violation with the smallest part and its picture", () => {
  const put = (at: number, value: string, revision: number): Operation => ({
    client: "c1",
    request: { kind: "put", key: "a", value },
    serializable: false,
    atRevision: 0,
    calledAt: at,
    returnedAt: at + 1,
    outcome: {
      kind: "answered",
      answer: { revision, succeeded: true, answers: [{ kind: "put" }] },
    },
  });
  const operations: Operation[] = [put(0, "x", 2), put(2, "y<&>", 3)];
  const kvs = [{ key: "a", value: "x", create: 2, mod: 2, version: 1 }];
  operations.push({
    client: "c2",
    request: { kind: "range", key: "a", end: "" },
    serializable: false,
    atRevision: 0,
    calledAt: 4,
    returnedAt: 5,
    outcome: {
      kind: "answered",
      answer: { revision: 2, succeeded: true, answers: [{ kind: "range", kvs }] },
    },
  });
  const said: string[] = [];
  const explains = (violation: string) => void said.push(violation);
  const judgement = judgeHistory({ operations }, { title: "stale read", explains });
  assert.deepEqual(said, [judgement.violation], "what is wrong, before it is made small");
  assert.match(judgement.violation ?? "", /HIST-1: revision 3 had been answered/);
  assert.deepEqual(judgement.undecided, []);
  assert.equal(judgement.failing?.length, 3);
  assert.match(judgement.picture ?? "", /<!doctype html>/);
  assert.match(judgement.picture ?? "", /class="op stuck"/);
  assert.ok(!judgement.picture!.includes("y<&>"), "what clients wrote is text, and no markup");
  assert.equal(judgeHistory({ operations: operations.slice(0, 2) }).violation, undefined);
});

test("a history in a file", () => {
  const operations = randomHistory(new SeededRandom(5n), { ...shape, wrong: 0 });
  const compactions = [{ revision: 3, calledAt: 500, answeredAt: undefined }];
  const text = formatHistory({ operations, compactions });
  const back = parseHistory(text);
  assert.equal(formatHistory(back), text);
  assert.equal(back.operations.length, operations.length);
  assert.deepEqual(back.compactions, [{ revision: 3, calledAt: 500 }]);
  assert.throws(() => parseHistory(`${text}{"client":1}\n`), /line \d+ of the history is neither/);
  assert.throws(() => parseHistory(`nonsense`), /line 1 of the history is no JSON/);
});
