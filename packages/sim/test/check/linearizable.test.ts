/**
 * The general judge against its naive reference, on samples, at its bound, and on histories that
 * are large.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { SeededRandom } from "@quorate/host";
import type { ModelRequest, OpAnswer } from "../../src/base/model.ts";
import type { Operation, Outcome } from "../../src/base/operation.ts";
import { checkHistory } from "../../src/check/by-revision.ts";
import { checkLinearizable } from "../../src/check/linearizable.ts";
import { isLinearizableNaively } from "./naive.ts";
import { randomHistory } from "./random-history.ts";

function op(
  calledAt: number,
  returnedAt: number,
  request: ModelRequest,
  answer?: OpAnswer,
): Operation {
  const outcome: Outcome =
    answer === undefined
      ? { kind: "unknown", error: "" }
      : { kind: "answered", answer: { revision: 0, succeeded: true, answers: [answer] } };
  return {
    client: `c${calledAt}`,
    request,
    serializable: false,
    atRevision: 0,
    calledAt,
    returnedAt,
    outcome,
  };
}

const put = (called: number, returned: number, value: string, key = "a") =>
  op(called, returned, { kind: "put", key, value }, { kind: "put" });
const lost = (called: number, value: string, key = "a") =>
  op(called, called + 1, { kind: "put", key, value });
const get = (called: number, returned: number, value: string | undefined, key = "a") => {
  const kvs = value === undefined ? [] : [{ key, value, create: 0, mod: 0, version: 0 }];
  return op(called, returned, { kind: "range", key, end: "" }, { kind: "range", kvs });
};
const resultOf = (operations: readonly Operation[]) => checkLinearizable(operations).result;

describe("samples", () => {
  test("a read sees a write that is under way, or does not", () => {
    assert.equal(resultOf([put(0, 3, "x"), get(1, 2, "x")]), "linearizable");
    assert.equal(resultOf([put(0, 3, "x"), get(1, 2, undefined)]), "linearizable");
  });

  test("once one has seen it, all that come later do", () => {
    assert.equal(
      resultOf([put(0, 9, "x"), get(1, 2, "x"), get(3, 4, undefined)]),
      "not-linearizable",
    );
    assert.equal(resultOf([put(0, 9, "x"), get(1, 4, "x"), get(2, 3, undefined)]), "linearizable");
  });

  test("a lost write takes effect late, never, but not twice", () => {
    assert.equal(resultOf([lost(0, "x"), get(2, 3, undefined), get(4, 5, "x")]), "linearizable");
    assert.equal(resultOf([lost(0, "x"), get(2, 3, undefined)]), "linearizable");
    assert.equal(
      resultOf([lost(0, "x"), get(2, 3, "x"), put(4, 5, "y"), get(6, 7, "x")]),
      "not-linearizable",
    );
  });

  test("each key for itself may be in order, and both together not", () => {
    const both = (called: number, a: string | undefined, b: string | undefined) => {
      const kvs = [
        ...(a === undefined ? [] : [{ key: "a", value: a, create: 0, mod: 0, version: 0 }]),
        ...(b === undefined ? [] : [{ key: "b", value: b, create: 0, mod: 0, version: 0 }]),
      ];
      return op(called, called + 10, { kind: "range", key: "a", end: "c" }, { kind: "range", kvs });
    };
    const writes = [put(0, 9, "x", "a"), put(1, 8, "y", "b")];
    assert.equal(
      resultOf([...writes, get(2, 3, "x", "a"), get(4, 5, undefined, "b")]),
      "linearizable",
    );
    assert.equal(
      resultOf([
        put(0, 30, "x", "a"),
        put(1, 30, "y", "b"),
        both(2, "x", undefined),
        both(3, undefined, "y"),
      ]),
      "not-linearizable",
    );
    assert.equal(
      resultOf([
        put(0, 30, "x", "a"),
        put(1, 30, "y", "b"),
        both(2, "x", undefined),
        both(3, "x", "y"),
      ]),
      "linearizable",
    );
  });

  test("it says how far it came, what cannot come next, and in which part", () => {
    const verdict = checkLinearizable([
      put(0, 1, "x", "b"),
      put(2, 3, "x"),
      put(4, 5, "y"),
      get(6, 7, "x"),
      get(8, 9, "x", "b"),
    ]);
    assert.equal(verdict.result, "not-linearizable");
    assert.equal(verdict.parts, 2);
    assert.deepEqual(
      verdict.part.map(({ calledAt }) => calledAt),
      [2, 4, 6],
    );
    assert.deepEqual(
      verdict.prefix.map(({ calledAt }) => calledAt),
      [2, 4],
    );
    assert.deepEqual(
      verdict.stuck.map(({ calledAt }) => calledAt),
      [6],
    );
  });

  test("what is of unknown outcome may depend on more of its kind, beside others on which it does not", () => {
    const a = {
      kind: "txn",
      compares: [{ key: "b", target: "mod", result: ">", operand: 5 }],
      failure: [],
    } as const;
    const unknown = [
      lost(0, "x", "a"),
      lost(2, "y", "b"),
      op(4, 5, { ...a, success: [{ kind: "put", key: "b", value: "z" }] }),
      lost(6, "w", "c"),
    ];
    const kvs = ["x", "z", "w"].map((value, i) => ({
      key: "abc"[i],
      value,
      create: 0,
      mod: 0,
      version: 0,
    }));
    assert.equal(
      resultOf([
        ...unknown,
        op(8, 9, { kind: "range", key: "a", end: "d" }, { kind: "range", kvs }),
      ]),
      "linearizable",
    );
  });

  test("an answer that shows keys beside those asked for is wrong", () => {
    const kvs = [{ key: "b", value: "x", create: 0, mod: 0, version: 0 }];
    assert.equal(
      resultOf([
        put(0, 1, "x", "b"),
        op(2, 3, { kind: "range", key: "a", end: "" }, { kind: "range", kvs }),
      ]),
      "not-linearizable",
    );
  });
});

describe("against the naive judge", () => {
  for (const revisions of ["ignored", "compared"] as const) {
    test(`revisions ${revisions}`, () => {
      const random = new SeededRandom(7n).fork(revisions);
      const counts = { right: 0, wrong: 0 };
      for (let i = 0; i < 4000; i++) {
        const history = randomHistory(random, {
          operations: 1 + random.below(7),
          keys: 1 + random.below(3),
          clients: 1 + random.below(5),
          lost: [0, 0.2, 0.5, 0.8][random.below(4)],
          wrong: 0.6,
          uniqueValues: random.below(2) === 0,
          leases: revisions === "ignored" && random.below(4) === 0,
        });
        const expected = isLinearizableNaively(history, revisions);
        const actual = checkLinearizable(history, { revisions });
        const text = () => `history ${i}: ${JSON.stringify(history, undefined, 1)}`;
        assert.equal(actual.result, expected ? "linearizable" : "not-linearizable", text());
        counts[expected ? "right" : "wrong"]++;
        if (revisions === "compared") {
          const byRevision = checkHistory(history);
          assert.equal(byRevision.decided, true);
          assert.equal(
            byRevision.violation === undefined,
            expected,
            `${byRevision.violation} ${text()}`,
          );
        }
      }
      assert.ok(counts.right > 1000 && counts.wrong > 400, JSON.stringify(counts));
    });
  }
});

describe("size", () => {
  const shape = { operations: 2000, keys: 4, clients: 8, lost: 0.05, wrong: 0, uniqueValues: true };

  test("thousands of operations of clients at the same time", () => {
    const verdict = checkLinearizable(randomHistory(new SeededRandom(3n), shape));
    assert.equal(verdict.result, "linearizable");
    assert.ok(verdict.judged > 1700);
  });

  test("at its bound it is undecided, and says so", () => {
    const verdict = checkLinearizable(randomHistory(new SeededRandom(3n), shape), {
      maxStates: 500,
    });
    assert.equal(verdict.result, "undecided");
    assert.ok(verdict.part.length > 0);
  });
});
