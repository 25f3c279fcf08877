/**
 * The judges of watch streams and of leases, judged: what is right passes, and each kind of wrong
 * is named.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type ModelRequest, ModelState } from "../src/base/model.ts";
import { checkLeases, type LeaseRecord } from "../src/check/leases.ts";
import {
  checkWatchStreams,
  replay,
  type WatchBatch,
  type WatchEvent,
  type WatchStream,
} from "../src/check/watch-streams.ts";

const put = (key: string, value: string, mod: number, create = mod, version = 1): WatchEvent => ({
  type: "put",
  key,
  value,
  create,
  mod,
  version,
});
const gone = (key: string, mod: number): WatchEvent => ({
  type: "delete",
  key,
  value: "",
  create: 0,
  mod,
  version: 0,
});
const batch = (revision: number, ...events: WatchEvent[]): WatchBatch => ({ revision, events });

/** 2: a=x; 3: b=y and a=z; 4: not known; 5: b deleted. */
const writes = new Map<number, ModelRequest>([
  [2, { kind: "put", key: "a", value: "x" }],
  [
    3,
    {
      kind: "txn",
      compares: [],
      success: [
        { kind: "put", key: "b", value: "y" },
        { kind: "put", key: "a", value: "z" },
      ],
      failure: [],
    },
  ],
  [5, { kind: "delete", key: "b", end: "" }],
]);
const at2 = put("a", "x", 2);
const at3 = [put("a", "z", 3, 2, 2), put("b", "y", 3)] as const;
const at4 = put("c", "u", 4);
const at5 = gone("b", 5);

function judge(
  batches: readonly WatchBatch[],
  more: Partial<WatchStream> = {},
  others: readonly WatchStream[] = [],
): string | undefined {
  const stream: WatchStream = {
    name: "w",
    key: "a",
    end: "z",
    from: 2,
    batches,
    through: 0,
    ...more,
  };
  const { events, violation } = replay(new ModelState(), 5, writes, [stream, ...others]);
  return violation ?? checkWatchStreams(events, [stream, ...others]);
}

describe("watch streams", () => {
  test("the whole, in one batch or many, with progress in between", () => {
    assert.equal(judge([batch(5, at2, ...at3, at4, at5)], { through: 5 }), undefined);
    assert.equal(
      judge([batch(2, at2), batch(3, ...at3), batch(3), batch(4, at4), batch(5, at5), batch(5)], {
        through: 5,
      }),
      undefined,
    );
  });

  test("a part: from a later revision, of one key, and cut off", () => {
    assert.equal(judge([batch(5, at4, at5)], { from: 4, through: 5 }), undefined);
    assert.equal(judge([batch(5, at3[1], at5)], { key: "b", end: "", through: 5 }), undefined);
    assert.equal(judge([batch(2, at2)]), undefined);
  });

  test("out of order, or before its beginning", () => {
    assert.match(judge([batch(5, ...at3, at2)], { from: 3 })!, /WATCH-1: out of order/);
    assert.match(judge([batch(5, at2, ...at3)], { from: 3 })!, /WATCH-1/);
    assert.match(judge([batch(2, at2, ...at3)])!, /WATCH-1: .* in a response of revision 2/);
    assert.match(judge([batch(2, at2), batch(2, at2)])!, /WATCH-2|WATCH-1/);
  });

  test("a revision in two parts, or half", () => {
    assert.match(judge([batch(3, at2, at3[0]), batch(3, at3[1])])!, /WATCH-2/);
    assert.match(judge([batch(3, at2, at3[1])])!, /WATCH-2/);
  });

  test("what was never written, or written otherwise", () => {
    assert.match(judge([batch(2, put("a", "other", 2))])!, /WATCH-3: .*expected/);
    assert.match(judge([batch(2, put("a", "x", 2, 2, 3))])!, /WATCH-3/);
    assert.match(judge([batch(3, at2, ...at3, put("bb", "new", 3))])!, /WATCH-3: .*never written/);
    assert.match(judge([batch(5, at2, ...at3, at4, gone("a", 5), at5)])!, /WATCH-3/);
  });

  test("a gap: before an event, before a progress, at the end", () => {
    assert.match(judge([batch(5, at2, at4)])!, /WATCH-4: nothing came of put a=z/);
    assert.match(judge([batch(2, at2), batch(5)])!, /WATCH-4: .*progress 5/);
    assert.match(judge([batch(3, at2, ...at3)], { through: 5 })!, /WATCH-4/);
  });

  test("where no client knows the write, streams must agree", () => {
    const other = (event: WatchEvent): WatchStream => ({
      name: "o",
      key: "c",
      end: "",
      from: 4,
      batches: [batch(4, event)],
      through: 0,
    });
    assert.equal(judge([batch(5, at2, ...at3, at4, at5)], {}, [other(at4)]), undefined);
    assert.match(
      judge([batch(5, at2, ...at3, at4, at5)], {}, [other(put("c", "w", 4))])!,
      /WATCH-3/,
    );
  });

  test("a known write that writes nothing", () => {
    const { violation } = replay(
      new ModelState(),
      2,
      new Map([[2, { kind: "delete", key: "q", end: "" }]]),
      [],
    );
    assert.match(violation!, /WATCH-3/);
  });
});

describe("leases", () => {
  const lease: LeaseRecord = {
    name: "l",
    renewals: [
      { calledMs: 0, ttlMs: 2000 },
      { calledMs: 1500, ttlMs: 2000 },
    ],
    revokeCalledMs: undefined,
    goneMs: 3600,
  };
  const judgeLease = (more: Partial<LeaseRecord>, goneByMs?: number, drift = 0) =>
    checkLeases([{ ...lease, ...more }], { goneByMs, drift });

  test("gone when its time is up, or when its owner wants that", () => {
    assert.equal(judgeLease({}), undefined);
    assert.equal(judgeLease({ goneMs: 3000, revokeCalledMs: 2900 }), undefined);
    assert.equal(judgeLease({ goneMs: 3450 }, undefined, 0.05), undefined);
    assert.equal(judgeLease({ goneMs: undefined }), undefined);
    assert.equal(judgeLease({ goneMs: undefined }, 3400), undefined);
  });

  test("gone too early", () => {
    assert.match(judgeLease({ goneMs: 3400 })!, /LEASE-1: l was gone at 3400 ms, 100 ms before/);
    assert.match(judgeLease({ goneMs: 3400, revokeCalledMs: 3450 })!, /LEASE-1/);
  });

  test("never gone", () => {
    assert.match(judgeLease({ goneMs: undefined }, 9000)!, /LEASE-3/);
    assert.match(judgeLease({ goneMs: undefined, revokeCalledMs: 100 }, 2000)!, /LEASE-3/);
  });
});
