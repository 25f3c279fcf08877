/**
 * Random histories against the naive model: every answer, every revision, every hash, through
 * compaction in pieces, crashes and reopens.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import {
  EtcdError,
  RangeRequest,
  type RangeResponse,
  type ResponseOp,
  type TxnResponse,
  toHex,
} from "@quorate/proto";
import {
  applyCompaction,
  applyDeleteRange,
  applyPut,
  applyRange,
  applyTxn,
  checkTxn,
} from "@quorate/store";
import { Backend, Bucket } from "../src/backend/backend.ts";
import { type Change, type LeaseBook, Mvcc } from "../src/mvcc/index.ts";
import { History, Prng } from "./mvcc-history.ts";
import {
  Model,
  ModelError,
  type OpAnswer,
  type RangeAnswer,
  type TxnAnswer,
  toPair,
} from "./mvcc-model.ts";

const LEASES = [1n, 2n, -3n];
const EVERYTHING = { key: new Uint8Array([0]), rangeEnd: new Uint8Array([0]) };

/** A lessor that only records its calls, and fails on calls that it should not get. */
class NotedLeases implements LeaseBook {
  readonly attached = new Set<string>();
  exists(id: bigint): boolean {
    return LEASES.includes(id);
  }
  leaseOf(key: string): bigint {
    return LEASES.find((id) => this.attached.has(`${id} ${key}`)) ?? 0n;
  }
  attach(id: bigint, key: string): void {
    assert.ok(!this.attached.has(`${id} ${key}`), "attached twice");
    this.attached.add(`${id} ${key}`);
  }
  detach(id: bigint, key: string): void {
    assert.ok(this.attached.delete(`${id} ${key}`), "detached without being attached");
  }
  release(): void {
    assert.fail("no lease ends");
  }
  beginLong(): void {}
  endLong(): void {}
}

function rangeAnswer(response: RangeResponse): RangeAnswer {
  return {
    revision: response.header!.revision,
    kvs: response.kvs.map(toPair),
    more: response.more,
    count: response.count,
  };
}

function opAnswer({ response: op }: ResponseOp): OpAnswer {
  switch (op!.case) {
    case "responseRange":
      return { op: "range", ...rangeAnswer(op!.value) };
    case "responsePut":
      return {
        op: "put",
        revision: op!.value.header!.revision,
        prev: op!.value.prevKv && toPair(op!.value.prevKv),
      };
    case "responseDeleteRange":
      return {
        op: "delete",
        revision: op!.value.header!.revision,
        deleted: op!.value.deleted,
        prev: op!.value.prevKvs.map(toPair),
      };
    case "responseTxn":
      return { op: "txn", answer: txnAnswer(op!.value) };
  }
}

function txnAnswer(response: TxnResponse): TxnAnswer {
  return {
    revision: response.header!.revision,
    succeeded: response.succeeded,
    responses: response.responses.map(opAnswer),
  };
}

/** What was answered, or the error's name; any other error passes. */
function outcome<T>(run: () => T): T | { error: string } {
  try {
    return run();
  } catch (error) {
    if (error instanceof EtcdError || error instanceof ModelError) return { error: error.code };
    throw error;
  }
}

class World {
  readonly #opener = new MemoryKeyspaceOpener(new MemoryDisk());
  backend!: Backend;
  mvcc!: Mvcc;
  leases!: NotedLeases;
  model = new Model(new Set(LEASES));
  changes: Change[] = [];
  #saved = this.model.clone();

  async open(): Promise<void> {
    this.backend = new Backend(await this.#opener.open("/store", { create: true }));
    this.leases = new NotedLeases();
    this.mvcc = await Mvcc.open(this.backend, "/store", undefined, this.leases);
    this.mvcc.onChange = (change) => this.changes.push(change);
  }

  async flush(): Promise<void> {
    await this.backend.flush();
    this.#saved = this.model.clone();
  }

  /** Closes and opens; after a crash everything since the last flush is gone. */
  async reopen(crash: boolean): Promise<void> {
    if (crash) this.model = this.#saved.clone();
    else this.#saved = this.model.clone();
    await this.backend.close({ flush: !crash });
    await this.open();
  }

  /** All that can be seen is equal: every readable revision, the figures, the leases. */
  check(): void {
    const { mvcc, model } = this;
    assert.equal(mvcc.currentRevision, model.revision);
    assert.equal(mvcc.compactRevision, model.compactRevision);
    assert.equal(mvcc.keyCount, model.stateAt(model.revision).size);
    assert.deepEqual([...this.leases.attached].sort(), model.leased().sort());
    for (
      let revision = Math.max(model.compactRevision, 1);
      revision <= model.revision;
      revision++
    ) {
      const request = RangeRequest.create({ ...EVERYTHING, revision });
      assert.deepEqual(
        rangeAnswer(applyRange(mvcc, request)),
        model.range(request),
        `state at ${revision}`,
      );
    }
  }

  /** The hash at a revision, from the store and from the model. Taking one flushes. */
  async checkHash(revision: number): Promise<void> {
    const mine = await this.mvcc.hashKV(revision).then(
      (hash) => {
        this.#saved = this.model.clone();
        return hash.hash;
      },
      (error) => ({ error: (error as EtcdError).code }),
    );
    assert.deepEqual(
      mine,
      outcome(() => this.model.hashKV(revision)),
      `hash at ${revision}`,
    );
  }

  /** The backend holds what compaction must leave, and nothing else. */
  async checkRecords(): Promise<void> {
    const snapshot = await this.backend.snapshot();
    this.#saved = this.model.clone();
    const records: string[] = [];
    for await (const slice of snapshot.scan(Bucket.key))
      for (const [key] of slice) records.push(toHex(key));
    await snapshot.close();
    assert.deepEqual(records, this.model.records());
  }

  /** The changes reported since the last call are those of the model. */
  checkChanges(eventsBefore: number): void {
    const reported = this.changes.map(({ main, sub, key, deleted, record }) => ({
      main,
      sub,
      key,
      pair: deleted ? undefined : toPair(record),
    }));
    assert.deepEqual(reported, this.model.events.slice(eventsBefore));
    for (const { main, key } of this.changes) {
      const before = this.model.stateAt(main - 1).get(key);
      const record = this.mvcc.recordAt(key, main - 1);
      assert.deepEqual(record && toPair(record), before);
    }
    this.changes = [];
  }
}

interface Mix {
  readonly steps: number;
  /** Percent of steps that reopen the store, half of them by a crash. */
  readonly reopens: number;
  readonly compactions: number;
}

async function run(seed: number, mix: Mix): Promise<Record<string, number>> {
  const prng = new Prng(seed);
  const world = new World();
  await world.open();
  const history = new History(prng, {
    leases: LEASES,
    noLease: 99n,
    revision: () => ({ current: world.model.revision, compact: world.model.compactRevision }),
  });
  const seen: Record<string, number> = {};
  const note = (what: string): void => {
    seen[what] = (seen[what] ?? 0) + 1;
  };
  for (let step = 0; step < mix.steps; step++) {
    const { mvcc, model, leases } = world;
    const events = model.events.length;
    const kind = prng.below(100);
    let mine: unknown;
    let naive: unknown;
    if (kind < 35) {
      const request = history.put();
      mine = outcome(() =>
        opAnswer({ response: { case: "responsePut", value: applyPut(mvcc, leases, request) } }),
      );
      naive = outcome(() => model.put(request));
      note("put");
    } else if (kind < 45) {
      const request = history.deleteRange();
      mine = outcome(() =>
        opAnswer({
          response: { case: "responseDeleteRange", value: applyDeleteRange(mvcc, leases, request) },
        }),
      );
      naive = outcome(() => model.deleteRange(request));
      note("delete");
    } else if (kind < 75) {
      const request = history.txn();
      if (checkTxn(request, 128) !== undefined) {
        note("txn refused");
        continue;
      }
      mine = outcome(() => txnAnswer(applyTxn(mvcc, leases, request)));
      naive = outcome(() => model.txn(request));
      note("txn");
    } else {
      const request = history.range();
      mine = outcome(() => rangeAnswer(applyRange(mvcc, request)));
      naive = outcome(() => model.range(request));
      note("range");
    }
    assert.deepEqual(mine, naive, `step ${step}`);
    if ((mine as { error?: string }).error !== undefined) note((mine as { error: string }).error);
    world.checkChanges(events);
    if (prng.chance(mix.compactions)) {
      const request = history.compaction();
      const answer = outcome(() => applyCompaction(mvcc, request).header!.revision);
      assert.deepEqual(
        answer,
        outcome(() => model.compact(request)),
      );
      note("compaction");
    }
    if (mvcc.isCompacting && prng.chance(50)) {
      mvcc.compactStep(1 + prng.below(4));
      note("compaction step");
      if (!mvcc.isCompacting) {
        await world.checkRecords();
        note("compaction done");
      }
    }
    if (prng.chance(10)) await world.flush();
    if (prng.chance(mix.reopens)) {
      await world.reopen(prng.chance(50));
      note("reopen");
      world.check();
    }
    if (prng.chance(4)) {
      const { model: now } = world;
      await world.checkHash(
        prng.chance(50)
          ? 0
          : now.compactRevision - 1 + prng.below(now.revision - now.compactRevision + 4),
      );
      note("hash");
    }
    if (step % 40 === 39) world.check();
  }
  world.check();
  while (!world.mvcc.compactStep(3));
  assert.equal(world.mvcc.compactedRevision, world.mvcc.compactRevision);
  world.check();
  await world.checkRecords();
  const before = await world.mvcc.hash();
  await world.checkHash(0);
  await world.reopen(false);
  world.check();
  await world.checkHash(0);
  assert.equal(await world.mvcc.hash(), before);
  assert.equal(world.mvcc.isCompacting, false);
  return seen;
}

const MIXES: Record<string, Mix & { seeds: number }> = {
  "no compaction": { steps: 250, reopens: 1, compactions: 0, seeds: 12 },
  "compaction now and then": { steps: 400, reopens: 2, compactions: 3, seeds: 25 },
  "compaction all the time": { steps: 400, reopens: 4, compactions: 25, seeds: 15 },
  "a reopen at every commit": { steps: 150, reopens: 100, compactions: 10, seeds: 5 },
};

for (const [name, mix] of Object.entries(MIXES)) {
  test(`random histories equal the naive model: ${name}`, async () => {
    const total: Record<string, number> = {};
    for (let seed = 1; seed <= mix.seeds; seed++) {
      try {
        for (const [what, count] of Object.entries(await run(seed, mix)))
          total[what] = (total[what] ?? 0) + count;
      } catch (error) {
        console.log(`seed ${seed} of mix "${name}"`);
        throw error;
      }
    }
    const wanted = [
      "put",
      "delete",
      "txn",
      "range",
      "FutureRev",
      "KeyNotFound",
      "LeaseNotFound",
      "reopen",
      "hash",
    ];
    if (mix.compactions > 0)
      wanted.push("compaction", "compaction step", "compaction done", "Compacted");
    for (const what of wanted) assert.ok(total[what] > 0, `the histories never came to: ${what}`);
  });
}
