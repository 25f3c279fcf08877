/**
 * PUT and DELETE: one atomic transaction each.
 *
 *     PUT     if the preconditions hold: put, and get without the value; else get without the value
 *     DELETE  if the preconditions hold: delete;                         else the same
 *
 * Without preconditions they are plain requests; a PUT asks for the pair before it, from which its
 * headers follow. Comparing, and seeing that pair, need permission to read: a PUT of a client that
 * may only write does without.
 */
import {
  type Compare,
  defined,
  endOfPrefix,
  KeyValue,
  KVService,
  LeaseService,
  type RequestOp,
  type ResponseOp,
} from "@quorate/proto";
import type { ExchangeCaller, ServiceCalls } from "@quorate/services";
import { MAX_LEASE_TTL_SECONDS } from "@quorate/store";
import { keyOfPath, prefixStart, Query, shown } from "./key-path.ts";
import type { KvExchange } from "./kv-exchange.ts";
import { etagOf, Preconditions } from "./preconditions.ts";
import { Problem } from "./problems.ts";
import { failed, notFound } from "./read.ts";
import { firstPair, pairHeaders, revisionHeader } from "./records.ts";

const { Put, DeleteRange, Range, Txn } = KVService.methods;
const { LeaseGrant, LeaseRevoke } = LeaseService.methods;

export interface WriteDeps {
  readonly calls: ServiceCalls;
  /** Whether a caller may read a key, as users and roles are now. */
  readonly mayRead: (caller: ExchangeCaller, key: Uint8Array) => Promise<boolean>;
}

/** How a put has its lease. */
type LeaseOfPut =
  | { readonly kind: "lease"; readonly id: bigint }
  | { readonly kind: "ttl"; readonly seconds: number }
  | { readonly kind: "keep" };

function writtenKey({ head }: KvExchange, prefix: string): Uint8Array {
  const key = keyOfPath(head.path, prefix);
  if (key.length > 0) return key;
  throw new Problem("bad-key", "the key is empty", "write it behind /kv/");
}

// --- PUT ---

/** Serves PUT: 201 for a key that is new, else 204. */
export async function put(exchange: KvExchange, prefix: string, deps: WriteDeps): Promise<void> {
  const key = writtenKey(exchange, prefix);
  const query = new Query(exchange.head.query, ["ttl", "lease"]);
  const conditions = new Preconditions(exchange.head);
  const wanted = leaseOf(query);
  const value = exchange.takeBody();
  const { caller } = exchange;
  if (wanted.kind !== "ttl") {
    const kept = wanted.kind === "keep" ? { ignoreLease: true } : { lease: wanted.id };
    await putWith(exchange, { key, value, ...kept }, conditions, deps, {});
    return;
  }
  const { ID, TTL } = await deps.calls.unary(LeaseGrant, { TTL: wanted.seconds }, caller);
  const headers = { "quorate-ttl": String(TTL) };
  try {
    await putWith(exchange, { key, value, lease: ID }, conditions, deps, headers);
  } catch (error) {
    // Where that fails as well, the lease expires by itself.
    await deps.calls.unary(LeaseRevoke, { ID }, caller).catch(() => {});
    throw error;
  }
}

/** @throws Problem bad-parameter */
function leaseOf(query: Query): LeaseOfPut {
  const seconds = query.integer("ttl", 1, MAX_LEASE_TTL_SECONDS);
  const text = query.text("lease");
  if (text === undefined)
    return seconds === undefined ? { kind: "lease", id: 0n } : { kind: "ttl", seconds };
  if (seconds !== undefined)
    throw new Problem("bad-parameter", "?ttl and ?lease exclude each other", "send one of them");
  if (text === "keep") return { kind: "keep" };
  const id = leaseIdOf(text);
  if (id !== undefined) return { kind: "lease", id };
  throw new Problem(
    "bad-parameter",
    `?lease=${shown(text)} is no lease`,
    "write its id as a decimal number, as 0x and hexadecimal digits, or keep",
  );
}

/** The id of a lease in decimal or, behind 0x, hexadecimal digits; undefined for other texts. */
export function leaseIdOf(text: string): bigint | undefined {
  if (!/^(?:\d{1,19}|0x[0-9a-fA-F]{1,16})$/.test(text)) return undefined;
  const id = BigInt(text);
  return id > 0n && BigInt.asIntN(64, id) === id ? id : undefined;
}

interface PutFields {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
  readonly lease?: bigint;
  readonly ignoreLease?: boolean;
}

async function putWith(
  exchange: KvExchange,
  fields: PutFields,
  conditions: Preconditions,
  { calls, mayRead }: WriteDeps,
  headers: Readonly<Record<string, string>>,
): Promise<void> {
  const { caller } = exchange;
  const { key } = fields;
  if (conditions.isEmpty) {
    const prevKv = await mayRead(caller, key);
    const response = await calls.unary(Put, { ...fields, prevKv }, caller);
    const revision = response.header?.revision ?? 0;
    const before = response.prevKv === undefined ? undefined : KeyValue.decode(response.prevKv);
    if (!prevKv)
      exchange.respond(204, { ...headers, etag: etagOf(revision), ...revisionHeader(revision) });
    else {
      const kv = pairAfter(fields, before, revision);
      exchange.respond(kv.version === 1 ? 201 : 204, { ...headers, ...pairHeaders(kv, revision) });
    }
    return;
  }
  const ops: RequestOp[] = [
    { request: { case: "requestPut", value: { ...NO_PUT, ...fields } } },
    getWithoutValue(key),
  ];
  const { responses, revision } = await conditional(calls, caller, { key, conditions, ops });
  const kv = defined(pairOf(responses[1]), "the pair");
  const status = kv.version === 1 ? 201 : 204;
  exchange.respond(status, { ...headers, ...pairHeaders(kv, revision) });
}

/** The pair after a put, without its value, by the pair before it. */
function pairAfter(
  { key, lease, ignoreLease }: PutFields,
  before: KeyValue | undefined,
  revision: number,
): KeyValue {
  return KeyValue.create({
    key,
    createRevision: before?.createRevision ?? revision,
    modRevision: revision,
    version: (before?.version ?? 0) + 1,
    lease: ignoreLease === true ? (before?.lease ?? 0n) : (lease ?? 0n),
  });
}

const NO_PUT = { lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };

// --- DELETE ---

/** Serves DELETE of a key, or with ?prefix of the keys that begin with it. */
export async function remove(exchange: KvExchange, prefix: string, deps: WriteDeps): Promise<void> {
  const query = new Query(exchange.head.query, ["prefix", "all"]);
  if (query.flag("prefix")) return removeList(exchange, prefix, query, deps);
  if (query.has("all"))
    throw new Problem("bad-parameter", "?all is for lists", "add ?prefix to an empty key");
  const { calls } = deps;
  const { caller } = exchange;
  const key = writtenKey(exchange, prefix);
  const conditions = new Preconditions(exchange.head);
  if (conditions.isEmpty) {
    const { header, deleted } = await calls.unary(DeleteRange, { key }, caller);
    const revision = header?.revision ?? 0;
    if (deleted === 0) throw notFound(key, revision);
    exchange.respond(204, revisionHeader(revision));
    return;
  }
  const value = { key, rangeEnd: new Uint8Array(0), prevKv: false };
  const ops: RequestOp[] = [{ request: { case: "requestDeleteRange", value } }];
  const { responses, revision } = await conditional(calls, caller, { key, conditions, ops });
  const response = responses[0]?.response;
  const deleted = response?.case === "responseDeleteRange" ? response.value.deleted : 0;
  if (deleted === 0) throw notFound(key, revision);
  exchange.respond(204, revisionHeader(revision));
}

async function removeList(
  exchange: KvExchange,
  prefix: string,
  query: Query,
  { calls }: WriteDeps,
): Promise<void> {
  const key = keyOfPath(exchange.head.path, prefix);
  if (!new Preconditions(exchange.head).isEmpty)
    throw new Problem("bad-precondition", "a prefix has no ETag", "send POST /txn with compares");
  if (key.length === 0 && !query.flag("all"))
    throw new Problem(
      "bad-key",
      "an empty prefix is every key of the store",
      "write the prefix behind /kv/, or add &all to delete every key",
    );
  const request = { key: prefixStart(key), rangeEnd: endOfPrefix(key) };
  const { header, deleted } = await calls.unary(DeleteRange, request, exchange.caller);
  const revision = header?.revision ?? 0;
  exchange.respond(
    200,
    { "content-type": "application/json", ...revisionHeader(revision) },
    `{"deleted":${deleted},"revision":${revision}}\n`,
  );
}

// --- Transactions ---

interface Conditional {
  readonly key: Uint8Array;
  readonly conditions: Preconditions;
  readonly ops: RequestOp[];
}

/**
 * Runs operations if the preconditions hold. Of several revisions in If-Match, the one that the
 * key is at is found by trying: the revisions of a key only grow, so there are no more rounds than
 * revisions.
 * @throws Problem precondition-failed
 */
async function conditional(
  calls: ServiceCalls,
  caller: ExchangeCaller,
  { key, conditions, ops }: Conditional,
): Promise<{ readonly responses: readonly ResponseOp[]; readonly revision: number }> {
  const { candidates } = conditions;
  let candidate = candidates?.[0];
  if (candidates !== undefined && candidate === undefined) {
    // No key ever has one of the tags.
    const { header, kvs } = await calls.unary(Range, { key, keysOnly: true }, caller);
    const kv = firstPair(kvs);
    throw failed(conditions, kv, header?.revision ?? 0);
  }
  for (;;) {
    const compare: Compare[] = conditions.compares(key, candidate);
    const failure = compare.length === 0 ? [] : [getWithoutValue(key)];
    const response = await calls.unary(Txn, { compare, success: ops, failure }, caller);
    const { succeeded, responses, header } = response;
    const revision = header?.revision ?? 0;
    if (succeeded) return { responses, revision };
    const kv = pairOf(responses[0]);
    const isOther = kv !== undefined && kv.modRevision !== candidate;
    if (!isOther || candidates?.includes(kv.modRevision) !== true)
      throw failed(conditions, kv, revision);
    candidate = kv.modRevision;
  }
}

function getWithoutValue(key: Uint8Array): RequestOp {
  return { request: { case: "requestRange", value: { ...NO_RANGE, key, keysOnly: true } } };
}

const NO_RANGE = {
  rangeEnd: new Uint8Array(0),
  limit: 0,
  revision: 0,
  sortOrder: 0,
  sortTarget: 0,
  serializable: false,
  countOnly: false,
  minModRevision: 0,
  maxModRevision: 0,
  minCreateRevision: 0,
  maxCreateRevision: 0,
};

function pairOf(op: ResponseOp | undefined): KeyValue | undefined {
  const response = op?.response;
  return response?.case === "responseRange" ? firstPair(response.value.kvs) : undefined;
}
