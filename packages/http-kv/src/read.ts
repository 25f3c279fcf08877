/** GET and HEAD: one key, or a list of keys as JSON lines. */

import type { SharedTurns } from "@quorate/member";
import { compare, concat, endOfPrefix, fromUtf8, KeyValue, KVService } from "@quorate/proto";
import { clientOf } from "@quorate/rpc";
import type { ServiceCalls } from "@quorate/services";
import type { Steps } from "@quorate/store";
import { keyOfPath, prefixStart, Query, shown } from "./key-path.ts";
import type { KvExchange } from "./kv-exchange.ts";
import { Preconditions } from "./preconditions.ts";
import { Problem, problemOf } from "./problems.ts";
import { firstPair, jsonOfPair, pairHeaders, revisionHeader } from "./records.ts";

const { Range } = KVService.methods;

const ONE_KEY = ["rev", "serializable", "type", "prefix"];
const LIST = ["prefix", "limit", "after", "rev", "keys", "serializable"];

/** Text that is encoded in one step, and sent as one piece; one line may be longer. */
const PIECE_CHARS: number = 64 << 10;
const ZERO = new Uint8Array(1);

/** Sent with a value: it is data, whatever a browser makes of its type. */
const SAFE_HEADERS = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "sandbox; default-src 'none'",
  "accept-ranges": "none",
};
const LINES = { "content-type": "application/jsonl; charset=utf-8", "cache-control": "no-store" };

export interface ReadDeps {
  readonly calls: ServiceCalls;
  /** Calls of Range that return pages. */
  readonly pages: ServiceCalls;
  readonly turns: SharedTurns;
}

/** Serves GET and HEAD of a key; with ?prefix, of the keys that begin with it. */
export async function read(exchange: KvExchange, prefix: string, deps: ReadDeps): Promise<void> {
  const { path, query: text } = exchange.head;
  const key = keyOfPath(path, prefix);
  const query = new Query(text, [...new Set([...ONE_KEY, ...LIST])]);
  if (query.flag("prefix")) return readList(exchange, key, new Query(text, LIST), deps);
  const alien = LIST.find((name) => !ONE_KEY.includes(name) && query.has(name));
  if (alien !== undefined)
    throw new Problem("bad-parameter", `?${alien} is for lists`, "add ?prefix");
  return readOne(exchange, key, query, deps);
}

async function readOne(
  exchange: KvExchange,
  key: Uint8Array,
  query: Query,
  { calls }: ReadDeps,
): Promise<void> {
  if (key.length === 0)
    throw new Problem(
      "bad-key",
      "the key is empty",
      "write it behind /kv/; ?prefix lists all keys",
    );
  const conditions = new Preconditions(exchange.head);
  const type = typeOf(query);
  const revision = query.integer("rev", 1) ?? 0;
  const serializable = query.flag("serializable");
  const request = { key, revision, serializable };
  const { header, kvs } = await calls.unary(Range, request, exchange.caller);
  const current = header?.revision ?? 0;
  const kv = firstPair(kvs);
  const verdict = conditions.verdict(kv?.modRevision ?? 0);
  if (verdict === "failed") throw failed(conditions, kv, current);
  if (kv === undefined) throw notFound(key, current);
  const headers = { ...pairHeaders(kv, current), "cache-control": "private, no-cache" };
  if (verdict === "not modified") {
    exchange.respond(304, headers);
    return;
  }
  const all = { ...headers, ...SAFE_HEADERS, "content-type": type };
  if (!exchange.isHead) exchange.respond(200, all, kv.value);
  else exchange.start(200, { ...all, "content-length": String(kv.value.length) });
}

/** The problem of a precondition that does not hold, with the present ETag. */
export function failed(
  conditions: Preconditions,
  kv: KeyValue | undefined,
  revision: number,
): Problem {
  const headers = kv === undefined ? revisionHeader(revision) : pairHeaders(kv, revision);
  const what = conditions.failure(kv?.modRevision ?? 0);
  const right = kv === undefined ? "create it with If-None-Match: *" : undefined;
  const members = { mod_revision: kv?.modRevision ?? 0 };
  return new Problem("precondition-failed", what, right, { headers, members });
}

/** The problem of a key that does not exist. */
export function notFound(key: Uint8Array, revision: number): Problem {
  const name = shown(String.fromCharCode(...key.subarray(0, 200)));
  return new Problem("key-not-found", `there is no key ${name}`, undefined, {
    headers: revisionHeader(revision),
  });
}

/** A media type that a header can have (RFC 9110 section 8.3.1), with parameters. */
const MEDIA_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?: *; *[\w.+-]+=(?:[\w.+:/-]+|"[\w .+:/-]*"))*$/;

/** The Content-Type that the client wants to see: it is not kept with the value. */
function typeOf(query: Query): string {
  const type = query.text("type");
  if (type === undefined) return "application/octet-stream";
  if (MEDIA_TYPE.test(type)) return type;
  throw new Problem("bad-parameter", `?type=${shown(type)} is no media type`, "write TYPE/SUBTYPE");
}

// --- Lists ---

/** The pages of a list, one after the other, all at one revision. */
class Pages {
  readonly #exchange: KvExchange;
  readonly #deps: ReadDeps;
  readonly #rangeEnd: Uint8Array;
  readonly #start: Uint8Array;
  #isSerializable: boolean;
  readonly keysOnly: boolean;
  #from: Uint8Array;
  #revision: number;
  #left: number;
  /** More may follow. */
  hasMore = true;

  constructor(exchange: KvExchange, prefix: Uint8Array, query: Query, deps: ReadDeps) {
    this.#exchange = exchange;
    this.#deps = deps;
    this.#rangeEnd = endOfPrefix(prefix);
    this.#isSerializable = query.flag("serializable");
    this.keysOnly = query.flag("keys");
    this.#revision = query.integer("rev", 1) ?? 0;
    this.#left = query.integer("limit", 1) ?? Number.MAX_SAFE_INTEGER;
    const after = query.bytes("after");
    const behind = after === undefined ? undefined : concat([after, ZERO]);
    this.#start = prefixStart(prefix);
    const isBehind = behind !== undefined && compare(behind, this.#start) > 0;
    this.#from = isBehind ? behind : this.#start;
  }

  /** Nothing is behind ?after. */
  get #isEmpty(): boolean {
    const end = this.#rangeEnd;
    return !(end.length === 1 && end[0] === 0) && compare(this.#from, end) >= 0;
  }

  /** The next page, and the store's revision. */
  async next(): Promise<{ readonly kvs: readonly KeyValue[]; readonly revision: number }> {
    const { calls, pages } = this.#deps;
    const { caller } = this.#exchange;
    const serializable = this.#isSerializable;
    if (this.#isEmpty) {
      // The response has a revision, and the client is permitted, all the same.
      const request = { key: this.#start, revision: this.#revision, serializable, keysOnly: true };
      const { header } = await calls.unary(Range, request, caller);
      this.hasMore = false;
      return { kvs: [], revision: header?.revision ?? 0 };
    }
    const response = await pages.unary(
      Range,
      {
        key: this.#from,
        rangeEnd: this.#rangeEnd,
        revision: this.#revision,
        limit: Math.min(this.#left, MAX_PAGE_LIMIT),
        keysOnly: this.keysOnly,
        serializable,
      },
      caller,
    );
    const kvs = response.kvs.map((record) => KeyValue.decode(record));
    const revision = response.header?.revision ?? 0;
    if (this.#revision === 0) this.#revision = revision;
    // What this member has applied of that revision does not change: no more rounds are needed.
    this.#isSerializable = true;
    this.#left -= kvs.length;
    const last = kvs.at(-1);
    this.hasMore = response.more && this.#left > 0 && last !== undefined;
    if (this.hasMore && last !== undefined) this.#from = concat([last.key, ZERO]);
    return { kvs, revision };
  }
}

/** A page has a bound of its own; this one only keeps the field small. */
const MAX_PAGE_LIMIT = 1_000_000;

async function readList(
  exchange: KvExchange,
  prefix: Uint8Array,
  query: Query,
  deps: ReadDeps,
): Promise<void> {
  const pages = new Pages(exchange, prefix, query, deps);
  const first = await pages.next();
  const headers = { ...LINES, ...revisionHeader(first.revision) };
  const caller = { client: clientOf(exchange.caller), address: exchange.caller.peerAddress };
  const encoded = (kvs: readonly KeyValue[]): Promise<Uint8Array[]> =>
    deps.turns.run(caller, linesOf(kvs, pages.keysOnly));
  if (!pages.hasMore && !exchange.isHead) {
    exchange.respond(200, headers, concat(await encoded(first.kvs)));
    return;
  }
  exchange.start(200, headers);
  if (exchange.isOver) return;
  try {
    for (let page = first; ; page = await pages.next()) {
      for (const piece of await encoded(page.kvs)) if (!(await exchange.sendAndWait(piece))) return;
      if (!pages.hasMore) break;
    }
  } catch (error) {
    // The head has been sent: the reason is the last line, and the response is cut off behind it.
    exchange.send(fromUtf8(`{"error":${problemOf(error).document}}\n`));
    throw error;
  }
  exchange.end();
}

/** Lines of a page, in pieces. */
function* linesOf(kvs: readonly KeyValue[], keysOnly: boolean): Steps<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  let text = "";
  for (const kv of kvs) {
    text += `${jsonOfPair(kv, { keysOnly })}\n`;
    if (text.length < PIECE_CHARS) continue;
    pieces.push(fromUtf8(text));
    text = "";
    yield;
  }
  if (text !== "") pieces.push(fromUtf8(text));
  return pieces;
}
