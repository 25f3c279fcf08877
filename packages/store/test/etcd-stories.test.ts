/**
 * Faults of correctness that etcd had, by their stories: the same history here. Numbers are issues
 * and pull requests of etcd-io/etcd; docs/evidence/correctness.md has those that are tested
 * elsewhere, or cannot happen.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import {
  DeleteRangeRequest,
  EtcdError,
  fromLatin1,
  KeyValue,
  PutRequest,
  RangeRequest,
  type RequestOp,
  TxnRequest,
  toLatin1,
} from "@quorate/proto";
import { applyDeleteRange, applyPut, applyRange, applyTxn } from "@quorate/store";
import { Backend } from "../src/backend/backend.ts";
import { runSteps } from "../src/backend/steps.ts";
import { Mvcc, noLeases } from "../src/mvcc/index.ts";

const ALL = { key: fromLatin1("\0"), rangeEnd: fromLatin1("\0") };

class Bench {
  readonly #opener = new MemoryKeyspaceOpener(new MemoryDisk());
  #backend!: Backend;
  mvcc!: Mvcc;

  async open(): Promise<this> {
    this.#backend = new Backend(await this.#opener.open("/store", { create: true }));
    this.mvcc = await Mvcc.open(this.#backend, "/store");
    return this;
  }

  /** A restart; without `flush` what was not flushed is lost, as in a crash. */
  async restart(options = { flush: true }): Promise<void> {
    await this.#backend.close(options);
    await this.open();
  }

  put(key: string, value = "v"): void {
    applyPut(
      this.mvcc,
      noLeases,
      PutRequest.create({ key: fromLatin1(key), value: fromLatin1(value) }),
      true,
    );
  }

  delete(key: string): void {
    applyDeleteRange(
      this.mvcc,
      noLeases,
      DeleteRangeRequest.create({ key: fromLatin1(key) }),
      true,
    );
  }

  /** A step of the compaction that is scheduled, made durable; true when it is over. */
  async step(mostRecords: number): Promise<boolean> {
    const isOver = this.mvcc.compactStep(mostRecords);
    await this.#backend.flush();
    return isOver;
  }

  /** The events of a watch from `revision` on: "put k=v@5", "del k@6". */
  async events(revision: number): Promise<string[]> {
    const texts: string[] = [];
    for await (const { changes } of this.mvcc.history(revision, this.mvcc.currentRevision)) {
      for (const { main, deleted, record } of changes) {
        const { key, value } = KeyValue.decode(record);
        texts.push(
          deleted
            ? `del ${toLatin1(key)}@${main}`
            : `put ${toLatin1(key)}=${toLatin1(value)}@${main}`,
        );
      }
    }
    return texts;
  }
}

test("18089: a watch from the compact revision receives the deletion at that revision", async () => {
  const bench = await new Bench().open();
  bench.put("k");
  bench.delete("k");
  bench.put("other");
  bench.mvcc.compact(3);
  while (!(await bench.step(1)));
  assert.deepEqual(await bench.events(3), ["del k@3", "put other=v@4"]);
  await bench.restart();
  assert.deepEqual(await bench.events(3), ["del k@3", "put other=v@4"]);
});

test("19179: a deletion that is all that is left of a key survives restarts in the middle of the compaction at its revision", async () => {
  for (const flush of [true, false]) {
    for (const most of [1, 2, 3, 5]) {
      const bench = await new Bench().open();
      for (let i = 0; i < 4; i++) bench.put("k", `${i}`);
      bench.delete("k");
      bench.put("other");
      await bench.restart();
      bench.mvcc.compact(6);
      let isOver = await bench.step(most);
      for (let rounds = 0; !isOver; rounds++) {
        assert.ok(rounds < 20, "the compaction ends");
        await bench.restart({ flush });
        if (!bench.mvcc.isCompacting) break;
        isOver = await bench.step(most);
      }
      await bench.restart({ flush });
      assert.deepEqual([bench.mvcc.compactRevision, bench.mvcc.isCompacting], [6, false]);
      assert.deepEqual(
        await bench.events(6),
        ["del k@6", "put other=v@7"],
        `steps of ${most}, flush ${flush}`,
      );
      // The next compaction takes it.
      bench.put("other", "2");
      bench.mvcc.compact(8);
      while (!(await bench.step(10)));
      assert.deepEqual(await bench.events(8), ["put other=2@8"]);
    }
  }
});

test("17780, 17865: a crash in a compaction that drops the newest records takes no revision back", async () => {
  for (const most of [1, 2, 100]) {
    const bench = await new Bench().open();
    for (const key of ["a", "b", "c"]) bench.put(key);
    for (const key of ["a", "b", "c"]) bench.delete(key);
    await bench.restart();
    assert.equal(bench.mvcc.currentRevision, 7);
    bench.mvcc.compact(7);
    for (let isOver = false; !isOver; ) {
      isOver = await bench.step(most);
      await bench.restart({ flush: false });
      assert.equal(bench.mvcc.currentRevision, 7);
      if (!bench.mvcc.isCompacting) break;
    }
    bench.put("d");
    assert.deepEqual([bench.mvcc.currentRevision, bench.mvcc.compactRevision], [8, 7]);
  }
});

test("22376: a key deleted and put in one revision is kept by a compaction at it, through a restart", async () => {
  const bench = await new Bench().open();
  bench.put("k", "old");
  bench.put("other");
  const txn = bench.mvcc.begin();
  runSteps(txn.deleteRange({ single: true, key: "k" }));
  runSteps(txn.deleteRange({ single: true, key: "other" }));
  txn.put(fromLatin1("k"), "k", fromLatin1("2"), 0n);
  txn.commit();
  const { currentRevision } = bench.mvcc;
  bench.mvcc.compact(currentRevision);
  while (!(await bench.step(1)));
  for (let i = 0; i < 2; i++) {
    const { kvs } = applyRange(bench.mvcc, RangeRequest.create(ALL));
    assert.deepEqual(
      kvs.map((record) => toLatin1(KeyValue.decode(record).value)),
      ["2"],
    );
    await bench.restart();
    assert.equal(bench.mvcc.currentRevision, currentRevision);
  }
});

test("18667, 21432: a transaction whose range requests a missing revision is refused alike, with or without a waiting caller", async () => {
  const range = (revision: number): RequestOp => ({
    request: {
      case: "requestRange",
      value: RangeRequest.create({ key: fromLatin1("a"), revision }),
    },
  });
  const put: RequestOp = {
    request: {
      case: "requestPut",
      value: PutRequest.create({ key: fromLatin1("a"), value: fromLatin1("2") }),
    },
  };
  for (const revision of [2, 3, 4, 5, 6, 1000]) {
    for (const ops of [
      [put, range(revision)],
      [range(revision), put],
      [
        put,
        {
          request: { case: "requestTxn", value: TxnRequest.create({ success: [range(revision)] }) },
        } as RequestOp,
      ],
    ]) {
      const outcomes: unknown[] = [];
      for (const isAwaited of [true, false]) {
        const bench = await new Bench().open();
        for (let i = 0; i < 4; i++) bench.put("a", `${i}`);
        bench.mvcc.compact(4);
        let error = "";
        try {
          applyTxn(bench.mvcc, noLeases, TxnRequest.create({ success: ops }), isAwaited);
        } catch (thrown) {
          if (!(thrown instanceof EtcdError)) throw thrown;
          error = thrown.code;
        }
        outcomes.push({
          error,
          revision: bench.mvcc.currentRevision,
          hash: (await bench.mvcc.hashKV(0)).hash,
        });
      }
      assert.deepEqual(outcomes[0], outcomes[1], `revision ${revision}`);
    }
  }
});
