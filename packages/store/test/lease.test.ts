/** The lessor against a naive model, and what is damage. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import {
  DeleteRangeRequest,
  type EtcdError,
  fromUtf8,
  KeyValue,
  LeaseCheckpointRequest,
  LeaseGrantRequest,
  LeaseRevokeRequest,
  leasepb,
  PutRequest,
  RangeRequest,
  TxnRequest,
  toUtf8,
} from "@quorate/proto";
import { Backend, Bucket } from "../src/backend/backend.ts";
import { StoreDamageError } from "../src/backend/errors.ts";
import { LIVE_BYTES, LiveBytes } from "../src/backend/meta.ts";
import { STEP_KEYS } from "../src/backend/steps.ts";
import { Lessor } from "../src/lease/lessor.ts";
import { type LeaseBook, Mvcc } from "../src/mvcc/index.ts";
import { applyRange } from "../src/requests/range.ts";
import { Store } from "../src/store.ts";
import { Prng } from "./mvcc-history.ts";
import { Log } from "./store-log.ts";

const SEED = 4;
const RUNS = 40;
const STEPS = 120;

/** The obvious way: leases with their times, keys with their lease. */
class Model {
  readonly leases = new Map<bigint, { ttl: number; remaining: number }>();
  readonly keys = new Map<string, bigint>();
  revision = 1;

  put(key: string, lease: bigint): string | undefined {
    if (lease !== 0n && !this.leases.has(lease)) return "LeaseNotFound";
    this.keys.set(key, lease);
    this.revision++;
    return undefined;
  }

  delete(from: string, to: string): void {
    const gone = [...this.keys.keys()].filter((key) => key >= from && key < to);
    for (const key of gone) this.keys.delete(key);
    if (gone.length > 0) this.revision++;
  }

  grant(id: bigint, ttl: number): string | undefined {
    if (id === 0n) return "LeaseNotFound";
    if (ttl > 9_000_000_000) return "LeaseTTLTooLarge";
    if (this.leases.has(id)) return "LeaseExist";
    this.leases.set(id, { ttl, remaining: 0 });
    return undefined;
  }

  revoke(id: bigint): string | undefined {
    if (!this.leases.delete(id)) return "LeaseNotFound";
    const gone = this.keysOf(id);
    for (const key of gone) this.keys.delete(key);
    if (gone.length > 0) this.revision++;
    return undefined;
  }

  checkpoint(id: bigint, remaining: number): void {
    const lease = this.leases.get(id);
    if (lease !== undefined) lease.remaining = remaining;
  }

  keysOf(id: bigint): string[] {
    return [...this.keys]
      .filter(([, lease]) => lease === id)
      .map(([key]) => key)
      .sort();
  }
}

const KEYS = ["a", "b", "c", "d", "\u00e9"];

function compare(store: Store, model: Model, context: string): void {
  const { lessor, mvcc } = store;
  assert.equal(mvcc.currentRevision, model.revision, context);
  assert.equal(lessor.count, model.leases.size, context);
  for (const [id, { ttl, remaining }] of model.leases) {
    const lease = lessor.get(id);
    assert.deepEqual([lease?.ttlSeconds, lease?.remainingSeconds], [ttl, remaining], context);
    assert.deepEqual(
      lessor
        .keysOf(id)
        .sort()
        .map((key) => toUtf8(Buffer.from(key, "latin1"))),
      model.keysOf(id),
      context,
    );
  }
  const { kvs } = applyRange(
    mvcc,
    RangeRequest.create({ key: new Uint8Array(1), rangeEnd: new Uint8Array(1) }),
  );
  const found = kvs.map((kv) => KeyValue.decode(kv)).map(({ key, lease }) => [toUtf8(key), lease]);
  assert.deepEqual(
    found,
    [...model.keys].sort(([a], [b]) => (a < b ? -1 : 1)),
    context,
  );
}

test(`random grants, revocations, puts, deletes, checkpoints and restarts match the naive model (seed ${SEED})`, async () => {
  for (let run = 0; run < RUNS; run++) {
    const prng = new Prng(SEED * 1000 + run);
    const keyspaces = new MemoryKeyspaceOpener(new MemoryDisk());
    const model = new Model();
    const log = new Log();
    let store = await Store.open(keyspaces, "/store");
    const key = () => KEYS[prng.below(KEYS.length)];
    const id = () => BigInt(prng.below(6) - 1);
    for (let step = 0; step < STEPS; step++) {
      const context = `run ${run}, step ${step}`;
      let expected: string | undefined;
      switch (prng.below(8)) {
        case 0: {
          const [ID, TTL] = [id(), prng.below(10) === 0 ? 9_000_000_001 : prng.below(100) + 1];
          log.request({ leaseGrant: LeaseGrantRequest.encode({ ID, TTL }) });
          expected = model.grant(ID, TTL);
          break;
        }
        case 1: {
          const ID = id();
          log.request({ leaseRevoke: LeaseRevokeRequest.encode({ ID }) });
          expected = model.revoke(ID);
          break;
        }
        case 2: {
          const [ID, remaining_TTL] = [id(), prng.below(50)];
          log.request({
            leaseCheckpoint: LeaseCheckpointRequest.encode({
              checkpoints: [{ ID, remaining_TTL }],
            }),
          });
          model.checkpoint(ID, remaining_TTL);
          break;
        }
        case 3: {
          const [from, to] = [key(), key()];
          log.request({
            deleteRange: DeleteRangeRequest.encode({ key: fromUtf8(from), rangeEnd: fromUtf8(to) }),
          });
          model.delete(from, to);
          break;
        }
        case 4: {
          // Two puts in a transaction: both or none.
          const [first, second] = [key(), key()];
          if (first === second) continue;
          const [one, other] = [id(), id()];
          const op = (k: string, lease: bigint) =>
            ({
              request: {
                case: "requestPut",
                value: PutRequest.create({ key: fromUtf8(k), lease }),
              },
            }) as const;
          log.request({
            txn: TxnRequest.encode({
              compare: [],
              success: [op(first, one), op(second, other)],
              failure: [],
            }),
          });
          if ([one, other].some((lease) => lease !== 0n && !model.leases.has(lease)))
            expected = "LeaseNotFound";
          else {
            model.put(first, one);
            model.put(second, other);
            model.revision--;
          }
          break;
        }
        case 5: {
          // Keeps the key's lease.
          const k = key();
          log.request({ put: PutRequest.encode({ key: fromUtf8(k), ignoreLease: true }) });
          expected = model.keys.has(k) ? model.put(k, model.keys.get(k)!) : "KeyNotFound";
          break;
        }
        case 6:
          if (prng.below(4) === 0) {
            await store.close({ flush: true });
            store = await Store.open(keyspaces, "/store");
            compare(store, model, `${context}, opened again`);
          }
          continue;
        default: {
          const [k, lease] = [key(), id()];
          log.request({ put: PutRequest.encode({ key: fromUtf8(k), lease }) });
          expected = model.put(k, lease);
        }
      }
      const { error } = store.apply(log.entries.at(-1)!);
      assert.equal((error as EtcdError | undefined)?.code, expected, context);
      compare(store, model, context);
    }
    await store.close({ flush: true });
  }
});

for (const stepKeys of [1, STEP_KEYS]) {
  test(`the keys of a revoked lease go in key order, at one revision, in steps of ${stepKeys}`, async () => {
    const keyspaces = new MemoryKeyspaceOpener(new MemoryDisk());
    const store = await Store.open(keyspaces, "/store", { stepKeys });
    const log = new Log();
    const apply = () => store.apply(log.entries.at(-1)!);
    log.request({ leaseGrant: LeaseGrantRequest.encode({ ID: 9n, TTL: 10 }) });
    apply();
    for (const key of ["c", "a", "b"]) {
      log.request({ put: PutRequest.encode({ key: fromUtf8(key), lease: 9n }) });
      apply();
    }
    assert.equal(store.lessor.leaseOf("a"), 9n);
    const changes: string[] = [];
    store.mvcc.onChange = ({ main, sub, key, deleted }) =>
      changes.push(`${deleted ? "delete" : "put"} ${key} ${main}.${sub}`);
    log.request({ leaseRevoke: LeaseRevokeRequest.encode({ ID: 9n }) });
    apply();
    assert.deepEqual(changes, ["delete a 5.0", "delete b 5.1", "delete c 5.2"]);
    assert.deepEqual(
      ["a", "b", "c"].map((key) => store.lessor.leaseOf(key)),
      [0n, 0n, 0n],
    );
    await store.close({ flush: false });
  });
}

test("the keys of a lease are copied in steps, as they are at the end", async () => {
  const store = await Store.open(new MemoryKeyspaceOpener(new MemoryDisk()), "/store");
  const log = new Log();
  const apply = () => store.apply(log.entries.at(-1)!);
  const put = (key: string) => {
    log.request({ put: PutRequest.encode({ key: fromUtf8(key), lease: 9n }) });
    apply();
  };
  log.request({ leaseGrant: LeaseGrantRequest.encode({ ID: 9n, TTL: 10 }) });
  apply();
  const keyCount = 3 * STEP_KEYS;
  for (let i = 0; i < keyCount; i++) put(`k${i}`);
  /** Copies the keys; `changes` says how often one comes between two steps. */
  const copy = (changes: number): { keys: string[]; steps: number } => {
    const work = store.lessor.keysInSteps(9n);
    for (let steps = 1; ; steps++) {
      const step = work.next();
      if (step.done === true) return { keys: step.value, steps };
      if (steps <= changes) put(`during-${changes}-${steps}`);
    }
  };
  for (const changes of [0, 2, 1000]) {
    const { keys, steps } = copy(changes);
    assert.deepEqual(keys.toSorted(), store.lessor.keysOf(9n).toSorted());
    assert.ok(steps > 3 && steps < 20, `${steps} steps`);
  }
  assert.equal(store.lessor.keysOf(9n).length, keyCount + 2 + 4);
  assert.deepEqual(store.lessor.keysInSteps(1n).next(), { done: true, value: [] });
  await store.close({ flush: false });
});

test("the records are etcd's", async () => {
  const keyspaces = new MemoryKeyspaceOpener(new MemoryDisk());
  const store = await Store.open(keyspaces, "/store");
  const log = new Log();
  log.request({ leaseGrant: LeaseGrantRequest.encode({ ID: -2n, TTL: 10 }) });
  store.apply(log.entries.at(-1)!);
  log.request({
    leaseCheckpoint: LeaseCheckpointRequest.encode({
      checkpoints: [{ ID: -2n, remaining_TTL: 3 }],
    }),
  });
  store.apply(log.entries.at(-1)!);
  const snapshot = await store.snapshot();
  await snapshot.close();
  await store.close({ flush: true });
  const backend = new Backend(await keyspaces.open("/store/db", { create: false }));
  const record = backend.get(Bucket.lease, Buffer.from("fffffffffffffffe", "hex"));
  assert.deepEqual(leasepb.Lease.decode(record!), { ID: -2n, TTL: 10, RemainingTTL: 3 });
  await backend.close({ flush: false });
});

/** Opens a store after something was put into its lease bucket. */
async function openWith(key: string, value: Uint8Array): Promise<Store> {
  const keyspaces = new MemoryKeyspaceOpener(new MemoryDisk());
  const store = await Store.open(keyspaces, "/store");
  const log = new Log();
  log.put("k", "v");
  store.apply(log.entries[0]);
  await store.close({ flush: true });
  const backend = new Backend(await keyspaces.open("/store/db", { create: false }));
  backend.put(Bucket.lease, Buffer.from(key, "hex"), value);
  backend.delete(Bucket.meta, LIVE_BYTES);
  await backend.close({ flush: true });
  return Store.open(keyspaces, "/store");
}

test("a lease under another id, one that does not decode, and one of no id are damage", async () => {
  const record = (ID: bigint) => leasepb.Lease.encode({ ID, TTL: 10, RemainingTTL: 0 });
  const opened = await openWith("0000000000000007", record(7n));
  assert.ok(opened.lessor.exists(7n));
  await opened.close({ flush: false });
  for (const [key, value] of [
    ["0000000000000007", record(8n)],
    ["07", record(7n)],
    ["0000000000000000", record(0n)],
    ["0000000000000007", Uint8Array.of(0xff)],
  ] as const) {
    await assert.rejects(
      openWith(key, value),
      (error) =>
        error instanceof StoreDamageError && error.message.includes(`bucket lease, key ${key}`),
    );
  }
});

test("keys are attached to their leases while the records are read, none at the end; ended leases do not matter", async () => {
  const KEYS = 5000;
  const keyspaces = new MemoryKeyspaceOpener(new MemoryDisk());
  const store = await Store.open(keyspaces, "/store");
  const log = new Log();
  const apply = (request: Parameters<Log["request"]>[0]) => {
    log.request(request);
    assert.equal(store.apply(log.entries.at(-1)!).error, undefined);
  };
  for (const ID of [1n, 2n, 3n]) apply({ leaseGrant: LeaseGrantRequest.encode({ ID, TTL: 10 }) });
  for (let i = 0; i < KEYS; i++)
    apply({ put: PutRequest.encode({ key: fromUtf8(`k${i}`), lease: i % 2 === 0 ? 1n : 2n }) });
  // From one lease to another, to none, and to the same.
  for (const [key, lease] of [
    ["k0", 3n],
    ["k2", 0n],
    ["k4", 1n],
  ] as const)
    apply({ put: PutRequest.encode({ key: fromUtf8(key), lease }) });
  apply({ leaseRevoke: LeaseRevokeRequest.encode({ ID: 2n }) });
  await store.close({ flush: true });

  const backend = new Backend(await keyspaces.open("/store/db", { create: false }));
  const attached = new Map<string, bigint>();
  let sinceSlice = 0;
  let read = 0;
  const book: LeaseBook = {
    exists: (id) => id === 1n || id === 3n,
    leaseOf: (key) => attached.get(key) ?? 0n,
    attach: (id, key) => {
      sinceSlice++;
      attached.set(key, id);
    },
    detach: (id, key) => {
      assert.equal(attached.get(key), id);
      attached.delete(key);
    },
    beginLong: () => {},
    endLong: () => {},
  };
  const onProgress = (records: number) => {
    assert.ok(
      sinceSlice <= records - read,
      `${sinceSlice} keys with a slice of ${records - read} records`,
    );
    read = records;
    sinceSlice = 0;
  };
  await Mvcc.open(backend, "/store", onProgress, book);
  assert.ok(read > KEYS);
  assert.equal(sinceSlice, 0, "after the last slice");
  assert.equal(attached.size, KEYS / 2 - 1);
  assert.deepEqual(
    [attached.get("k0"), attached.get("k1"), attached.get("k2"), attached.get("k4")],
    [3n, undefined, undefined, 1n],
  );
  await backend.close({ flush: false });
});

test("a key on a lease that is not there is damage", async () => {
  const keyspaces = new MemoryKeyspaceOpener(new MemoryDisk());
  const store = await Store.open(keyspaces, "/store");
  const log = new Log();
  log.request({ leaseGrant: LeaseGrantRequest.encode({ ID: 7n, TTL: 10 }) });
  log.request({ put: PutRequest.encode({ key: fromUtf8("k"), lease: 7n }) });
  for (const entry of log.entries) store.apply(entry);
  await store.close({ flush: true });
  const backend = new Backend(await keyspaces.open("/store/db", { create: false }));
  backend.delete(Bucket.lease, Buffer.from("0000000000000007", "hex"));
  await backend.close({ flush: true });
  await assert.rejects(Store.open(keyspaces, "/store"), /its lease 7 does not exist/);
});

const openStore = () => Store.open(new MemoryKeyspaceOpener(new MemoryDisk()), "/store");

test("while an entry is unfinished, a lease has the keys that it had before it", async () => {
  const { lessor } = await openStore();
  for (const id of [1n, 2n]) lessor.grant(id, 10);
  for (const key of ["a", "b"]) lessor.attach(1n, key);
  lessor.beginLong();
  for (const key of ["a", "b"]) lessor.detach(1n, key);
  lessor.attach(2n, "a");
  lessor.attach(1n, "c");
  assert.deepEqual([lessor.keysOf(1n).sort(), lessor.keysOf(2n)], [["a", "b"], []]);
  assert.deepEqual([lessor.mostKeysOf(1n), lessor.mostKeysOf(2n)], [3, 1]);
  lessor.endLong();
  assert.deepEqual([lessor.keysOf(1n), lessor.keysOf(2n)], [["c"], ["a"]]);
  assert.throws(() => lessor.attach(9n, "d"), /\/store.*its lease 9 does not exist/);
});

test("the observer is told of each change of a lease, and each lease has one record", async () => {
  const keyspaces = new MemoryKeyspaceOpener(new MemoryDisk());
  const backend = new Backend(await keyspaces.open("/store/db", { create: true }));
  const live = new LiveBytes();
  const lessor = await Lessor.open(backend, await backend.snapshot(), "/store", live);
  const mvcc = await Mvcc.open(backend, "/store");
  const told: string[] = [];
  lessor.observer = {
    granted: ({ id }) => told.push(`granted ${id}`),
    revoked: (id) => told.push(`revoked ${id}`),
    checkpointed: ({ id, remainingSeconds }) => told.push(`${id} has ${remainingSeconds} s`),
  };
  lessor.grant(7n, 10);
  assert.equal(live.written.records, 1);
  lessor.checkpoint(7n, 4);
  lessor.checkpoint(8n, 4);
  assert.equal(live.written.records, 1);
  lessor.revoke(7n, mvcc);
  assert.equal(live.written.records, 0);
  assert.deepEqual(told, ["granted 7", "7 has 4 s", "revoked 7"]);
  await backend.close({ flush: false });
});

test("a lease with many keys ends in steps, and its keys are known no more", async () => {
  const store = await openStore();
  const { lessor, mvcc } = store;
  assert.throws(() => lessor.revokeInSteps(9n, mvcc).next(), /requested lease not found/);
  const log = new Log();
  const apply = (request: Parameters<Log["request"]>[0]) => {
    log.request(request);
    assert.equal(store.apply(log.entries.at(-1)!).error, undefined);
  };
  for (const ID of [1n, 2n]) apply({ leaseGrant: LeaseGrantRequest.encode({ ID, TTL: 10 }) });
  for (let i = 0; i <= STEP_KEYS; i++)
    apply({ put: PutRequest.encode({ key: fromUtf8(`k${i}`), lease: 1n }) });
  apply({ put: PutRequest.encode({ key: fromUtf8("other"), lease: 2n }) });
  await store.flush();
  let steps = 0;
  for (const _ of lessor.revokeInSteps(1n, mvcc)) steps++;
  assert.ok(steps > 0 && steps < 20, `${steps} steps`);
  await store.flush();
  assert.equal(lessor.knownKeys, 1);
  assert.equal(lessor.leaseOf("other"), 2n);
  await store.close({ flush: true });
});
