/** Reading keys at a revision. All reads take effect at once; nothing here waits. */
import { errorOf } from "@quorate/proto";
import { type KeyIndex, LATEST, NONE } from "./key-index.ts";
import type { KeyRange } from "./key-range.ts";
import type { MvccCounts, MvccState } from "./state.ts";

/** A key as found at a revision. Valid until the store changes. */
export interface Found {
  readonly key: string;
  readonly index: KeyIndex;
  /** The place in `index` of the put that was found. */
  readonly place: number;
}

/** The keys of a range that exist at a revision. */
export interface Hits {
  /** In key order; cut at the limit asked for. */
  readonly found: Found[];
  /** How many there are without the limit. */
  readonly total: number;
}

export class ReadView {
  protected readonly state: MvccState;

  constructor(state: MvccState) {
    this.state = state;
  }

  /** What was done since the store was opened; whoever answers a request counts it. */
  get counts(): MvccCounts {
    return this.state.counts;
  }

  /** The newest revision that can be read here. */
  get revision(): number {
    return this.state.currentRevision;
  }

  /** The revision up to which history is dropped; -1 if the store was never compacted. */
  get compactRevision(): number {
    return this.state.compactRevision;
  }

  /** The revision that a request means: 0 or less is the newest. @throws EtcdError FutureRev, Compacted */
  resolve(revision: number): number {
    if (revision > this.revision) throw errorOf("FutureRev");
    const at = revision <= 0 ? this.revision : revision;
    if (at < this.compactRevision) throw errorOf("Compacted");
    return at;
  }

  /** A key as of revision `at` (from resolve()); undefined if it did not exist. */
  get(key: string, at: number = this.revision): Found | undefined {
    const index = this.state.index.get(key);
    if (index === undefined) return undefined;
    const place = index.find(at);
    return place === NONE ? undefined : { key, index, place };
  }

  /** The keys of a range as of revision `at`, the first `limit` of them (0: all). */
  find(range: KeyRange, at: number = this.revision, limit = 0): Hits {
    const found: Found[] = [];
    if (range.single) {
      const one = this.get(range.key, at);
      if (one !== undefined) found.push(one);
      return { found, total: found.length };
    }
    let total = 0;
    const most = limit > 0 ? limit : Number.POSITIVE_INFINITY;
    this.state.index.scan(range.key, range.to, (key, index) => {
      const place = index.find(at);
      if (place === NONE) return true;
      if (total < most) found.push({ key, index, place });
      total++;
      return true;
    });
    return { found, total };
  }

  /**
   * The records of the keys of a range as of revision `at`, in key order, the first `limit` of them (0: all), and how many there are
   * without the limit: what `find` and `record` give together, without an object for each key.
   */
  records(range: KeyRange, at: number, limit: number): { readonly records: Uint8Array[]; readonly total: number } {
    const records: Uint8Array[] = [];
    if (range.single) {
      const one = this.get(range.key, at);
      if (one !== undefined) records.push(this.record(one));
      return { records, total: records.length };
    }
    const { state } = this;
    let total = 0;
    const most = limit > 0 ? limit : Number.POSITIVE_INFINITY;
    state.index.scan(range.key, range.to, (_key, index) => {
      const place = index.find(at);
      if (place === NONE) return true;
      if (total < most) records.push(state.record(index.mainAt(place), index.subAt(place)));
      total++;
      return true;
    });
    return { records, total };
  }

  /** How many keys of a range exist as of revision `at`. */
  count(range: KeyRange, at: number = this.revision): number {
    if (range.single) return this.get(range.key, at) === undefined ? 0 : 1;
    let total = 0;
    this.state.index.scan(range.key, range.to, (_key, index) => {
      if (index.find(at) !== NONE) total++;
      return true;
    });
    return total;
  }

  /** The encoded mvccpb.KeyValue of what was found, as it is stored. The bytes must not be changed. */
  record({ index, place }: Found): Uint8Array {
    return this.state.record(index.mainAt(place), index.subAt(place));
  }

  /** True if what was found is the key's last change, so that the index knows its created revision, version and lease flag. */
  isLatest({ place }: Found): boolean {
    return place === LATEST;
  }
}
