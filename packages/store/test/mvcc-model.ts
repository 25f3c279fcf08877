/**
 * The naive model of mvcc and the requests: every change ever made in one array, and each question
 * answered by going through it. It shares no code with what it checks but the codecs.
 */
import {
  type CompactionRequest,
  type Compare,
  crc32c,
  type DeleteRangeRequest,
  type ErrorName,
  fromUtf8,
  KeyValue,
  type PutRequest,
  type RangeRequest,
  type TxnRequest,
} from "@quorate/proto";

/** A pair with its bytes as latin1 text, so that pairs compare with deepEqual. */
export interface Pair {
  key: string;
  value: string;
  create: number;
  mod: number;
  version: number;
  lease: bigint;
}

interface Event {
  main: number;
  sub: number;
  key: string;
  /** undefined: deleted. */
  pair: Pair | undefined;
}

export interface RangeAnswer {
  revision: number;
  kvs: Pair[];
  more: boolean;
  count: number;
}

export type OpAnswer =
  | ({ op: "range" } & RangeAnswer)
  | { op: "put"; revision: number; prev: Pair | undefined }
  | { op: "delete"; revision: number; deleted: number; prev: Pair[] }
  | { op: "txn"; answer: TxnAnswer };

export interface TxnAnswer {
  revision: number;
  succeeded: boolean;
  responses: OpAnswer[];
}

export class ModelError extends Error {
  readonly code: ErrorName;
  constructor(code: ErrorName) {
    super(code);
    this.code = code;
  }
}

const text = (bytes: Uint8Array): string => String.fromCharCode(...bytes);
const bytes = (s: string): Uint8Array => Uint8Array.from(s, (c) => c.charCodeAt(0));

function covers(key: Uint8Array, rangeEnd: Uint8Array, candidate: string): boolean {
  const from = text(key);
  if (rangeEnd.length === 0) return candidate === from;
  return candidate >= from && (text(rangeEnd) === "\0" || candidate < text(rangeEnd));
}

export class Model {
  events: Event[] = [];
  revision = 1;
  compactRevision = -1;
  readonly leases: ReadonlySet<bigint>;

  constructor(leases: ReadonlySet<bigint>) {
    this.leases = leases;
  }

  clone(): Model {
    const copy = new Model(this.leases);
    copy.events = [...this.events];
    copy.revision = this.revision;
    copy.compactRevision = this.compactRevision;
    return copy;
  }

  /** The pairs that exist at a revision, by key. */
  stateAt(revision: number): Map<string, Pair> {
    const state = new Map<string, Pair>();
    for (const event of this.events) {
      if (event.main > revision) break;
      if (event.pair === undefined) state.delete(event.key);
      else state.set(event.key, event.pair);
    }
    return new Map([...state].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Keys of the live pairs by lease, as a lessor would know them. */
  leased(): string[] {
    return [...this.stateAt(this.revision).values()]
      .filter(({ lease }) => lease !== 0n)
      .map(({ key, lease }) => `${lease} ${key}`);
  }

  range(request: RangeRequest, newest = this.revision): RangeAnswer {
    if (request.revision > newest) throw new ModelError("FutureRev");
    const at = request.revision <= 0 ? newest : request.revision;
    if (at < this.compactRevision) throw new ModelError("Compacted");
    const all = [...this.stateAt(at).values()].filter(({ key }) =>
      covers(request.key, request.rangeEnd, key),
    );
    if (request.countOnly) return { revision: newest, kvs: [], more: false, count: all.length };
    const {
      minModRevision: minMod,
      maxModRevision: maxMod,
      minCreateRevision: minCreate,
      maxCreateRevision: maxCreate,
    } = request;
    const filters = [minMod, maxMod, minCreate, maxCreate].some((bound) => bound !== 0);
    let kvs = all;
    if (request.sortOrder === 0 && request.limit > 0 && !filters)
      kvs = kvs.slice(0, request.limit + 1);
    kvs = kvs.filter(
      ({ mod, create }) =>
        (maxMod === 0 || mod <= maxMod) &&
        (minMod === 0 || mod >= minMod) &&
        (maxCreate === 0 || create <= maxCreate) &&
        (minCreate === 0 || create >= minCreate),
    );
    const by = (["key", "version", "create", "mod", "value"] as const)[request.sortTarget];
    if (request.sortOrder !== 0 || by !== "key") {
      const sign = request.sortOrder === 2 ? -1 : 1;
      kvs = kvs.toSorted((a, b) => sign * (a[by] < b[by] ? -1 : a[by] > b[by] ? 1 : 0));
    }
    const more = request.limit > 0 && kvs.length > request.limit;
    if (more) kvs = kvs.slice(0, request.limit);
    if (request.keysOnly) kvs = kvs.map((kv) => ({ ...kv, value: "" }));
    return { revision: newest, kvs, more, count: all.length };
  }

  put(request: PutRequest): OpAnswer {
    return this.#alone((txn) => {
      this.#checkPut(request, (key) => this.stateAt(this.revision).has(key));
      return txn.put(request);
    });
  }

  deleteRange(request: DeleteRangeRequest): OpAnswer {
    return this.#alone((txn) => txn.deleteRange(request));
  }

  txn(request: TxnRequest): TxnAnswer {
    const before = this.stateAt(this.revision);
    const plan = decide(before, request);
    // The rehearsal runs on a copy, with every check; the errors of the real run would be the same.
    const rehearsal = new ModelTxn(this.clone());
    this.#check(plan, rehearsal);
    const txn = new ModelTxn(this);
    const answer = this.#run(plan, txn);
    return { ...answer, revision: txn.commit() };
  }

  compact(request: CompactionRequest): number {
    if (request.revision <= this.compactRevision) throw new ModelError("Compacted");
    if (request.revision > this.revision) throw new ModelError("FutureRev");
    this.compactRevision = request.revision;
    return this.revision;
  }

  /** etcd's HashKV, from the definition: the bucket as it is when compaction is through. */
  hashKV(asked: number): number {
    if (asked > 0 && asked < this.compactRevision) throw new ModelError("Compacted");
    if (asked > this.revision) throw new ModelError("FutureRev");
    const revision = asked === 0 ? this.revision : asked;
    const last = (at: number): Set<Event> => {
      const byKey = new Map<string, Event>();
      for (const event of this.events) if (event.main <= at) byKey.set(event.key, event);
      return new Set([...byKey.values()].filter(({ pair }) => pair !== undefined));
    };
    const left = last(this.compactRevision);
    const keep = last(revision);
    let crc = crc32c(0, fromUtf8("key"));
    for (const event of this.events) {
      if (event.main > revision) break;
      if (
        event.main <= this.compactRevision &&
        !(left.has(event) && (keep.size === 0 || keep.has(event)))
      )
        continue;
      const key = new Uint8Array(event.pair === undefined ? 18 : 17);
      new DataView(key.buffer).setBigUint64(0, BigInt(event.main));
      key[8] = 0x5f;
      new DataView(key.buffer).setBigUint64(9, BigInt(event.sub));
      if (event.pair === undefined) key[17] = 0x74;
      crc = crc32c(crc32c(crc, key), recordOf(event));
    }
    return crc;
  }

  /** Keys of the records, in hexadecimal, that are left when compaction is through. */
  records(): string[] {
    const last = new Map<string, Event>();
    for (const event of this.events)
      if (event.main <= this.compactRevision) last.set(event.key, event);
    const left = [...last.values()].filter(
      ({ pair, main }) => pair !== undefined || main === this.compactRevision,
    );
    return this.events
      .filter((event) => event.main > this.compactRevision || left.includes(event))
      .map(({ main, sub, pair }) => {
        const hex = (n: number): string => n.toString(16).padStart(16, "0");
        return `${hex(main)}5f${hex(sub)}${pair === undefined ? "74" : ""}`;
      });
  }

  #alone(run: (txn: ModelTxn) => OpAnswer): OpAnswer {
    const txn = new ModelTxn(this);
    const answer = run(txn);
    txn.commit();
    return answer;
  }

  #checkPut(request: PutRequest, exists: (key: string) => boolean): void {
    if (request.lease !== 0n && !this.leases.has(request.lease))
      throw new ModelError("LeaseNotFound");
    if ((request.ignoreValue || request.ignoreLease) && !exists(text(request.key)))
      throw new ModelError("KeyNotFound");
  }

  #check(plan: Plan, rehearsal: ModelTxn): void {
    let nested = 0;
    for (const { request: op } of plan.ops) {
      if (op?.case === "requestRange" && op.value.revision !== 0) {
        if (op.value.revision > this.revision) throw new ModelError("FutureRev");
        if (op.value.revision < this.compactRevision) throw new ModelError("Compacted");
      }
      if (op?.case === "requestPut") {
        this.#checkPut(op.value, (key) => rehearsal.state.has(key));
        rehearsal.put(op.value);
      }
      if (op?.case === "requestDeleteRange") rehearsal.deleteRange(op.value);
      if (op?.case === "requestTxn") this.#check(plan.nested[nested++], rehearsal);
    }
  }

  #run(plan: Plan, txn: ModelTxn): TxnAnswer {
    let nested = 0;
    const responses = plan.ops.map(({ request: op }): OpAnswer => {
      if (op?.case === "requestRange") return { op: "range", ...txn.range(op.value) };
      if (op?.case === "requestPut") return txn.put(op.value);
      if (op?.case === "requestDeleteRange") return txn.deleteRange(op.value);
      return { op: "txn", answer: this.#run(plan.nested[nested++], txn) };
    });
    return { revision: 0, succeeded: plan.succeeded, responses };
  }
}

/** A transaction under way: its events are in the model at once, the revision follows at commit. */
class ModelTxn {
  readonly #model: Model;
  readonly #main: number;
  #subs = 0;

  constructor(model: Model) {
    this.#model = model;
    this.#main = model.revision + 1;
  }

  get state(): Map<string, Pair> {
    return this.#model.stateAt(this.#main);
  }

  get revision(): number {
    return this.#subs > 0 ? this.#main : this.#main - 1;
  }

  range(request: RangeRequest): RangeAnswer {
    return this.#model.range(request, this.revision);
  }

  put(request: PutRequest): OpAnswer {
    const key = text(request.key);
    const before = this.state.get(key);
    const pair: Pair = {
      key,
      value: request.ignoreValue ? before!.value : text(request.value),
      create: before?.create ?? this.#main,
      mod: this.#main,
      version: (before?.version ?? 0) + 1,
      lease: request.ignoreLease ? before!.lease : request.lease,
    };
    this.#model.events.push({ main: this.#main, sub: this.#subs++, key, pair });
    return { op: "put", revision: this.#main, prev: request.prevKv ? before : undefined };
  }

  deleteRange(request: DeleteRangeRequest): OpAnswer {
    const gone = [...this.state.values()].filter(({ key }) =>
      covers(request.key, request.rangeEnd, key),
    );
    for (const { key } of gone)
      this.#model.events.push({ main: this.#main, sub: this.#subs++, key, pair: undefined });
    return {
      op: "delete",
      revision: this.revision,
      deleted: gone.length,
      prev: request.prevKv ? gone : [],
    };
  }

  commit(): number {
    this.#model.revision = this.revision;
    return this.revision;
  }
}

interface Plan {
  succeeded: boolean;
  ops: TxnRequest["success"];
  nested: Plan[];
}

function decide(state: Map<string, Pair>, request: TxnRequest): Plan {
  const succeeded = request.compare.every((one) => holds(state, one));
  const ops = succeeded ? request.success : request.failure;
  return {
    succeeded,
    ops,
    nested: ops.flatMap(({ request: op }) =>
      op?.case === "requestTxn" ? [decide(state, op.value)] : [],
    ),
  };
}

function holds(state: Map<string, Pair>, one: Compare): boolean {
  const pairs = [...state.values()].filter(({ key }) => covers(one.key, one.rangeEnd, key));
  const field = (["version", "create", "mod", "value", "lease"] as const)[one.target];
  if (pairs.length === 0 && field === "value") return false;
  if (pairs.length === 0)
    pairs.push({ key: "", value: "", create: 0, mod: 0, version: 0, lease: 0n });
  const { targetUnion: union } = one;
  const fits = union !== undefined && union.case.startsWith(field);
  const wanted = fits
    ? union.case === "value"
      ? text(union.value)
      : union.value
    : field === "value"
      ? ""
      : 0;
  return pairs.every((pair) => {
    // Numbers and bigints compare by < and >, not by ===.
    const mine = pair[field];
    const [less, greater] = [mine < wanted, mine > wanted];
    return [!less && !greater, greater, less, less || greater][one.result];
  });
}

function recordOf({ key, pair }: Event): Uint8Array {
  if (pair === undefined) return KeyValue.encode({ key: bytes(key) });
  return KeyValue.encode({
    key: bytes(key),
    value: bytes(pair.value),
    createRevision: pair.create,
    modRevision: pair.mod,
    version: pair.version,
    lease: pair.lease,
  });
}

/** An encoded mvccpb.KeyValue as a Pair. */
export function toPair(record: Uint8Array): Pair {
  const kv = KeyValue.decode(record);
  return {
    key: text(kv.key),
    value: text(kv.value),
    create: kv.createRevision,
    mod: kv.modRevision,
    version: kv.version,
    lease: kv.lease,
  };
}
