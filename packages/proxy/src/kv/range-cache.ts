/**
 * Responses to reads, for serializable reads of the same identity (etcd:
 * server/proxy/grpcproxy/cache). A write through the proxy removes what it touches; what others
 * write is not noticed, so a cached response may be old, as a serializable read allows. It is
 * dropped after MAX_CACHED_MS: then a user that has lost a role reads it no more.
 *
 *   a read begins: `begin` notes the state
 *   its response arrives: `add` keeps it, unless a write has touched its keys meanwhile
 *
 * etcd keeps responses that were overtaken by a write: then a client does not read its own write.
 */
import { type RangeRequest, toLatin1 } from "@quorate/proto";

/** As in etcd. */
export const MAX_CACHED_RESPONSES = 2048;
/** Ranges of more than one key: each write is compared with all of them. */
export const MAX_CACHED_RANGES = 512;
export const MAX_CACHED_BYTES = 64 * 1024 * 1024;
export const MAX_CACHED_MS = 5000;
export const MAX_CACHED_RESPONSE_BYTES = 1024 * 1024;
/** Keys share so many counters of writes; a collision only loses a response. */
const COUNTERS = 4096;

/** A range of keys as a request has it, one char a byte. */
export interface KeyRange {
  readonly key: string;
  /** Empty: the one key. "\0": every key from `key` on. */
  readonly end: string;
}

/** Where a read stood when it began. */
export interface ReadStart {
  readonly cacheKey: string;
  readonly range: KeyRange;
  readonly revision: number;
  readonly clock: number;
  readonly epoch: number;
  readonly nowMs: number;
}

interface Entry {
  readonly response: Uint8Array;
  readonly range: KeyRange;
  readonly revision: number;
  readonly readMs: number;
}

export class RangeCache {
  /** In the order of their last use. */
  readonly #entries = new Map<string, Entry>();
  /** Keys of entries by their one key, and those of ranges. */
  readonly #byKey = new Map<string, Set<string>>();
  readonly #ranges = new Map<string, KeyRange>();
  #sizeBytes = 0;
  #compactedRevision = -1;
  /** Counts writes; and when each group of keys, and any range, was written last. */
  #clock = 0;
  readonly #keyWritten = new Array<number>(COUNTERS).fill(0);
  #rangeWritten = 0;
  /** Counts calls of `clear`. */
  #epoch = 0;

  /** Number of responses. */
  get size(): number {
    return this.#entries.size;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /**
   * A read begins.
   * @param cacheKey of its identity and request
   * @param nowMs monotonic milliseconds
   */
  begin(cacheKey: string, request: RangeRequest, nowMs: number): ReadStart {
    const range = { key: toLatin1(request.key), end: toLatin1(request.rangeEnd) };
    return {
      cacheKey,
      range,
      revision: Math.max(0, request.revision),
      clock: this.#clock,
      epoch: this.#epoch,
      nowMs,
    };
  }

  /** The response to the same read, or undefined. "compacted": its revision is gone. */
  get(start: ReadStart): Uint8Array | "compacted" | undefined {
    if (start.revision > 0 && start.revision < this.#compactedRevision) {
      this.#remove(start.cacheKey);
      return "compacted";
    }
    const entry = this.#entries.get(start.cacheKey);
    if (entry === undefined) return undefined;
    if (start.nowMs - entry.readMs > MAX_CACHED_MS) {
      this.#remove(start.cacheKey);
      return undefined;
    }
    this.#entries.delete(start.cacheKey);
    this.#entries.set(start.cacheKey, entry);
    return entry.response;
  }

  /** Keeps a copy of a response. */
  add(start: ReadStart, response: Uint8Array): void {
    if (response.length > MAX_CACHED_RESPONSE_BYTES || this.#isOvertaken(start)) return;
    const { cacheKey, range, revision, nowMs } = start;
    this.#remove(cacheKey);
    const isRange = range.end !== "" && revision === 0;
    if (isRange) {
      for (const oldest of this.#ranges.keys()) {
        if (this.#ranges.size < MAX_CACHED_RANGES) break;
        this.#remove(oldest);
      }
    }
    this.#entries.set(cacheKey, { response: response.slice(), range, revision, readMs: nowMs });
    this.#sizeBytes += response.length;
    if (isRange) this.#ranges.set(cacheKey, range);
    else if (revision === 0) {
      const same = this.#byKey.get(range.key);
      if (same === undefined) this.#byKey.set(range.key, new Set([cacheKey]));
      else same.add(cacheKey);
    }
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= MAX_CACHED_RESPONSES && this.#sizeBytes <= MAX_CACHED_BYTES) break;
      this.#remove(oldest);
    }
  }

  /**
   * A write of these keys begins, or has ended: removes the responses that it touches, and those of
   * reads that run now are not kept.
   */
  invalidate(written: KeyRange): void {
    this.#clock++;
    if (written.end === "") {
      this.#keyWritten[counterOf(written.key)] = this.#clock;
      const same = this.#byKey.get(written.key);
      if (same !== undefined) for (const cacheKey of [...same]) this.#remove(cacheKey);
    } else {
      this.#rangeWritten = this.#clock;
      for (const [key, same] of [...this.#byKey]) {
        if (!contains(written, key)) continue;
        for (const cacheKey of [...same]) this.#remove(cacheKey);
      }
    }
    for (const [cacheKey, range] of [...this.#ranges])
      if (overlap(range, written)) this.#remove(cacheKey);
  }

  /** Drops all responses, also those that are on their way: permissions may have changed. */
  clear(): void {
    this.invalidate({ key: "", end: "\0" });
    for (const cacheKey of [...this.#entries.keys()]) this.#remove(cacheKey);
    this.#epoch++;
  }

  /** Revisions below this one are gone. */
  compact(revision: number): void {
    this.#compactedRevision = Math.max(this.#compactedRevision, revision);
  }

  #isOvertaken({ range, revision, clock, epoch }: ReadStart): boolean {
    if (epoch !== this.#epoch) return true;
    if (revision > 0) return revision <= this.#compactedRevision;
    if (range.end !== "") return this.#clock !== clock;
    return this.#rangeWritten > clock || (this.#keyWritten[counterOf(range.key)] ?? 0) > clock;
  }

  #remove(cacheKey: string): void {
    const entry = this.#entries.get(cacheKey);
    if (entry === undefined) return;
    this.#entries.delete(cacheKey);
    this.#sizeBytes -= entry.response.length;
    if (this.#ranges.delete(cacheKey)) return;
    const same = this.#byKey.get(entry.range.key);
    same?.delete(cacheKey);
    if (same?.size === 0) this.#byKey.delete(entry.range.key);
  }
}

/** FNV-1a over a key's bytes. */
function counterOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  return (hash >>> 0) % COUNTERS;
}

/** Whether a range has a key. An empty key with an end is the start of the keyspace. */
export function contains(range: KeyRange, key: string): boolean {
  if (range.end === "") return key === range.key;
  return key >= range.key && (range.end === "\0" || key < range.end);
}

function overlap(a: KeyRange, b: KeyRange): boolean {
  if (b.end === "") return contains(a, b.key);
  return (b.end === "\0" || a.key < b.end) && (a.end === "\0" || b.key < a.end);
}
