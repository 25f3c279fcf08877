/** etcdserverpb.KV: reads from the cache where that is allowed, all else upstream. */
import {
  CompactionRequest,
  DeleteRangeRequest,
  errorOf,
  KVService,
  PutRequest,
  RangeRequest,
  TxnRequest,
  toLatin1,
  WireError,
} from "@quorate/proto";
import { type CallContext, StatusError, type UnaryHandler } from "@quorate/rpc";
import { callerOf } from "../upstream/caller.ts";
import type { ProxyMetrics } from "../upstream/metrics.ts";
import type { MethodRules, Upstream } from "../upstream/upstream.ts";
import type { OrderedReads } from "./ordering.ts";
import { type KeyRange, RangeCache } from "./range-cache.ts";
import { keysOfTxn, rangeOf } from "./written-keys.ts";

const { Range, Put, DeleteRange, Txn, Compact } = KVService.methods;
const RANGE: MethodRules = { path: Range.path, isRepeatable: true };
/** Keys of longer requests would fill the memory. */
const MAX_CACHED_REQUEST_BYTES = 16 * 1024;

export class KvService {
  readonly #upstream: Upstream;
  readonly #metrics: ProxyMetrics;
  readonly #ordered: OrderedReads | undefined;
  readonly cache = new RangeCache();

  /** @param ordered for reads that must not go back */
  constructor(upstream: Upstream, metrics: ProxyMetrics, ordered: OrderedReads | undefined) {
    this.#upstream = upstream;
    this.#metrics = metrics;
    this.#ordered = ordered;
    metrics.cachedKeys(() => this.cache.size);
  }

  /** The handlers, by path. */
  methods(): Map<string, UnaryHandler> {
    return new Map<string, UnaryHandler>([
      [Range.path, (request, context) => this.#range(request, context)],
      [Put.path, this.#write(Put.path, (bytes) => [rangeOf(PutRequest.decode(bytes).key)])],
      [
        DeleteRange.path,
        this.#write(DeleteRange.path, (bytes) => {
          const { key, rangeEnd } = DeleteRangeRequest.decode(bytes);
          return [rangeOf(key, rangeEnd)];
        }),
      ],
      [Txn.path, this.#write(Txn.path, (bytes) => keysOfTxn(TxnRequest.decode(bytes)))],
      [Compact.path, (request, context) => this.#compact(request, context)],
    ]);
  }

  #range(bytes: Uint8Array, context: CallContext): Uint8Array | Promise<Uint8Array> {
    const request = decoded(() => RangeRequest.decode(bytes));
    if (request === undefined || bytes.length > MAX_CACHED_REQUEST_BYTES)
      return this.#read(bytes, context);
    const { identity } = callerOf(context);
    const nowMs = this.#upstream.clock.monotonicMs();
    const same = RangeRequest.encode({ ...request, serializable: true });
    const start = this.cache.begin(
      `${identity.length} ${identity}${toLatin1(same)}`,
      request,
      nowMs,
    );
    if (request.serializable) {
      const found = this.cache.get(start);
      if (found !== undefined) this.#metrics.cacheHits.value++;
      else this.#metrics.cacheMisses.value++;
      if (found === "compacted") throw statusOf("Compacted");
      if (found !== undefined) return found;
    }
    return this.#read(bytes, context).then((response) => {
      this.cache.add(start, response);
      return response;
    });
  }

  #read(bytes: Uint8Array, context: CallContext): Promise<Uint8Array> {
    return this.#ordered === undefined
      ? this.#upstream.unary(RANGE, bytes, context)
      : this.#ordered.read(RANGE, bytes, context);
  }

  /** What cannot be decoded goes to the cluster, which refuses it. */
  #write(path: string, keysOf: (bytes: Uint8Array) => KeyRange[]): UnaryHandler {
    const rules = { path, isRepeatable: false };
    return async (bytes, context) => {
      const keys = decoded(() => keysOf(bytes)) ?? [];
      for (const range of keys) this.cache.invalidate(range);
      try {
        return await this.#upstream.unary(rules, bytes, context);
      } finally {
        for (const range of keys) this.cache.invalidate(range);
      }
    };
  }

  async #compact(bytes: Uint8Array, context: CallContext): Promise<Uint8Array> {
    const rules = { path: Compact.path, isRepeatable: false };
    const response = await this.#upstream.unary(rules, bytes, context);
    this.cache.compact(CompactionRequest.decode(bytes).revision);
    return response;
  }
}

/** What `decode` returns; undefined for bytes that are no message. */
function decoded<T>(decode: () => T): T | undefined {
  try {
    return decode();
  } catch (error) {
    if (error instanceof WireError) return undefined;
    throw error;
  }
}

function statusOf(name: "Compacted"): StatusError {
  const { grpcCode, message } = errorOf(name);
  return new StatusError(grpcCode, message);
}
