/** A store that comes from another member: received, and put in the place of this one's. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "@quorate/host";
import { ManualClock, MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import { Histogram } from "@quorate/metrics";
import { EMPTY, raftpb } from "@quorate/proto";
import { Store } from "@quorate/store";
import { SnapshotFiles } from "@quorate/wal";
import { SnapshotInstall, type SnapshotInstallDeps } from "../src/apply/snapshot-install.ts";
import { SnapshotReceiver } from "../src/apply/snapshot-receiver.ts";

/** The stream of a store at index 1. */
async function streamOfStore() {
  const disk = new MemoryDisk();
  disk.makeDir("/sender");
  const store = await Store.open(new MemoryKeyspaceOpener(disk), "/sender");
  store.apply({ index: 1, term: 1, type: raftpb.EntryType.EntryNormal, data: EMPTY });
  const { position, chunks } = await store.snapshot();
  const metadata = { ...position };
  const message = raftpb.Message.create({
    type: raftpb.MessageType.MsgSnap,
    from: 2n,
    to: 1n,
    snapshot: { data: EMPTY, metadata },
  });
  return { message, body: chunks };
}

function receiving(appliedIndex: number) {
  const clock = new ManualClock();
  const disk = new MemoryDisk();
  disk.makeDir("/store");
  const stepped: raftpb.Message[] = [];
  const took = new Histogram([1]);
  const receiver = new SnapshotReceiver({
    raft: { appliedIndex },
    messages: { step: (messages) => void stepped.push(...messages) },
    clock,
    disk,
    keyspaces: new MemoryKeyspaceOpener(disk),
    config: { storeDir: "/store" },
    metrics: { snapshotStoreDuration: took },
    logger: silentLogger,
  });
  return { clock, disk, receiver, stepped, took };
}

test("Raft's snapshot takes the place of what is left of others, and its message goes to Raft", async () => {
  const { clock, disk, receiver, stepped, took } = receiving(0);
  for (const name of ["db.0.recv", "db.7.tmp"]) disk.makeDir(`/store/${name}`);
  const stream = await streamOfStore();
  clock.advance(500);
  const body = (async function* () {
    yield* stream.body;
    clock.advance(2000);
  })();
  await receiver.receive({ ...stream, body });
  assert.deepEqual([disk.list("/store"), stepped], [["db.1.recv"], [stream.message]]);
  assert.deepEqual([took.count, took.sum], [1, 2]);
});

test("a store that is expected is not Raft's; a second one is refused", async () => {
  const { disk, receiver, stepped } = receiving(9);
  const expected = receiver.expect();
  disk.makeDir("/store/db.5.recv");
  await receiver.receive(await streamOfStore());
  assert.equal(await expected.arrived, 1);
  assert.deepEqual([stepped, disk.list("/store").sort()], [[], ["db.1.recv", "db.5.recv"]]);
  await assert.rejects(
    streamOfStore().then((stream) => receiver.receive(stream)),
    /another store has come already/,
  );
});

function installing(hasEnded = false) {
  const steps: string[] = [];
  const disk = new MemoryDisk();
  disk.makeDir("/snap");
  const gauge = { value: 0 };
  const deps = {
    files: new SnapshotFiles(disk, "/snap"),
    wal: {
      saveSnapshot: async ({ index }: { index: number }) => void steps.push(`log ${index}`),
    },
    marks: {
      installing: (index: number) => steps.push(`installing ${index}`),
      installed: () => steps.push("installed"),
    },
    exchange: {
      run: async (index: number) => void steps.push(`exchange ${index}, gauge ${gauge.value}`),
    },
    configuration: { connectPeers: () => steps.push("connect") },
    publication: { versionMayBeKnown: () => steps.push(`version, gauge ${gauge.value}`) },
    raft: { appliedIndex: 3 },
    lifetime: { hasEnded },
    metrics: { snapshotApplyInProgress: gauge },
    logger: silentLogger,
    faults: (point: string) => steps.push(point),
  } as unknown as SnapshotInstallDeps;
  const confState = raftpb.ConfState.create({ voters: [1n] });
  const snapshot = raftpb.Snapshot.create({ metadata: { index: 7, term: 2, confState } });
  return { disk, steps, snapshot, install: new SnapshotInstall(deps) };
}

test("a received snapshot is marked before its store is put in place, and then the member goes by it", async () => {
  const { disk, steps, snapshot, install } = installing();
  await install.save(snapshot);
  assert.deepEqual(steps.splice(0), ["before-snapshot-save", "installing 7", "log 7"]);
  assert.deepEqual(disk.list("/snap"), ["0000000000000002-0000000000000007.snap"]);
  await install.install(snapshot);
  assert.deepEqual(steps, ["exchange 7, gauge 1", "installed", "connect", "version, gauge 0"]);
});

test("a member that has ended leaves the store to its next start", async () => {
  const { steps, snapshot, install } = installing(true);
  await install.install(snapshot);
  assert.deepEqual(steps, []);
});
