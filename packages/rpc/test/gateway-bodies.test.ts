/** Large bodies of many calls at a time share one slice of each turn. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "@quorate/host";
import { defined, fromUtf8, httpRoutes, JsonError } from "@quorate/proto";
import { BodyDecodings, type BodyReceiver } from "../src/gateway/body.ts";

const txn = defined(
  httpRoutes().find(({ path }) => path === "/v3/kv/txn"),
  "the route",
).request;
const wide = (count: number): Uint8Array => fromUtf8(`{"compare":[${"{},".repeat(count)}{}]}`);

/** A thread on which each look at the clock takes a quarter of a millisecond. */
class SlowThread {
  #nowMs = 0;
  #tasks: (() => void)[] = [];
  readonly turns = new Turns({
    monotonicMs: () => (this.#nowMs += 0.25),
    endOfTurn: (task) => void this.#tasks.push(task),
  });

  /** Runs the turns until none is planned; calls `between` after each. */
  run(between: () => void): void {
    while (this.#tasks.length > 0) {
      for (const task of this.#tasks.splice(0)) task();
      between();
    }
  }
}

function receiver(
  done: (result: Uint8Array | unknown) => void,
  isWanted = () => true,
): BodyReceiver {
  return { isWanted, decoded: done, refused: done };
}

test("many large bodies take no more of a turn than one", () => {
  const stepsOfTurns = (bodies: number): number => {
    const thread = new SlowThread();
    const decodings = new BodyDecodings(thread.turns);
    let steps = 0;
    let most = 0;
    let done = 0;
    for (let i = 0; i < bodies; i++) {
      const isWanted = (): boolean => {
        steps++;
        return true;
      };
      decodings.decode(
        txn,
        wide(100_000),
        receiver(() => done++, isWanted),
      );
    }
    thread.run(() => {
      most = Math.max(most, steps);
      steps = 0;
    });
    assert.equal(done, bodies);
    return most;
  };
  const one = stepsOfTurns(1);
  assert.ok(one > 1 && one < 8, `${one}`);
  assert.equal(stepsOfTurns(50), one);
});

test("a body that is shorter than those before it is done before them", () => {
  const thread = new SlowThread();
  const decodings = new BodyDecodings(thread.turns);
  const order: string[] = [];
  for (const name of ["a", "b"])
    decodings.decode(
      txn,
      wide(200_000),
      receiver(() => order.push(name)),
    );
  decodings.decode(
    txn,
    wide(25_000),
    receiver(() => order.push("short")),
  );
  decodings.decode(
    txn,
    wide(10),
    receiver(() => order.push("at once")),
  );
  thread.run(() => {});
  assert.deepEqual(order, ["at once", "short", "a", "b"]);
});

test("a malformed body is refused, and one that nobody waits for is dropped", () => {
  const thread = new SlowThread();
  const decodings = new BodyDecodings(thread.turns);
  const results: unknown[] = [];
  let isWanted = true;
  const gone = receiver(
    () => assert.fail("it is not wanted"),
    () => isWanted,
  );
  decodings.decode(txn, wide(100_000), gone);
  const broken = wide(100_000);
  broken[broken.length - 5] = 0x21;
  decodings.decode(
    txn,
    broken,
    receiver((result) => results.push(result)),
  );
  isWanted = false;
  thread.run(() => {});
  assert.equal(results.length, 1);
  assert.ok(results[0] instanceof JsonError);
});
