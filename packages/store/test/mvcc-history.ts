/**
 * Random requests over few keys, so that they meet: all options, nested transactions, compares of
 * every kind.
 */
import {
  type CompactionRequest,
  Compare,
  DeleteRangeRequest,
  PutRequest,
  RangeRequest,
  type RequestOp,
  TxnRequest,
} from "@quorate/proto";

/** Numbers from a seed (mulberry32). */
export class Prng {
  #state: number;
  constructor(seed: number) {
    this.#state = seed;
  }

  below(n: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * n);
  }

  chance(percent: number): boolean {
    return this.below(100) < percent;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)];
  }
}

const latin1 = (s: string): Uint8Array => Uint8Array.from(s, (c) => c.charCodeAt(0));

/** Keys that share prefixes and hold the bytes at both ends. */
export const KEYS = [
  "\0",
  "a",
  "a\0",
  "aa",
  "ab",
  "ab\xff",
  "b",
  "b/1",
  "b/2",
  "b/3",
  "c\x80",
  "d",
  "\xff",
  "\xff\xff",
].map(latin1);
const ENDS = [...KEYS, latin1("\0"), latin1("\0"), latin1("b0"), latin1("z")];
const VALUES = ["", "x", "y", "yy", "\0\xff", "z".repeat(40)].map(latin1);

export interface HistoryOptions {
  /** Leases that exist. */
  readonly leases: readonly bigint[];
  /** A lease that does not; undefined to use none. */
  readonly noLease: bigint | undefined;
  /** Revisions to choose from. */
  readonly revision: () => { current: number; compact: number };
}

export class History {
  readonly #prng: Prng;
  readonly #options: HistoryOptions;
  constructor(prng: Prng, options: HistoryOptions) {
    this.#prng = prng;
    this.#options = options;
  }

  #rangeEnd(percent: number): Uint8Array {
    return this.#prng.chance(percent) ? this.#prng.pick(ENDS) : new Uint8Array(0);
  }

  #someRevision(): number {
    const { current, compact } = this.#options.revision();
    if (this.#prng.chance(8)) return this.#prng.pick([-1, current + 1, compact - 1]);
    return Math.max(compact, 1) + this.#prng.below(current - Math.max(compact, 1) + 1);
  }

  range(): RangeRequest {
    const prng = this.#prng;
    const bound = (): number => (prng.chance(12) ? this.#someRevision() : 0);
    return RangeRequest.create({
      key: prng.pick(KEYS),
      rangeEnd: this.#rangeEnd(85),
      limit: prng.chance(40) ? prng.below(6) - 1 : 0,
      revision: prng.chance(50) ? this.#someRevision() : 0,
      sortOrder: prng.chance(50) ? prng.below(3) : 0,
      sortTarget: prng.chance(50) ? prng.below(5) : 0,
      keysOnly: prng.chance(25),
      countOnly: prng.chance(10),
      serializable: prng.chance(10),
      minModRevision: bound(),
      maxModRevision: bound(),
      minCreateRevision: bound(),
      maxCreateRevision: bound(),
    });
  }

  put(): PutRequest {
    const prng = this.#prng;
    const ignoreValue = prng.chance(10);
    const ignoreLease = prng.chance(10);
    const { leases, noLease } = this.#options;
    let lease = !ignoreLease && leases.length > 0 && prng.chance(25) ? prng.pick(leases) : 0n;
    if (!ignoreLease && noLease !== undefined && prng.chance(3)) lease = noLease;
    return PutRequest.create({
      key: prng.pick(KEYS),
      value: ignoreValue ? new Uint8Array(0) : prng.pick(VALUES),
      lease,
      prevKv: prng.chance(40),
      ignoreValue,
      ignoreLease,
    });
  }

  deleteRange(): DeleteRangeRequest {
    const prng = this.#prng;
    return DeleteRangeRequest.create({
      key: prng.pick(KEYS),
      rangeEnd: this.#rangeEnd(35),
      prevKv: prng.chance(50),
    });
  }

  compare(): Compare {
    const prng = this.#prng;
    const number = prng.chance(40) ? prng.below(3) : this.#someRevision();
    const union = prng.pick<Compare["targetUnion"]>([
      { case: "version", value: prng.below(4) },
      { case: "createRevision", value: number },
      { case: "modRevision", value: number },
      { case: "value", value: prng.pick(VALUES) },
      { case: "lease", value: BigInt(prng.below(3)) },
    ]);
    const target = prng.chance(90)
      ? ["version", "createRevision", "modRevision", "value", "lease"].indexOf(union!.case)
      : prng.below(5);
    return Compare.create({
      result: prng.below(4),
      target,
      key: prng.pick(KEYS),
      rangeEnd: this.#rangeEnd(30),
      targetUnion: union,
    });
  }

  txn(depth = 0): TxnRequest {
    const prng = this.#prng;
    const list = <T>(most: number, make: () => T): T[] =>
      Array.from({ length: prng.below(most + 1) }, make);
    return TxnRequest.create({
      compare: list(2, () => this.compare()),
      success: list(4, () => this.#op(depth)),
      failure: list(4, () => this.#op(depth)),
    });
  }

  #op(depth: number): RequestOp {
    const kind = this.#prng.below(depth < 2 ? 10 : 8);
    if (kind < 3) return { request: { case: "requestRange", value: this.range() } };
    if (kind < 6) return { request: { case: "requestPut", value: this.put() } };
    if (kind < 8) return { request: { case: "requestDeleteRange", value: this.deleteRange() } };
    return { request: { case: "requestTxn", value: this.txn(depth + 1) } };
  }

  compaction(): CompactionRequest {
    const { current, compact } = this.#options.revision();
    const revision = this.#prng.chance(10)
      ? this.#someRevision()
      : Math.max(compact, 0) + this.#prng.below(current - Math.max(compact, 0) + 2);
    return { revision, physical: false };
  }
}
