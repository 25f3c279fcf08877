/** The judge of histories, judged: what is right passes, and each kind of wrong is named. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Answer, ModelKey, ModelRequest } from "../../src/base/model.ts";
import type { CompactionCall, Operation, Outcome } from "../../src/base/operation.ts";
import { checkHistory } from "../../src/check/by-revision.ts";

/** An operation of a client: called and returned at these moments. */
function op(
  called: number,
  returned: number | undefined,
  request: ModelRequest,
  outcome: Outcome,
): Operation {
  return {
    client: `c${called}`,
    request,
    serializable: false,
    atRevision: 0,
    calledAt: called,
    returnedAt: returned,
    outcome,
  };
}

function answered(revision: number, answers: Answer["answers"], succeeded = true): Outcome {
  return { kind: "answered", answer: { revision, succeeded, answers } };
}

const UNKNOWN: Outcome = { kind: "unknown", error: "time is up" };

function put(
  called: number,
  returned: number,
  value: string,
  revision: number,
  key = "a",
): Operation {
  return op(called, returned, { kind: "put", key, value }, answered(revision, [{ kind: "put" }]));
}

function lostPut(called: number, value: string, key = "a"): Operation {
  return op(called, called + 1, { kind: "put", key, value }, UNKNOWN);
}

/** A read of key a that finds `value`, or nothing. */
function get(called: number, returned: number, revision: number, found?: ModelKey): Operation {
  const kvs = found === undefined ? [] : [{ key: "a", ...found }];
  return op(
    called,
    returned,
    { kind: "range", key: "a", end: "" },
    answered(revision, [{ kind: "range", kvs }]),
  );
}

function right(
  operations: readonly Operation[],
  compactions: readonly CompactionCall[] = [],
): void {
  const verdict = checkHistory(operations, compactions);
  assert.equal(verdict.violation, undefined);
  assert.equal(verdict.decided, true);
}

function wrong(
  operations: readonly Operation[],
  expected: RegExp,
  compactions: readonly CompactionCall[] = [],
): void {
  assert.match(checkHistory(operations, compactions).violation ?? "nothing is wrong", expected);
}

describe("what clients may see", () => {
  test("one after the other, and at the same time in either order", () => {
    right([]);
    right([
      put(0, 1, "x", 2),
      get(2, 3, 2, { value: "x", create: 2, mod: 2, version: 1 }),
      put(4, 5, "y", 3),
    ]);
    right([put(0, 3, "x", 3), put(1, 2, "y", 2)]);
    right([
      put(0, 3, "x", 2),
      get(1, 2, 1),
      get(4, 5, 2, { value: "x", create: 2, mod: 2, version: 1 }),
    ]);
  });

  test("a write of unknown outcome may have taken effect, late or never", () => {
    const lost = lostPut(0, "x");
    right([lost, get(2, 3, 1)]);
    right([lost, get(2, 3, 1), get(4, 5, 2, { value: "x", create: 2, mod: 2, version: 1 })]);
    right([lost, put(2, 3, "y", 3), get(4, 5, 3, { value: "y", create: 2, mod: 3, version: 2 })]);
  });

  test("of two writes of unknown outcome the one that fits is found, in whatever order they were tried", () => {
    const lost = [lostPut(0, "x"), lostPut(2, "y"), lostPut(4, "z", "b")];
    right([
      ...lost,
      put(6, 7, "w", 4),
      get(8, 9, 4, { value: "w", create: 2, mod: 4, version: 3 }),
    ]);
    right([
      ...lost,
      put(6, 7, "w", 4),
      get(8, 9, 4, { value: "w", create: 3, mod: 4, version: 2 }),
    ]);
    right([...lost, get(6, 7, 3, { value: "x", create: 2, mod: 3, version: 2 })]);
  });

  test("a transaction answers for the branch that it took", () => {
    const compares = [{ key: "a", target: "mod", result: "=", operand: 2 } as const];
    const success = [{ kind: "put", key: "a", value: "y" } as const];
    const request = {
      kind: "txn",
      compares,
      success,
      failure: [{ kind: "range", key: "a", end: "" }],
    } as const;
    right([put(0, 1, "x", 2), op(2, 3, request, answered(3, [{ kind: "put" }]))]);
    wrong(
      [put(0, 1, "x", 2), put(2, 3, "z", 3), op(4, 5, request, answered(4, [{ kind: "put" }]))],
      /HIST-3: at revision 4/,
    );
  });

  test("old revisions may be read while they are there, and a serializable read may be old", () => {
    const old = get(4, 5, 3, { value: "x", create: 2, mod: 2, version: 1 });
    const writes = [put(0, 1, "x", 2), put(2, 3, "y", 3)];
    right([...writes, { ...old, atRevision: 2 }]);
    right([
      ...writes,
      { ...get(4, 5, 2, { value: "x", create: 2, mod: 2, version: 1 }), serializable: true },
    ]);
  });
});

describe("what no client may see", () => {
  test("a stale read", () =>
    wrong([put(0, 1, "x", 2), get(2, 3, 1)], /HIST-1: revision 2 had been answered/));

  test("a write behind one that was answered before it was called", () =>
    wrong([put(0, 1, "x", 3), put(2, 3, "y", 2)], /HIST-1/));

  test("another value at the revision of an answered write, whatever else is unknown", () => {
    const lost = Array.from({ length: 12 }, (_, i) => lostPut(0, `lost${i}`));
    const read = get(4, 5, 2, { value: "other", create: 2, mod: 2, version: 1 });
    wrong([put(1, 2, "x", 2), read, ...lost], /HIST-3: at revision 2/);
  });

  test("another value at a revision of a write that no client saw answered", () => {
    const read = get(4, 5, 2, { value: "other", create: 2, mod: 2, version: 1 });
    wrong([lostPut(0, "x"), lostPut(0, "y"), read], /HIST-2: revision 2 is no client's/);
  });

  test("two writes of one revision", () =>
    wrong([put(0, 2, "x", 2), put(1, 3, "y", 2)], /HIST-2: two writes of revision 2/));

  test("a revision without a write", () => {
    wrong([put(0, 1, "x", 3)], /HIST-2: revision 2 is no client's write/);
    // It was called only after its effect was seen.
    wrong([put(0, 1, "x", 3), lostPut(2, "y")], /HIST-2: revision 2 is no client's write/);
  });

  test("a write that was answered and is gone", () =>
    wrong(
      [
        put(0, 1, "x", 2),
        put(2, 3, "y", 3),
        get(4, 5, 3, { value: "x", create: 2, mod: 2, version: 1 }),
      ],
      /HIST-3: at revision 3/,
    ));

  test("a write that took effect twice", () =>
    wrong(
      [lostPut(0, "x"), get(2, 3, 3, { value: "x", create: 2, mod: 3, version: 2 })],
      /HIST-2: revision 2 is no client's/,
    ));

  test("a write that was refused and took effect", () => {
    const refused = op(
      0,
      1,
      { kind: "put", key: "a", value: "x" },
      { kind: "refused", error: "no" },
    );
    wrong(
      [refused, get(2, 3, 2, { value: "x", create: 2, mod: 2, version: 1 })],
      /HIST-2: revision 2 is no client's/,
    );
  });

  test("what was compacted, or a compaction that no client asked for", () => {
    const writes = [put(0, 1, "x", 2), put(2, 3, "y", 3)];
    const old = { ...get(6, 7, 3, { value: "x", create: 2, mod: 2, version: 1 }), atRevision: 2 };
    wrong([...writes, old], /HIST-4: compacted at 3/, [
      { revision: 3, calledAt: 4, answeredAt: 5 },
    ]);
    right([...writes, old], [{ revision: 3, calledAt: 4, answeredAt: undefined }]);
    const refused = {
      ...old,
      outcome: {
        kind: "refused",
        error: "etcdserver: mvcc: required revision has been compacted",
      } as const,
    };
    wrong([...writes, refused], /HIST-4: no client compacted/);
  });
});
