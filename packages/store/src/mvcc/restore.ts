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
      const index = revision.tombstone
        ? restoreDelete(state, key, revision, scheduledCompact)
        : restorePut(state, key, revision, kv);
      if (typeof index === "string") throw problem(index);
      index.sizeBytes = state.liveBytes.added(bytes, value);
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
  /** A record so far has a lease: most stores have none. */
  #isUsed = false;

  constructor(leases: LeaseBook) {
    this.#leases = leases;
  }

  /** @param lease of the key's next record, 0n for none */
  set(key: string, lease: bigint): void {
    if (lease !== 0n) this.#isUsed = true;
    if (!this.#isUsed) return;
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

/** Adds a put. Returns its key's history, or the problem with the record. */
function restorePut(
  state: MvccState,
  key: string,
  { main, sub }: Revision,
  kv: KeyValue,
): KeyIndex | string {
  const { createRevision, version, modRevision } = kv;
  if (modRevision !== main) return `the record says mod revision ${modRevision}`;
  const leased = kv.lease !== 0n;
  const known = state.index.get(key);
  if (known === undefined) {
    // The first record that is left of a key may be a later one of its generation: compaction
    // dropped those before it.
    if (version < 1 || createRevision < 1 || createRevision > main)
      return `the record says version ${version}, created at ${createRevision}`;
    const index = KeyIndex.put(main, sub, leased, createRevision, version);
    state.addKey(key, index);
    state.keyCount++;
    return index;
  }
  if (!known.exists) state.keyCount++;
  known.put(main, sub, leased);
  if (createRevision === known.created && version === known.version) return known;
  return `the record says version ${version}, created at ${createRevision}; it must be ${known.version} and ${known.created}`;
}

/** Adds a deletion. Returns its key's history, or the problem with the record. */
function restoreDelete(
  state: MvccState,
  key: string,
  { main, sub }: Revision,
  scheduledCompact: number,
): KeyIndex | string {
  const known = state.index.get(key);
  if (known === undefined) {
    if (main > scheduledCompact) return "a key is deleted that did not exist";
    const index = KeyIndex.tombstone(main, sub);
    state.addKey(key, index);
    return index;
  }
  if (!known.exists) return `a key is deleted again that was deleted at ${known.main}`;
  known.delete(main, sub);
  state.keyCount--;
  return known;
}
