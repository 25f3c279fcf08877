/**
 * The two sides of a snapshot on streams of the test and a clock by hand: how many at a time, what
 * stalls, what is said of it in the end.
 */
import assert from "node:assert/strict";
import { createServer, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { SeededRandom } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { concat, raftpb } from "@quorate/proto";
import { RecordingListener } from "@quorate/transport/testing";
import { DialError } from "../node/dial.ts";
import { resolveOptions, type Shared, silentObserver } from "../node/options.ts";
import { SnapshotFetch } from "../node/snapshot-fetch.ts";
import { SnapshotReceiver } from "../node/snapshot-receiver.ts";
import { SnapshotSender } from "../node/snapshot-sender.ts";
import { END_FRAME, FrameBatch, FrameReader } from "../src/frames.ts";
import { heartbeat, snapshotMessage } from "./helpers/messages.ts";
import { RecordingLogger } from "./helpers/network.ts";

const STALL_MS = 1000;
const KIB = 1024;

/** One side of an HTTP/2 stream: what is written to it, and what the test has it read. */
class FakeStream extends Duplex {
  readonly written: Uint8Array[] = [];
  readonly responses: object[] = [];
  /** Calls of `close`, which destroys. */
  closes = 0;
  /** False: what is written stays in the buffer. */
  takes = true;
  #taken: (() => void) | undefined;

  override _read(): void {}

  override _write(chunk: Uint8Array, _encoding: string, done: () => void): void {
    this.written.push(chunk);
    if (this.takes) done();
    else this.#taken = done;
  }

  /** Takes what waits, and what comes. */
  drain(): void {
    this.takes = true;
    this.#taken?.();
  }

  respond(headers: object): void {
    this.responses.push(headers);
  }

  close(): void {
    this.closes++;
    this.destroy();
  }

  get asServerStream(): ServerHttp2Stream {
    return this as unknown as ServerHttp2Stream;
  }
}

function setUp() {
  const clock = new ManualClock();
  clock.advance(500);
  const listener = new RecordingListener();
  const logger = new RecordingLogger();
  /** What the observer is told of snapshots, in order. */
  const observed: string[] = [];
  const shared = {
    options: resolveOptions({
      selfId: 1n,
      clusterId: 5n,
      localUrls: [],
      listen: [],
      serverVersion: "3.7.0",
      minClusterVersion: "3.0.0",
      maxSnapshots: 2,
      snapshotStallTimeoutMs: STALL_MS,
      snapshotInstallTimeoutMs: 5000,
      dialTimeoutMs: 2000,
      pingIntervalMs: 60_000,
    }),
    clock,
    random: new SeededRandom(1n),
    logger,
    listener,
    observer: {
      ...silentObserver,
      traffic: (id) => ({
        sent: { add: (bytes) => observed.push(`${bytes} bytes to ${id}`) },
        received: { add: (bytes) => observed.push(`${bytes} bytes of ${id}`) },
      }),
      receiveFailed: (id) => observed.push(`failed of ${id}`),
      snapshotSendStarted: (id) => observed.push(`begins to ${id}`),
      snapshotSendEnded: (id, taken, ms, bytes) =>
        observed.push(`ends to ${id}: ${taken}, ${ms} ms, ${bytes} bytes`),
      snapshotReceiveStarted: (id) => observed.push(`begins of ${id}`),
      snapshotReceiveEnded: (id, taken, ms, bytes) =>
        observed.push(`ends of ${id}: ${taken}, ${ms} ms, ${bytes} bytes`),
    },
    isRemoved: () => false,
    selfRemoved: () => {},
  } as Partial<Shared> as Shared;
  return { clock, listener, logger, observed, shared };
}

const framed = (...contents: Uint8Array[]): Uint8Array => {
  const batch = new FrameBatch();
  for (const content of contents) batch.add(content);
  return concat(batch.take());
};
const announced = (from = 2n, to = 1n) => raftpb.Message.encode(snapshotMessage(from, to));

function receiving() {
  const world = setUp();
  const receiver = new SnapshotReceiver(world.shared);
  /** A snapshot that begins to come from a member. */
  const begin = (from: bigint, message = announced(from)) => {
    const stream = new FakeStream();
    stream.on("error", () => {});
    const answers: [status: number, text: string][] = [];
    const done = receiver.receive(
      { form: "quorate", stream: stream.asServerStream },
      from,
      (...answer) => answers.push(answer),
    );
    if (message.length > 0) stream.push(framed(message));
    return { stream, answers, done };
  };
  return { ...world, begin };
}

test("a snapshot that comes whole is taken over; what follows it is dropped", async () => {
  const { clock, listener, observed, begin } = receiving();
  const { stream, answers, done } = begin(2n);
  await clock.advanceAsync(30);
  stream.push(framed(new Uint8Array(5), new Uint8Array(7)));
  stream.push(END_FRAME);
  await done;
  assert.deepEqual(answers, [[204, ""]]);
  assert.deepEqual(
    listener.snapshots.map(({ message, sizeBytes }) => [message.from, sizeBytes]),
    [[2n, 12]],
  );
  const head = framed(announced()).length;
  assert.deepEqual(observed, [
    "begins of 2",
    `${head} bytes of 2`,
    "20 bytes of 2",
    "4 bytes of 2",
    `ends of 2: true, 30 ms, ${head + 24} bytes`,
  ]);
  stream.push(new Uint8Array(100_000));
  await clock.settle();
  assert.equal(stream.readableLength, 0);
  assert.equal(clock.nextDueMs(), undefined, "nothing waits for it any more");
  assert.equal(stream.closes, 0);
});

test("what is no snapshot of that member for this one is refused, with the reason", async () => {
  const cases: [message: Uint8Array, after: Uint8Array | null, status: number, reason: string][] = [
    [raftpb.Message.encode(heartbeat(2n, 1n)), END_FRAME, 400, "wrong raft message"],
    [announced(3n), END_FRAME, 400, "wrong raft message"],
    [announced(2n, 9n), END_FRAME, 400, "wrong raft message"],
    [new Uint8Array(0), END_FRAME, 400, "snapshot without a message"],
    [announced(), null, 400, "snapshot broke off"],
    [new Uint8Array(0), null, 400, "snapshot broke off"],
  ];
  for (const [message, after, status, reason] of cases) {
    const { observed, begin } = receiving();
    const { stream, answers, done } = begin(2n, message);
    stream.push(after);
    await done;
    assert.deepEqual(answers, [[status, `failed to save snapshot (${reason})`]]);
    assert.equal(observed.at(-2), "failed of 2");
    assert.match(observed.at(-1)!, /^ends of 2: false, /);
  }
});

test("a snapshot that the member cannot take is this side's failure, not the sender's", async () => {
  const { listener, begin } = receiving();
  listener.onChunk = () => {
    throw new Error("disk full");
  };
  const { stream, answers, done } = begin(2n);
  stream.push(framed(new Uint8Array(5)));
  await done;
  assert.deepEqual(answers, [[500, "failed to save snapshot (disk full)"]]);
  stream.push(new Uint8Array(100_000));
  stream.push(null);
  await new Promise((resolve) => stream.once("end", resolve));
});

test("so many snapshots are received at a time, and each end makes room for one", async () => {
  const { begin } = receiving();
  const [first, second] = [begin(2n), begin(3n)];
  const refused = begin(4n);
  await refused.done;
  assert.deepEqual(refused.answers, [[503, "too many snapshots are being received"]]);
  first.stream.push(END_FRAME);
  await first.done;
  const next = begin(4n);
  second.stream.push(null);
  await second.done;
  const last = begin(5n);
  for (const { stream, answers, done } of [next, last]) {
    stream.push(END_FRAME);
    await done;
    assert.deepEqual(answers, [[204, ""]]);
  }
});

test("a member sends one at a time: its next one ends the one before", async () => {
  const { begin } = receiving();
  const first = begin(2n);
  const second = begin(2n);
  assert.equal(first.stream.closes, 1);
  await first.done;
  assert.equal(first.answers[0][0], 400);
  const third = begin(2n);
  assert.deepEqual([second.stream.closes, third.stream.closes], [1, 0]);
  await second.done;
  third.stream.push(END_FRAME);
  await third.done;
  assert.deepEqual(third.answers, [[204, ""]]);
  const other = begin(2n);
  assert.equal(third.stream.closes, 0, "it is over");
  other.stream.push(END_FRAME);
  await other.done;
});

test("a snapshot that brings less than 64 KiB in the time of a stall is given up", async () => {
  const { clock, begin } = receiving();
  const { stream, answers, done } = begin(2n, new Uint8Array(0));
  const head = framed(announced());
  const bring = async (bytes: number) => {
    stream.push(new Uint8Array(bytes));
    await clock.settle();
  };
  stream.push(head);
  await clock.advanceAsync(900);
  // The head of a frame that does not end within this test.
  stream.push(new Uint8Array([1, 0, 0, 0]));
  await bring(64 * KIB - head.length - 4 - 1);
  await clock.advanceAsync(99);
  assert.equal(stream.destroyed, false);
  await bring(1);
  await clock.advanceAsync(STALL_MS - 1);
  assert.equal(stream.destroyed, false, "64 KiB came, a millisecond before it was too late");
  await bring(64 * KIB - 1);
  await clock.advanceAsync(1);
  await done;
  assert.equal(stream.destroyed, true, "what came before does not count again");
  assert.deepEqual(answers, [
    [400, "failed to save snapshot (snapshot broke off: no progress for 1000 ms)"],
  ]);
  assert.equal(clock.nextDueMs(), undefined);
});

test("each 64 KiB put the end off, for what comes after them too", async () => {
  const { clock, begin } = receiving();
  const { stream, done } = begin(2n);
  await clock.advanceAsync(600);
  stream.push(framed(new Uint8Array(64 * KIB)));
  await clock.advanceAsync(600);
  stream.push(framed(new Uint8Array(5)));
  await clock.advanceAsync(399);
  assert.equal(stream.destroyed, false);
  await clock.advanceAsync(1);
  assert.equal(stream.destroyed, true);
  await done;
});

test("the time that this member needs for a chunk is no fault of the sender's", async () => {
  const { clock, listener, begin } = receiving();
  listener.onChunk = () => new Promise((resolve) => void clock.after(5000, resolve));
  const { stream, answers, done } = begin(2n);
  await clock.advanceAsync(600);
  stream.push(framed(new Uint8Array(5)));
  await clock.advanceAsync(5000);
  await clock.advanceAsync(399);
  assert.equal(stream.destroyed, false);
  await clock.advanceAsync(1);
  await done;
  assert.equal(stream.destroyed, true);
  assert.equal(answers[0][0], 400);
});

function sending(body: AsyncIterable<Uint8Array> = chunksOf(), stream = new FakeStream()) {
  const world = setUp();
  stream.on("error", () => {});
  const offered: raftpb.Message[] = [];
  const sender = new SnapshotSender(
    world.shared,
    { id: 2n, urls: [], isEtcd: false },
    { message: snapshotMessage(1n, 2n), body },
    async (message) => {
      offered.push(message);
      return stream.asServerStream;
    },
  );
  /** The receiver's last word. */
  const say = (verdict: string) => {
    stream.push(verdict.slice(0, 600));
    stream.push(verdict.slice(600));
    stream.push(null);
  };
  const failure = () =>
    world.logger
      .find("warn", "failed to send database snapshot")
      .map(({ fields }) => fields["error"]);
  return { ...world, stream, sender, offered, say, failure };
}

async function* chunksOf(...chunks: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

/** A body without an end, which notes how it is read. */
function endless(sizeBytes = 1000) {
  const state = { given: 0, isOver: false };
  const body = (async function* () {
    try {
      for (; ; state.given++) {
        await turn();
        yield new Uint8Array(sizeBytes);
      }
    } finally {
      state.isOver = true;
    }
  })();
  return { state, body };
}

test("a snapshot goes out as its message, chunks of at most a mebibyte, and an end; the receiver has the last word", async () => {
  const mebibyte = KIB * KIB;
  const chunks = [mebibyte, 2 * mebibyte + 1, 3].map((size, i) => new Uint8Array(size).fill(i + 1));
  const { clock, observed, stream, sender, offered, say } = sending(chunksOf(...chunks));
  const sent = sender.run();
  await clock.settle();
  assert.deepEqual([offered.length, stream.responses.length], [1, 1]);
  assert.equal((stream.responses[0] as { ":status": number })[":status"], 200);
  assert.equal(stream.writableFinished, true);
  const reader = new FrameReader(1 << 30);
  reader.push(concat(stream.written));
  const sizes: number[] = [];
  for (let frame = reader.take(); frame !== undefined; frame = reader.take())
    sizes.push(frame.length);
  const message = announced(1n, 2n).length;
  assert.deepEqual(sizes, [message, mebibyte, mebibyte, mebibyte, 1, 3, 0]);
  assert.equal(reader.bufferedBytes, 0);
  await clock.advanceAsync(4999);
  say("204 ");
  assert.equal(await sent, true);
  assert.equal(stream.closes, 1);
  assert.equal(clock.nextDueMs(), undefined, "no timer is left");
  const all = 3 * mebibyte + 4 + message + 4;
  assert.equal(observed[0], "begins to 2");
  assert.equal(observed.at(-1), `ends to 2: true, 4999 ms, ${all} bytes`);
  const told = observed.slice(1, -1).map((line) => Number(/^(\d+) bytes to 2$/.exec(line)?.[1]));
  assert.equal(
    told.reduce((sum, bytes) => sum + bytes, 0),
    all,
  );
});

test("a receiver that refuses ends it: the rest of the body is not read", async () => {
  const { state, body } = endless();
  const { clock, stream, sender, say, failure } = sending(body);
  const sent = sender.run();
  await clock.settle();
  say("500 disk full");
  assert.equal(await sent, false);
  assert.deepEqual([failure(), state.isOver, stream.closes], [["disk full"], true, 1]);
  assert.equal(stream.writableEnded && stream.written.at(-1)?.length === 4, false, "no end");
  const { given } = state;
  await clock.settle();
  assert.equal(state.given, given);
});

test("what a receiver says is a status and a text, of which a kibibyte is read", async () => {
  for (const [verdict, error] of [
    [`400 ${"x".repeat(2000)}`, "x".repeat(1020)],
    ["400 a\nb", "a\nb"],
    ["300 moved", "moved"],
    ["503 ", "unexpected http status 503"],
    ["no status", "connection closed before the peer answered"],
    ["", "connection closed before the peer answered"],
  ] as const) {
    const { clock, sender, say, failure } = sending();
    const sent = sender.run();
    await clock.settle();
    say(verdict);
    assert.equal(await sent, false);
    assert.deepEqual(failure(), [error]);
  }
});

test("a receiver that says nothing of a whole snapshot is waited for so long and no longer", async () => {
  const { clock, sender, stream, failure } = sending();
  const sent = sender.run();
  await clock.advanceAsync(4999);
  assert.equal(stream.closes, 0);
  await clock.advanceAsync(1);
  assert.equal(await sent, false);
  assert.deepEqual([failure(), stream.closes], [["the peer does not answer"], 1]);
});

test("a receiver that takes no more is waited for so long and no longer", async () => {
  const { state, body } = endless(100_000);
  const { clock, sender, stream, failure } = sending(body);
  stream.takes = false;
  const sent = sender.run();
  await clock.advanceAsync(STALL_MS - 1);
  const { given } = state;
  assert.equal(stream.destroyed, false);
  stream.drain();
  await clock.settle();
  stream.takes = false;
  await clock.settle();
  assert.ok(state.given > given, "it goes on");
  await clock.advanceAsync(STALL_MS - 1);
  assert.equal(stream.listenerCount("drain"), 1, "one that waits, and none of before");
  assert.equal(stream.listenerCount("close"), 2, "the same, and that of the last word");
  assert.equal(stream.destroyed, false);
  await clock.advanceAsync(1);
  assert.equal(await sent, false);
  assert.deepEqual([failure(), state.isOver], [["the peer takes no more of the snapshot"], true]);
  assert.equal(clock.nextDueMs(), undefined);
});

test("a snapshot that is stopped ends: before it is under way, and while it is", async () => {
  for (const isUnderWay of [false, true]) {
    const { state, body } = endless(100_000);
    const { clock, sender, stream, offered } = sending(body);
    stream.takes = false;
    const sent = sender.run();
    if (isUnderWay) await clock.settle();
    sender.stop();
    assert.equal(await sent, false);
    assert.equal(offered.length, isUnderWay ? 1 : 0);
    await clock.settle();
    assert.deepEqual([stream.destroyed || !isUnderWay, state.isOver || !isUnderWay], [true, true]);
    assert.equal(clock.nextDueMs(), undefined);
  }
});

test("a snapshot that is stopped while its receiver is awaited ends when it comes", async () => {
  const { clock, shared } = setUp();
  const stream = new FakeStream();
  const comes = Promise.withResolvers<ServerHttp2Stream>();
  const sender = new SnapshotSender(
    shared,
    { id: 2n, urls: [], isEtcd: false },
    { message: snapshotMessage(1n, 2n), body: chunksOf() },
    () => comes.promise,
  );
  let isTaken: boolean | undefined;
  void sender.run().then((taken) => {
    isTaken = taken;
  });
  await clock.settle();
  sender.stop();
  comes.resolve(stream.asServerStream);
  await clock.settle();
  await turn();
  assert.deepEqual([isTaken, stream.closes > 0, stream.written.length], [false, true, 0]);
});

test("a snapshot that nobody comes for fails as the dialling did", async () => {
  const { shared, logger } = setUp();
  for (const [urls, reason] of [
    [[], "the peer has no URLs"],
    [["nonsense", "unix:"], "not a peer URL: unix:"],
  ] as const) {
    const { state, body } = endless();
    const sender = new SnapshotSender(
      shared,
      { id: 2n, urls, isEtcd: false },
      { message: snapshotMessage(1n, 2n), body },
      () => Promise.reject(new DialError("Failed", "nobody comes")),
    );
    assert.equal(await sender.run(), false);
    const [line] = logger.find("warn", "failed to send database snapshot").slice(-1);
    assert.equal(line.fields["error"], reason);
    assert.equal(state.given, 0);
  }
});

/** A member at which others fetch snapshots: each request is the test's. */
async function fetching(t: { after(task: () => void): void }, shared = setUp()) {
  const requests: { stream: ServerHttp2Stream; verdict: string }[] = [];
  const server = createServer();
  const sessions = new Set<object>();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => {});
    session.on("close", () => sessions.delete(session));
    t.after(() => session.destroy());
  });
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => sockets.add(socket));
  server.on("stream", (stream: ServerHttp2Stream) => {
    const request = { stream, verdict: "" };
    stream.on("error", () => {});
    stream.on("data", (chunk: Buffer) => {
      request.verdict += chunk.toString();
    });
    requests.push(request);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const { port } = server.address() as { port: number };
  const fetch = new SnapshotFetch(shared.shared, new SnapshotReceiver(shared.shared), 2n);
  const until = async (condition: () => boolean) => {
    while (!condition()) await new Promise((resolve) => setTimeout(resolve, 1));
  };
  const done = fetch.run(`http://127.0.0.1:${port}`);
  const failure = () =>
    shared.logger
      .find("warn", "failed to fetch a database snapshot")
      .map(({ fields }) => fields["error"]);
  return { ...shared, port, requests, fetch, done, until, failure, sessions, sockets };
}

test("a snapshot that is fetched is told to its sender, and the connection ends", async (t) => {
  const { listener, clock, requests, done, until, failure, sessions } = await fetching(t);
  await until(() => requests.length === 1);
  const [request] = requests;
  request.stream.respond({ ":status": 200 });
  request.stream.write(framed(announced(), new Uint8Array(9)));
  request.stream.write(END_FRAME);
  await done;
  await until(() => request.verdict !== "");
  assert.equal(request.verdict, "204 ");
  assert.equal(listener.snapshots[0].sizeBytes, 9);
  assert.notEqual(clock.nextDueMs(), undefined, "a bound on the rest");
  request.stream.end();
  await until(() => sessions.size === 0);
  await clock.settle();
  assert.equal(clock.nextDueMs(), undefined);
  assert.deepEqual(failure(), []);
});

test("a connection that a sender does not end is ended after a while", async (t) => {
  const { clock, requests, done, until, sessions } = await fetching(t);
  await until(() => requests.length === 1);
  const [request] = requests;
  request.stream.respond({ ":status": 200 });
  request.stream.write(framed(announced()));
  request.stream.write(END_FRAME);
  await done;
  await until(() => request.verdict !== "");
  clock.advance(1999);
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(sessions.size, 1);
  clock.advance(1);
  await until(() => sessions.size === 0);
});

test("a sender that refuses, or does not answer in time, is left", async (t) => {
  for (const isSilent of [false, true]) {
    const { clock, requests, done, until, failure, sessions } = await fetching(t);
    await until(() => requests.length === 1);
    if (isSilent) clock.advance(2000);
    else requests[0].stream.respond({ ":status": 300 }, { endStream: true });
    await done;
    await until(() => sessions.size === 0);
    assert.deepEqual(failure(), [
      isSilent ? "connection closed before the peer answered" : "unexpected http status 300",
    ]);
  }
});

test("a fetch that is stopped says nothing, whether it dials or reads", async (t) => {
  const dialling = await fetching(t);
  dialling.fetch.stop();
  await dialling.done;
  assert.deepEqual(dialling.failure(), []);
  const reading = await fetching(t);
  await reading.until(() => reading.requests.length === 1);
  reading.fetch.stop();
  await reading.done;
  await reading.until(() => reading.sessions.size === 0);
  assert.deepEqual(reading.failure(), []);
});

/** Pings soon, and stalls late. */
function pinging() {
  const world = setUp();
  const times = {
    pingIntervalMs: 100,
    pingTimeoutMs: 50,
    snapshotStallTimeoutMs: 1_000_000,
    snapshotInstallTimeoutMs: 1_000_000,
  };
  const shared = { ...world.shared, options: { ...world.shared.options, ...times } };
  /** Lets the pings of a connection go unanswered, until what rests on it is over. */
  const endsWithout = async (sockets: Iterable<Socket>, done: Promise<unknown>) => {
    for (const socket of sockets) socket.pause();
    let isOver = false;
    void done.then(() => {
      isOver = true;
    });
    for (let i = 0; i < 200 && !isOver; i++) {
      world.clock.advance(100);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return isOver;
  };
  return { ...world, shared, endsWithout };
}

test("a sender that answers no ping is left", async (t) => {
  const world = pinging();
  const { requests, until, done, sockets } = await fetching(t, world);
  await until(() => requests.length === 1);
  requests[0].stream.respond({ ":status": 200 });
  requests[0].stream.write(framed(announced()));
  await until(() => world.logger.find("info", "receiving database snapshot").length === 1);
  assert.equal(await world.endsWithout(sockets, done), true);
});

test("a receiver that was dialled and answers no ping is left", async (t) => {
  const { shared, endsWithout } = pinging();
  const { port, requests, until, sockets, fetch } = await fetching(t);
  fetch.stop();
  const sender = new SnapshotSender(
    shared,
    { id: 2n, urls: [`http://127.0.0.1:${port}`], isEtcd: false },
    { message: snapshotMessage(1n, 2n), body: chunksOf(new Uint8Array(9)) },
    () => assert.fail("it is dialled"),
  );
  const sent = sender.run();
  await until(() => requests.some(({ stream }) => stream.headersSent === false && !stream.closed));
  assert.equal(await endsWithout(sockets, sent), true);
  assert.equal(await sent, false);
});

test("a sender that nobody answers for is a failure", async () => {
  const { shared, logger } = setUp();
  await new SnapshotFetch(shared, new SnapshotReceiver(shared), 2n).run("nonsense");
  const [line] = logger.find("warn", "failed to fetch a database snapshot");
  assert.equal(line.fields["error"], "not a peer URL: nonsense");
});
