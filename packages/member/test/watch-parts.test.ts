/** The small parts of watch, each against a model that is plainly right. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { fromLatin1, KeyValue, WatchCreateRequest_FilterType, WatchResponse } from "@quorate/proto";
import type { Change, KeyRange } from "@quorate/store";
import { ClientBudget } from "../src/watch/client-budget.ts";
import { fragments, idField, WatchEvent } from "../src/watch/event.ts";
import { WATCH_LIMITS } from "../src/watch/limits.ts";
import { Pass } from "../src/watch/pass.ts";
import { RecentEvents } from "../src/watch/recent-events.ts";
import type { StreamWatcher } from "../src/watch/watch-stream.ts";
import { checkPermission, mayTake, Watcher, type WatchRequest } from "../src/watch/watcher.ts";
import { Crowd } from "../src/watch/watcher-group.ts";

test("the budget of clients is one number for each and one for all, to the byte", () => {
  const random = new SeededRandom(34n);
  const limits = { maxTotalBytes: 50, maxClientBytes: 20 };
  const budget = new ClientBudget(limits);
  const used = new Map<string, number>();
  const total = () => [...used.values()].reduce((sum, one) => sum + one, 0);
  let refusals = 0;
  for (let i = 0; i < 2000; i++) {
    const client = "abcde"[random.below(5)]!;
    const own = used.get(client) ?? 0;
    if (random.below(2) === 0) {
      const sizeBytes = random.below(12);
      const fits =
        own + sizeBytes <= limits.maxClientBytes && total() + sizeBytes <= limits.maxTotalBytes;
      assert.equal(budget.take(client, sizeBytes), fits);
      if (fits) used.set(client, own + sizeBytes);
      else refusals++;
    } else {
      const sizeBytes = random.below(own + 1);
      budget.give(client, sizeBytes);
      used.set(client, own - sizeBytes);
    }
    assert.deepEqual([budget.usedBytes, budget.usedBy(client)], [total(), used.get(client) ?? 0]);
  }
  assert.equal(budget.refusals, refusals);
  assert.ok(refusals > 100 && total() > 0);
});

test("the last events are whole revisions within their bounds, or one larger revision", () => {
  const random = new SeededRandom(34n);
  const event = (main: number, sub: number) => {
    const value = new Uint8Array(random.below(300));
    const record = KeyValue.encode(KeyValue.create({ key: fromLatin1("k"), value }));
    return new WatchEvent({ main, sub, key: "k", record, deleted: false } as Change);
  };
  for (const limits of [
    { maxRecentEvents: 5, maxRecentBytes: 1 << 20 },
    { maxRecentEvents: 1000, maxRecentBytes: 1500 },
    { maxRecentEvents: 1, maxRecentBytes: 1 },
  ]) {
    const recent = new RecentEvents(2, limits);
    let model: WatchEvent[] = [];
    let first = 2;
    const bytes = () => model.reduce((sum, { heldBytes }) => sum + heldBytes, 0);
    for (let main = 2; main < 200; main++) {
      for (let sub = 0; sub < 1 + random.below(4); sub++) {
        const next = event(main, sub);
        recent.push(next);
        model.push(next);
        while (
          (model.length > limits.maxRecentEvents || bytes() > limits.maxRecentBytes) &&
          model[0]!.main < main
        ) {
          const [{ main: gone }] = model as [WatchEvent];
          first = gone + 1;
          model = model.filter((one) => one.main !== gone);
        }
        assert.deepEqual(
          [recent.firstRevision, recent.size, recent.heldBytes],
          [first, model.length, bytes()],
        );
        const from = first + random.below(3);
        const most = 1 + random.below(4);
        const seen: WatchEvent[] = [];
        recent.scan(from, (one) => seen.push(one) < most);
        assert.deepEqual(seen, model.filter((one) => one.main >= from).slice(0, most));
      }
    }
  }
});

test("the last events may be as many bytes as their bound", () => {
  const event = (main: number) =>
    new WatchEvent({ main, sub: 0, key: "k", record: new Uint8Array(9), deleted: false });
  const maxRecentBytes = 2 * event(1).heldBytes;
  const recent = new RecentEvents(2, { maxRecentEvents: 9, maxRecentBytes });
  for (const main of [2, 3]) recent.push(event(main));
  assert.equal(recent.firstRevision, 2);
  recent.push(event(4));
  assert.equal(recent.firstRevision, 3);
});

test("a crowd wants pairs before events once one of its watchers does", () => {
  const crowd = new Crowd<{ range: KeyRange; prevKv: boolean }>();
  const range: KeyRange = { single: true, key: "k" };
  const wanted: boolean[] = [];
  for (const prevKv of [false, true, false]) {
    crowd.add({ range, prevKv });
    wanted.push(crowd.wantsPrevKv);
  }
  assert.deepEqual(wanted, [false, true, true]);
});

test("each bound in bytes has room for a response", () => {
  for (const [name, value] of Object.entries(WATCH_LIMITS))
    if (name.endsWith("Bytes")) assert.ok(value >= WATCH_LIMITS.maxResponseBytes, name);
});

test("a response is cut below its bound, of one event at the least each", () => {
  const headBytes = 10;
  const sent = (sizes: readonly number[], maxBytes: number) => {
    const parts: [sizes: number[], more: boolean][] = [];
    const events = sizes.map((size) => new Uint8Array(size));
    fragments(headBytes, events, maxBytes, (some, more) =>
      parts.push([some.map(({ length }) => length), more]),
    );
    return parts;
  };
  assert.deepEqual(sent([20, 20], 51), [[[20, 20], false]]);
  // A fragment has a field of two bytes more: 10 + 2 + 20 + 17.
  assert.deepEqual(sent([20, 20], 50), [
    [[20], true],
    [[20], false],
  ]);
  assert.deepEqual(sent([90], 50), [[[90], false]]);
  assert.deepEqual(sent([20, 17, 20, 18, 5], 50), [
    [[20, 17], true],
    [[20], true],
    [[18, 5], false],
  ]);
  assert.deepEqual(sent([20, 17, 20, 17, 5], 50), [
    [[20, 17], true],
    [[20, 17], true],
    [[5], false],
  ]);
  assert.deepEqual(sent([90, 90], 50), [
    [[90], true],
    [[90], false],
  ]);
});

test("the field of an id is made once for small ids, and right for all", () => {
  for (const id of [0, 1, 2, 1023, 1024, 2 ** 40, -1n, 1n << 62n]) {
    const field = idField(id);
    assert.deepEqual(field, WatchResponse.encode({ watchId: id }));
    const isKept = typeof id === "number" && id < 1024;
    assert.equal(idField(id) === field, isKept, `${id}`);
  }
});

/** A watcher that takes what it is offered, or is full. */
function watcherOf(nextRevision: number, isFull = false) {
  const taken: WatchEvent[] = [];
  const watcher = {
    range: { single: true, key: "k" },
    nextRevision,
    wants: (event: WatchEvent) => event.main >= nextRevision,
    stream: {
      offer: (_watcher: unknown, event: WatchEvent) => {
        if (!isFull) taken.push(event);
        return !isFull;
      },
    },
  } as unknown as StreamWatcher;
  return { watcher, taken };
}

test("a pass begins at its earliest watcher, offers to those who are in it, and parks all who are full", () => {
  const [early, late, full, fuller] = [
    watcherOf(5),
    watcherOf(9),
    watcherOf(5, true),
    watcherOf(5, true),
  ];
  const pass = new Pass([late, early, full, fuller].map(({ watcher }) => watcher));
  assert.deepEqual([pass.cursor, pass.readThrough, pass.size], [5, 4, 4]);
  assert.deepEqual([pass.nextOf(early.watcher), pass.nextOf(late.watcher)], [5, 9]);
  const event = new WatchEvent({
    main: 7,
    sub: 0,
    key: "k",
    record: new Uint8Array(1),
    deleted: false,
  });
  const parked: [StreamWatcher, number][] = [];
  const park = (watcher: StreamWatcher, revision: number) => parked.push([watcher, revision]);
  assert.equal(pass.offer(event, park), 1);
  assert.deepEqual([early.taken, late.taken], [[event], []]);
  assert.deepEqual(parked, [
    [full.watcher, 7],
    [fuller.watcher, 7],
  ]);
  for (const { watcher } of [early, full, fuller]) pass.delete(watcher);
  assert.equal(pass.size, 1);
  assert.equal(pass.offer(event, park), 0);
  assert.deepEqual([early.taken.length, parked.length], [1, 2]);
});

const REQUEST: WatchRequest = {
  range: { single: true, key: "k" },
  startRevision: 3,
  filters: [],
  prevKv: true,
  fragment: true,
  progressNotify: true,
  costBytes: 77,
};

test("a watcher has what its client has set, and wants what its filters leave, from a revision on", () => {
  const stream = {};
  const { NOPUT, NODELETE } = WatchCreateRequest_FilterType;
  const one = new Watcher(stream, 9, REQUEST, 5);
  assert.deepEqual(
    [one.stream, one.id, one.range, one.startRevision, one.prevKv, one.fragment, one.costBytes],
    [stream, 9, REQUEST.range, 3, true, true, 77],
  );
  assert.deepEqual([one.nextRevision, one.progressDue], [5, true]);
  const other = new Watcher(stream, 9, { ...REQUEST, progressNotify: false }, 5);
  assert.equal(other.progressDue, undefined);
  const event = (main: number, deleted: boolean) =>
    new WatchEvent({ main, sub: 0, key: "k", record: new Uint8Array(1), deleted });
  for (const [filters, wanted] of [
    [[], [false, false, true, true]],
    [[NOPUT], [false, false, false, true]],
    [[NODELETE], [false, false, true, false]],
    [
      [NOPUT, NODELETE],
      [false, false, false, false],
    ],
  ] as const) {
    const watcher = new Watcher(stream, 9, { ...REQUEST, filters }, 5);
    const found = [4, 5].flatMap((main) =>
      [false, true].map((gone) => watcher.wants(event(main, gone))),
    );
    assert.deepEqual(found, wanted);
    assert.equal(watcher.takesBothKinds, filters.length === 0);
  }
});

test("a watch is looked up once for each change of permissions; one that was forbidden stays so", () => {
  const watcher = new Watcher({}, 9, REQUEST, 5);
  let asked = 0;
  let reason: string | undefined;
  const client = {
    client: "c",
    ready: () => undefined,
    forbids: () => undefined,
    revoked: (range: KeyRange) => {
      assert.equal(range, REQUEST.range);
      asked++;
      return reason;
    },
  };
  assert.equal(mayTake(watcher, client, 0), true);
  assert.equal(asked, 0);
  assert.equal(mayTake(watcher, client, 1), true);
  assert.equal(mayTake(watcher, client, 1), true);
  assert.equal(asked, 1);
  reason = "no permission";
  assert.equal(mayTake(watcher, client, 2), false);
  reason = undefined;
  assert.equal(mayTake(watcher, client, 2), false);
  assert.equal(checkPermission(watcher, client, 3), false);
  assert.deepEqual([watcher.forbidden, watcher.permissions], ["no permission", 3]);
});
