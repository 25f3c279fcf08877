/** Functions as transactions, as npm's etcd3 has them. Our own is client.transaction(). */
import type { Buffer } from "node:buffer";
import { DeleteBuilder, PutBuilder, SingleRangeBuilder } from "./builder.ts";
import { ClientRuntimeError, STMConflictError } from "./errors.ts";
import {
  CompareResult,
  CompareTarget,
  type ICompare,
  type IDeleteRangeRequest,
  type IDeleteRangeResponse,
  type IPutRequest,
  type IPutResponse,
  type IRangeRequest,
  type IRangeResponse,
  type IRequestOp,
} from "./messages.ts";
import type { CallOptions } from "./options.ts";
import { type KeyPrefix, Range } from "./range.ts";
import type { KVClient } from "./services.ts";

/** What a transaction does not notice of others, from the most to the least. */
export const Isolation = {
  /** It reads one revision, and nothing that it read or writes has changed since. */
  SerializableSnapshot: 0,
  /** It reads one revision, and nothing that it read has changed since. */
  Serializable: 1,
  /** Nothing that it read has changed since. */
  RepeatableReads: 2,
  /** Others may change all. */
  ReadCommitted: 3,
} as const;
export type Isolation = (typeof Isolation)[keyof typeof Isolation];

export interface ISTMOptions {
  /** How often it runs again after a conflict; default 3. */
  retries: number;
  /** Keys to read at the beginning. */
  prefetch: string[];
  /** Default SerializableSnapshot. */
  isolation: Isolation;
  /** Options of the call that commits. */
  callOptions?: CallOptions;
}

/** Throws Error for a part of a request that a transaction cannot keep its promise for. */
function refuse(call: string, request: object, fields: readonly string[]): void {
  for (const field of fields)
    if (request[field as keyof object] !== undefined)
      throw new Error(`"${field}" is not supported in ${call} requests within STM transactions`);
}

/** A put, or a deletion where there is no value. */
interface Write {
  readonly range: Range;
  readonly value?: Buffer | undefined;
  readonly op: IRequestOp;
}

/** One run of the function: what it read, and what it is going to write. */
class Attempt {
  readonly #kv: KVClient;
  readonly #isSnapshot: boolean;
  /** By key, one byte a character. */
  readonly #reads = new Map<string, Promise<IRangeResponse>>();
  readonly #done: { readonly key: Buffer; readonly response: IRangeResponse }[] = [];
  #writes: Write[] = [];
  #first: Promise<IRangeResponse> | undefined;

  constructor(kv: KVClient, isolation: Isolation) {
    this.#kv = kv;
    this.#isSnapshot = isolation <= Isolation.Serializable;
  }

  async range(request: IRangeRequest): Promise<IRangeResponse> {
    refuse("read", request, [
      "revision",
      "range_end",
      "min_mod_revision",
      "max_mod_revision",
      "min_create_revision",
      "max_create_revision",
    ]);
    const key = keyOf(request);
    const written = this.#writes.findLast(({ range }) => covers(range, key));
    if (written !== undefined) return ownWrite(key, written.value);
    const name = key.toString("latin1");
    let read = this.#reads.get(name);
    if (read === undefined) {
      read = this.#read(key, request, this.#isSnapshot ? this.#first : undefined);
      this.#first ??= read;
      this.#reads.set(name, read);
    }
    return read;
  }

  async put(request: IPutRequest): Promise<IPutResponse> {
    refuse("put", request, ["lease", "prev_kv"]);
    this.#write({ range: rangeOf(request), value: request.value, op: { request_put: request } });
    return {} as IPutResponse;
  }

  async deleteRange(request: IDeleteRangeRequest): Promise<IDeleteRangeResponse> {
    refuse("delete", request, ["prev_kv"]);
    this.#write({ range: rangeOf(request), op: { request_delete_range: request } });
    return { deleted: "1", prev_kvs: [] } as Partial<IDeleteRangeResponse> as IDeleteRangeResponse;
  }

  /** Rejects with STMConflictError. */
  async commit(isolation: Isolation, options: CallOptions | undefined): Promise<void> {
    const compare = isolation === Isolation.ReadCommitted ? [] : this.#readChecks();
    if (isolation === Isolation.SerializableSnapshot) compare.push(...this.#writeChecks());
    const success = this.#writes.map(({ op }) => op);
    if (!(await this.#kv.txn({ compare, success }, options)).succeeded)
      throw new STMConflictError();
  }

  async #read(
    key: Buffer,
    request: IRangeRequest,
    first: Promise<IRangeResponse> | undefined,
  ): Promise<IRangeResponse> {
    const pinned = first && { serializable: true, revision: (await first).header.revision };
    const response = await this.#kv.range({ ...request, ...pinned });
    this.#done.push({ key, response });
    return response;
  }

  #readChecks(): ICompare[] {
    return this.#done.map(({ key, response }) => ({
      key,
      target: CompareTarget.Mod,
      result: CompareResult.Equal,
      mod_revision: response.kvs[0]?.mod_revision ?? 0,
    }));
  }

  /** Nothing that is written has changed since the first read, as in etcd's client for Go. */
  #writeChecks(): ICompare[] {
    const revisions = this.#done.map(({ response }) => BigInt(response.header.revision));
    if (revisions.length === 0) return [];
    const next = revisions.reduce((least, one) => (one < least ? one : least)) + 1n;
    return this.#writes.map(({ range }) => {
      if (range.end.length > 0)
        throw new Error("You cannot delete ranges in the SerializableSnapshot isolation level");
      const key = range.start;
      const { Mod: target } = CompareTarget;
      return { key, target, result: CompareResult.Less, mod_revision: String(next) };
    });
  }

  /** A write in place of those that it makes void: no key can be written twice in one. */
  #write(write: Write): void {
    this.#writes = this.#writes.filter(
      ({ range }) => range.end.length > 0 || !covers(write.range, range.start),
    );
    this.#writes.push(write);
  }
}

function keyOf({ key }: { key?: Buffer }): Buffer {
  if (key === undefined) throw new ClientRuntimeError("a request within a transaction has no key");
  return key;
}

function rangeOf(request: { key?: Buffer; range_end?: Buffer }): Range {
  return new Range(keyOf(request), request.range_end ?? "");
}

/** Whether a key is the one of a range without an end, or in the range. */
function covers(range: Range, key: Buffer): boolean {
  if (range.end.length === 0) return range.start.equals(key);
  // The end of all keys.
  if (range.end.equals(Range.prefix("").end)) return range.start.compare(key) <= 0;
  return range.includes(key);
}

function ownWrite(key: Buffer, value: Buffer | undefined): IRangeResponse {
  const kvs = value === undefined ? [] : [{ key, value }];
  return {
    kvs,
    more: false,
    count: String(kvs.length),
  } as Partial<IRangeResponse> as IRangeResponse;
}

/** A function as a transaction: transact() runs it, again after a conflict. */
export class SoftwareTransaction {
  readonly #options: ISTMOptions;
  readonly #prefixed: KeyPrefix;
  readonly #kv: KVClient;
  /** The run that is under way. */
  #attempt: Attempt | undefined;

  /** Made by client.stm(). */
  constructor(options: Partial<ISTMOptions>, prefixed: KeyPrefix, kv: KVClient) {
    this.#options = {
      retries: 3,
      prefetch: [],
      isolation: Isolation.SerializableSnapshot,
      ...options,
    };
    this.#prefixed = prefixed;
    this.#kv = kv;
  }

  /**
   * Runs a function, which reads and writes by the transaction that it is given. Rejects with
   * STMConflictError after `retries` conflicts, and with what the function throws.
   */
  async transact<T>(run: (transaction: this) => T | PromiseLike<T>): Promise<T> {
    const { isolation, retries, prefetch, callOptions } = this.#options;
    for (let left = retries; ; left--) {
      this.#attempt = new Attempt(this.#kv, isolation);
      for (const key of prefetch)
        this.#attempt.range({ key: this.#prefixed.key(key) }).catch(() => {});
      const value = await run(this);
      try {
        await this.#attempt.commit(isolation, callOptions);
        return value;
      } catch (error) {
        if (left <= 0 || !(error instanceof STMConflictError)) throw error;
      }
    }
  }

  get(key: string | Buffer): SingleRangeBuilder {
    return new SingleRangeBuilder(this.#within(), this.#prefixed, key);
  }

  put(key: string | Buffer): PutBuilder {
    return new PutBuilder(this.#within(), this.#prefixed, key);
  }

  delete(): DeleteBuilder {
    return new DeleteBuilder(this.#within(), this.#prefixed);
  }

  #within(): KVClient {
    if (this.#attempt === undefined) throw new ClientRuntimeError("there is no transaction yet");
    return this.#attempt as Pick<KVClient, "range" | "put" | "deleteRange"> as KVClient;
  }
}
