/** What waits at a gate. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "@quorate/host/testing";
import { Gate, GatedClock, MAX_WAITING } from "../node/gate.ts";

test("what waits passes in order, and only so much waits", () => {
  const gate = new Gate();
  const passed: number[] = [];
  gate.shut();
  for (let i = 0; i < MAX_WAITING; i++) assert.ok(gate.pass(() => passed.push(i)));
  assert.equal(
    gate.pass(() => passed.push(-1)),
    false,
  );
  assert.deepEqual(passed, []);
  gate.open();
  assert.equal(passed.length, MAX_WAITING);
  assert.deepEqual(passed.slice(0, 3), [0, 1, 2]);
});

test("what passes may shut the gate, open it, and drop what waits", () => {
  const gate = new Gate();
  const passed: string[] = [];
  const pass = (name: string, task = () => {}) =>
    gate.pass(() => {
      passed.push(name);
      task();
    });
  gate.shut();
  pass("a", () => gate.shut());
  pass("b", () => {
    gate.shut();
    pass("e");
    gate.open();
  });
  pass("c");
  pass("d", () => gate.clear());
  gate.open();
  assert.deepEqual(passed, ["a"]);
  gate.open();
  assert.deepEqual(passed, ["a", "b", "c", "d"]);
  pass("f");
  assert.deepEqual(passed.slice(4), ["f"]);
});

test("a clock behind a shut gate: timers wait, periods are skipped, what is cancelled is not run", () => {
  const gate = new Gate();
  const time = new ManualClock();
  const clock = new GatedClock(time, gate);
  const ran: string[] = [];
  clock.after(10, () => ran.push("after"));
  const gone = clock.after(10, () => ran.push("cancelled"));
  const period = clock.every(10, () => ran.push("every"));
  gate.shut();
  time.advance(100);
  gone.cancel();
  assert.deepEqual(ran, []);
  gate.open();
  assert.deepEqual(ran.sort(), ["after", "every"]);
  period.cancel();
  time.advance(100);
  assert.equal(ran.length, 2);
});
