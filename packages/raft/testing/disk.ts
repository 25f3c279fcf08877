/**
 * A member's disk: a queue of written records that reach the platter in order. A sync makes a
 * prefix of whole writes durable; a crash keeps what was synced and any prefix of the rest, in the
 * middle of a write too.
 */
import type { raftpb } from "@quorate/proto";
import type { InitialState } from "../index.ts";

/**
 * The saved state of the state machine: a hash that shows whether two applied the same
 * entries.
 */
export interface MachineState {
  readonly applied: number;
  readonly hash: number;
  readonly confState: raftpb.ConfState;
}

export type DiskRecord =
  | { readonly kind: "entry"; readonly entry: raftpb.Entry }
  | { readonly kind: "hard"; readonly hardState: raftpb.HardState }
  /** Received from a leader, with its state. */
  | {
      readonly kind: "snapshot";
      readonly metadata: raftpb.SnapshotMetadata;
      readonly state: MachineState;
    }
  /** Own compaction. */
  | { readonly kind: "mark"; readonly metadata: raftpb.SnapshotMetadata };

interface Queued {
  readonly write: number;
  readonly record: DiskRecord;
}

export const emptyConfState: raftpb.ConfState = {
  voters: [],
  learners: [],
  votersOutgoing: [],
  learnersNext: [],
  autoLeave: false,
};

export class SimDisk {
  #hardState: raftpb.HardState = { term: 0, vote: 0n, commit: 0 };
  #snapshot: raftpb.SnapshotMetadata = { index: 0, term: 0, confState: emptyConfState };
  #entries: raftpb.Entry[] = [];
  #backend: MachineState = { applied: 0, hash: 0, confState: emptyConfState };
  #queue: Queued[] = [];

  /** Queues the records of one write; numbers rise. */
  write(number: number, records: readonly DiskRecord[]): void {
    for (const record of records) this.#queue.push({ write: number, record });
  }

  /** Makes the writes up to this number durable. */
  sync(number: number): void {
    const later = this.#queue.findIndex(({ write }) => write > number);
    const synced = this.#queue.splice(0, later === -1 ? this.#queue.length : later);
    for (const { record } of synced) this.#keep(record);
  }

  /** The last durable entry. */
  get lastIndex(): number {
    return this.#snapshot.index + this.#entries.length;
  }

  /** Its term, or that of any other durable entry. */
  termOf(index: number): number | undefined {
    if (index === this.#snapshot.index) return this.#snapshot.term;
    return this.#entries[index - this.#snapshot.index - 1]?.term;
  }

  get backend(): MachineState {
    return this.#backend;
  }

  /** The state machine saves itself, with its own sync. */
  saveBackend(state: MachineState): void {
    if (state.applied > this.#backend.applied) this.#backend = state;
  }

  /** The machine stops: of what was not synced the first `survivors` records were lucky. */
  crash(survivors: number): void {
    for (const { record } of this.#queue.slice(0, survivors)) this.#keep(record);
    this.#queue = [];
  }

  get unsynced(): number {
    return this.#queue.length;
  }

  /** What a driver reads back. */
  read(): InitialState {
    return {
      hardState: this.#hardState,
      snapshot: this.#snapshot,
      entries: [...this.#entries],
      applied: this.#backend.applied,
      confState: this.#backend.confState,
    };
  }

  #keep(record: DiskRecord): void {
    switch (record.kind) {
      case "entry": {
        const at = record.entry.index - this.#snapshot.index - 1;
        if (at < 0) return;
        if (at > this.#entries.length)
          throw new Error(`entry ${record.entry.index} after ${this.lastIndex}`);
        this.#entries.length = at;
        this.#entries.push(record.entry);
        return;
      }
      case "hard":
        this.#hardState = record.hardState;
        return;
      case "mark":
        this.#start(record.metadata);
        return;
      case "snapshot":
        this.#start(record.metadata);
        this.saveBackend(record.state);
        return;
    }
  }

  /**
   * The log goes on after a snapshot: with what followed the entry it ends in, or with nothing if
   * that entry is not there.
   */
  #start(metadata: raftpb.SnapshotMetadata): void {
    if (metadata.index <= this.#snapshot.index) return;
    const known = this.termOf(metadata.index) === metadata.term;
    this.#entries = known ? this.#entries.slice(metadata.index - this.#snapshot.index) : [];
    this.#snapshot = metadata;
  }
}
