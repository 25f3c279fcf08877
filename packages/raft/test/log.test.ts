/** The log against a model that keeps everything in plain lists and finds out by looking. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { raftpb } from "@quorate/proto";
import { ENTRY_OVERHEAD_BYTES, RaftLog } from "../src/log.ts";

const emptyConf = raftpb.ConfState.create();

function entry(index: number, term: number, size: number, type = 0): raftpb.Entry {
  return { type, term, index, data: new Uint8Array(size) };
}

interface ModelWrite {
  readonly number: number;
  readonly entries: readonly raftpb.Entry[];
  readonly snapshot: raftpb.SnapshotMetadata | undefined;
}

/**
 * Memory and disk as lists of the very objects. An entry of the log is durable if the disk has that
 * object in its place: an equal one from an earlier write does not do.
 */
class Model {
  base = { index: 0, term: 0 };
  memory: raftpb.Entry[] = [];
  diskBase = 0;
  disk: raftpb.Entry[] = [];
  committed = 0;
  applying = 0;
  applied = 0;
  writes: ModelWrite[] = [];
  /**
   * A received snapshot that is not durable, with what was committed before: nothing beyond that
   * may count as durable.
   */
  pending: { readonly index: number; readonly committed: number } | undefined;

  at(index: number): raftpb.Entry | undefined {
    return this.memory.find((one) => one.index === index);
  }

  term(index: number): number | undefined {
    return index === this.base.index ? this.base.term : this.at(index)?.term;
  }

  get last(): number {
    return this.memory.length === 0 ? this.base.index : this.memory[this.memory.length - 1].index;
  }

  get stable(): number {
    if (this.pending !== undefined) return this.pending.committed;
    let index = Math.max(this.base.index, this.diskBase);
    while (this.at(index + 1) !== undefined && this.disk.includes(this.at(index + 1)!)) index++;
    return index;
  }

  cut(keep: number): void {
    this.memory = this.memory.filter((one) => one.index <= keep);
  }

  persisted(number: number): void {
    while (this.writes.length > 0 && this.writes[0].number <= number) {
      const write = this.writes.shift()!;
      if (write.snapshot !== undefined) {
        this.diskBase = write.snapshot.index;
        this.disk = [];
        if (write.snapshot.index === this.pending?.index) this.pending = undefined;
      }
      for (const one of write.entries) {
        this.disk = this.disk.filter((old) => old.index < one.index);
        this.disk.push(one);
      }
    }
  }
}

test("random histories: terms, conflicts, what is durable, what is handed out", () => {
  for (let seed = 1; seed <= 400; seed++) {
    const random = new SeededRandom(BigInt(seed));
    const maxBytes = [1, 100, 1_000_000][random.below(3)];
    const log = new RaftLog(
      {
        hardState: raftpb.HardState.create(),
        snapshot: raftpb.SnapshotMetadata.create(),
        entries: [],
        applied: 0,
      },
      maxBytes,
    );
    const model = new Model();
    let number = 0;
    let term = 1;
    let beingApplied: raftpb.Entry[][] = [];
    const pick = (lo: number, hi: number): number => lo + random.below(hi - lo + 1);

    for (let step = 0; step < 300; step++) {
      const what = random.below(100);
      if (what < 15) {
        // A leader appends.
        const entries = Array.from({ length: random.below(4) }, (_, i) =>
          entry(model.last + 1 + i, term, random.below(60), random.below(2)),
        );
        log.append(entries);
        model.memory.push(...entries);
      } else if (what < 45) {
        // Another leader's append: it agrees up to somewhere at or after the commit, and goes on in
        // its own way.
        if (random.below(2) === 0) term++;
        const previous = pick(model.committed, model.last + 1);
        const agree = pick(previous, Math.max(previous, model.last));
        const entries: raftpb.Entry[] = [];
        for (let index = previous + 1; index <= agree && model.at(index) !== undefined; index++) {
          // An equal entry, but another object, as it comes from a message.
          entries.push({ ...model.at(index)! });
        }
        let next = previous + entries.length;
        const replaces = random.below(2) === 0 && (model.term(next + 1) ?? 0) < term;
        for (let i = random.below(3); i > 0 && (replaces || next >= model.last); i--)
          entries.push(entry(++next, term, random.below(60)));
        const commit = pick(model.committed, model.last + 3);
        const claimed = random.below(8) === 0 ? term + 1 : (model.term(previous) ?? term);
        const fits = model.term(previous) === claimed;
        const last = previous + entries.length;
        // The commit index of a leader only covers what its log has.
        const safeCommit =
          entries.length > 0 || previous <= model.last ? Math.min(commit, last) : model.committed;
        const got = log.tryAppend(previous, claimed, entries, safeCommit);
        assert.equal(got, fits ? last : undefined);
        if (fits) {
          const conflict = entries.find((one) => model.term(one.index) !== one.term);
          if (conflict !== undefined) {
            model.cut(conflict.index - 1);
            model.memory.push(...entries.filter((one) => one.index >= conflict.index));
          }
          model.committed = Math.max(model.committed, safeCommit);
        }
      } else if (what < 60) {
        number++;
        const before = model.writes.flatMap((write) => write.entries);
        const { entries, snapshot } = log.takeWrites(number);
        // Everything in memory that no write holds and the disk does not have yet.
        const expected = model.memory.filter(
          (one) => !before.includes(one) && !model.disk.includes(one),
        );
        assert.deepEqual(entries, expected, `seed ${seed} step ${step}`);
        model.writes.push({ number, entries, snapshot: snapshot?.metadata });
      } else if (what < 72) {
        if (model.writes.length > 0) {
          const upTo = model.writes[random.below(model.writes.length)].number;
          log.persisted(upTo);
          model.persisted(upTo);
        }
      } else if (what < 84) {
        const outstanding = beingApplied
          .flat()
          .reduce((sum, one) => sum + one.data.length + ENTRY_OVERHEAD_BYTES, 0);
        const expected: raftpb.Entry[] = [];
        let bytes = outstanding;
        for (
          let index = model.applying + 1;
          index <= Math.min(model.committed, model.stable);
          index++
        ) {
          const one = model.at(index)!;
          bytes += one.data.length + ENTRY_OVERHEAD_BYTES;
          if (bytes > maxBytes && outstanding + expected.length > 0) break;
          expected.push(one);
        }
        assert.equal(log.hasCommitted(), expected.length > 0, `seed ${seed} step ${step}`);
        assert.deepEqual(log.takeCommitted(), expected);
        if (expected.length > 0) beingApplied.push(expected);
        model.applying += expected.length;
      } else if (what < 92) {
        const batch = beingApplied.shift();
        if (batch !== undefined) {
          model.applied = Math.max(model.applied, batch[batch.length - 1].index);
          log.appliedTo(model.applied);
        }
      } else if (what < 97) {
        const index = pick(0, model.applied);
        const keep = model.term(index);
        log.compact(index, emptyConf);
        if (index > model.base.index) {
          model.base = { index, term: keep! };
          model.memory = model.memory.filter((one) => one.index > index);
        }
      } else {
        // A snapshot from a leader, beyond what is committed.
        const index = pick(model.committed + 1, model.committed + 6);
        term++;
        log.restore({ data: new Uint8Array(0), metadata: { index, term, confState: emptyConf } });
        model.pending = { index, committed: model.committed };
        model.base = { index, term };
        model.memory = [];
        model.committed = index;
        model.applying = index;
        // The driver takes it at once, so that the model needs no state for one that waits.
        number++;
        const { snapshot } = log.takeWrites(number);
        assert.equal(snapshot?.metadata.index, index);
        model.writes.push({ number, entries: [], snapshot: snapshot.metadata });
        beingApplied = [];
        model.applied = index;
        log.appliedTo(index);
      }

      const where = `seed ${seed} step ${step} what ${what}`;
      assert.equal(log.firstIndex, model.base.index + 1, where);
      assert.equal(log.lastIndex, model.last, where);
      assert.equal(log.lastTerm, model.term(model.last), where);
      assert.equal(log.committed, model.committed, where);
      assert.equal(log.applied, model.applied, where);
      if (model.pending === undefined) assert.equal(log.stable, model.stable, where);
      else assert.ok(log.stable <= model.pending.committed, where);
      const probe = pick(0, model.last + 2);
      assert.equal(log.term(probe), model.term(probe), where);
      assert.deepEqual(log.slice(log.firstIndex, log.lastIndex), model.memory, where);
      if (model.memory.length > 0) {
        const from = pick(log.firstIndex, log.lastIndex);
        const bytes = model.memory
          .filter(({ index }) => index >= from)
          .reduce((sum, one) => sum + one.data.length, 0);
        assert.equal(log.dataBytes(from, log.lastIndex), bytes, where);
      }
    }
  }
});

test("where logs may meet is found as by walking back", () => {
  const random = new SeededRandom(7n);
  for (let run = 0; run < 3000; run++) {
    let term = 1 + random.below(2);
    const base = { index: random.below(3) === 0 ? 0 : 5, term: 1 };
    const snapshot =
      base.index === 0 ? raftpb.SnapshotMetadata.create() : { ...base, confState: emptyConf };
    const entries: raftpb.Entry[] = [];
    for (let i = random.below(20); i > 0; i--) {
      if (random.below(3) === 0) term += random.below(3);
      entries.push(entry(base.index + entries.length + 1, term, 0));
    }
    const log = new RaftLog(
      { hardState: { term, vote: 0n, commit: base.index }, snapshot, entries, applied: base.index },
      1,
    );
    const index = random.below(base.index + entries.length + 3);
    const other = random.below(8);
    let slow = index;
    while (slow > 0 && log.term(slow) !== undefined && log.term(slow)! > other) slow--;
    assert.deepEqual(log.findConflict(index, other), { index: slow, term: log.term(slow) ?? 0 });
  }
});

test("entries are collected up to a bound in bytes, at least one", () => {
  const entries = [10, 20, 30, 40].map((size, i) => entry(i + 1, 1, size));
  const log = new RaftLog(
    {
      hardState: { term: 1, vote: 0n, commit: 0 },
      snapshot: raftpb.SnapshotMetadata.create(),
      entries,
      applied: 0,
    },
    1,
  );
  const sizes = entries.map((one) => one.data.length + ENTRY_OVERHEAD_BYTES);
  assert.equal(log.collect(1, 1).length, 1);
  assert.equal(log.collect(1, sizes[0] + sizes[1] - 1).length, 1);
  assert.equal(log.collect(1, sizes[0] + sizes[1]).length, 2);
  assert.equal(log.collect(2, 1_000_000).length, 3);
  assert.equal(log.collect(5, 1_000_000).length, 0);
});

test("who is up to date: the later last term, then the longer log", () => {
  const log = new RaftLog(
    {
      hardState: { term: 3, vote: 0n, commit: 0 },
      snapshot: raftpb.SnapshotMetadata.create(),
      entries: [entry(1, 1, 0), entry(2, 3, 0)],
      applied: 0,
    },
    1,
  );
  assert.equal(log.isUpToDate(2, 3), true);
  assert.equal(log.isUpToDate(1, 3), false);
  assert.equal(log.isUpToDate(1, 4), true);
  assert.equal(log.isUpToDate(9, 2), false);
});
