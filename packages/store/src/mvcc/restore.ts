/**
 * Rebuilds the index from the records of the bucket key, in the order of their revisions. Records
 * that a store cannot have written are damage: a key that is not a revision, a record that does not
 * decode or does not belong to its key, a version or created revision that does not follow from the
 * records before.
 */
import { KeyValue, toHex, toLatin1, WireError } from "@quorate/proto";
import { type BackendSnapshot, Bucket } from "../backend.ts";
import { StoreDamageError } from "../errors.ts";
import { KeyIndex } from "./key-index.ts";
import type { LeaseBook } from "./lease-book.ts";
import { compareRevisions, decodeRevision, type Revision } from "./revision.ts";
import type { MvccState } from "./state.ts";

/**
 * Fills the index. Calls `onProgress` with the number of records read after each slice, and
 * notifies `leases` of each key with a lease.
 */
export async function restoreIndex(
  state: MvccState,
  snapshot: BackendSnapshot,
  scheduledCompact: number,
  leases: LeaseBook,
  onProgress?: (records: number) => void,
): Promise<void> {
  const restored = new RestoredLeases(leases);
  let records = 0;
  let lastMain = 0;
  let lastSub = 0;
  for await (const slice of snapshot.scan(Bucket.key)) {
    for (const [bytes, value] of slice) {
      const problem = (text: string): never => {
        throw new StoreDamageError(state.path, `bucket key, key ${toHex(bytes)}`, text);
      };
      const revision = decodeRevision(bytes) ?? problem("the key is not a revision");
      if (compareRevisions(revision.main, revision.sub, lastMain, lastSub) <= 0) {
        problem(`revision ${revision.main}.${revision.sub} follows ${lastMain}.${lastSub}`);
      }
      lastMain = revision.main;
      lastSub = revision.sub;
      const kv = decodeRecord(value, problem);
      const key = toLatin1(kv.key);
      const wrong = revision.tombstone
        ? restoreDelete(state, key, revision, scheduledCompact)
        : restorePut(state, key, revision, kv);
      if (wrong !== undefined) problem(wrong);
      state.index.get(key)!.sizeBytes = state.liveBytes.added(bytes, value);
      restored.set(key, kv.lease);
    }
    records += slice.length;
    onProgress?.(records);
  }
  state.currentRevision = Math.max(1, lastMain);
  restored.finish();
}

/**
 * Attaches keys to leases record by record, so that no step at the end takes long. A key's earlier
 * record may refer to a lease that has ended since; its later ones then do not, or the store is
 * damaged.
 */
class RestoredLeases {
  readonly #leases: LeaseBook;
  /** Keys whose last record so far refers to a lease that does not exist. */
  readonly #unknown = new Map<string, bigint>();

  constructor(leases: LeaseBook) {
    this.#leases = leases;
  }

  /** @param lease of the key's next record, 0n for none */
  set(key: string, lease: bigint): void {
    const leases = this.#leases;
    const before = leases.leaseOf(key);
    const isKnown = lease !== 0n && leases.exists(lease);
    if (before !== 0n && before !== lease) leases.detach(before, key);
    if (isKnown && before !== lease) leases.attach(lease, key);
    if (lease !== 0n && !isKnown) this.#unknown.set(key, lease);
    else if (this.#unknown.size > 0) this.#unknown.delete(key);
  }

  /** @throws StoreDamageError if a key refers to a lease that does not exist */
  finish(): void {
    for (const [key, lease] of this.#unknown) this.#leases.attach(lease, key);
  }
}

function decodeRecord(value: Uint8Array, problem: (text: string) => never): KeyValue {
  try {
    const kv = KeyValue.decode(value);
    if (kv.key.length === 0) problem("the record has no key");
    return kv;
  } catch (error) {
    if (error instanceof WireError) problem(`the record does not decode: ${error.message}`);
    throw error;
  }
}

/** Adds a put; returns the problem with it, if any. */
function restorePut(
  state: MvccState,
  key: string,
  { main, sub }: Revision,
  kv: KeyValue,
): string | undefined {
  if (kv.modRevision !== main) return `the record says mod revision ${kv.modRevision}`;
  const leased = kv.lease !== 0n;
  const index = state.index.get(key);
  if (index === undefined) {
    // The first remaining record of a key may be a later one of its generation: compaction dropped
    // those before it.
    if (kv.version < 1 || kv.createRevision < 1 || kv.createRevision > main) {
      return `the record says version ${kv.version}, created at ${kv.createRevision}`;
    }
    state.addKey(key, KeyIndex.put(main, sub, leased, kv.createRevision, kv.version));
    state.keyCount++;
    return undefined;
  }
  if (!index.exists) state.keyCount++;
  index.put(main, sub, leased);
  if (kv.createRevision === index.created && kv.version === index.version) return undefined;
  return `the record says version ${kv.version}, created at ${kv.createRevision}; it must be ${index.version} and ${index.created}`;
}

/** Adds a deletion; returns the problem with it, if any. */
function restoreDelete(
  state: MvccState,
  key: string,
  { main, sub }: Revision,
  scheduledCompact: number,
): string | undefined {
  const index = state.index.get(key);
  if (index === undefined) {
    if (main > scheduledCompact) return "a key is deleted that did not exist";
    state.addKey(key, KeyIndex.tombstone(main, sub));
    return undefined;
  }
  if (!index.exists) return `a key is deleted again that was deleted at ${index.main}`;
  index.delete(main, sub);
  state.keyCount--;
  return undefined;
}
