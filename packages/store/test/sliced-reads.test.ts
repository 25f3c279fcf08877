/**
 * Reads in steps against the naive model: whatever is written, flushed and compacted between the
 * steps, a read answers as of the revision at which it began, and compaction takes nothing from
 * under it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import { EtcdError, fromLatin1, KeyValue, type RangeRequest, TxnRequest } from "@quorate/proto";
import {
  applyCompaction,
  applyDeleteRange,
  applyPut,
  applyTxn,
  checkTxn,
  rangeInto,
  readTxn,
} from "@quorate/store";
import { Backend } from "../src/backend/backend.ts";
import { LiveBytes } from "../src/backend/meta.ts";
import { runSteps, STEP_KEYS, type Steps } from "../src/backend/steps.ts";
import { Mvcc, noLeases, type PinnedView, type ReadIo } from "../src/mvcc/index.ts";
import { mergeSort } from "../src/requests/rows.ts";
import { History, Prng } from "./mvcc-history.ts";
import { Model, ModelError, type Pair, toPair } from "./mvcc-model.ts";

/** A read in progress. */
interface Reading {
  readonly view: PinnedView;
  readonly io: ReadIo;
  readonly steps: Steps<unknown>;
  /** What it must come to: a value, or an error by name. */
  readonly expected: unknown;
  /** How many bytes it says that it holds. */
  held: number;
  changesMeanwhile: number;
}

interface Answer {
  readonly revision: number;
  readonly kvs: Pair[];
  readonly more: boolean;
  readonly count: number;
}

async function open(stepKeys: number): Promise<{ backend: Backend; mvcc: Mvcc }> {
  const backend = new Backend(
    await new MemoryKeyspaceOpener(new MemoryDisk()).open("/store", { create: true }),
  );
  return {
    backend,
    mvcc: await Mvcc.open(backend, "/store", undefined, noLeases, new LiveBytes(), { stepKeys }),
  };
}

function outcome<T>(run: () => T): T | { error: string } {
  try {
    return run();
  } catch (error) {
    if (error instanceof EtcdError || error instanceof ModelError) return { error: error.code };
    throw error;
  }
}

function* rangeAnswer(view: PinnedView, request: RangeRequest): Steps<Answer> {
  const kvs: Uint8Array[] = [];
  const { revision, more, count } = yield* rangeInto(view, request, kvs);
  return { revision, kvs: kvs.map(toPair), more, count };
}

function* txnAnswer(view: PinnedView, request: TxnRequest): Steps<unknown> {
  const { succeeded, ranges } = yield* readTxn(view, request, () => [] as Uint8Array[]);
  return {
    succeeded,
    ranges: ranges.map(({ summary: { revision, more, count }, records }) => ({
      revision,
      kvs: records.map(toPair),
      more,
      count,
    })),
  };
}

/** A transaction of comparisons and ranges. */
function readOnly(history: History, prng: Prng): TxnRequest {
  const { compare } = history.txn();
  const ranges = () =>
    Array.from({ length: prng.below(4) }, () => ({
      request: { case: "requestRange" as const, value: history.range() },
    }));
  return TxnRequest.create({ compare, success: ranges(), failure: ranges() });
}

async function run(seed: number, stepKeys: number, turns: number): Promise<Record<string, number>> {
  const prng = new Prng(seed);
  const { backend, mvcc } = await open(stepKeys);
  const model = new Model(new Set());
  const history = new History(prng, {
    leases: [],
    noLease: undefined,
    revision: () => ({ current: model.revision, compact: model.compactRevision }),
  });
  const seen: Record<string, number> = {};
  const note = (what: string): void => {
    seen[what] = (seen[what] ?? 0) + 1;
  };
  let readings: Reading[] = [];
  let records = 0;

  const begin = (): void => {
    const io: ReadIo = { waitsFor: undefined, fromDisk: (read) => read() };
    const as = model.clone();
    const charge = (bytes: number): void => {
      reading.held += bytes;
    };
    const view = mvcc.pin({ io, charge });
    let steps: Steps<unknown>;
    let expected: unknown;
    if (prng.chance(70)) {
      const request = history.range();
      steps = rangeAnswer(view, request);
      expected = outcome(() => as.range(request));
    } else {
      const request = readOnly(history, prng);
      steps = txnAnswer(view, request);
      expected = outcome(() => {
        const { succeeded, responses } = as.txn(request);
        return {
          succeeded,
          ranges: responses.map((one) => (one.op === "range" ? { ...one, op: undefined } : one)),
        };
      });
      expected = JSON.parse(
        JSON.stringify(expected, (_key, value) =>
          typeof value === "bigint" ? `${value}n` : value,
        ),
      );
      steps = asText(steps);
    }
    const reading: Reading = { view, io, steps, expected, held: 0, changesMeanwhile: 0 };
    readings.push(reading);
  };
  const end = (reading: Reading): void => {
    reading.view.release();
    readings = readings.filter((one) => one !== reading);
  };
  const step = async (reading: Reading): Promise<void> => {
    await reading.io.waitsFor;
    const result = outcome(() => reading.steps.next());
    if ("error" in result) assert.deepEqual(result, reading.expected);
    else if (result.done !== true) return;
    else assert.deepEqual(result.value, reading.expected);
    assert.equal(reading.held, 0, "what is held at the end");
    note("read");
    if (reading.changesMeanwhile > 0) note("read while something changed");
    end(reading);
  };
  const changed = (): void => {
    for (const reading of readings) reading.changesMeanwhile++;
  };

  for (let turn = 0; turn < turns; turn++) {
    const kind = prng.below(100);
    if (kind < 12 && readings.length < 6) begin();
    else if (kind < 50 && readings.length > 0) await step(prng.pick(readings));
    else if (kind < 52 && readings.length > 0) {
      const reading = prng.pick(readings);
      reading.steps.return(undefined);
      end(reading);
      note("abandoned");
    } else if (kind < 70) {
      const request = history.put();
      outcome(() => applyPut(mvcc, noLeases, request));
      outcome(() => model.put(request));
      changed();
    } else if (kind < 74) {
      const request = history.deleteRange();
      applyDeleteRange(mvcc, noLeases, request);
      model.deleteRange(request);
      changed();
    } else if (kind < 80) {
      const request = history.txn();
      if (checkTxn(request, 128) !== undefined) continue;
      outcome(() => applyTxn(mvcc, noLeases, request));
      outcome(() => model.txn(request));
      changed();
    } else if (kind < 84) {
      const request = history.compaction();
      outcome(() => applyCompaction(mvcc, request));
      outcome(() => model.compact(request));
      note("compaction");
    } else if (kind < 94) {
      mvcc.compactStep(3);
      if (mvcc.droppedRecords > records && readings.length > 0) note("dropped while reading");
      records = mvcc.droppedRecords;
    } else await backend.flush();
  }
  while (readings.length > 0) await step(readings[0]);
  while (!mvcc.compactStep(1000));
  await backend.close({ flush: true });
  return seen;
}

/** The result with bigints as text, as the expected one is. */
function* asText(steps: Steps<unknown>): Steps<unknown> {
  const value = yield* steps;
  return JSON.parse(
    JSON.stringify(value, (_key, one) => (typeof one === "bigint" ? `${one}n` : one)),
  );
}

for (const stepKeys of [1, 2, 5, STEP_KEYS]) {
  test(`reads in steps of ${stepKeys} keys answer as of their revision, whatever happens in between`, async () => {
    const total: Record<string, number> = {};
    for (let seed = 1; seed <= 12; seed++) {
      for (const [what, times] of Object.entries(await run(1000 * stepKeys + seed, stepKeys, 1500)))
        total[what] = (total[what] ?? 0) + times;
    }
    assert.ok(total["read"] > 1000, JSON.stringify(total));
    assert.ok(total["abandoned"] > 50 && total["compaction"] > 50, JSON.stringify(total));
    if (stepKeys < 10)
      assert.ok(
        total["read while something changed"] > 500 && total["dropped while reading"] > 50,
        JSON.stringify(total),
      );
  });
}

test("many records are fetched together, and the read waits for them while the store changes", async () => {
  const { backend, mvcc } = await open(STEP_KEYS);
  const keys = Array.from({ length: 3000 }, (_, i) => `k${String(i).padStart(6, "0")}`);
  for (const key of keys)
    applyPut(mvcc, noLeases, {
      ...emptyPut(),
      key: fromLatin1(key),
      value: fromLatin1(`before ${key}`),
    });
  await backend.flush();
  let fetches = 0;
  const io: ReadIo = {
    waitsFor: undefined,
    fromDisk: (read) => {
      fetches++;
      return read();
    },
  };
  const view = mvcc.pin({ io, charge: () => {} });
  const kvs: Uint8Array[] = [];
  const steps = view.recordsInto({ single: false, key: "", to: undefined }, view.revision, 0, kvs);
  let waited = 0;
  let changes = 0;
  let between = 0;
  for (let step = steps.next(); step.done !== true; step = steps.next()) {
    assert.ok(kvs.length - between <= 256, "records taken over in one step");
    between = kvs.length;
    if (io.waitsFor !== undefined) {
      waited++;
      await io.waitsFor;
    }
    changes++;
    const key = fromLatin1(keys[(changes * 97) % keys.length]);
    if (changes % 2 === 0)
      applyDeleteRange(mvcc, noLeases, { key, rangeEnd: new Uint8Array(0), prevKv: false });
    else applyPut(mvcc, noLeases, { ...emptyPut(), key, value: fromLatin1("after") });
    if (changes === 3) applyCompaction(mvcc, { revision: mvcc.currentRevision, physical: false });
    mvcc.compactStep(1000);
  }
  assert.equal(mvcc.droppedRecords, 0, "compaction waits for the read");
  view.release();
  // Some 256 records a fetch; they overlap with what is read, so that few are waited for.
  assert.ok(fetches >= 12, `${fetches} fetches`);
  assert.ok(waited >= 3 && waited < fetches, `${waited} of them waited for`);
  assert.deepEqual(
    kvs.map((record) => Buffer.from(KeyValue.decode(record).value).toString("latin1")),
    keys.map((key) => `before ${key}`),
  );
  while (!mvcc.compactStep(1000));
  assert.ok(mvcc.droppedRecords > 0);
});

const emptyPut = () => ({ lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false });

test("a walk looks at no more keys in a step than it may, and a sort compares no more rows", async () => {
  const { mvcc } = await open(STEP_KEYS);
  for (let i = 0; i < 5000; i++)
    applyPut(mvcc, noLeases, {
      ...emptyPut(),
      key: fromLatin1(`k${i}`),
      value: fromLatin1(String(i)),
    });
  let visited = 0;
  let before = 0;
  const steps = mvcc.view.each(
    { single: false, key: "", to: undefined },
    mvcc.currentRevision,
    () => visited++ >= 0,
  );
  for (let step = steps.next(); step.done !== true; step = steps.next()) {
    assert.ok(visited - before <= STEP_KEYS);
    before = visited;
  }
  assert.equal(visited, 5000);
  const counting = mvcc.view.count({ single: false, key: "", to: undefined });
  let pauses = 0;
  while (counting.next().done !== true) pauses++;
  assert.ok(pauses >= Math.floor(5000 / STEP_KEYS));

  let compared = 0;
  let last = 0;
  const prng = new Prng(7);
  const rows = Array.from({ length: 20_000 }, (_, i) => ({ by: prng.below(100), i }));
  const sorting = mergeSort([...rows], (a, b) => {
    compared++;
    return a.by - b.by;
  });
  for (let step = sorting.next(); step.done !== true; step = sorting.next()) {
    assert.ok(compared - last <= 1024);
    last = compared;
  }
  assert.deepEqual(
    runSteps(mergeSort([...rows], (a, b) => a.by - b.by)),
    rows.toSorted((a, b) => a.by - b.by),
  );
});
