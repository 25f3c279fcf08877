/**
 * Large answers of requests that write: encoded in pieces over several turns, and the same message
 * as at once.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { type Clock, SeededRandom, Turns } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { SharedTurns } from "@quorate/member";
import { MAX_SLICE_STEPS } from "@quorate/member/testing";
import {
  DeleteRangeResponse,
  fromUtf8,
  KeyValue,
  type ResponseHeader,
  type ResponseOp,
  TxnResponse,
} from "@quorate/proto";
import { type Encoding, encodeDeleteRange, encodeTxn } from "../src/v3/write-answer.ts";

/** Each look at it is a millisecond later, so that every slice is four steps. */
function steppingClock(): Pick<Clock, "turns"> & { count: number } {
  let nowMs = 0;
  const clock = {
    count: 0,
    monotonicMs: () => nowMs++,
    endOfTurn(task: () => void) {
      clock.count++;
      queueMicrotask(task);
    },
  };
  return Object.assign(clock, { turns: new Turns(clock) });
}

const caller = { client: "c", address: "c:1", cancelled: false, onCancel: () => {} };
const encodingOn = (clock: Pick<Clock, "turns">): Encoding => ({
  turns: new SharedTurns(clock),
  caller,
});

const header: ResponseHeader = { clusterId: 1n, memberId: 2n, revision: 3, raftTerm: 4 };
const join = (answer: Uint8Array | readonly Uint8Array[]): Buffer =>
  Buffer.concat(answer instanceof Uint8Array ? [answer] : [...answer]);

function records(random: SeededRandom, count: number): Uint8Array[] {
  return Array.from({ length: count }, (_, i) =>
    KeyValue.encode({ key: fromUtf8(`k${i}`), value: new Uint8Array(random.below(300)) }),
  );
}

test("the earlier values of a deleted range", async () => {
  const clock = steppingClock();
  const response = { header, deleted: 5000, prevKvs: records(new SeededRandom(1n), 5000) };
  const answer = join(await encodeDeleteRange(encodingOn(clock), response));
  assert.deepEqual(
    DeleteRangeResponse.decode(answer),
    DeleteRangeResponse.decode(DeleteRangeResponse.encode(response)),
  );
  assert.ok(clock.count >= 4, `${clock.turns} turns`);
  const large = {
    header,
    deleted: 300,
    prevKvs: Array.from({ length: 300 }, () => new Uint8Array(100_000)),
  };
  const pieces = (await encodeDeleteRange(encodingOn(clock), large)) as readonly Uint8Array[];
  assert.ok(
    pieces.every(({ length }) => length < 1_300_000),
    "no piece copies much more than a megabyte",
  );
  assert.equal(DeleteRangeResponse.decode(join(pieces)).prevKvs.length, 300);
});

test("work that must not be refused: one slice in a turn for all together, fair over clients and connections", async () => {
  const clock = new ManualClock();
  const turns = new SharedTurns(clock);
  const ran = new Map<string, number>();
  const done: string[] = [];
  const run = (client: string, connection: string, count: number) => {
    const steps = function* () {
      for (let i = 0; i < count; i++) {
        ran.set(connection, (ran.get(connection) ?? 0) + 1);
        yield;
      }
      return connection;
    };
    void turns.run({ client, address: connection }, steps()).then((name) => done.push(name));
  };
  // The first has the turn's slice to itself; then 50 of one client stand beside one of another.
  run("a", "a1", 3 * MAX_SLICE_STEPS);
  for (let i = 0; i < 50; i++) run("a", `a${2 + (i % 2)}`, 10 * MAX_SLICE_STEPS);
  run("b", "b1", MAX_SLICE_STEPS);
  assert.deepEqual([...ran], [["a1", MAX_SLICE_STEPS]]);
  ran.clear();
  clock.advance(0);
  const total = () => [...ran.values()].reduce((sum, count) => sum + count, 0);
  // A ManualClock runs what a turn's end sets in further turns at the same instant, so all is done;
  // b was done when a had run as much.
  await turn();
  assert.equal(total(), 2 * MAX_SLICE_STEPS + 500 * MAX_SLICE_STEPS + MAX_SLICE_STEPS);
  assert.equal(done[0], "b1");
  await assert.rejects(
    turns.run(
      caller,
      // biome-ignore lint/correctness/useYield: the first step fails
      (function* () {
        throw new Error("broken");
      })(),
    ),
    /broken/,
  );
});

for (const seed of [1, 2, 3, 4, 5]) {
  test(`transactions with ranges, deletions and transactions in them (seed ${seed})`, async () => {
    const random = new SeededRandom(BigInt(seed));
    const ops = (depth: number): ResponseOp[] =>
      Array.from({ length: 1 + random.below(6) }, (): ResponseOp => {
        const kvs = records(
          random,
          random.below(3) === 0 ? 400 + random.below(1200) : random.below(3),
        );
        const kind = random.below(depth > 0 ? 5 : 4);
        if (kind === 0)
          return {
            response: {
              case: "responseRange",
              value: { header, kvs, more: random.below(2) === 0, count: kvs.length },
            },
          };
        if (kind === 1)
          return {
            response: {
              case: "responseDeleteRange",
              value: { header, deleted: kvs.length, prevKvs: kvs },
            },
          };
        if (kind === 2)
          return { response: { case: "responsePut", value: { header, prevKv: kvs[0] } } };
        if (kind === 3) return { response: undefined };
        return {
          response: {
            case: "responseTxn",
            value: { header: undefined, succeeded: true, responses: ops(depth - 1) },
          },
        };
      });
    let turns = 0;
    for (let i = 0; i < 30; i++) {
      const clock = steppingClock();
      const response: TxnResponse = { header, succeeded: i % 2 === 0, responses: ops(3) };
      const answer = join(await encodeTxn(encodingOn(clock), response));
      assert.deepEqual(
        TxnResponse.decode(answer),
        TxnResponse.decode(TxnResponse.encode(response)),
      );
      turns += clock.count;
    }
    assert.ok(turns > 10, `${turns} turns`);
  });
}
