import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_WINDOW_LIMITS, EventWindow, WindowEvent } from "../../src/cacher/event-window.ts";
import { stored, widget } from "./support/object.ts";

const KEY = "/widgets/a/one";
const object = widget(KEY);

function eventAt(revision: number, atMs: number): WindowEvent {
  return new WindowEvent(stored(KEY, revision, object), undefined, undefined, atMs);
}

/** Events at even revisions, each `stepMs` after the one before. */
function fill(window: EventWindow, from: number, count: number, startMs: number, stepMs: number) {
  for (let i = 0; i < count; i++) window.append(eventAt(2 * (from + i), startMs + i * stepMs));
}

test("the capacity doubles while all events are fresh, up to a bound", () => {
  const window = new EventWindow({ ...DEFAULT_WINDOW_LIMITS, upperCapacity: 400 });
  fill(window, 1, 100, 0, 10);
  assert.equal(window.capacity, 100);
  fill(window, 101, 1, 1000, 0);
  assert.equal(window.capacity, 200);
  fill(window, 102, 1000, 1000, 10);
  assert.equal(window.capacity, 400);
  assert.equal(window.endIndex - window.startIndex, 400);
  assert.equal(window.endIndex, 1101);
});

test("the capacity halves when the latest quarter is not fresh, down to a bound", () => {
  const window = new EventWindow({ ...DEFAULT_WINDOW_LIMITS, upperCapacity: 400 });
  fill(window, 1, 400, 0, 1);
  assert.equal(window.capacity, 400);
  fill(window, 401, 1, 80_000, 0);
  assert.equal(window.capacity, 200);
  assert.equal(window.endIndex - window.startIndex, 200);
  fill(window, 402, 1000, 100_000, 80_000);
  assert.equal(window.capacity, 100);
  assert.equal(window.endIndex - window.startIndex, 100);
});

test("a window of old events is full without growing", () => {
  const window = new EventWindow(DEFAULT_WINDOW_LIMITS);
  // Less than a quarter is newer than 75 s.
  fill(window, 1, 1000, 0, 1000);
  assert.equal(window.capacity, 100);
  assert.equal(window.startIndex, 900);
});

test("bytes bound a window, but for its least number of events", () => {
  // Each event has 100 bytes.
  const window = new EventWindow({ ...DEFAULT_WINDOW_LIMITS, maxBytes: 15_000 });
  fill(window, 1, 1000, 0, 1);
  assert.equal(window.endIndex - window.startIndex, 150);
  assert.equal(window.at(window.startIndex).resourceVersion, 2 * 851);
  const small = new EventWindow({ ...DEFAULT_WINDOW_LIMITS, maxBytes: 1 });
  fill(small, 1, 1000, 0, 1);
  assert.equal(small.endIndex - small.startIndex, 100);
});

test("the first event after a revision is found, and what is complete is known", () => {
  const window = new EventWindow(DEFAULT_WINDOW_LIMITS);
  window.clear(10);
  assert.equal(window.completeAfter, 10);
  assert.equal(window.firstAfter(0), 0);
  fill(window, 6, 100, 0, 1000);
  for (const revision of [10, 11, 12, 13, 100, 209, 210, 211]) {
    const index = window.firstAfter(revision);
    if (index > 0) assert.ok(window.at(index - 1).resourceVersion <= revision);
    if (index < window.endIndex) assert.ok(window.at(index).resourceVersion > revision);
  }
  fill(window, 106, 1, 100_000, 0);
  // The first event, of revision 12, is gone.
  assert.equal(window.completeAfter, 12);
  assert.equal(window.at(window.firstAfter(12)).resourceVersion, 14);
  window.clear(500);
  assert.equal(window.completeAfter, 500);
  assert.equal(window.startIndex, 101);
  assert.equal(window.endIndex, 101);
});
