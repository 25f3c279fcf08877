/**
 * Rebuilds the index from the records of the bucket key, in the order of their revisions. Records
 * that a store cannot have written are damage: a key that is not a revision, a record that does not
 * decode or does not belong to its key, a version or created revision that does not follow from the
 * records before.
 */
import { EMPTY, KeyValue, Reader, toHex, toLatin1, WireError } from "@quorate/proto";
import { type BackendSnapshot, Bucket } from "../backend/backend.ts";
import { StoreDamageError } from "../backend/errors.ts";
import { liveSizeBytes } from "../backend/meta.ts";
import {
  compareRevisions,
  decodeRevision,
  REVISION_BYTES,
  type Revision,
} from "../backend/revision.ts";
import type { TableRecords } from "../level-files/records.ts";
import { KeyIndex } from "./key-index.ts";
import type { MvccState } from "./state.ts";
import type { LeaseBook } from "./write-txn.ts";

const KEY_TAG = 0x0a;
const CREATE_REVISION_TAG = 0x10;
const MOD_REVISION_TAG = 0x18;
const VERSION_TAG = 0x20;
const VALUE_TAG = 0x2a;

/**
 * The fields of an encoded mvccpb.KeyValue but for its value, read in place: decoding a million
 * records into objects takes longer than all else that a start does with them.
 *
 * The fields of the record that was read last.
 */
export class RecordHead {
  keyStart = 0;
  keyEnd = 0;
  createRevision = 0;
  modRevision = 0;
  version = 0;
  readonly lease = 0n;
  readonly #reader = new Reader(EMPTY);

  /**
   * Reads the record in bytes[start, end). False for one that is not as stores write those without
   * a lease (fields in order, each once, a key): that is left to the decoder, and the fields are
   * undefined.
   */
  read(bytes: Uint8Array, start: number, end: number): boolean {
    this.#reader.reset(bytes, start, end);
    this.keyEnd = 0;
    this.createRevision = 0;
    this.modRevision = 0;
    this.version = 0;
    try {
      return this.#read(end);
    } catch (error) {
      if (error instanceof WireError) return false;
      throw error;
    }
  }

  #read(end: number): boolean {
    const reader = this.#reader;
    let last = 0;
    while (reader.pos < end) {
      const tag = reader.tag();
      if (tag <= last) return false;
      last = tag;
      if (tag === KEY_TAG) {
        this.keyStart = reader.content();
        this.keyEnd = reader.pos;
      } else if (tag === CREATE_REVISION_TAG) this.createRevision = reader.uint64();
      else if (tag === MOD_REVISION_TAG) this.modRevision = reader.uint64();
      else if (tag === VERSION_TAG) this.version = reader.uint64();
      else if (tag === VALUE_TAG) reader.content();
      else return false;
    }
    return this.keyEnd > this.keyStart;
  }
}

/**
 * Fills the index. Calls `onProgress` with the number of records read after each slice, and
 * notifies `leases` of each key with a lease.
 * @param records the bucket's records from the files of their tables; undefined: through `snapshot`
 */
export async function restoreIndex(
  state: MvccState,
  { snapshot, records }: RestoredFrom,
  scheduledCompact: number,
  leases: LeaseBook,
  onProgress?: (records: number) => void,
): Promise<void> {
  const restore = new IndexRestore(state, scheduledCompact, leases);
  if (records !== undefined) {
    do {
      while (records.next()) restore.takeInPlace(records);
      onProgress?.(restore.count);
    } while (await records.refill());
  } else {
    for await (const slice of snapshot.scan(Bucket.key)) {
      for (const [bytes, value] of slice) restore.take(bytes, value);
      onProgress?.(restore.count);
    }
  }
  restore.finish();
}

/** Where the records are read. */
export interface RestoredFrom {
  readonly snapshot: BackendSnapshot;
  /** The records of the bucket key from the files of their tables, if they can be read there. */
  readonly records: TableRecords | undefined;
}

/** Bytes of the bucket before a key of the backend. */
export const BUCKET_BYTES = 1;

/** Takes the records one by one, in the order of their revisions. */
class IndexRestore {
  readonly #state: MvccState;
  readonly #scheduledCompact: number;
  readonly #restored: RestoredLeases;
  readonly #head = new RecordHead();
  #lastMain = 0;
  #lastSub = 0;
  /** Records so far. */
  count = 0;

  constructor(state: MvccState, scheduledCompact: number, leases: LeaseBook) {
    this.#state = state;
    this.#scheduledCompact = scheduledCompact;
    this.#restored = new RestoredLeases(leases);
  }

  /** Takes the present record of `records`; a put without a lease is read in place. */
  takeInPlace({ record, keyLength }: TableRecords): void {
    const { key, bytes, valueStart, valueEnd } = record;
    const head = this.#head;
    const end = keyLength;
    if (end === BUCKET_BYTES + REVISION_BYTES && head.read(bytes, valueStart, valueEnd)) {
      const revisionBytes = key.subarray(BUCKET_BYTES, end);
      const revision = this.#revision(revisionBytes);
      const name = toLatin1(bytes, head.keyStart, head.keyEnd);
      this.#add(revisionBytes, revision, name, head, valueEnd - valueStart);
    } else this.take(key.slice(BUCKET_BYTES, end), bytes.slice(valueStart, valueEnd));
  }

  take(bytes: Uint8Array, value: Uint8Array): void {
    const revision = this.#revision(bytes);
    const kv = decodeRecord(value, (text) => this.#fail(bytes, text));
    this.#add(bytes, revision, toLatin1(kv.key), kv, value.length);
  }

  /** All records are taken. @throws StoreDamageError */
  finish(): void {
    this.#state.currentRevision = Math.max(1, this.#lastMain);
    this.#restored.finish();
  }

  #revision(bytes: Uint8Array): Revision {
    const revision = decodeRevision(bytes) ?? this.#fail(bytes, "the key is not a revision");
    const { main, sub } = revision;
    if (compareRevisions(main, sub, this.#lastMain, this.#lastSub) <= 0)
      this.#fail(bytes, `revision ${main}.${sub} follows ${this.#lastMain}.${this.#lastSub}`);
    this.#lastMain = main;
    this.#lastSub = sub;
    return revision;
  }

  #add(
    bytes: Uint8Array,
    revision: Revision,
    key: string,
    kv: RecordFields,
    valueLength: number,
  ): void {
    const state = this.#state;
    const index = revision.tombstone
      ? restoreDelete(state, key, revision, this.#scheduledCompact)
      : restorePut(state, key, revision, kv);
    if (typeof index === "string") throw this.#fail(bytes, index);
    const sizeBytes = liveSizeBytes(bytes.length, valueLength);
    index.sizeBytes = sizeBytes;
    state.liveBytes.addedAll(sizeBytes, 1);
    this.#restored.set(key, kv.lease);
    this.count++;
  }

  #fail(bytes: Uint8Array, text: string): never {
    throw new StoreDamageError(this.#state.path, `bucket key, key ${toHex(bytes)}`, text);
  }
}

/** What the index needs of a record. */
type RecordFields = Pick<KeyValue, "createRevision" | "modRevision" | "version" | "lease">;

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
  kv: RecordFields,
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
