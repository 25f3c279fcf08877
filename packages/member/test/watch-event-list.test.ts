/** The lists of events that watches share. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Event, Event_EventType, KeyValue, WatchResponse } from "@quorate/proto";
import { EventLists, WatchEvent } from "../src/watch/event.ts";
import { WATCH_LIMITS } from "../src/watch/limits.ts";

const event = (main: number, sizeBytes = 3): WatchEvent =>
  new WatchEvent({
    main,
    sub: 0,
    key: "key",
    record: new Uint8Array(sizeBytes).fill(main),
    deleted: false,
  });

test("watches that are offered the same events share one list, others have their own", () => {
  const lists = new EventLists();
  const [one, two, three] = [event(1), event(2), event(3)];
  const all = Array.from({ length: 3 }, () => lists.of(one).and(two).and(three));
  assert.ok(all.every((list) => list === all[0]));
  // One that skips an event, between two that do not.
  const some = lists.of(one).and(three);
  const late = lists.of(three);
  assert.deepEqual(all[0].events, [one, two, three]);
  assert.deepEqual(some.events, [one, three]);
  assert.deepEqual(late.events, [three]);
  assert.deepEqual([all[0].length, all[0].first, all[0].last], [3, one, three]);
  // What is taken back leaves the others as they are.
  assert.deepEqual(all[0].before!.events, [one, two]);
  assert.deepEqual(all[0].events, [one, two, three]);
  assert.deepEqual(lists.of(one).and(two).and(three).events, [one, two, three]);
});

test("events are joined for the second who asks, unless there is one, or they take several responses", () => {
  const lists = new EventLists();
  const [one, two] = [event(1), event(2)];
  const list = lists.of(one).and(two);
  assert.equal(list.joined(WATCH_LIMITS), undefined);
  assert.deepEqual(list.joined(WATCH_LIMITS), Uint8Array.from([...one.bytes, ...two.bytes]));
  assert.equal(list.joined(WATCH_LIMITS), list.joined(WATCH_LIMITS));
  const single = lists.of(one);
  const long = lists.of(one).and(event(3));
  const large = lists.of(one).and(event(4, 100));
  for (const _ of [1, 2, 3]) {
    assert.equal(single.joined(WATCH_LIMITS), undefined);
    assert.equal(long.joined({ ...WATCH_LIMITS, maxResponseRevisions: 1 }), undefined);
    assert.equal(large.joined({ ...WATCH_LIMITS, maxResponseBytes: 100 }), undefined);
  }
});

test("what responses have in common is one object for one header, if the events go into one", () => {
  const lists = new EventLists();
  const [one, two] = [event(1), event(2)];
  const header = Uint8Array.of(9);
  const prevKv = ({ main }: WatchEvent) => (main === 2 ? Uint8Array.of(5) : undefined);
  for (const list of [lists.of(one), lists.of(one).and(two)]) {
    const plain = list.common(header, undefined, WATCH_LIMITS)!;
    const withPrev = list.common(header, prevKv, WATCH_LIMITS)!;
    assert.equal(list.common(header, undefined, WATCH_LIMITS), plain);
    assert.equal(list.common(header, prevKv, WATCH_LIMITS), withPrev);
    assert.equal(plain.before, header);
    assert.deepEqual(
      plain.after,
      list.events.map(({ bytes }) => bytes),
    );
    assert.deepEqual(
      withPrev.after,
      list.events.map((some) => some.bytesWithPrev(prevKv)),
    );
    for (const { sizeBytes, before, after } of [plain, withPrev])
      assert.equal(
        sizeBytes,
        [before, ...after].reduce((size, { length }) => size + length, 0),
      );
    const other = Uint8Array.of(8);
    assert.equal(list.common(other, undefined, WATCH_LIMITS)!.before, other);
  }
  const long = lists.of(one).and(event(3));
  const large = lists.of(one).and(event(4, 100));
  for (const _ of [1, 2]) {
    assert.equal(
      long.common(header, undefined, { ...WATCH_LIMITS, maxResponseRevisions: 1 }),
      undefined,
    );
    assert.equal(
      large.common(header, undefined, { ...WATCH_LIMITS, maxResponseBytes: 100 }),
      undefined,
    );
  }
});

test("a response is full at its bounds, not below; events of one revision are one", () => {
  const [one, two, three] = [event(1), event(2), event(2)];
  const list = new EventLists().of(one).and(two).and(three);
  const sizeBytes = list.events.reduce((size, { bytes }) => size + bytes.length, 0);
  const prevKv = () => Uint8Array.of(5);
  const withPrev = list.events.reduce((size, some) => size + some.bytesWithPrev(prevKv).length, 0);
  for (const _ of [1, 2])
    assert.deepEqual([list.sizeBytes(undefined), list.sizeBytes(prevKv)], [sizeBytes, withPrev]);
  const header = Uint8Array.of(9);
  for (const [limits, isOne] of [
    [{ maxResponseRevisions: 2, maxResponseBytes: sizeBytes }, true],
    [{ maxResponseRevisions: 1, maxResponseBytes: sizeBytes }, false],
    [{ maxResponseRevisions: 2, maxResponseBytes: sizeBytes - 1 }, false],
  ] as const) {
    const some = new EventLists().of(one).and(two).and(three);
    const common = some.common(header, undefined, { ...WATCH_LIMITS, ...limits });
    assert.equal(common !== undefined, isOne);
  }
});

test("lists are shared within a turn", () => {
  const lists = new EventLists();
  const one = event(1);
  const list = lists.of(one);
  assert.equal(lists.of(one), list);
  const two = list.and(event(2));
  assert.equal(list.and(two.last).events, two.events);
  lists.clear();
  assert.notEqual(lists.of(one), list);
});

test("a deletion is sent as one, with its key and revision", () => {
  const change = { main: 7, sub: 0, key: "k", record: new Uint8Array(9) };
  for (const deleted of [false, true]) {
    const one = new WatchEvent({ ...change, deleted });
    assert.deepEqual([one.main, one.key, one.deleted], [7, "k", deleted]);
  }
  const { events } = WatchResponse.decode(new WatchEvent({ ...change, deleted: true }).bytes);
  const [deletion] = events.map((bytes) => Event.decode(bytes));
  assert.equal(deletion.type, Event_EventType.DELETE);
  assert.equal(KeyValue.decode(deletion.kv!).modRevision, 7);
});
