/**
 * Entries that are applied in steps: the same answers, events and bytes as without a pause,
 * whatever happens between the steps; nothing of an unfinished entry is seen, flushed, hashed or
 * streamed; a crash between two steps replays the entry.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import {
  Compare_CompareResult,
  Compare_CompareTarget,
  DeleteRangeRequest,
  fromLatin1,
  fromUtf8,
  LeaseGrantRequest,
  LeaseRevokeRequest,
  PutRequest,
  RangeRequest,
  type RequestOp,
  raftpb,
  TxnRequest,
  toHex,
} from "@quorate/proto";
import { applyRange } from "@quorate/store";
import { type AppliedEntry, isSteps } from "../src/apply.ts";
import type { Steps } from "../src/backend/steps.ts";
import { type Change, inRange, type KeyRange, MAX_KEPT_CHANGES } from "../src/mvcc/index.ts";
import { Store } from "../src/store.ts";
import { Prng } from "./mvcc-history.ts";
import { applyEntry, Log, randomLog } from "./store-log.ts";

const DIR = "/store";
const LEASES = [1n, 2n, 3n];
const ALL = { key: new Uint8Array([0]), rangeEnd: new Uint8Array([0]) };

function world() {
  const disk = new MemoryDisk();
  disk.makeDir(DIR);
  disk.syncDir("/");
  return { disk, keyspaces: new MemoryKeyspaceOpener(disk) };
}

/** What anybody can see of a store without a flush. */
function visible(store: Store): unknown {
  const { mvcc, lessor } = store;
  const at = (revision: number) => {
    const { kvs, count, header } = applyRange(mvcc, RangeRequest.create({ ...ALL, revision }));
    return { kvs: kvs.map((kv) => toHex(kv)), count, revision: header?.revision };
  };
  return {
    position: store.position,
    revision: mvcc.currentRevision,
    keys: mvcc.keyCount,
    now: at(0),
    before:
      mvcc.currentRevision - 1 > Math.max(0, mvcc.compactRevision)
        ? at(mvcc.currentRevision - 1)
        : undefined,
    leases: LEASES.map((id) => [lessor.exists(id), lessor.keysOf(id).sort()]),
  };
}

interface Whole {
  readonly states: unknown[];
  readonly answers: unknown[];
  /** Those of each entry. */
  readonly events: Change[][];
  readonly hash: number;
}

/** What a store does that applies each entry without a pause. */
async function whole(log: Log): Promise<Whole> {
  const store = await Store.open(world().keyspaces, DIR);
  const states = [visible(store)];
  const answers: unknown[] = [undefined];
  const events: Change[][] = [[]];
  store.mvcc.onChange = (change) => events.at(-1)!.push(change);
  for (const entry of log.entries) {
    events.push([]);
    answers.push(applyEntry(store, entry));
    states.push(visible(store));
  }
  while (!store.mvcc.compactStep(1000));
  const hash = await store.mvcc.hash();
  await store.close({ flush: true });
  return { states, answers, events, hash };
}

const plain = ({ requestId, kind, response, error }: AppliedEntry): unknown => ({
  requestId,
  kind,
  response,
  error: error?.code,
});

for (const seed of [1, 2, 3, 4, 5, 6]) {
  test(`entries in steps of ${1 + (seed % 3)} keys: the same answers, events and bytes, whatever is between (seed ${seed})`, async () => {
    const log = randomLog(seed, 700, LEASES);
    const expected = await whole(log);
    const prng = new Prng(seed);
    const { disk, keyspaces } = world();
    const open = () => Store.open(keyspaces, DIR, { stepKeys: 1 + (seed % 3) });
    let store = await open();
    let durable = 0;
    const seen = { pauses: 0, crashes: 0, longest: 0, large: 0 };
    let events: Change[] = [];
    let large: { main: number; touched: readonly KeyRange[] } | undefined;
    const listen = () => {
      events = [];
      store.mvcc.onChange = (change) => events.push(change);
      store.mvcc.onLargeChange = (main, touched) => {
        large = { main, touched };
      };
    };
    listen();
    while (store.position.index < log.entries.length) {
      const entry = log.entries[store.position.index];
      let crashed = false;
      let pauses = 0;
      if (entry.type !== raftpb.EntryType.EntryNormal)
        assert.deepEqual(applyEntry(store, entry), expected.answers[entry.index]);
      else {
        const outcome = store.begin(entry);
        let applied: AppliedEntry | undefined = isSteps(outcome) ? undefined : outcome;
        while (isSteps(outcome) && applied === undefined) {
          const step = outcome.next();
          if (step.done === true) {
            applied = step.value;
            break;
          }
          pauses++;
          // Only some pauses are looked at: it takes longer than the step.
          if (!prng.chance(50)) continue;
          assert.deepEqual(
            visible(store),
            expected.states[entry.index - 1],
            `in the middle of entry ${entry.index}`,
          );
          assert.deepEqual([events, large], [[], undefined], "an unfinished entry has no events");
          const act = prng.below(100);
          if (act < 20) assert.equal((durable = await store.flush()), entry.index - 1);
          else if (act < 30) store.flush().catch(() => {});
          else if (act < 40) store.mvcc.compactStep(1 + prng.below(3));
          else if (act < 45)
            assert.equal((await store.mvcc.hashKV(0)).revision, store.mvcc.currentRevision);
          else if (act < 50) {
            const snapshot = await store.snapshot();
            assert.equal(snapshot.position.index, entry.index - 1);
            await snapshot.close();
          } else if (act < 55) {
            disk.syncDir(DIR);
            for (let turns = prng.below(6); turns > 0; turns--) await undefined;
            disk.crash(new SeededRandom(BigInt(seed * 1000 + seen.crashes)));
            crashed = true;
            break;
          } else if (act < 58) {
            await store.close({ flush: prng.chance(50) });
            crashed = true;
            break;
          }
          assert.deepEqual(
            visible(store),
            expected.states[entry.index - 1],
            `after something in the middle of entry ${entry.index}`,
          );
        }
        if (crashed) {
          seen.crashes++;
          store = await open();
          assert.ok(store.position.index >= durable, "what was flushed is there");
          assert.deepEqual(
            visible(store),
            expected.states[store.position.index],
            "a crash leaves whole entries",
          );
          durable = store.position.index;
          listen();
          continue;
        }
        assert.deepEqual(plain(applied!), expected.answers[entry.index], `entry ${entry.index}`);
        if (large !== undefined) {
          const { main, touched } = large;
          assert.equal(events.length, 0);
          for await (const { changes } of store.mvcc.history(main, main)) events.push(...changes);
          assert.ok(events.every((change) => touched.some((range) => inRange(range, change.key))));
          large = undefined;
          seen.large++;
        }
        assert.deepEqual(events, expected.events[entry.index], `events of entry ${entry.index}`);
      }
      events = [];
      seen.pauses += pauses;
      seen.longest = Math.max(seen.longest, pauses);
      assert.deepEqual(visible(store), expected.states[entry.index]);
    }
    while (!store.mvcc.compactStep(1000));
    assert.equal(await store.mvcc.hash(), expected.hash, "the same bytes in all buckets");
    await store.close({ flush: true });
    // What was kept in memory is what the records say.
    store = await open();
    assert.deepEqual(visible(store), expected.states.at(-1));
    await store.close({ flush: true });
    assert.ok(
      seen.pauses > 200 &&
        seen.crashes > 2 &&
        seen.longest > 5 &&
        (seen.large > 0 || seed % 3 !== 0),
      JSON.stringify(seen),
    );
  });
}

const key = (i: number): string => `k${String(i).padStart(5, "0")}`;

/** A store with so many keys, all on the lease 1. */
async function filled(
  keys: number,
): Promise<{ store: Store; log: Log; keyspaces: MemoryKeyspaceOpener }> {
  const { keyspaces } = world();
  const store = await Store.open(keyspaces, DIR);
  const log = new Log();
  log.request({ leaseGrant: LeaseGrantRequest.encode({ ID: 1n, TTL: 60 }) });
  for (let i = 0; i < keys; i++)
    log.request({
      put: PutRequest.encode({ key: fromUtf8(key(i)), value: fromUtf8("v"), lease: 1n }),
    });
  for (const entry of log.entries) store.apply(entry);
  return { store, log, keyspaces };
}

/**
 * Runs an entry; after each step `between`. Returns what came of it, and how many pauses it had.
 */
function run(
  store: Store,
  log: Log,
  between: () => void,
): { applied: AppliedEntry; pauses: number } {
  const outcome = store.begin(log.entries.at(-1)!);
  assert.ok(isSteps(outcome));
  for (let pauses = 0; ; pauses++) {
    const step = (outcome as Steps<AppliedEntry>).next();
    if (step.done === true) return { applied: step.value, pauses };
    between();
  }
}

for (const [name, request] of [
  [
    "a delete of a range",
    {
      deleteRange: DeleteRangeRequest.encode({
        key: fromUtf8("k"),
        rangeEnd: fromUtf8("l"),
        prevKv: true,
      }),
    },
  ],
  ["the revocation of a lease", { leaseRevoke: LeaseRevokeRequest.encode({ ID: 1n }) }],
] as const) {
  test(`${name} with 5,000 keys: one revision, after many pauses; a watch is notified once, of its range`, async () => {
    const { store, log, keyspaces } = await filled(5000);
    const reported: unknown[] = [];
    store.mvcc.onChange = () => assert.fail("too many changes to report each");
    store.mvcc.onLargeChange = (main, touched) =>
      reported.push([main, touched[0]?.key, touched.length]);
    log.request(request);
    const revision = store.mvcc.currentRevision;
    const bytes = store.liveBytes;
    const { pauses, applied } = run(store, log, () => {
      assert.deepEqual(
        [store.mvcc.keyCount, store.mvcc.currentRevision, store.liveBytes],
        [5000, revision, bytes],
      );
      assert.deepEqual(reported, []);
      assert.equal(store.lessor.exists(1n), true);
      assert.equal(store.pendingOps > 0, true);
    });
    assert.ok(pauses >= 4, `${pauses} pauses`);
    assert.equal(applied.error, undefined);
    assert.equal(reported.length, 1);
    assert.deepEqual((reported[0] as unknown[]).slice(0, 2), [
      revision + 1,
      name.includes("lease") ? key(0) : "k",
    ]);
    assert.deepEqual([store.mvcc.keyCount, store.mvcc.currentRevision], [0, revision + 1]);
    assert.deepEqual(store.lessor.keysOf(1n), []);
    const read: Change[] = [];
    for await (const { changes } of store.mvcc.history(revision + 1, revision + 1))
      read.push(...changes);
    assert.deepEqual(
      read.map((change) => [change.key, change.main, change.sub, change.deleted]),
      Array.from({ length: 5000 }, (_, i) => [key(i), revision + 1, i, true]),
    );
    const hash = await store.mvcc.hashKV(0);
    const live = store.liveBytes;
    await store.close({ flush: true });
    const again = await Store.open(keyspaces, DIR);
    assert.deepEqual([await again.mvcc.hashKV(0), again.liveBytes], [hash, live]);
    await again.close({ flush: true });
  });
}

test("a watch that begins while an entry is applied is notified of its changes", async () => {
  const { store, log } = await filled(MAX_KEPT_CHANGES + 1500);
  log.request({
    deleteRange: DeleteRangeRequest.encode({ key: fromUtf8("k"), rangeEnd: fromUtf8("l") }),
  });
  let main = 0;
  run(store, log, () => {
    store.mvcc.onChange ??= () => assert.fail("too many changes to report each");
    store.mvcc.onLargeChange ??= (revision) => {
      main = revision;
    };
  });
  assert.equal(main, store.mvcc.currentRevision);
  await store.close({ flush: false });
});

test("a transaction that compares a range, deletes one and reads one sees its own changes, and no other request does", async () => {
  const { store, log } = await filled(3000);
  const range = { key: fromUtf8("k"), rangeEnd: fromUtf8("l") };
  const success: RequestOp[] = [
    {
      request: {
        case: "requestDeleteRange",
        value: DeleteRangeRequest.create({ key: fromUtf8(key(10)), rangeEnd: fromUtf8("l") }),
      },
    },
    {
      request: {
        case: "requestPut",
        value: PutRequest.create({ key: fromUtf8("new"), value: fromUtf8("1") }),
      },
    },
    {
      request: { case: "requestRange", value: RangeRequest.create({ ...range, countOnly: true }) },
    },
  ];
  const compare = [
    {
      ...range,
      target: Compare_CompareTarget.VALUE,
      result: Compare_CompareResult.EQUAL,
      targetUnion: { case: "value", value: fromUtf8("v") },
    },
  ];
  log.request({
    txn: TxnRequest.encode(TxnRequest.create({ compare: compare as never, success })),
  });
  const { applied, pauses } = run(store, log, () => {
    assert.equal(store.mvcc.view.get("new"), undefined);
    assert.equal(
      applyRange(store.mvcc, RangeRequest.create({ ...range, countOnly: true })).count,
      3000,
    );
  });
  assert.ok(pauses > 10, `${pauses}`);
  const { responses } = applied.response as {
    responses: { response: { value: { deleted?: number; count?: number } } }[];
  };
  assert.deepEqual(
    [responses[0].response.value.deleted, responses[2].response.value.count],
    [2990, 10],
  );
  assert.equal(store.mvcc.keyCount, 11);
  await store.close({ flush: true });
});

test("STORE-9: nothing is applied while an entry is unfinished", async () => {
  const { store, log } = await filled(3000);
  log.request({ deleteRange: DeleteRangeRequest.encode(ALL) });
  const steps = store.begin(log.entries.at(-1)!);
  assert.ok(isSteps(steps));
  (steps as Steps<AppliedEntry>).next();
  log.put("a", "1");
  assert.throws(() => store.begin(log.entries.at(-1)!), /STORE-9/);
  assert.throws(() => store.begin(log.entries.at(-2)!), /STORE-9/);
  await store.close({ flush: true });
});

test("few operations on single keys are applied at once", async () => {
  const { store, log } = await filled(3);
  const one = { key: fromLatin1(key(1)) };
  for (const request of [
    { put: PutRequest.encode(one) },
    { deleteRange: DeleteRangeRequest.encode(one) },
    { leaseRevoke: LeaseRevokeRequest.encode({ ID: 1n }) },
    {
      txn: TxnRequest.encode({
        success: [{ request: { case: "requestPut", value: PutRequest.create(one) } }],
      }),
    },
  ]) {
    log.request(request);
    assert.equal(isSteps(store.begin(log.entries.at(-1)!)), false);
  }
  await store.close({ flush: true });
});
