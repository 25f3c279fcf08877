/**
 * Reads in slices: bounded turns, fairness, cancellation, limits, memory; with a clock that stands
 * still, so that only steps count.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "@quorate/host/testing";
import { errorOf } from "@quorate/proto";
import type { Steps } from "@quorate/store";
import { AnswerMemory, answerLimitsFor, MAX_MESSAGE_BYTES } from "../src/reads/answer-memory.ts";
import { FairQueue } from "../src/reads/fair-queue.ts";
import type { SliceCaller, SliceTask } from "../src/reads/slice-task.ts";
import { SLICE_LIMITS, type SliceLimits, Slices } from "../src/reads/slices.ts";

const limits: SliceLimits = {
  turnMs: 2,
  quantumMs: 1,
  turnSteps: 8,
  quantumSteps: 2,
  runningPerConnection: 2,
  turnGets: 3,
  mostSmallKeys: 16,
  maxPerClient: 6,
  maxTotal: 10,
  maxFetches: 1,
  maxReadMs: 1000,
};
const answers = { totalBytes: 1000, clientBytes: 700, answerBytes: 500 };

class TestCaller implements SliceCaller {
  readonly client: string;
  readonly address: string;
  cancelled = false;
  #listener: (() => void) | undefined;

  constructor(client: string, address = `${client}:1`) {
    this.client = client;
    this.address = address;
  }

  onCancel(listener: () => void): void {
    this.#listener = listener;
  }

  cancel(): void {
    this.cancelled = true;
    this.#listener?.();
  }
}

/** A clock whose turns end one at a time. */
class TurnClock extends ManualClock {
  #tasks: (() => void)[] = [];

  override endOfTurn(task: () => void): void {
    this.#tasks.push(task);
  }

  /** Ends one turn of the event loop, and lets what follows from it happen. */
  async turn(): Promise<void> {
    const tasks = this.#tasks;
    this.#tasks = [];
    for (const task of tasks) task();
    await new Promise((resolve) => setImmediate(resolve));
  }

  async manyTurns(count: number): Promise<void> {
    for (let i = 0; i < count; i++) await this.turn();
  }
}

/** A Slices with a log of the steps that ran, in order. */
function world(changed: Partial<SliceLimits> = {}) {
  const clock = new TurnClock();
  const slices = new Slices({ ...limits, ...changed }, { clock, answers });
  const ran: string[] = [];
  const ended: string[] = [];
  /** A read of so many steps. */
  const reading = (
    name: string,
    steps: number,
    each: (task: SliceTask, i: number) => void = () => {},
  ) =>
    function* (task: SliceTask): Steps<string> {
      try {
        for (let i = 1; ; i++) {
          ran.push(name);
          each(task, i);
          if (i === steps) return name;
          yield;
        }
      } finally {
        ended.push(name);
      }
    };
  /** Begins a read; the caller does not wait for its end. */
  const begin = (caller: SliceCaller, make: (task: SliceTask) => Steps<string>): void => {
    Promise.resolve(slices.run(caller, make)).catch(() => {});
  };
  return { clock, slices, ran, ended, reading, begin };
}

test("a queue is fair on each level, and keeps the order within one path", () => {
  const queue = new FairQueue<string>();
  for (const path of ["a/1", "a/1", "a/1", "a/2", "b/1", "b/1"])
    queue.push(path.split("/"), `${path} ${queue.size}`);
  const taken: string[] = [];
  for (let item = queue.take(); item !== undefined; item = queue.take()) taken.push(item);
  assert.deepEqual(taken, ["a/1 0", "b/1 4", "a/2 3", "b/1 5", "a/1 1", "a/1 2"]);
  assert.equal(queue.size, 0);
  queue.push(["a", "1"], "again");
  assert.equal(queue.take(), "again");
});

test("a short read is answered at once, and what it throws is thrown", () => {
  const { slices, reading } = world();
  assert.equal(slices.run(new TestCaller("a"), reading("short", 2)), "short");
  assert.throws(
    () =>
      slices.run(
        new TestCaller("a"),
        reading("bad", 2, () => {
          throw errorOf("Compacted");
        }),
      ),
    { code: "Compacted" },
  );
  assert.equal(slices.count, 0);
});

test("a turn of the event loop runs no more steps than it may, for any caller and however often", async () => {
  const { clock, slices, ran, reading } = world();
  const all = ["a", "b", "c"].flatMap((client) =>
    [0, 1].map((i) => slices.run(new TestCaller(client), reading(`${client}${i}`, 20))),
  );
  let turns = 0;
  for (let before = 0; slices.count > 0; before = ran.length) {
    assert.ok(
      ran.length - before <= limits.turnSteps + limits.quantumSteps,
      `${ran.length - before} steps in a turn`,
    );
    await clock.turn();
    assert.ok(turns++ < 100);
  }
  assert.deepEqual(await Promise.all(all), ["a0", "a1", "b0", "b1", "c0", "c1"]);
});

test("1000 reads of one connection get one share beside one read of another", async () => {
  const { clock, slices, ran, reading, begin } = world({ maxPerClient: 2000, maxTotal: 2000 });
  for (let i = 0; i < 1000; i++) begin(new TestCaller("crowd"), reading("crowd", 10));
  let isDone = false;
  void Promise.resolve(slices.run(new TestCaller("single"), reading("single", 100))).then(() => {
    isDone = true;
  });
  const from = ran.length;
  for (let i = 0; !isDone; i++) {
    assert.ok(i < 1000);
    await clock.turn();
  }
  const crowd = ran
    .slice(from, ran.lastIndexOf("single"))
    .filter((name) => name === "crowd").length;
  assert.ok(crowd <= 110, `${crowd} steps of the crowd went before the single one's 100`);
  slices.close(errorOf("Stopped"));
});

test("two clients share evenly, however many connections one of them has", async () => {
  const { clock, slices, ran, reading, begin } = world({ maxPerClient: 100, maxTotal: 200 });
  for (let i = 0; i < 20; i++) begin(new TestCaller("many", `many:${i}`), reading("many", 1000));
  begin(new TestCaller("one"), reading("one", 1000));
  for (let i = 0; i < 50; i++) {
    await clock.turn();
  }
  const share = ran.filter((name) => name === "one").length / ran.length;
  assert.ok(share > 0.4, `the one got ${share}`);
  slices.close(errorOf("Stopped"));
});

test("a read whose caller is gone ends, releases its memory, and the next takes its place", async () => {
  const { clock, slices, ended, reading } = world();
  const caller = new TestCaller("a");
  const charge = (task: SliceTask, i: number) => i === 1 && task.charge(100);
  const first = slices.run(caller, reading("first", 1000, charge)) as Promise<string>;
  const second = slices.run(
    new TestCaller("a"),
    reading("second", 1000, charge),
  ) as Promise<string>;
  const third = new TestCaller("a");
  const waiting = slices.run(third, reading("third", 10, charge)) as Promise<string>;
  await clock.turn();
  assert.equal(slices.memory.totalBytes, 200);
  caller.cancel();
  await assert.rejects(first, { message: errorOf("Canceled").message });
  assert.deepEqual(ended, ["first"]);
  for (let i = 0; i < 20; i++) {
    await clock.turn();
  }
  assert.equal(await waiting, "third");
  assert.equal(slices.memory.totalBytes, 100, "that of the second");
  assert.throws(() => slices.run(caller, reading("late", 1)), {
    message: errorOf("Canceled").message,
  });
  slices.close(errorOf("Stopped"));
  await assert.rejects(second, { message: errorOf("Stopped").message });
  assert.deepEqual([slices.count, slices.memory.totalBytes], [0, 0]);
  assert.throws(() => slices.run(new TestCaller("a"), reading("after", 1)), {
    message: errorOf("Stopped").message,
  });
});

test("a read that waits for its turn leaves the queue when its caller goes", async () => {
  const { slices, ran, reading } = world();
  const callers = Array.from({ length: 4 }, () => new TestCaller("a"));
  const reads = callers.map(
    (caller, i) => slices.run(caller, reading(`r${i}`, 100)) as Promise<string>,
  );
  callers[3].cancel();
  await assert.rejects(reads[3], { message: errorOf("Canceled").message });
  assert.equal(slices.count, 3);
  assert.ok(!ran.includes("r3"));
  slices.close(errorOf("Stopped"));
  await Promise.allSettled(reads);
});

test("as many reads as may be in progress, of one client and of all, and one more is refused", async () => {
  const { slices, reading } = world();
  const reads = Array.from({ length: 6 }, () => slices.run(new TestCaller("a"), reading("a", 100)));
  const busy = { message: errorOf("TooManyRequests").message };
  assert.throws(() => slices.run(new TestCaller("a", "a:2"), reading("a", 100)), busy);
  for (let i = 0; i < 4; i++) reads.push(slices.run(new TestCaller("b"), reading("b", 100)));
  assert.throws(() => slices.run(new TestCaller("c"), reading("c", 100)), busy);
  slices.close(errorOf("Stopped"));
  await Promise.allSettled(reads);
});

test("a read that takes longer than it may ends", async () => {
  const { clock, slices, ended, reading } = world();
  const read = slices.run(new TestCaller("a"), reading("a", 1e6)) as Promise<string>;
  const late = assert.rejects(read, { message: errorOf("Timeout").message });
  for (let i = 0; i < 5; i++) {
    clock.advance(limits.maxReadMs / 4);
    await clock.turn();
  }
  await late;
  assert.deepEqual(ended, ["a"]);
});

test("of reads of one key a turn takes so many at once, and those of a few keys while it has time", async () => {
  const { clock, slices, reading, begin } = world();
  assert.deepEqual(
    [1, 2, 3, 4].map(() => slices.takesGet()),
    [true, true, true, false],
  );
  await clock.turn();
  assert.ok(slices.takesGet());
  const caller = new TestCaller("a");
  assert.equal(
    slices.now(caller, (mostKeys) => mostKeys),
    limits.mostSmallKeys,
  );
  slices.noteBytes(10_000_000);
  assert.deepEqual(
    [slices.takesGet(), slices.now(caller, () => 1)],
    [false, undefined],
    "a large record has used up the turn",
  );
  await clock.turn();
  begin(caller, reading("heavy", 100));
  assert.equal(
    slices.now(caller, () => 1),
    undefined,
    "behind what the connection waits for",
  );
  assert.equal(
    slices.now(new TestCaller("b"), () => 1),
    1,
  );
  slices.close(errorOf("Stopped"));
});

test("reads from the disk go on in turn, and hold up no other read", async () => {
  const { clock, slices, ran } = world();
  const asked: (() => void)[] = [];
  const fetching = (name: string) =>
    function* ({ io }: SliceTask): Steps<string> {
      let came: string | undefined;
      const read = () => new Promise<string>((resolve) => asked.push(() => resolve(name)));
      io.waitsFor = io.fromDisk(read).then((value) => {
        came = value;
      });
      while (came === undefined) {
        ran.push(`${name} waits`);
        yield;
      }
      io.waitsFor = undefined;
      yield;
      return came;
    };
  const reads = ["a", "b"].map((name) => slices.run(new TestCaller(name), fetching(name)));
  for (let i = 0; i < 5; i++) {
    await clock.turn();
  }
  assert.deepEqual(ran, ["a waits", "b waits"], "no step is wasted on a read that waits");
  assert.equal(asked.length, 1, "one at a time");
  asked[0]();
  await clock.turn();
  assert.equal(asked.length, 2);
  asked[1]();
  for (let i = 0; i < 5; i++) {
    await clock.turn();
  }
  assert.deepEqual(await Promise.all(reads), ["a", "b"]);
});

test("when the store is exchanged, reads wait for what they have asked of it, and start again on the new one", async () => {
  const { clock, slices, ended } = world();
  let store = "old";
  let answer: () => void = () => {};
  const read = slices.run(new TestCaller("a"), function* ({ io, charge }) {
    const from = store;
    charge(50);
    try {
      io.waitsFor = io.fromDisk(
        () =>
          new Promise<void>((resolve) => {
            answer = resolve;
          }),
      );
      yield;
      io.waitsFor = undefined;
      return from;
    } finally {
      ended.push(from);
    }
  });
  let isDetached = false;
  const detached = slices.detach().then(() => {
    isDetached = true;
  });
  assert.equal(slices.memory.totalBytes, 0);
  assert.deepEqual(ended, ["old"]);
  await clock.turn();
  assert.ok(!isDetached, "the old store is still being read");
  answer();
  await detached;
  await clock.turn();
  assert.deepEqual(ended, ["old"], "nothing runs while there is no store");
  store = "new";
  slices.attach();
  await clock.turn();
  answer();
  await clock.manyTurns(3);
  assert.equal(await read, "new");
});

test("memory: an answer, a client and all together have bounds; at the last, who holds most gives way", async () => {
  const { clock, slices, reading } = world({ quantumSteps: 1 });
  const large = (bytes: number) => (task: SliceTask, i: number) => i === 2 && task.charge(bytes);
  const run = (client: string, bytes: number) =>
    Promise.resolve(slices.run(new TestCaller(client), reading(client, 1000, large(bytes)))).then(
      () => "answered",
      (error: Error) => error.message,
    );
  const tooLarge = run("a", 501);
  await clock.turn();
  assert.match(
    await tooLarge,
    /^etcdserver: answer too large: one answer may take 500 bytes .*limit/,
  );
  const ofA = [run("a", 400), run("a", 400)];
  const ofB = run("b", 450);
  for (let i = 0; i < 4; i++) {
    await clock.turn();
  }
  assert.match(await Promise.race(ofA), /the answers to one client may take 700 bytes/);
  assert.equal(slices.memory.totalBytes, 850);
  const ofC = run("c", 200);
  for (let i = 0; i < 4; i++) {
    await clock.turn();
  }
  assert.match(await ofB, /all answers may take 1000 bytes/, "b held most");
  assert.equal(slices.memory.totalBytes, 600);
  assert.equal(slices.memory.refused, 3);
  slices.close(errorOf("Stopped"));
  await Promise.all([...ofA, ofC]);
  assert.equal(slices.memory.totalBytes, 0);
});

test("memory that is given back leaves nothing behind", () => {
  const memory = new AnswerMemory(answers);
  const holder = { client: "a", heldBytes: 0, fail: () => {} };
  memory.charge(holder, 300);
  memory.charge(holder, -100);
  assert.equal(memory.totalBytes, 200);
  memory.release(holder);
  assert.deepEqual([holder.heldBytes, memory.totalBytes], [0, 0]);
});

test("an answer is not larger than its connection may have waiting, or than gRPC can send", () => {
  const budgets = {
    builtAnswersTotalBytes: 2 ** 33,
    builtAnswersClientBytes: 2 ** 32,
    answersConnectionBytes: 2 ** 33,
  };
  assert.equal(answerLimitsFor(budgets).answerBytes, MAX_MESSAGE_BYTES);
  assert.equal(answerLimitsFor({ ...budgets, answersConnectionBytes: 1000 }).answerBytes, 1000);
  assert.ok(SLICE_LIMITS.turnMs <= 5 && SLICE_LIMITS.quantumMs <= SLICE_LIMITS.turnMs);
});
