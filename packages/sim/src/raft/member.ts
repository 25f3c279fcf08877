/**
 * One member of the world: a machine, its disk, its state machine and its driver. The driver does
 * each part of its work apart, whenever the schedule says so: several Readys are out at once, disk
 * and state machine lag behind.
 */
import { defined, raftpb } from "@quorate/proto";
import { confChangeOf, Raft, type RaftConfig, type Ready } from "@quorate/raft";
import { type DiskRecord, emptyConfState, type MachineState, SimDisk } from "@quorate/raft/testing";
import type { RaftSafety } from "./safety.ts";

/** What a member's driver needs of the world. */
export interface Surroundings {
  readonly safety: RaftSafety;
  send(from: SimMember, messages: readonly raftpb.Message[]): void;
}

interface PendingWrite {
  readonly number: number;
  readonly mustSync: boolean;
  readonly messages: readonly raftpb.Message[];
}

type ApplyWork =
  | { readonly kind: "entries"; readonly entries: readonly raftpb.Entry[] }
  | { readonly kind: "snapshot"; readonly ready: Ready };

export class SimMember {
  readonly id: bigint;
  readonly disk = new SimDisk();
  readonly #config: RaftConfig;
  readonly #world: Surroundings;
  #raft: Raft | undefined;
  #writes: PendingWrite[] = [];
  #persisted = 0;
  #applyQueue: ApplyWork[] = [];
  state: MachineState = { applied: 0, hash: 0, confState: emptyConfState };
  /** Contexts of confirmed reads, for the phase that demands progress. */
  readonly confirmed = new Set<string>();

  constructor(config: RaftConfig, world: Surroundings) {
    this.id = config.id;
    this.#config = config;
    this.#world = world;
  }

  get running(): boolean {
    return this.#raft !== undefined;
  }

  get raft(): Raft {
    if (this.#raft === undefined) throw new Error(`${this.id} does not run`);
    return this.#raft;
  }

  start(): void {
    const initial = this.disk.read();
    this.state = this.disk.backend;
    this.#raft = new Raft(this.#config, initial);
    this.#world.safety.forget(this.id);
    this.#writes = [];
    this.#persisted = 0;
    this.#applyQueue = [];
  }

  /**
   * Stops without warning; the first `survivors` records of what was not synced reach the disk all
   * the same.
   */
  crash(survivors: number): void {
    this.disk.crash(survivors);
    this.#raft = undefined;
    this.#world.safety.forget(this.id);
  }

  get hasWrites(): boolean {
    return this.#writes.length > 0;
  }

  get pendingWrites(): number {
    return this.#writes.length;
  }

  get hasApplies(): boolean {
    const head = this.#applyQueue[0];
    return head !== undefined && (head.kind === "entries" || head.ready.number <= this.#persisted);
  }

  /** Takes one Ready: sends, queues the write and the applying. */
  takeReady(): void {
    const { safety } = this.#world;
    const ready = this.raft.ready();
    const records: DiskRecord[] = [];
    if (ready.snapshot !== undefined) {
      const { metadata } = ready.snapshot;
      const state = {
        applied: metadata.index,
        hash: safety.hashAt(metadata.index),
        confState: metadata.confState,
      };
      records.push({ kind: "snapshot", metadata, state });
    }
    for (const entry of ready.entries) records.push({ kind: "entry", entry });
    if (ready.hardState !== undefined) records.push({ kind: "hard", hardState: ready.hardState });
    safety.written(this.id, ready.entries);
    safety.handedOut(this.id, ready.committed, (index) => this.disk.termOf(index));
    this.disk.write(ready.number, records);
    this.#writes.push({
      number: ready.number,
      mustSync: ready.mustSync,
      messages: ready.messagesAfterSync,
    });
    if (ready.snapshot !== undefined) this.#applyQueue.push({ kind: "snapshot", ready });
    if (ready.committed.length > 0)
      this.#applyQueue.push({ kind: "entries", entries: ready.committed });
    for (const { context, index } of ready.readStates) {
      const text = Buffer.from(context).toString("latin1");
      safety.answered(text, index);
      this.confirmed.add(text);
    }
    this.#world.send(this, ready.messages);
  }

  /** Syncs the first `count` writes and says so, once for all of them or one by one. */
  sync(count: number, oneByOne: boolean): void {
    const done = this.#writes.splice(0, count);
    if (done.length === 0) return;
    this.disk.sync(done[done.length - 1].number);
    this.#report(done, oneByOne);
  }

  /**
   * A write that needs no sync counts as soon as it is the next one, though a crash may still lose
   * it.
   */
  skipSync(): boolean {
    if (this.#writes.length === 0 || this.#writes[0].mustSync) return false;
    this.#report(this.#writes.splice(0, 1), true);
    return true;
  }

  #report(done: readonly PendingWrite[], oneByOne: boolean): void {
    for (const [i, write] of done.entries()) {
      if (oneByOne || i === done.length - 1) {
        this.raft.persisted(write.number);
        this.#persisted = write.number;
      }
    }
    for (const write of done) this.#world.send(this, write.messages);
  }

  /** Applies the next batch, or the first `count` entries of it. */
  apply(count: number): void {
    const { safety } = this.#world;
    const head = this.#applyQueue[0];
    if (head.kind === "snapshot") {
      const { metadata } = defined(head.ready.snapshot, "the snapshot");
      this.state = {
        applied: metadata.index,
        hash: safety.hashAt(metadata.index),
        confState: metadata.confState,
      };
      this.#applyQueue.shift();
      this.raft.applied(metadata.index);
      return;
    }
    const entries = head.entries.slice(0, count);
    const rest = head.entries.slice(count);
    if (rest.length === 0) this.#applyQueue.shift();
    else this.#applyQueue[0] = { kind: "entries", entries: rest };
    let { hash, confState } = this.state;
    for (const entry of entries) {
      hash = safety.apply(this.id, entry, hash);
      const change = confChangeOf(entry);
      if (change !== undefined) confState = this.raft.applyConfChange(change);
      this.state = { applied: entry.index, hash, confState };
    }
    this.raft.applied(this.state.applied);
  }

  /** The state machine saves itself. */
  saveBackend(): void {
    this.disk.saveBackend(this.state);
  }

  /** Drops all but `keep` of the entries that the saved state machine covers. */
  compact(keep: number): void {
    const { applied, confState } = this.disk.backend;
    const index = Math.min(applied, this.raft.appliedIndex) - keep;
    if (index < this.raft.firstIndex) return;
    const term = defined(this.raft.termOf(index), "the term of the mark");
    // The configuration of the mark only goes out with snapshots, and those are of the state
    // machine's current state here.
    this.raft.compact(index, confState);
    const number =
      this.#writes.length === 0 ? this.#persisted : this.#writes[this.#writes.length - 1].number;
    this.disk.write(number, [{ kind: "mark", metadata: { index, term, confState } }]);
  }

  /** The snapshot that is sent in place of a MsgSnap's mark: the state as it is now. */
  currentSnapshot(): raftpb.Snapshot {
    const { applied, confState } = this.state;
    const term = defined(this.raft.termOf(applied), "the term of what is applied");
    return raftpb.Snapshot.create({ metadata: { index: applied, term, confState } });
  }
}
