/** A keeper of leases on a clock by hand, beside a store whose log is a queue. */
import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { SLICE_MS, silentLogger, Turns } from "@quorate/host";
import { ManualClock, MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import {
  InternalRaftRequest,
  LeaseCheckpointRequest,
  LeaseGrantRequest,
  LeaseRevokeRequest,
  raftpb,
} from "@quorate/proto";
import { type Applied, type AppliedEntry, type RequestKind, Store } from "@quorate/store";
import { LEASE_BOUNDS, type LeaseBounds } from "../../src/lease/bounds.ts";
import { type KeeperDeps, LeaseKeeper } from "../../src/lease/keeper.ts";
import { StoreRef } from "../../src/reads/store-ref.ts";

/** A tenth of what members have, or less, so that few leases reach them. */
export const BOUNDS: LeaseBounds = {
  ...LEASE_BOUNDS,
  maxRevokesPerSecond: 100,
  maxHurriedRevokesPerSecond: 1000,
  maxInflightRevokes: 500,
  maxInflightCheckpoints: 3,
  maxCheckpointLeases: 50,
  maxRevokesPerTurn: 32,
  maxLooksPerTurn: 256,
};

/** A clock on which each step of work takes a whole slice: the next one comes a turn later. */
export class SlowStepsClock extends ManualClock {
  #looks = 0;
  override readonly turns: Turns = new Turns({
    monotonicMs: () => this.monotonicMs() + this.#looks++ * SLICE_MS,
    endOfTurn: (task) => this.endOfTurn(task),
  });
}

export interface BenchOptions {
  readonly checkpointIntervalMs?: number;
  readonly clock?: ManualClock;
  readonly bounds?: Partial<LeaseBounds>;
  readonly beforeRevoke?: KeeperDeps["beforeRevoke"];
}

/** A keeper beside a store whose log is a queue: proposals are applied when the bench says so. */
export class Bench {
  readonly clock: ManualClock;
  readonly store: Store;
  readonly keeper: LeaseKeeper;
  readonly counters = {
    renewed: { value: 0, add: () => this.counters.renewed.value++ },
    expired: { value: 0, add: () => this.counters.expired.value++ },
  };
  /** Requests that wait to be applied. */
  readonly queue: {
    data: Uint8Array;
    resolve: (applied: AppliedEntry) => void;
    reject: (error: Error) => void;
  }[] = [];
  /** When each lease was revoked. */
  readonly revokedMs = new Map<bigint, number>();
  confirm: () => Promise<void> = () => Promise.resolve();
  holds = false;
  /** The most requests that came in one turn of the event loop. */
  mostProposed = 0;
  #proposed = 0;
  #index = 0;

  constructor(store: Store, { checkpointIntervalMs, clock, bounds, beforeRevoke }: BenchOptions) {
    this.store = store;
    this.clock = clock ?? new ManualClock();
    this.keeper = new LeaseKeeper(
      {
        minTtlSeconds: 2,
        extendMs: 1000,
        confirmedForMs: 100,
        checkpointIntervalMs,
        bounds: { ...BOUNDS, ...bounds },
      },
      {
        clock: this.clock,
        logger: silentLogger,
        counters: this.counters,
        store: new StoreRef(store),
        reads: { wait: () => this.confirm() },
        beforeRevoke,
        proposals: {
          proposeInTerm: <K extends RequestKind>(
            _term: number,
            kind: K,
            requests: readonly Uint8Array[],
          ) => this.#propose(kind, requests) as Promise<Applied<K>>[],
        },
      },
    );
    store.lessor.observer = {
      granted: (lease) => {
        this.revokedMs.delete(lease.id);
        this.keeper.granted(lease);
      },
      checkpointed: (lease) => this.keeper.checkpointed(lease),
      revoked: (id) => {
        assert.ok(!this.revokedMs.has(id), `lease ${id} is revoked once`);
        this.revokedMs.set(id, this.clock.monotonicMs());
        this.keeper.revoked(id);
      },
    };
  }

  #propose(kind: RequestKind, requests: readonly Uint8Array[]): Promise<AppliedEntry>[] {
    assert.ok(requests.length > 0, "nothing is proposed");
    if (this.#proposed === 0) {
      this.clock.endOfTurn(() => {
        this.#proposed = 0;
      });
    }
    this.#proposed += requests.length;
    this.mostProposed = Math.max(this.mostProposed, this.#proposed);
    return requests.map((request) => {
      const { promise, resolve, reject } = Promise.withResolvers<AppliedEntry>();
      this.queue.push({ data: InternalRaftRequest.encode({ [kind]: request }), resolve, reject });
      return promise;
    });
  }

  static async open(options: BenchOptions = {}): Promise<Bench> {
    const store = await Store.open(new MemoryKeyspaceOpener(new MemoryDisk()), "/store");
    return new Bench(store, options);
  }

  apply(data: Uint8Array): AppliedEntry {
    this.#index++;
    return this.store.apply({
      index: this.#index,
      term: 1,
      type: raftpb.EntryType.EntryNormal,
      data,
    });
  }

  grant(ID: bigint, TTL: number): void {
    assert.equal(
      this.apply(InternalRaftRequest.encode({ leaseGrant: LeaseGrantRequest.encode({ ID, TTL }) }))
        .error,
      undefined,
    );
  }

  revoke(ID: bigint): void {
    this.apply(InternalRaftRequest.encode({ leaseRevoke: LeaseRevokeRequest.encode({ ID }) }));
  }

  checkpoint(ID: bigint, remaining_TTL: number): void {
    this.apply(
      InternalRaftRequest.encode({
        leaseCheckpoint: LeaseCheckpointRequest.encode({ checkpoints: [{ ID, remaining_TTL }] }),
      }),
    );
  }

  async lead(): Promise<void> {
    this.keeper.leads(1);
    await turn();
    assert.ok(this.keeper.isPrimary);
  }

  /** Moves time on in small steps. */
  async run(ms: number, stepMs = 10): Promise<void> {
    for (let i = 0; i < ms; i += stepMs) {
      this.clock.advance(stepMs);
      await turn();
      if (this.holds) continue;
      for (const { data, resolve } of this.queue.splice(0)) resolve(this.apply(data));
    }
    await turn();
  }
}
