/**
 * What a cluster's keys went through, the obvious way: a map, and a list of all changes, from the
 * entries as the first member applies them. It knows the requests of the tests that use it: puts,
 * deletions, transactions without comparisons, leases.
 */
import assert from "node:assert/strict";
import {
  DeleteRangeRequest,
  fromLatin1,
  InternalRaftRequest,
  LeaseGrantRequest,
  LeaseRevokeRequest,
  PutRequest,
  type raftpb,
  TxnRequest,
  toLatin1,
} from "@quorate/proto";
import { inRange, isSteps, keyRange, type Steps, Store } from "@quorate/store";

export interface ModelEvent {
  readonly revision: number;
  readonly key: string;
  readonly deleted: boolean;
  /** As `eventText` of watching.ts writes it, without what was before. */
  readonly text: string;
  readonly previous: string | undefined;
}

export class KeyModel {
  /** In order of revisions. */
  readonly events: ModelEvent[] = [];
  revision = 1;
  readonly #values = new Map<string, { value: string; lease: bigint }>();
  readonly #leases = new Set<bigint>();
  /** Applied entries by index, and the revision after each. */
  readonly #applied = new Map<number, { data: Uint8Array; revision: number }>();

  /**
   * Feeds the model with what any store in this process applies, until `run` is over. All stores
   * must agree.
   */
  async observe(run: () => Promise<void>): Promise<void> {
    const { begin } = Store.prototype;
    const take = (store: Store, entry: raftpb.Entry): void => {
      let known = this.#applied.get(entry.index);
      if (known === undefined) {
        this.#apply(entry.data);
        known = { data: new Uint8Array(entry.data), revision: this.revision };
        this.#applied.set(entry.index, known);
      }
      assert.deepEqual(new Uint8Array(entry.data), known.data, `one entry at index ${entry.index}`);
      assert.equal(
        store.mvcc.currentRevision,
        known.revision,
        `the revision after entry ${entry.index}`,
      );
    };
    Store.prototype.begin = function (this: Store, entry, isAwaited) {
      const outcome = begin.call(this, entry, isAwaited);
      if (isSteps(outcome)) return whenDone(outcome, () => take(this, entry));
      take(this, entry);
      return outcome;
    };
    try {
      await run();
    } finally {
      Store.prototype.begin = begin;
    }
  }

  #apply(data: Uint8Array): void {
    if (data.length === 0) return;
    const request = InternalRaftRequest.decode(data);
    const before = this.events.length;
    if (request.put !== undefined) this.#put(PutRequest.decode(request.put));
    else if (request.deleteRange !== undefined)
      this.#deleteRange(DeleteRangeRequest.decode(request.deleteRange));
    else if (request.txn !== undefined) {
      for (const op of TxnRequest.decode(request.txn).success) {
        if (op.request?.case === "requestPut") this.#put(op.request.value);
        else if (op.request?.case === "requestDeleteRange") this.#deleteRange(op.request.value);
      }
    } else if (request.leaseGrant !== undefined)
      this.#leases.add(LeaseGrantRequest.decode(request.leaseGrant).ID);
    else if (request.leaseRevoke !== undefined)
      this.#revoke(LeaseRevokeRequest.decode(request.leaseRevoke).ID);
    if (this.events.length > before) this.revision++;
  }

  #put({
    key: keyBytes,
    value: valueBytes,
    lease,
  }: Pick<PutRequest, "key" | "value" | "lease">): void {
    if (lease !== 0n && !this.#leases.has(lease)) return;
    const [key, value] = [toLatin1(keyBytes), toLatin1(valueBytes)];
    const revision = this.revision + 1;
    const previous = this.#values.get(key)?.value;
    this.events.push({
      revision,
      key,
      deleted: false,
      text: `put ${key}=${value}@${revision}`,
      previous,
    });
    this.#values.set(key, { value, lease });
  }

  #delete(key: string): void {
    const revision = this.revision + 1;
    const previous = this.#values.get(key)!.value;
    this.events.push({ revision, key, deleted: true, text: `delete ${key}@${revision}`, previous });
    this.#values.delete(key);
  }

  #deleteRange({ key, rangeEnd }: Pick<DeleteRangeRequest, "key" | "rangeEnd">): void {
    const range = keyRange(key, rangeEnd);
    for (const one of [...this.#values.keys()].sort()) if (inRange(range, one)) this.#delete(one);
  }

  #revoke(lease: bigint): void {
    this.#leases.delete(lease);
    for (const key of [...this.#values.keys()].sort())
      if (this.#values.get(key)!.lease === lease) this.#delete(key);
  }
}

/** The same steps, and then a call. */
function* whenDone<T>(steps: Steps<T>, done: () => void): Steps<T> {
  const result = yield* steps;
  done();
  return result;
}

/** What a watch is about. */
export interface Scope {
  readonly from: string;
  readonly to: string;
  readonly noPut: boolean;
  readonly noDelete: boolean;
}

/** True if a watch of this scope gets the event. */
export function concerns(scope: Scope, event: ModelEvent): boolean {
  if (event.deleted ? scope.noDelete : scope.noPut) return false;
  return inRange(keyRange(fromLatin1(scope.from), fromLatin1(scope.to)), event.key);
}
