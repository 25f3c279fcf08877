/** Histories that go back: what may be lost, and what may not. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { judge } from "../../../../test/robustness/judge.ts";
import type { Line, OpLine } from "../../../../test/robustness/recorder.ts";
import { acrossCut, beforeCut } from "./eras.ts";

const CUT_US = 1000;

function put(at: number, key: string, revision: number): OpLine {
  return {
    t: "op",
    client: "c",
    member: "m",
    request: { kind: "put", key, value: `${key}${at}` },
    serializable: false,
    atRevision: 0,
    calledAt: at,
    returnedAt: at + 1,
    outcome: {
      kind: "answered",
      answer: { revision, succeeded: true, answers: [{ kind: "put" }] },
    },
  };
}

/** Reads one key, and finds what was put at a time, or nothing. */
function range(at: number, key: string, revision: number, found?: [at: number, mod: number]): Line {
  const kvs = (found === undefined ? [] : [found]).map(([putAt, mod]) => {
    return { key, value: `${key}${putAt}`, create: mod, mod, version: 1 };
  });
  const answers = [{ kind: "range" as const, kvs, more: false, count: kvs.length }];
  return {
    ...put(at, key, revision),
    request: { kind: "range", key, end: "" },
    outcome: { kind: "answered", answer: { revision, succeeded: true, answers } },
  };
}

const before: Line[] = [{ t: "base", revision: 1 }, put(10, "a", 2), put(20, "b", 3)];

for (const bump of [0, 100]) {
  const cut = { atUs: CUT_US, revision: 2, bump };
  const after = (...more: Line[]): Line[] => [...before, ...more];

  test(`a write past the kept revision may be lost, and no other one (bump ${bump})`, () => {
    const lines = after(
      range(1010, "b", bump + 2),
      put(1020, "c", bump + 3),
      range(1030, "c", bump + 3, [1020, bump + 3]),
      range(1040, "a", bump + 3, [10, 2]),
    );
    assert.notEqual(judge(lines).violation, undefined, "as one history it is none");
    assert.equal(judge(beforeCut(lines, cut)).violation, undefined);
    const across = acrossCut(lines, cut);
    assert.equal(across.lost, 1);
    assert.equal(judge(across.lines).violation, undefined);
    const lost = acrossCut(after(range(1010, "a", bump + 2)), cut);
    assert.notEqual(judge(lost.lines).violation, undefined, "a was kept");
    const risen = acrossCut(after(range(1010, "b", bump + 3, [20, 3])), cut);
    assert.notEqual(judge(risen.lines).violation, undefined, "b was lost");
  });
}
