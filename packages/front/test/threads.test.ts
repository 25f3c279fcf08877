/**
 * Front-ends in threads of their own: who gets a connection, and what one takes with it.
 * @slow
 */
import assert from "node:assert/strict";
import { Agent, get } from "node:http";
import { type AddressInfo, connect, Socket } from "node:net";
import { type TestContext, test } from "node:test";
import {
  FrontThreads,
  MAX_UNREAD_SOCKETS,
  MAX_WAITING_SOCKETS,
  SILENT_MS,
  START_LIMIT_MS,
} from "@quorate/front/node";
import { type Clock, silentLogger } from "@quorate/host";
import { type DoorServant, nodeClock, type OpenDoor, openDoor } from "@quorate/host/node";
import { ManualClock } from "@quorate/host/testing";

const PROGRAM = new URL("./front-program.ts", import.meta.url);

/** Threads that have not begun to start. */
async function make(t: TestContext, count: number, clock: Clock = nodeClock) {
  const door = await openDoor({ host: "127.0.0.1", port: 0 });
  const asleep = new Int32Array(new SharedArrayBuffer(8));
  let aborted = 0;
  const threads = new FrontThreads(
    {
      count,
      url: PROGRAM,
      program: () => asleep,
      fields: [],
      maxRequestBytes: 1 << 20,
      maxQueuedBytes: 1 << 24,
      maxHeldBytes: 1 << 20,
      resourceLimits: { maxOldGenerationSizeMb: 64 },
    },
    {
      services: { unary: new Map(), stream: new Map() },
      http: (exchange) => {
        if (exchange.head.path !== "/wait")
          exchange.respond({ status: 200, headers: {}, body: exchange.head.peerAddress });
        return { aborted: () => void aborted++ };
      },
      observer: undefined,
      doors: [door],
      clock,
      logger: silentLogger,
      ended: () => {},
    },
  );
  t.after(() => threads.close(0));
  const { port } = door.bound as AddressInfo;
  return { threads, port, aborted: () => aborted, isAsleep: () => Atomics.load(asleep, 0) === 1 };
}

async function start(t: TestContext, count: number, clock?: Clock) {
  const made = await make(t, count, clock);
  await made.threads.start();
  made.threads.listen();
  return made;
}

/** Requests over one connection. */
function connection(t: TestContext, port: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const ask = (path = "/"): Promise<string> =>
    new Promise((resolve, reject) => {
      get({ host: "127.0.0.1", port, path, agent }, (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => {
          text += chunk;
        });
        response.on("end", () => resolve(text));
        response.on("error", reject);
      }).on("error", reject);
    });
  return Object.assign(ask, { close: () => agent.destroy() });
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 5));

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await pause();
}

test("a front-end that misbehaves ends with its own connections, and is replaced", async (t) => {
  const { threads, port } = await start(t, 2);
  for (const [index, path] of ["/spin", "/exhaust", "/throw", "/garbage"].entries()) {
    const [victim, other] = [connection(t, port), connection(t, port)];
    // The two go to different front-ends.
    const others = [await victim(), await other()][1];
    let isOver = false;
    const attack = assert.rejects(victim(path), path).then(() => {
      isOver = true;
    });
    while (!isOver) {
      assert.equal(await other(), others, `${path}: the connection is the same one`);
      await pause();
    }
    await attack;
    assert.equal(await other(), others, path);
    // The thread may have gone with its sockets before it was noticed.
    await until(() => threads.ended === index + 1 && threads.serving === 2);
    other.close();
    await until(() => threads.connections.every((count) => count === 0));
  }
});

test("requests that wait for the member are given up when their front-end ends", async (t) => {
  const { threads, port, aborted } = await start(t, 1);
  const waiting = assert.rejects(connection(t, port)("/wait"));
  const thrown = assert.rejects(connection(t, port)("/throw"));
  await Promise.all([waiting, thrown]);
  await until(() => aborted() >= 1 && threads.serving === 1);
  assert.equal(threads.ended, 1);
});

test("1, 3, 10 and 1,000 connections are spread over three front-ends", async (t) => {
  const { threads, port } = await start(t, 3);
  const total = () => threads.connections.reduce((sum, one) => sum + one, 0);
  for (const count of [1, 3, 10, 1000]) {
    const sockets: Socket[] = [];
    for (let i = 0; i < count; i++) sockets.push(connect(port, "127.0.0.1"));
    await until(() => total() === count);
    const [least, most] = [Math.min(...threads.connections), Math.max(...threads.connections)];
    assert.ok(
      most - least <= (count <= 10 ? 1 : MAX_UNREAD_SOCKETS + 1),
      threads.connections.join(),
    );
    for (const socket of sockets) socket.destroy();
    await until(() => total() === 0);
  }
});

test("a front-end that takes too long to start is ended, and another starts", async (t) => {
  const clock = new ManualClock();
  const { threads } = await make(t, 1, clock);
  void threads.start();
  clock.advance(START_LIMIT_MS);
  await pause();
  assert.equal(threads.ended, 0);
  clock.advance(1000);
  await until(() => threads.ended === 1);
  clock.advance(1000);
  await until(() => threads.serving === 1);
});

test("none starts once they are closed, also where one was to", async (t) => {
  const clock = new ManualClock();
  const { threads } = await make(t, 1, clock);
  void threads.start();
  clock.advance(START_LIMIT_MS + 1000);
  await until(() => threads.ended === 1);
  assert.deepEqual(threads.connections, [], "the next one waits for a pause");
  await threads.close(0);
  clock.advance(60_000);
  assert.deepEqual(threads.connections, []);
});

test("a report has what happened before it was asked for", async (t) => {
  const { threads, port } = await start(t, 2);
  for (let count = 1; count <= 5; count++) {
    // The connection stays open, and the answer comes from its front-end.
    await connection(t, port)();
    const reports = (await threads.reports()) as number[];
    assert.equal(
      reports.reduce((sum, one) => sum + one, 0),
      count,
    );
  }
});

test("a front-end that spins holds up no report of the others", async (t) => {
  const { threads, port } = await start(t, 2);
  const [victim, other] = [connection(t, port), connection(t, port)];
  await Promise.all([victim(), other()]);
  assert.deepEqual(await threads.reports(), [1, 1]);
  const attack = assert.rejects(victim("/spin"));
  // Its last report remains, until it is ended.
  assert.deepEqual(await threads.reports(), [1, 1]);
  await attack;
});

test("a front-end that waits for ever is passed over after 250 ms, and ended after 10 s", async (t) => {
  const clock = new ManualClock();
  const { threads, port, isAsleep } = await start(t, 1, clock);
  const attack = assert.rejects(connection(t, port)("/sleep"));
  await until(isAsleep);
  let reports: readonly unknown[] | undefined;
  void threads.reports().then((made) => {
    reports = made;
  });
  const sinceMs = clock.monotonicMs();
  clock.advance(249);
  await pause();
  assert.equal(reports, undefined);
  clock.advance(1);
  await until(() => reports !== undefined);
  // It is found silent at the first look or, where a beat came just before it slept, the second.
  while (clock.monotonicMs() < sinceMs + SILENT_MS) clock.advance(250);
  await pause();
  assert.equal(threads.ended, 0);
  for (let i = 0; i < 3; i++) clock.advance(250);
  await attack;
  await until(() => threads.ended === 1);
});

test("a front-end that does not close is cut off a second after the grace", async (t) => {
  const clock = new ManualClock();
  const { threads, port, isAsleep } = await start(t, 1, clock);
  const attack = assert.rejects(connection(t, port)("/sleep"));
  await until(isAsleep);
  let isClosed = false;
  const closed = threads.close(200).then(() => {
    isClosed = true;
  });
  clock.advance(1199);
  await pause();
  assert.equal(isClosed, false);
  clock.advance(1);
  await Promise.all([attack, closed]);
});

test("a close lets open requests end, and cuts off the rest after the grace", async (t) => {
  const { threads, port } = await start(t, 2);
  const idle = connection(t, port);
  await idle();
  const waiting = assert.rejects(connection(t, port)("/wait"));
  await until(() => threads.connections.reduce((sum, one) => sum + one, 0) === 2);
  const closed = threads.close(200);
  await Promise.all([waiting, closed]);
  await assert.rejects(idle());
  assert.deepEqual(threads.connections, []);
});

test("sockets that no front-end takes wait, up to a bound", () => {
  let servant: DoorServant | undefined;
  const door: OpenDoor = {
    bound: "",
    serve: (one) => {
      servant = one;
    },
    close: async () => {},
  };
  const threads = new FrontThreads(
    {
      count: 1,
      url: PROGRAM,
      program: () => undefined,
      fields: [],
      maxRequestBytes: 1,
      maxQueuedBytes: 1,
      maxHeldBytes: 1,
      resourceLimits: {},
    },
    {
      services: { unary: new Map(), stream: new Map() },
      observer: undefined,
      http: () => assert.fail("nothing is served"),
      doors: [door],
      clock: nodeClock,
      logger: silentLogger,
      ended: () => assert.fail("no thread was started"),
    },
  );
  // Not started: there is no thread that takes them.
  threads.listen();
  const sockets = Array.from({ length: MAX_WAITING_SOCKETS + 2 }, () => new Socket());
  for (const socket of sockets) servant!.accept(socket);
  assert.equal(sockets.filter(({ destroyed }) => destroyed).length, 2);
  assert.equal(threads.refusedSockets, 2);
  void threads.close(0);
  assert.ok(sockets.every(({ destroyed }) => destroyed));
});
