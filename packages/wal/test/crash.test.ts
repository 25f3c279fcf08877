/**
 * Crashes at random moments: synced records survive, and surviving records were written, in
 * order, without a hole. A log that only crashed is never taken for a damaged one.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SeededRandom } from "@quorate/host";
import { ManualClock, MemoryDisk } from "@quorate/host/testing";
import type { raftpb, walpb } from "@quorate/proto";
import { validSnapshotMarks, Wal, WalError, type WalOptions } from "@quorate/wal";
import { entry, mark, plain, START, state } from "./support.ts";

/** One record, as a change of the log's content. */
type Change =
  | { readonly entry: raftpb.Entry }
  | { readonly state: raftpb.HardState }
  | { readonly mark: walpb.Snapshot };

/** The content of a log, kept naively. */
class Model {
  entries: raftpb.Entry[] = [];
  hardState: raftpb.HardState | undefined;
  marks: walpb.Snapshot[] = [START];

  apply(change: Change): void {
    if ("entry" in change) {
      this.entries.length = change.entry.index - 1;
      this.entries.push(change.entry);
    } else if ("state" in change) this.hardState = change.state;
    else this.marks.push(change.mark);
  }

  /** The result of `Wal.open` from a mark on, as text to compare. */
  from(index: number): string {
    return JSON.stringify([
      plain(this.entries.slice(index)),
      this.hardState && { ...this.hardState, vote: String(this.hardState.vote) },
    ]);
  }
}

/** A member's life over several crashes. */
class Life {
  readonly random: SeededRandom;
  readonly clock = new ManualClock();
  readonly disk: MemoryDisk;
  readonly dir = "/data/wal";
  readonly options: WalOptions;
  /** Every change since the log was made; those before `durable` were synced. */
  changes: Change[] = [];
  durable = 0;
  term = 1;
  commit = 0;
  last = 0;
  /** Index of the newest snapshot mark that is durable and valid. */
  released = 0;

  constructor(seed: number) {
    this.random = new SeededRandom(BigInt(seed));
    const delays = this.random.fork("delays");
    this.disk = new MemoryDisk({ clock: this.clock, syncDelayMs: () => delays.below(20) });
    this.disk.makeDir("/data");
    this.disk.syncDir("/");
    // From segments of a few batches to ones that never fill.
    this.options = { clock: this.clock, segmentBytes: [2048, 8192, 1 << 20][this.random.below(3)] };
  }

  /**
   * Appends a random batch, as a raft member would: new entries or such that replace uncommitted
   * ones, and maybe a state.
   */
  append(wal: Wal): void {
    const batch: Change[] = [];
    const replaces = this.last > this.commit && this.random.below(5) === 0;
    if (replaces) this.term++;
    const first = replaces
      ? this.commit + 1 + this.random.below(this.last - this.commit)
      : this.last + 1;
    const count = this.random.below(6);
    const list: raftpb.Entry[] = [];
    for (let i = 0; i < count; i++) {
      const sizes = [0, 10, 300, 600, 3000, 9000];
      const made = entry(first + i, this.term, sizes[this.random.below(sizes.length)]);
      // Data of zeros look like lost sectors.
      if (this.random.below(4) === 0) made.data.fill(0);
      list.push(made);
      batch.push({ entry: made });
    }
    if (count > 0) this.last = first + count - 1;
    let hardState: raftpb.HardState | undefined;
    if (replaces || this.random.below(2) === 0) {
      this.commit += this.random.below(this.last - this.commit + 1);
      hardState = state(this.term, this.commit);
      batch.push({ state: hardState });
    }
    // The batch is on its way before the call: a crash in the middle of it may leave any part.
    this.changes.push(...batch);
    wal.append(hardState, list);
  }

  async sync(wal: Wal): Promise<void> {
    const count = this.changes.length;
    await wal.sync();
    this.durable = Math.max(this.durable, count);
  }

  async snapshot(wal: Wal): Promise<void> {
    const index = this.commit;
    if (index <= this.released) return;
    await this.sync(wal);
    const made = mark(index, this.model(this.changes.length).entries[index - 1].term);
    this.changes.push({ mark: made });
    const count = this.changes.length;
    await wal.saveSnapshot(made);
    this.durable = Math.max(this.durable, count);
    if (this.random.below(2) === 0) {
      wal.release(index);
      this.released = index;
    }
  }

  model(count: number): Model {
    const model = new Model();
    for (const change of this.changes.slice(0, count)) model.apply(change);
    return model;
  }

  /** Works until a crash that comes after `steps` operations of the disk. */
  async work(wal: Wal, steps: number): Promise<void> {
    let left = steps;
    let hasCrashed = false;
    const crash = new Error("crash");
    this.disk.fault = () => {
      if (left-- <= 0) hasCrashed = true;
      if (hasCrashed) throw crash;
      return undefined;
    };
    const background: Promise<void>[] = [];
    const run = (work: Promise<void>) => {
      background.push(
        work.catch((error: unknown) => {
          if (error !== crash && !(error instanceof WalError)) throw error;
        }),
      );
    };
    let snapshots = Promise.resolve();
    while (!hasCrashed) {
      try {
        this.append(wal);
        const choice = this.random.below(10);
        if (choice < 6) run(this.sync(wal));
        else if (choice === 6) {
          // One at a time, as a member does.
          snapshots = snapshots.then(() => this.snapshot(wal));
          run(snapshots);
        } else if (choice === 7 && !wal.isSyncing) {
          wal.syncNow();
          this.durable = this.changes.length;
        }
      } catch (error) {
        if (!hasCrashed) throw error;
      }
      await this.clock.advanceAsync(this.random.below(30));
    }
    this.disk.fault = undefined;
    // The machine stops, or only the process: then nothing is lost, but what was not synced may be
    // lost the next time.
    if (this.random.below(3) === 0) this.disk.kill(this.random);
    else this.disk.crash(this.random);
    await this.clock.advanceAsync(1000);
    // What waits for a sync of the dead process waits for ever; what failed has failed for a good
    // reason.
    await Promise.race([Promise.all(background), this.clock.settle()]);
  }

  /** Opens the log after a crash and finds out which part of the history it holds. */
  reopen(): Wal {
    const marks = validSnapshotMarks(this.disk, this.dir);
    const from = marks[marks.length - 1];
    assert.ok(from.index >= this.released, "the mark that segments were released for is there");
    const opened = Wal.open(this.disk, this.dir, "newest", this.options);
    assert.deepEqual(opened.from, from);
    const found = new Model();
    found.entries = opened.entries;
    found.hardState = opened.hardState;
    const content = found.from(0);
    let match: Model | undefined;
    for (let count = this.durable; count <= this.changes.length && !match; count++) {
      const model = this.model(count);
      if (model.from(from.index) !== content) continue;
      match = model;
      this.changes.length = count;
    }
    assert.ok(
      match,
      `what was read is no prefix of the history that holds all of its ${this.durable} durable changes`,
    );
    this.durable = this.changes.length;
    this.last = match.entries.length;
    this.commit = match.hardState?.commit ?? 0;
    this.term = Math.max(this.term, match.hardState?.term ?? 1);
    return opened.wal;
  }
}

describe("crashes", () => {
  it("lose nothing that was synced, however often they come", async () => {
    let crashes = 0;
    let replayed = 0;
    for (let seed = 1; seed <= 150; seed++) {
      const life = new Life(seed);
      try {
        let wal = Wal.create(life.disk, life.dir, new Uint8Array([1, 2, 3]), life.options);
        for (let round = 0; round < 4; round++) {
          await life.work(wal, life.random.below(120));
          crashes++;
          wal = life.reopen();
          replayed += life.changes.length;
        }
      } catch (error) {
        throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error });
      }
    }
    assert.ok(crashes === 600 && replayed > 5000, `${replayed} changes replayed`);
  });

  it("leave no log or a whole one when they come during its creation", () => {
    const outcomes = new Set<string>();
    for (let seed = 1; seed <= 200; seed++) {
      const life = new Life(seed);
      let steps = seed % 40;
      life.disk.fault = () => {
        if (steps-- <= 0) throw new Error("crash");
        return undefined;
      };
      let isMade = false;
      try {
        Wal.create(life.disk, life.dir, new Uint8Array([1, 2, 3]), life.options);
        isMade = true;
      } catch (error) {
        assert.equal((error as Error).message, "crash");
      }
      life.disk.fault = undefined;
      life.disk.crash(life.random);
      if (Wal.exists(life.disk, life.dir)) {
        const opened = Wal.open(life.disk, life.dir, START, life.options);
        assert.deepEqual([...opened.metadata], [1, 2, 3]);
        outcomes.add(isMade ? "made" : "whole");
      } else {
        assert.ok(!isMade, "a log that was made is there");
        Wal.create(life.disk, life.dir, new Uint8Array([1, 2, 3]), life.options);
        outcomes.add("none");
      }
    }
    assert.deepEqual([...outcomes].sort(), ["made", "none", "whole"]);
  });

  it("during the repair of a torn tail leave a tail that can be repaired", async () => {
    for (let seed = 1; seed <= 100; seed++) {
      const life = new Life(seed);
      const wal = Wal.create(life.disk, life.dir, new Uint8Array([1]), {
        clock: life.clock,
        segmentBytes: 1 << 16,
      });
      wal.append(state(1, 0), [entry(1)]);
      const synced = wal.sync();
      await life.clock.advanceAsync(20);
      await synced;
      wal.append(undefined, [entry(2, 1, 3000), entry(3, 1, 700), entry(4, 1, 2000)]);
      life.disk.crash(life.random);
      for (let round = 0; round < 5; round++) {
        let steps = life.random.below(20);
        life.disk.fault = ({ kind }) => {
          if (kind !== "read" && steps-- <= 0) throw new Error("crash");
          return undefined;
        };
        try {
          Wal.open(life.disk, life.dir, START, life.options);
        } catch (error) {
          assert.equal((error as Error).message, "crash", `seed ${seed}`);
        }
        life.disk.fault = undefined;
        life.disk.crash(life.random);
      }
      const { entries } = Wal.open(life.disk, life.dir, START, life.options);
      const all = [entry(1), entry(2, 1, 3000), entry(3, 1, 700), entry(4, 1, 2000)];
      assert.ok(entries.length >= 1);
      assert.deepEqual(plain(entries), plain(all.slice(0, entries.length)));
    }
  });
});
