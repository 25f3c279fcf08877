/**
 * The leases of the replicated state: their times to live and the keys attached to them. Expiry is
 * not decided here: the leader counts the time and proposes the revocation (etcd:
 * server/lease/lessor.go).
 *
 *     bucket lease: lease id, 8 bytes big-endian -> leasepb.Lease {ID, TTL, RemainingTTL}
 *
 * The keys of a lease have no records of their own: at open they are collected from the keys' last
 * values.
 */
import { errorOf, fromLatin1, leasepb, toHex, WireError } from "@quorate/proto";
import { type Backend, type BackendSnapshot, Bucket } from "../backend/backend.ts";
import { StoreDamageError } from "../backend/errors.ts";
import { violated } from "../backend/invariants.ts";
import { LiveBytes } from "../backend/meta.ts";
import { STEP_KEYS, type Steps } from "../backend/steps.ts";
import { KeyTree, type LeaseBook, type Mvcc, type WriteTxn } from "../mvcc/index.ts";
import { LeaseCoverages, MAX_FORGOTTEN_KEYS } from "./lease-coverage.ts";

/** The longest time to live, in seconds (etcd: MaxLeaseTTL). */
export const MAX_LEASE_TTL_SECONDS = 9_000_000_000;

/** How often the keys of a lease that changes meanwhile are copied again. */
const MAX_COPIES = 4;

/** One lease. */
export interface Lease {
  readonly id: bigint;
  /** As granted. */
  readonly ttlSeconds: number;
  /**
   * The remaining time at the last checkpoint since the last renewal; 0: no checkpoint, the whole
   * time remains.
   */
  readonly remainingSeconds: number;
  /** Number of attached keys. */
  readonly keyCount: number;
}

/** Notified of changes to leases, right after them. */
export interface LeaseObserver {
  granted(lease: Lease): void;
  revoked(id: bigint): void;
  checkpointed(lease: Lease): void;
}

class LeaseRecord implements Lease {
  readonly id: bigint;
  readonly ttlSeconds: number;
  remainingSeconds: number;
  /** Most leases have one key or none. */
  keys: Set<string> | undefined = undefined;
  /** Which permissions cover the keys, once this was asked. */
  coverages: LeaseCoverages | undefined = undefined;
  /** Counts changes of `keys`. */
  changes = 0;
  /** Size of its record. */
  sizeBytes = 0;
  hasEnded = false;

  constructor(id: bigint, ttlSeconds: number, remainingSeconds: number) {
    this.id = id;
    this.ttlSeconds = ttlSeconds;
    this.remainingSeconds = remainingSeconds;
  }

  get keyCount(): number {
    return this.keys?.size ?? 0;
  }
}

/** The key of a lease's record. */
export function leaseKey(id: bigint): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigInt64(0, id);
  return bytes;
}

export class Lessor implements LeaseBook {
  observer: LeaseObserver | undefined;
  readonly #backend: Backend;
  readonly #path: string;
  readonly #liveBytes: LiveBytes;
  /** Maximum keys of a lease in one step. */
  readonly stepKeys: number;
  readonly #leases = new Map<bigint, LeaseRecord>();
  /**
   * The lease of each attached key; and one that has ended, until the deletion of the key is
   * written.
   */
  readonly #leaseOf = new Map<string, LeaseRecord>();
  /** While an entry is applied in several turns: what it has changed. */
  #unfinished: UnfinishedChanges | undefined;

  /** StoreOptions.minLeaseTtlSeconds, where etcd's rules hold. */
  minTtlSeconds = 0;

  private constructor(backend: Backend, path: string, liveBytes: LiveBytes, stepKeys: number) {
    this.#backend = backend;
    this.#path = path;
    this.#liveBytes = liveBytes;
    this.stepKeys = stepKeys;
  }

  /**
   * Reads the leases as of a snapshot; their keys are attached while the keys are read. @param path
   * the store's directory, for error texts @param liveBytes notified of the size of each record,
   * now and later @param stepKeys maximum keys of a lease in one step
   */
  static async open(
    backend: Backend,
    snapshot: BackendSnapshot,
    path: string,
    liveBytes: LiveBytes = new LiveBytes(),
    stepKeys: number = STEP_KEYS,
  ): Promise<Lessor> {
    const lessor = new Lessor(backend, path, liveBytes, stepKeys);
    for await (const slice of snapshot.scan(Bucket.lease)) {
      for (const [key, value] of slice) {
        const { ID, TTL, RemainingTTL } = readRecord(path, key, value);
        const lease = new LeaseRecord(ID, TTL, RemainingTTL);
        lease.sizeBytes = liveBytes.added(key, value);
        lessor.#leases.set(ID, lease);
      }
    }
    return lessor;
  }

  /** Number of leases. */
  get count(): number {
    return this.#leases.size;
  }

  /**
   * Keys whose lease is in memory: all that are attached, and those of leases that have ended until
   * their deletion is written.
   */
  get knownKeys(): number {
    return this.#leaseOf.size;
  }

  get(id: bigint): Lease | undefined {
    return this.#leases.get(id);
  }

  /** All leases, in any order. */
  all(): IterableIterator<Lease> {
    return this.#leases.values();
  }

  /**
   * The keys attached to a lease, in any order; none for a lease that does not exist. Excludes the
   * changes of an unfinished entry.
   */
  keysOf(id: bigint): string[] {
    return [...this.#keys(id)];
  }

  /** At least the number of keys that `keysOf` returns. */
  mostKeysOf(id: bigint): number {
    const now = this.#leases.get(id)?.keyCount ?? 0;
    return now + (this.#unfinished?.attachedBefore(id).size ?? 0);
  }

  *#keys(id: bigint): Generator<string> {
    const unfinished = this.#unfinished;
    for (const key of this.#leases.get(id)?.keys ?? [])
      if (unfinished?.has(key) !== true) yield key;
    if (unfinished !== undefined) yield* unfinished.attachedBefore(id);
  }

  /** Like keysOf, in steps: the keys as they are when the last step ends. */
  *keysInSteps(id: bigint): Steps<string[]> {
    for (let attempt = 0; attempt < MAX_COPIES; attempt++) {
      const [unfinished, lease] = [this.#unfinished, this.#leases.get(id)];
      const before = lease?.changes;
      const isSame = (): boolean =>
        this.#unfinished === unfinished &&
        lease === this.#leases.get(id) &&
        lease?.changes === before;
      const keys: string[] = [];
      for (const key of this.#keys(id)) {
        if (keys.push(key) % this.stepKeys !== 0) continue;
        yield;
        if (!isSame()) break;
      }
      if (isSame()) return keys;
    }
    // It changes all the time.
    return this.keysOf(id);
  }

  /**
   * Whether permissions cover every key of a lease, in steps; it is remembered. While an entry is
   * unfinished, before it and with what it has changed so far.
   * @param permissions what does not change; `covers` asks it
   * @param kind what is asked of the permissions
   */
  *coversKeysOf(
    id: bigint,
    permissions: object,
    kind: string,
    covers: (key: string) => boolean,
  ): Steps<boolean> {
    const lease = this.#leases.get(id);
    if (lease?.keys !== undefined) {
      if (lease.keys.size > Math.min(MAX_FORGOTTEN_KEYS, this.stepKeys))
        lease.coverages ??= new LeaseCoverages(lease.keys, this.stepKeys);
      const coverage = lease.coverages?.by(permissions, kind, covers);
      const isWhole =
        coverage === undefined ? every(lease.keys, covers, this.stepKeys) : coverage.isWhole();
      if (!(yield* isWhole)) return false;
    }
    const unfinished = this.#unfinished;
    return (
      unfinished === undefined ||
      (yield* every(unfinished.attachedBefore(id), covers, this.stepKeys))
    );
  }

  exists(id: bigint): boolean {
    return this.#leases.has(id);
  }

  leaseOf(key: string): bigint {
    const lease = this.#leaseOf.get(key);
    return lease === undefined || lease.hasEnded ? 0n : lease.id;
  }

  attach(id: bigint, key: string): void {
    const lease = this.#leases.get(id);
    if (lease === undefined) {
      throw new StoreDamageError(
        this.#path,
        `bucket key, key ${toHex(fromLatin1(key))}`,
        `its lease ${id} does not exist`,
      );
    }
    this.#unfinished?.note(key, 0n);
    lease.keys ??= new Set();
    lease.keys.add(key);
    lease.coverages?.attached(key);
    lease.changes++;
    this.#leaseOf.set(key, lease);
  }

  detach(id: bigint, key: string): void {
    const lease = this.#leases.get(id);
    if (lease?.keys?.delete(key) !== true) violated("STORE-7", `lease ${id}`);
    lease.coverages?.detached(key);
    lease.changes++;
    this.#unfinished?.note(key, id);
    this.#leaseOf.delete(key);
  }

  beginLong(): void {
    this.#unfinished = new UnfinishedChanges();
  }

  endLong(): void {
    this.#unfinished = undefined;
  }

  /**
   * Creates a lease. The proposer has already raised the time to the minimum, if it is no member of
   * etcd. @throws EtcdError LeaseNotFound for the id 0, LeaseTTLTooLarge, LeaseExist
   */
  grant(id: bigint, ttlSeconds: number): Lease {
    if (id === 0n) throw errorOf("LeaseNotFound");
    if (ttlSeconds > MAX_LEASE_TTL_SECONDS) throw errorOf("LeaseTTLTooLarge");
    if (this.#leases.has(id)) throw errorOf("LeaseExist");
    const lease = new LeaseRecord(id, Math.max(ttlSeconds, this.minTtlSeconds), 0);
    this.#leases.set(id, lease);
    this.#write(lease);
    this.observer?.granted(lease);
    return lease;
  }

  /**
   * Ends a lease and deletes its keys, in key order, as one transaction. @throws EtcdError
   * LeaseNotFound
   */
  revoke(id: bigint, mvcc: Mvcc): void {
    const lease = this.#leases.get(id);
    if (lease === undefined) throw errorOf("LeaseNotFound");
    const txn = mvcc.begin(this);
    for (const key of [...(lease.keys ?? [])].sort()) txn.delete(key);
    this.#end(lease, txn);
  }

  /** Like `revoke`, in steps, for a lease with many keys. */
  *revokeInSteps(id: bigint, mvcc: Mvcc): Steps<void> {
    const lease = this.#leases.get(id);
    if (lease === undefined) throw errorOf("LeaseNotFound");
    // A tree sorts them incrementally; sorting an array of them would be one long step.
    const keys = new KeyTree<true>();
    let count = 0;
    for (const key of lease.keys ?? []) {
      keys.set(key, true);
      if (++count % mvcc.stepKeys === 0) yield;
    }
    const txn = mvcc.beginLong(this);
    yield* txn.deleteOfLease(keys, (key) => {
      if (this.#leaseOf.get(key) === lease) this.#leaseOf.delete(key);
    });
    this.#end(lease, txn);
  }

  #end(lease: LeaseRecord, txn: WriteTxn): void {
    const { id, sizeBytes } = lease;
    lease.hasEnded = true;
    this.#leases.delete(id);
    this.#backend.delete(Bucket.lease, leaseKey(id));
    this.#liveBytes.removed(sizeBytes);
    txn.commit();
    this.observer?.revoked(id);
  }

  /**
   * Records the remaining time of a lease, 0 for all of it. Does nothing for a lease that does not
   * exist: it was revoked meanwhile.
   */
  checkpoint(id: bigint, remainingSeconds: number): void {
    const lease = this.#leases.get(id);
    if (lease === undefined) return;
    lease.remainingSeconds = remainingSeconds;
    this.#write(lease);
    this.observer?.checkpointed(lease);
  }

  #write(lease: LeaseRecord): void {
    const record = leasepb.Lease.encode({
      ID: lease.id,
      TTL: lease.ttlSeconds,
      RemainingTTL: lease.remainingSeconds,
    });
    const key = leaseKey(lease.id);
    this.#backend.put(Bucket.lease, key, record);
    if (lease.sizeBytes > 0) this.#liveBytes.removed(lease.sizeBytes);
    lease.sizeBytes = this.#liveBytes.added(key, record);
  }
}

function* every(
  keys: Iterable<string>,
  covers: (key: string) => boolean,
  stepKeys: number,
): Steps<boolean> {
  let count = 0;
  for (const key of keys) {
    if (!covers(key)) return false;
    if (++count % stepKeys === 0) yield;
  }
  return true;
}

function readRecord(path: string, key: Uint8Array, value: Uint8Array): leasepb.Lease {
  const problem = (text: string) =>
    new StoreDamageError(path, `bucket lease, key ${toHex(key)}`, text);
  let record: leasepb.Lease;
  try {
    record = leasepb.Lease.decode(value);
  } catch (error) {
    if (error instanceof WireError) throw problem(`the record does not decode: ${error.message}`);
    throw error;
  }
  if (record.ID === 0n || toHex(leaseKey(record.ID)) !== toHex(key))
    throw problem(`the record says lease ${record.ID}`);
  return record;
}

/** What an entry that is applied in several turns has changed of the keys of leases so far. */
class UnfinishedChanges {
  /** Keys that it has changed. */
  readonly #changed = new Set<string>();
  /** Those of them that were attached before it, by lease. */
  readonly #attachedBefore = new Map<bigint, Set<string>>();

  /** Notes the lease of a key before its first change; 0n for none. */
  note(key: string, lease: bigint): void {
    if (this.#changed.has(key)) return;
    this.#changed.add(key);
    if (lease === 0n) return;
    const keys = this.#attachedBefore.get(lease);
    if (keys === undefined) this.#attachedBefore.set(lease, new Set([key]));
    else keys.add(key);
  }

  has(key: string): boolean {
    return this.#changed.has(key);
  }

  /** Keys of a lease before the entry that it has changed; more may follow. */
  attachedBefore(lease: bigint): ReadonlySet<string> {
    return this.#attachedBefore.get(lease) ?? NO_KEYS;
  }
}

const NO_KEYS: ReadonlySet<string> = new Set();
