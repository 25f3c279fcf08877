/**
 * What etcd's KV promises, as plainly as it can be said: a map of keys with the revisions of their
 * lives. Requests and answers are plain data here, so that the same model judges what clients saw
 * and what members applied.
 */

export interface ModelKey {
  readonly value: string;
  readonly create: number;
  readonly mod: number;
  readonly version: number;
  /** The id of the lease that it hangs on, in decimal; undefined for none. */
  readonly lease?: string | undefined;
}

/**
 * Keys from `key` on: that one alone, or all below `end` (empty end: one key; a zero byte: no end).
 */
export interface ModelRange {
  readonly key: string;
  readonly end: string;
}

/**
 * What a read leaves out, and its order: that of the keys unless `sortBy` is given. Equal rows stay
 * in the order of their keys.
 */
export interface ModelRangeOptions {
  /** 0 or undefined for all. */
  readonly limit?: number | undefined;
  readonly sortBy?: "key" | "version" | "create" | "mod" | "value" | undefined;
  /**
   * Undefined beside `sortBy` (not "key"): no order is given. That is an ascending one, of the first
   * keys alone that the limit lets through, and of one more.
   */
  readonly descending?: boolean | undefined;
  /** Bounds of revisions, which are within; undefined for none. */
  readonly minMod?: number | undefined;
  readonly maxMod?: number | undefined;
  readonly minCreate?: number | undefined;
  readonly maxCreate?: number | undefined;
  readonly keysOnly?: boolean | undefined;
  readonly countOnly?: boolean | undefined;
}

/**
 * With ignoreValue or ignoreLease the key must exist, and keeps what it has; with prevKv the answer
 * has the key as it was.
 */
export interface ModelPut {
  readonly kind: "put";
  readonly key: string;
  readonly value: string;
  readonly lease?: string | undefined;
  readonly ignoreValue?: boolean | undefined;
  readonly ignoreLease?: boolean | undefined;
  readonly prevKv?: boolean | undefined;
}

/** With prevKv the answer has the keys as they were. */
export interface ModelDelete extends ModelRange {
  readonly kind: "delete";
  readonly prevKv?: boolean | undefined;
}

/** Comparisons, of all transactions within too, are made before anything is written. */
export interface ModelTxn {
  readonly kind: "txn";
  readonly compares: readonly ModelCompare[];
  readonly success: readonly ModelOp[];
  readonly failure: readonly ModelOp[];
}

export type ModelOp =
  | ModelPut
  | ModelDelete
  | ({ readonly kind: "range" } & ModelRange & ModelRangeOptions)
  | ModelTxn;

/**
 * One comparison of a transaction, with one key or (`end`) every key of a range. A key that is
 * absent, or a range without keys, has revision, version and lease 0 and no value. The operand of a
 * lease is its id in decimal.
 */
export interface ModelCompare {
  readonly key: string;
  readonly end?: string | undefined;
  readonly target: "mod" | "create" | "version" | "value" | "lease";
  readonly result: "=" | ">" | "<" | "!=";
  readonly operand: number | string;
}

export type ModelRequest =
  | ModelOp
  /**
   * The end of a lease: its keys go with it, in the order of their bytes, at one revision. That it
   * exists is for others to know.
   */
  | { readonly kind: "revoke"; readonly lease: string };

export interface ModelKv extends ModelKey {
  readonly key: string;
}

/** What each operation answered. */
export type OpAnswer =
  | { readonly kind: "put"; readonly previous?: ModelKv | undefined }
  | {
      readonly kind: "delete";
      readonly deleted: number;
      readonly previous?: readonly ModelKv[] | undefined;
    }
  /**
   * Records of other origin may have no count. `count` is of all keys of the range, `more` whether
   * a limit left some out.
   */
  | {
      readonly kind: "range";
      readonly kvs: readonly ModelKv[];
      readonly count?: number | undefined;
      readonly more?: boolean | undefined;
    }
  | { readonly kind: "txn"; readonly succeeded: boolean; readonly answers: readonly OpAnswer[] }
  | { readonly kind: "revoke" };

/**
 * A change of a key, as watchers receive it: the key as it is from now on, undefined if it is gone.
 */
export interface ModelEvent {
  readonly key: string;
  readonly now: ModelKey | undefined;
  readonly before: ModelKey | undefined;
}

export interface Answer {
  readonly revision: number;
  readonly succeeded: boolean;
  readonly answers: readonly OpAnswer[];
}

/**
 * The keys of a range by the order of their bytes (which for the keys used is that of JavaScript).
 */
export function matches(range: ModelRange, key: string): boolean {
  return range.end === ""
    ? key === range.key
    : key >= range.key && (range.end === "\0" || key < range.end);
}

function sideOf(
  at: ModelKey | undefined,
  target: ModelCompare["target"],
): number | bigint | string {
  if (target === "value") return at?.value ?? "";
  return target === "lease" ? BigInt(at?.lease ?? 0) : (at?.[target] ?? 0);
}

function holdsFor({ target, result, operand }: ModelCompare, at: ModelKey | undefined): boolean {
  if (target === "value" && at === undefined) return false;
  const actual = sideOf(at, target);
  const wanted = target === "lease" ? BigInt(operand) : operand;
  if (result === "=") return actual === wanted;
  if (result === "!=") return actual !== wanted;
  return result === ">" ? actual > wanted : actual < wanted;
}

/** The rows that a read's bounds let through, in the order that it asks for, up to its limit. */
function arranged(all: ModelKv[], options: ModelRangeOptions): OpAnswer {
  const { limit = 0, sortBy, descending, keysOnly, countOnly } = options;
  const count = all.length;
  if (countOnly === true) return { kind: "range", kvs: [], count, more: false };
  const bounded = withinBounds(all, options);
  const isCut = limit > 0 && sortBy !== undefined && descending === undefined && bounded === all;
  const rows = isCut ? all.slice(0, limit + 1) : bounded;
  const sign = descending === true ? -1 : 1;
  const order = sortBy ?? "key";
  // Stable, so that rows which are equal stay in the order of their keys.
  if (order !== "key" || sign < 0)
    rows.sort((a, b) => (a[order] === b[order] ? 0 : a[order] < b[order] ? -sign : sign));
  const more = limit > 0 && rows.length > limit;
  const kept = more ? rows.slice(0, limit) : rows;
  return {
    kind: "range",
    kvs: keysOnly === true ? kept.map((kv) => ({ ...kv, value: "" })) : kept,
    count,
    more,
  };
}

/** `rows` itself where there are no bounds. */
function withinBounds(
  rows: ModelKv[],
  { minMod, maxMod, minCreate, maxCreate }: ModelRangeOptions,
): ModelKv[] {
  const bounds = [minMod, maxMod, minCreate, maxCreate];
  if (bounds.every((bound) => bound === undefined)) return rows;
  const isWithin = (at: number, min = 0, max = Number.POSITIVE_INFINITY) => at >= min && at <= max;
  return rows.filter(
    ({ mod, create }) => isWithin(mod, minMod, maxMod) && isWithin(create, minCreate, maxCreate),
  );
}

/** What a request has changed so far. */
interface Run {
  /** Undefined until something is written. */
  keys: Map<string, ModelKey> | undefined;
  readonly mod: number;
  readonly events: ModelEvent[];
}

/** The state at one revision. It does not change: a write returns another. */
export class ModelState {
  readonly revision: number;
  readonly keys: ReadonlyMap<string, ModelKey>;

  constructor(revision = 1, keys: ReadonlyMap<string, ModelKey> = new Map()) {
    this.revision = revision;
    this.keys = keys;
  }

  range(range: ModelRange): ModelKv[] {
    if (range.end === "") {
      const one = this.keys.get(range.key);
      return one === undefined ? [] : [{ key: range.key, ...one }];
    }
    const found: ModelKv[] = [];
    for (const [key, at] of this.keys) if (matches(range, key)) found.push({ key, ...at });
    return found.sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** The keys that hang on a lease, in the order of their bytes. */
  keysOf(lease: string): string[] {
    const found: string[] = [];
    for (const [key, at] of this.keys) if (at.lease === lease) found.push(key);
    return found.sort();
  }

  /**
   * The error that a request comes to here for its puts' sake; undefined if it is carried
   * out. @param exists whether a lease exists
   */
  refusal(
    request: ModelRequest,
    exists: (lease: string) => boolean,
  ): "KeyNotFound" | "LeaseNotFound" | undefined {
    if (request.kind === "revoke") return undefined;
    const ops: ModelPut[] = [];
    const collect = (op: ModelOp): void => {
      if (op.kind === "put") ops.push(op);
      else if (op.kind === "txn") for (const one of this.#chosen(op)) collect(one);
    };
    collect(request);
    for (const { key, lease, ignoreValue, ignoreLease } of ops) {
      if (lease !== undefined && !exists(lease)) return "LeaseNotFound";
      if ((ignoreValue === true || ignoreLease === true) && !this.keys.has(key))
        return "KeyNotFound";
    }
    return undefined;
  }

  #holds(compare: ModelCompare): boolean {
    if (compare.end === undefined || compare.end === "")
      return holdsFor(compare, this.keys.get(compare.key));
    const found = this.range({ key: compare.key, end: compare.end });
    return found.length === 0
      ? holdsFor(compare, undefined)
      : found.every((one) => holdsFor(compare, one));
  }

  #chosen({ compares, success, failure }: ModelTxn): readonly ModelOp[] {
    return compares.every((compare) => this.#holds(compare)) ? success : failure;
  }

  /**
   * What the request answers here, the state after it (this one where nothing was written) and the
   * changes in their order.
   */
  apply(request: ModelRequest): {
    readonly answer: Answer;
    readonly next: ModelState;
    readonly events: readonly ModelEvent[];
  } {
    if (request.kind === "revoke") return this.#revoke(request.lease);
    const events: ModelEvent[] = [];
    if (this.refusal(request, () => true) !== undefined) {
      return {
        answer: { revision: this.revision, succeeded: true, answers: [] },
        next: this,
        events,
      };
    }
    const run: Run = { keys: undefined, mod: this.revision + 1, events };
    const ops = request.kind === "txn" ? this.#chosen(request) : [request];
    const succeeded = request.kind !== "txn" || ops === request.success;
    const answers = this.#run(run, ops);
    const next = run.keys === undefined ? this : new ModelState(run.mod, run.keys);
    return { answer: { revision: next.revision, succeeded, answers }, next, events };
  }

  #run(run: Run, ops: readonly ModelOp[]): OpAnswer[] {
    return ops.map((op): OpAnswer => {
      if (op.kind === "range") return arranged(this.#now(run).range(op), op);
      if (op.kind === "put") return this.#put(run, op);
      if (op.kind === "delete") return this.#delete(run, op);
      const chosen = this.#chosen(op);
      return { kind: "txn", succeeded: chosen === op.success, answers: this.#run(run, chosen) };
    });
  }

  #now({ keys }: Run): ModelState {
    return keys === undefined ? this : new ModelState(this.revision, keys);
  }

  #put(run: Run, { key, value, lease, ignoreValue, ignoreLease, prevKv }: ModelPut): OpAnswer {
    run.keys ??= new Map(this.keys);
    const old = run.keys.get(key);
    const kept = ignoreLease === true ? old?.lease : lease;
    const put = {
      value: ignoreValue === true ? (old?.value ?? "") : value,
      create: old?.create ?? run.mod,
      mod: run.mod,
      version: (old?.version ?? 0) + 1,
      ...(kept === undefined ? {} : { lease: kept }),
    };
    run.keys.set(key, put);
    run.events.push({ key, now: put, before: old });
    return prevKv === true && old !== undefined
      ? { kind: "put", previous: { key, ...old } }
      : { kind: "put" };
  }

  #delete(run: Run, range: ModelDelete): OpAnswer {
    const gone = this.#now(run).range(range);
    if (gone.length > 0) {
      run.keys ??= new Map(this.keys);
      for (const { key } of gone) {
        run.events.push({ key, now: undefined, before: run.keys.get(key) });
        run.keys.delete(key);
      }
    }
    const deleted = { kind: "delete", deleted: gone.length } as const;
    return range.prevKv === true && gone.length > 0 ? { ...deleted, previous: gone } : deleted;
  }

  #revoke(lease: string): ReturnType<ModelState["apply"]> {
    const gone = this.keysOf(lease);
    const keys = new Map(this.keys);
    const events = gone.map((key) => ({ key, now: undefined, before: keys.get(key) }));
    for (const key of gone) keys.delete(key);
    const next = gone.length === 0 ? this : new ModelState(this.revision + 1, keys);
    return {
      answer: { revision: next.revision, succeeded: true, answers: [{ kind: "revoke" }] },
      next,
      events,
    };
  }
}
