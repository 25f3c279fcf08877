/**
 * The log's new beginnings: a mark of the member's own and a snapshot received from a leader do not
 * get in each other's way; nor do two snapshots for one follower.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "@quorate/host";
import { ManualClock, MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import { Histogram } from "@quorate/metrics";
import { EMPTY, etcdserverpb, fromUtf8, raftpb } from "@quorate/proto";
import type { Raft } from "@quorate/raft";
import type { Store, StoreSnapshot } from "@quorate/store";
import type { SnapshotStream } from "@quorate/transport";
import { SnapshotFiles, type Wal } from "@quorate/wal";
import { type LogMarkLimits, LogMarks } from "../src/apply/persistence.ts";
import { SentSnapshots } from "../src/apply/sent-snapshots.ts";
import { SnapshotReceiver } from "../src/apply/snapshot-receiver.ts";
import { SnapshotSender } from "../src/apply/snapshot-sender.ts";
import type { Lifetime } from "../src/loop/lifetime.ts";
import { LoopTurns, UnwrittenCommit } from "../src/loop/turns.ts";
import { StoreRef } from "../src/reads/store-ref.ts";

/**
 * Snapshots over a store at index 56, whose flush ends when `flushed` is called, and a log that
 * notes marks and ends them by `marked`.
 */
function setUp(limits: Partial<LogMarkLimits> = {}) {
  const disk = new MemoryDisk();
  const flush = Promise.withResolvers<number>();
  const mark = Promise.withResolvers<void>();
  const marks: number[] = [];
  const points: string[] = [];
  const commits: number[] = [];
  const released: number[] = [];
  const compacted: number[] = [];
  const reported: [id: bigint, taken: boolean][] = [];
  const position = { index: 56, term: 3, confState: raftpb.ConfState.create({ voters: [1n] }) };
  /** Views that are asked for, and how many are open. */
  const views = { asked: [] as PromiseWithResolvers<void>[], open: 0 };
  const snapshot = async (): Promise<StoreSnapshot> => {
    const asked = Promise.withResolvers<void>();
    views.asked.push(asked);
    await asked.promise;
    views.open++;
    const close = async () => {
      views.open--;
    };
    const chunks = (async function* () {})();
    const etcdFile = async () => ({ data: new Uint8Array(0), chunks });
    return { position, sizeEstimateBytes: 0, chunks, etcdFile, close };
  };
  const membership: { clusterVersion?: string } = {};
  const current = {
    position,
    membership,
    followsEtcd: true,
    flush: () => flush.promise,
    snapshot,
  } as unknown as Store;
  /** The log in memory; only what is asked of it is here. */
  const entries: raftpb.Entry[] = [];
  const sent: SnapshotStream[] = [];
  const wal = {
    saveSnapshot: ({ index }: { index: number }) => {
      marks.push(index);
      return mark.promise;
    },
    release: (index: number) => released.push(index),
    append: ({ commit }: raftpb.HardState) => commits.push(commit),
  } as unknown as Wal;
  const stepped: raftpb.Message[] = [];
  const raft = {
    term: 3,
    appliedIndex: 56,
    get firstIndex() {
      return (compacted.at(-1) ?? 0) + 1;
    },
    lastIndexOf: (has: (entry: raftpb.Entry) => boolean) => entries.findLast(has)?.index ?? 0,
    compact: (index: number) => compacted.push(index),
    reportSnapshot: (id: bigint, taken: boolean) => reported.push([id, taken]),
  } as unknown as Raft;
  const clock = new ManualClock();
  const turns = new LoopTurns(clock);
  const lifetime = { end: (error: unknown) => assert.fail(String(error)) } as unknown as Lifetime;
  for (const dir of ["/snap", "/store"]) disk.makeDir(dir);
  const receiver = new SnapshotReceiver({
    raft,
    messages: { step: (messages) => void stepped.push(...messages) },
    clock,
    disk,
    keyspaces: new MemoryKeyspaceOpener(disk),
    config: { storeDir: "/store" },
    metrics: { snapshotStoreDuration: new Histogram([1]) },
    logger: silentLogger,
  });
  const sentSnapshots = new SentSnapshots({ clock, raft, turns, lifetime });
  const store = new StoreRef(current);
  const unwritten = new UnwrittenCommit(wal);
  const log = new LogMarks(
    {
      snapshotCount: 10,
      catchUpEntries: 5,
      maxLogBytes: 1 << 20,
      maxCatchUpBytes: 1 << 20,
      maxWalFiles: 1,
      maxSnapshotFiles: 5,
      byteMarkEveryBytes: 1 << 20,
      ...limits,
    },
    {
      store,
      wal,
      files: new SnapshotFiles(disk, "/snap"),
      raft,
      turns,
      unwritten,
      sent: sentSnapshots,
      receiver,
      lifetime,
      logger: silentLogger,
      faults: (point) => void points.push(point),
    },
    0,
  );
  const sender = new SnapshotSender({
    memberId: 1n,
    store,
    raft,
    transport: { sendSnapshot: (stream) => void sent.push(stream) },
    sent: sentSnapshots,
    marks: log,
    lifetime,
    logger: silentLogger,
  });
  const snapshots = { log, sender, sent: sentSnapshots, receiver };
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  const ended = { flushed: () => flush.resolve(56), marked: () => mark.resolve() };
  /** Entries up to `index` are applied, and the mark that is due then is written. */
  const markAt = async (index: number, bytes = 100) => {
    position.index = index;
    snapshots.log.applied(index, bytes);
    ended.flushed();
    ended.marked();
    await settle();
    assert.equal(marks.at(-1), index);
  };
  const notes = {
    position,
    membership,
    entries,
    points,
    commits,
    unwritten,
    marks,
    released,
    compacted,
    reported,
    sent,
    stepped,
  };
  return { disk, clock, turns, store, snapshots, views, ...notes, ...ended, markAt, settle };
}

test("a mark that waits for its flush is given up when a snapshot is received", async () => {
  const { snapshots, marks, flushed, settle } = setUp();
  snapshots.log.applied(56, 100);
  snapshots.log.installing(106);
  flushed();
  await settle();
  assert.deepEqual(marks, []);
});

test("a mark that waits for its flush is given up when another store takes the place of its own", async () => {
  const { store, snapshots, marks, flushed, settle } = setUp();
  snapshots.log.applied(56, 100);
  // A healed member's store, which may be behind what the old one has flushed.
  store.attach({ ...store.current, position: { index: 50, term: 3 } } as unknown as Store);
  flushed();
  await settle();
  assert.deepEqual(marks, []);
});

test("a mark that waits for the disk changes nothing more when a snapshot is received", async () => {
  const { snapshots, marks, released, compacted, flushed, marked, settle } = setUp();
  snapshots.log.applied(56, 100);
  flushed();
  await settle();
  assert.deepEqual(marks, [56]);
  snapshots.log.installing(106);
  marked();
  await settle();
  assert.deepEqual(released, []);
  assert.deepEqual(compacted, []);
  // The member is at 106 now: the next mark is due from there, not from 56.
  snapshots.log.applied(110, 100);
  flushed();
  await settle();
  assert.deepEqual(marks, [56]);
});

test("an undisturbed mark is written behind the commit that it refers to, and releases what is before it", async () => {
  const { disk, snapshots, flushed, marked, settle, unwritten, ...notes } = setUp();
  unwritten.hardState = raftpb.HardState.create({ commit: 56 });
  snapshots.log.applied(56, 100);
  snapshots.log.applied(76, 100);
  flushed();
  marked();
  await settle();
  const { marks, released, compacted, commits, points } = notes;
  assert.deepEqual([marks, released, compacted, commits], [[56], [0], [51], [56]]);
  assert.deepEqual(points, [
    "before-backend-flush",
    "after-backend-flush",
    "before-snapshot-mark",
    "after-snapshot-mark",
    "before-log-release",
  ]);
  assert.deepEqual(disk.list("/snap"), ["0000000000000003-0000000000000038.snap"]);
});

test("a mark of the index of the last one is none, nor one that a received snapshot has reached", async () => {
  const { snapshots, marks, points, markAt, settle } = setUp();
  await markAt(56);
  snapshots.log.applied(56, 2 << 20);
  await settle();
  assert.deepEqual([marks, points.length], [[56], 7]);
  const other = setUp();
  other.snapshots.log.applied(56, 100);
  other.flushed();
  await settle();
  other.snapshots.log.installing(56);
  other.marked();
  await settle();
  assert.deepEqual([other.marks, other.released, other.compacted], [[56], [], []]);
});

test("so many snapshot files stay, and each mark may drop one entry more", async () => {
  const { disk, compacted, markAt } = setUp({ snapshotCount: 1, maxSnapshotFiles: 1 });
  await markAt(56);
  await markAt(57);
  assert.deepEqual(disk.list("/snap"), ["0000000000000003-0000000000000039.snap"]);
  assert.deepEqual(compacted, [51, 52]);
});

test("the bytes of entries are noted for one entry in so many bytes", async () => {
  const { compacted, snapshots, markAt } = setUp({
    catchUpEntries: 1000,
    maxCatchUpBytes: 250,
    byteMarkEveryBytes: 300,
  });
  // Noted are 47, 50, 53 and 56.
  for (let index = 47; index < 56; index++) snapshots.log.applied(index, 100);
  await markAt(56, 100);
  assert.deepEqual(compacted, [56]);
});

const entry = (index: number, data: Uint8Array): raftpb.Entry => ({
  type: raftpb.EntryType.EntryNormal,
  term: 3,
  index,
  data,
});
const v2Entry = (index: number): raftpb.Entry =>
  entry(
    index,
    etcdserverpb.Request.encode(
      etcdserverpb.Request.create({ ID: 7n, Method: "PUT", Path: "/0/version", Val: "3.5.0" }),
    ),
  );

test("entries of etcd's v2 store go at once when the cluster's version says that no more come", async () => {
  const setup = setUp({ snapshotCount: 1000, catchUpEntries: 1000 });
  const { snapshots, membership, entries, marks, compacted, markAt, settle } = setup;
  entries.push(v2Entry(20), entry(21, fromUtf8("x")), v2Entry(40), entry(41, EMPTY));
  membership.clusterVersion = "3.5.0";
  snapshots.log.applied(50, 100);
  await settle();
  assert.deepEqual(marks, [], "members of 3.5 are there");
  membership.clusterVersion = "3.6.0";
  await markAt(56);
  assert.deepEqual(compacted, [40], "what came after them stays");
  setup.position.index = 57;
  snapshots.log.applied(57, 100);
  await settle();
  assert.deepEqual(marks, [56]);
});

test("a log without such entries stays as it is", async () => {
  const { snapshots, membership, entries, marks, settle } = setUp({ snapshotCount: 1000 });
  entries.push(entry(20, fromUtf8("x")));
  membership.clusterVersion = "3.7.0";
  snapshots.log.applied(56, 100);
  await settle();
  assert.deepEqual(marks, []);
});

const TO_PEER = raftpb.Message.create({
  type: raftpb.MessageType.MsgSnap,
  to: 2n,
  from: 1n,
  term: 3,
  context: EMPTY,
});

test("a follower is sent one snapshot at a time, from the opening of its view on, and every view is closed", async () => {
  const { snapshots, views, sent, settle } = setUp();
  snapshots.sender.send(TO_PEER);
  snapshots.sender.send(TO_PEER);
  assert.equal(views.asked.length, 1);
  views.asked[0].resolve();
  await settle();
  snapshots.sender.send(TO_PEER);
  await settle();
  assert.deepEqual([views.asked.length, sent.length, views.open], [1, 1, 1]);
  snapshots.sent.ended(2n, false);
  await settle();
  assert.equal(views.open, 0);
  snapshots.sender.send(TO_PEER);
  assert.equal(views.asked.length, 2, "the next one, after the end of the first");
});

test("the next mark is due so many entries or bytes after the last one, and none while a store is expected", async () => {
  const { snapshots, position, marks, markAt, settle } = setUp();
  const noneAt = async (index: number, bytes: number) => {
    const before = [...marks];
    position.index = index;
    snapshots.log.applied(index, bytes);
    await settle();
    assert.deepEqual(marks, before);
  };
  await markAt(56);
  await noneAt(65, 100);
  await markAt(66);
  await noneAt(67, (1 << 20) - 1);
  await markAt(68, 1);
  await noneAt(69, 1);
  const { release } = snapshots.receiver.expect();
  await noneAt(90, 2 << 20);
  release();
  await markAt(91);
});

test("the log behind a snapshot stays while it is sent and for half a minute after, for its receiver to go on from there", async () => {
  const { clock, snapshots, compacted, reported, views, markAt, settle } = setUp();
  await markAt(56);
  snapshots.sender.send(TO_PEER);
  views.asked[0].resolve();
  await settle();
  await markAt(80);
  assert.deepEqual(compacted, [51, 56], "while it is sent");
  snapshots.sent.ended(2n, true);
  assert.deepEqual(reported, [[2n, true]]);
  await markAt(100);
  clock.advance(29_999);
  await markAt(120);
  assert.deepEqual(compacted, [51, 56, 56, 56].slice(0, compacted.length));
  assert.equal(compacted.at(-1), 56, "until its receiver had the time to ask for what follows");
  clock.advance(1);
  await markAt(140);
  assert.equal(compacted.at(-1), 135);
});

test("the log does not stay for a snapshot that was not taken, nor beyond its bound in bytes", async () => {
  for (const [taken, bytes] of [
    [false, 100],
    [true, 2 << 20],
  ] as const) {
    const { clock, snapshots, compacted, views, markAt, settle } = setUp();
    await markAt(56);
    snapshots.sender.send(TO_PEER);
    views.asked[0].resolve();
    await settle();
    snapshots.sent.ended(2n, taken);
    clock.advance(0);
    await markAt(80, bytes);
    await markAt(100, bytes);
    assert.equal(compacted.at(-1), taken ? 100 : 95, `taken ${taken}, ${bytes} bytes`);
  }
});

test("a view that opens after the store was let go is closed, and not sent", async () => {
  const { snapshots, views, sent, settle } = setUp();
  snapshots.sender.send(TO_PEER);
  await snapshots.sent.close();
  views.asked[0].resolve();
  await settle();
  assert.deepEqual([sent.length, views.open], [0, 0]);
});

test("a view is closed once: when its snapshot ends, or when the store is let go", async () => {
  const { snapshots, views, turns, clock, settle } = setUp();
  let turned = 0;
  turns.start(() => turned++);
  clock.endOneTurn();
  for (const id of [2n, 3n]) snapshots.sender.send({ ...TO_PEER, to: id });
  for (const asked of views.asked) asked.resolve();
  await settle();
  turned = 0;
  snapshots.sent.ended(2n, true);
  clock.endOneTurn();
  assert.equal(turned, 1, "Raft goes on with that follower");
  await settle();
  assert.equal(views.open, 1);
  await snapshots.sent.close();
  assert.equal(views.open, 0);
});

test("a store is sent in the leader's term, and not in an older one", async () => {
  const { snapshots, views, sent, reported, settle } = setUp();
  snapshots.sender.sendTo(2n);
  snapshots.sender.send({ ...TO_PEER, to: 3n, term: 2 });
  for (const asked of views.asked) asked.resolve();
  await settle();
  assert.deepEqual(
    sent.map(({ message }) => [message.type, message.from, message.to, message.term]),
    [[raftpb.MessageType.MsgSnap, 1n, 2n, 3]],
  );
  assert.deepEqual(sent[0]!.message.snapshot?.metadata.index, 56);
  assert.deepEqual([reported, views.open], [[[3n, false]], 1]);
});

test("a view that does not open is the end of its snapshot", async () => {
  const { snapshots, views, sent, reported, settle } = setUp();
  snapshots.sender.send(TO_PEER);
  views.asked[0].reject(new Error("no space"));
  await settle();
  assert.deepEqual([sent, reported], [[], [[2n, false]]]);
});

test("the log stays from the snapshot on, not from the mark before it", async () => {
  const { snapshots, position, views, compacted, markAt, settle } = setUp();
  await markAt(56);
  position.index = 60;
  snapshots.sender.send(TO_PEER);
  views.asked[0].resolve();
  await settle();
  await markAt(80);
  assert.equal(compacted.at(-1), 60);
});

test("a store that came for an attempt at healing that failed is removed when the next one begins", () => {
  const { disk, snapshots } = setUp();
  for (const name of ["db", "db.40.recv", "db.41.tmp", "db.99.recv"])
    disk.makeDir(`/store/${name}`);
  snapshots.receiver.expect();
  assert.deepEqual(
    disk.list("/store").sort(),
    ["db", "db.99.recv"],
    "one that is ahead may be about to be installed",
  );
});

test("a snapshot that is not ahead is left unread, and Raft answers its message", async () => {
  for (const index of [55, 56]) {
    const { disk, snapshots, stepped } = setUp();
    const metadata = { index, term: 3, confState: raftpb.ConfState.create({ voters: [1n] }) };
    const message = { ...TO_PEER, to: 1n, from: 2n, snapshot: { data: EMPTY, metadata } };
    let chunks = 0;
    const body = (async function* () {
      chunks++;
      yield EMPTY;
    })();
    await assert.rejects(
      snapshots.receiver.receive({ message, body }),
      new RegExp(`index ${index} is not ahead`),
    );
    // Where the response to an earlier one was lost, the leader learns the position from this one.
    assert.deepEqual([stepped, chunks, disk.list("/store")], [[message], 0, []]);
  }
});

test("a received snapshot is a mark: entries and bytes count from there", async () => {
  const { snapshots, position, marks, markAt, settle } = setUp();
  await markAt(56);
  snapshots.log.applied(57, (1 << 20) - 1);
  snapshots.log.installing(106);
  snapshots.log.installed();
  assert.equal(await snapshots.log.leastIndex(), 106);
  for (const [index, bytes] of [
    [107, 1],
    [115, (1 << 20) - 2],
  ] as const) {
    position.index = index;
    snapshots.log.applied(index, bytes);
    await settle();
    assert.deepEqual(marks, [56], `${index}`);
  }
  await markAt(116, 0);
});

test("what stays for slow followers is bounded in bytes, to the entry where each is noted", async () => {
  const limits = { catchUpEntries: 1000, maxCatchUpBytes: 250, byteMarkEveryBytes: 1 };
  const { turns, clock, snapshots, compacted, markAt } = setUp(limits);
  let turned = 0;
  turns.start(() => turned++);
  clock.endOneTurn();
  for (let index = 47; index < 56; index++) snapshots.log.applied(index, 100);
  turned = 0;
  await markAt(56, 100);
  // Entries 55 and 56 hold 200 bytes, 54 would be too much; so it is after 54 that the log begins.
  assert.deepEqual(compacted, [54]);
  clock.endOneTurn();
  assert.equal(turned, 1, "Raft has something to say to followers that are behind");
  for (let index = 57; index < 66; index++) snapshots.log.applied(index, 125);
  await markAt(66, 125);
  assert.deepEqual(compacted, [54, 64], "two of 125 bytes are just as many as may stay");
});

test("a log whose bytes all fit stays as it is", async () => {
  const limits = { catchUpEntries: 1000, maxCatchUpBytes: 100, byteMarkEveryBytes: 1 };
  const { compacted, markAt } = setUp(limits);
  await markAt(56, 100);
  assert.deepEqual(compacted, []);
});

test("one store is received at a time; one that breaks off is told to who waits, and the next may come", async () => {
  const { snapshots } = setUp();
  const metadata = { index: 99, term: 3, confState: raftpb.ConfState.create({ voters: [1n] }) };
  const message = { ...TO_PEER, to: 1n, from: 2n, snapshot: { data: EMPTY, metadata } };
  const broken = Promise.withResolvers<void>();
  const expected = snapshots.receiver.expect();
  const body = () =>
    (async function* () {
      await broken.promise;
      yield EMPTY;
    })();
  const first = snapshots.receiver.receive({ message, body: body() });
  await expected.begun;
  await assert.rejects(
    snapshots.receiver.receive({ message, body: body() }),
    /another snapshot is being received/,
  );
  const unread = new Error("the connection broke");
  broken.reject(unread);
  await assert.rejects(first, unread);
  await new Promise((resolve) => setImmediate(resolve));
  await assert.rejects(expected.arrived, unread);
  expected.release();
  assert.equal(snapshots.receiver.isExpecting, false);
  await assert.rejects(snapshots.receiver.receive({ message, body: body() }), unread);
});
