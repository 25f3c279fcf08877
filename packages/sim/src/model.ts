/**
 * What etcd's KV promises, as plainly as it can be said: a map of keys with the revisions of their lives. Requests and answers are plain
 * data here, so that the same model judges what clients saw and what members applied.
 */

export interface ModelKey {
  readonly value: string;
  readonly create: number;
  readonly mod: number;
  readonly version: number;
  /** The id of the lease that it hangs on, in decimal; undefined for none. */
  readonly lease?: string | undefined;
}

/** Keys from `key` on: that one alone, or all below `end` (empty end: one key). */
export interface ModelRange {
  readonly key: string;
  readonly end: string;
}

export type ModelOp =
  | { readonly kind: "put"; readonly key: string; readonly value: string; readonly lease?: string | undefined }
  | ({ readonly kind: "delete" } & ModelRange)
  | ({ readonly kind: "range" } & ModelRange);

/** One comparison of a transaction. A key that is absent has revision and version 0 and no value. */
export interface ModelCompare {
  readonly key: string;
  readonly target: "mod" | "create" | "version" | "value";
  readonly result: "=" | ">" | "<" | "!=";
  readonly operand: number | string;
}

export type ModelRequest =
  | ModelOp
  /** The end of a lease: its keys go with it, in the order of their bytes, at one revision. That it exists is for others to know. */
  | { readonly kind: "revoke"; readonly lease: string }
  | {
      readonly kind: "txn";
      readonly compares: readonly ModelCompare[];
      readonly success: readonly ModelOp[];
      readonly failure: readonly ModelOp[];
    };

export interface ModelKv extends ModelKey {
  readonly key: string;
}

/** What each operation answered. */
export type OpAnswer =
  | { readonly kind: "put" }
  | { readonly kind: "delete"; readonly deleted: number }
  | { readonly kind: "range"; readonly kvs: readonly ModelKv[] }
  | { readonly kind: "revoke" };

/** A change of a key, as watchers are told of it: the key as it is from now on, undefined if it is gone. */
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

/** The keys of a range by the order of their bytes (which for the keys used is that of JavaScript). */
export function matches(range: ModelRange, key: string): boolean {
  return range.end === "" ? key === range.key : key >= range.key && key < range.end;
}

function holds(compare: ModelCompare, at: ModelKey | undefined): boolean {
  let actual: number | string | undefined;
  if (compare.target === "value") {
    if (at === undefined) return false;
    actual = at.value;
  } else actual = at?.[compare.target] ?? 0;
  switch (compare.result) {
    case "=":
      return actual === compare.operand;
    case "!=":
      return actual !== compare.operand;
    case ">":
      return actual > compare.operand;
    default:
      return actual < compare.operand;
  }
}

/** The state at one revision. It does not change: a write gives another. */
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

  /** The leases that the request's puts name here, in the list of a transaction that runs. */
  leasesOf(request: ModelRequest): string[] {
    const ops = request.kind === "txn" ? this.#chosen(request) : request.kind === "revoke" ? [] : [request];
    return ops.flatMap((op) => (op.kind === "put" && op.lease !== undefined ? [op.lease] : []));
  }

  #chosen({ compares, success, failure }: Extract<ModelRequest, { kind: "txn" }>): readonly ModelOp[] {
    return compares.every((compare) => holds(compare, this.keys.get(compare.key))) ? success : failure;
  }

  /** What the request answers here, the state after it (this one where nothing was written) and the changes in their order. */
  apply(request: ModelRequest): { readonly answer: Answer; readonly next: ModelState; readonly events: readonly ModelEvent[] } {
    let ops: readonly ModelOp[] = [];
    let succeeded = true;
    if (request.kind === "revoke") return this.#revoke(request.lease);
    if (request.kind === "txn") {
      ops = this.#chosen(request);
      succeeded = ops === request.success;
    } else ops = [request];
    let keys: Map<string, ModelKey> | undefined;
    const mod = this.revision + 1;
    const answers: OpAnswer[] = [];
    const events: ModelEvent[] = [];
    for (const op of ops) {
      const now = new ModelState(this.revision, keys ?? this.keys);
      if (op.kind === "range") answers.push({ kind: "range", kvs: now.range(op) });
      else if (op.kind === "put") {
        keys ??= new Map(this.keys);
        const old = keys.get(op.key);
        const lease = op.lease === undefined ? {} : { lease: op.lease };
        const put = { value: op.value, create: old?.create ?? mod, mod, version: (old?.version ?? 0) + 1, ...lease };
        keys.set(op.key, put);
        events.push({ key: op.key, now: put, before: old });
        answers.push({ kind: "put" });
      } else {
        const gone = now.range(op);
        if (gone.length > 0) {
          keys ??= new Map(this.keys);
          for (const { key } of gone) {
            events.push({ key, now: undefined, before: keys.get(key) });
            keys.delete(key);
          }
        }
        answers.push({ kind: "delete", deleted: gone.length });
      }
    }
    const next = keys === undefined ? this : new ModelState(mod, keys);
    return { answer: { revision: next.revision, succeeded, answers }, next, events };
  }

  #revoke(lease: string): ReturnType<ModelState["apply"]> {
    const gone = this.keysOf(lease);
    const keys = new Map(this.keys);
    const events = gone.map((key) => ({ key, now: undefined, before: keys.get(key) }));
    for (const key of gone) keys.delete(key);
    const next = gone.length === 0 ? this : new ModelState(this.revision + 1, keys);
    return { answer: { revision: next.revision, succeeded: true, answers: [{ kind: "revoke" }] }, next, events };
  }
}

/** The first difference of two answers in words, or undefined. */
export function difference(expected: Answer, actual: Answer): string | undefined {
  if (expected.revision !== actual.revision) return `revision ${actual.revision}, expected ${expected.revision}`;
  if (expected.succeeded !== actual.succeeded) return `succeeded is ${actual.succeeded}`;
  if (isEqual(expected.answers, actual.answers)) return undefined;
  const want = JSON.stringify(expected.answers.map(canonical));
  const got = JSON.stringify(actual.answers.map(canonical));
  return want === got ? undefined : `answers ${got}, expected ${want}`;
}

/** True only for answers that `difference` would find equal; it is there to be fast. */
function isEqual(expected: readonly OpAnswer[], actual: readonly OpAnswer[]): boolean {
  if (expected.length !== actual.length) return false;
  for (let i = 0; i < expected.length; i++) {
    const a = expected[i];
    const b = actual[i];
    if (a.kind !== b.kind) return false;
    if (a.kind === "delete" && a.deleted !== (b as typeof a).deleted) return false;
    if (a.kind !== "range") continue;
    const { kvs } = b as typeof a;
    if (a.kvs.length !== kvs.length) return false;
    for (let j = 0; j < kvs.length; j++) {
      const x = a.kvs[j];
      const y = kvs[j];
      if (x.key !== y.key || x.value !== y.value || x.mod !== y.mod || x.create !== y.create) return false;
      if (x.version !== y.version || (x.lease ?? "") !== (y.lease ?? "")) return false;
    }
  }
  return true;
}

/** All of a pair in a fixed order, for comparing. */
export function kvFields({ key, value, create, mod, version, lease }: ModelKv): readonly unknown[] {
  return [key, value, create, mod, version, lease ?? ""];
}

function canonical(answer: OpAnswer): unknown {
  if (answer.kind === "range") return answer.kvs.map(kvFields);
  return answer.kind === "delete" ? answer.deleted : answer.kind;
}
