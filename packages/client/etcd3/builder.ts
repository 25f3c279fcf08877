/**
 * Requests that are put together word by word and sent when they are awaited:
 *
 *   await client.get("color").string();
 *   await client.put("color").value("red").lease(lease);
 *   await client.if("color", "Value", "==", "red").then(client.delete().key("color")).commit();
 *
 * As in npm's etcd3. They reject with the errors of errors.ts.
 */
import type { Buffer } from "node:buffer";
import {
  CompareResult,
  CompareTarget,
  type ICompare,
  type IDeleteRangeRequest,
  type IDeleteRangeResponse,
  type IKeyValue,
  type IPutRequest,
  type IPutResponse,
  type IRangeRequest,
  type IRangeResponse,
  type IRequestOp,
  type IResponseHeader,
  type ITxnResponse,
  SortOrder,
  SortTarget,
} from "./messages.ts";
import type { CallOptions } from "./options.ts";
import { type KeyPrefix, type Rangable, Range, toBuffer } from "./range.ts";
import type { KVClient } from "./services.ts";

/** A comparison of a transaction: the words for it. */
export const comparator = {
  "==": CompareResult.Equal,
  "===": CompareResult.Equal,
  ">": CompareResult.Greater,
  "<": CompareResult.Less,
  "!=": CompareResult.NotEqual,
  "!==": CompareResult.NotEqual,
} as const;

/** What a transaction can compare, and the field of the request that has the value. */
export const compareTarget = {
  Value: "value",
  Version: "version",
  Create: "create_revision",
  Mod: "mod_revision",
  Lease: "lease",
} as const satisfies Readonly<Record<keyof typeof CompareTarget, keyof ICompare>>;

/** What can be part of a transaction. */
export interface IOperation {
  op(): Promise<IRequestOp>;
}

type Encoding = "utf8" | "utf-8" | "hex" | "base64" | "base64url" | "latin1" | "ascii" | "binary";

/** Throws Error for a word that is none of a table. */
function assertWord(table: object, word: string, what: string): void {
  if (!Object.hasOwn(table, word))
    throw new Error(`${what} is one of ${Object.keys(table).join(", ")}, not ${word}`);
}

/** A request that is sent when it is awaited. */
abstract class Sent<T> implements PromiseLike<T> {
  protected callOptions: CallOptions | undefined;

  /** Options of the call. */
  options(options: CallOptions | undefined): this {
    this.callOptions = options;
    return this;
  }

  // biome-ignore lint/suspicious/noThenProperty: an await sends it
  then<R = T, E = never>(
    fulfilled?: ((value: T) => R | PromiseLike<R>) | null,
    rejected?: ((reason: unknown) => E | PromiseLike<E>) | null,
  ): Promise<R | E> {
    return this.send().then(fulfilled, rejected);
  }

  catch<E>(rejected: (reason: unknown) => E | PromiseLike<E>): Promise<T | E> {
    return this.send().catch(rejected);
  }

  protected abstract send(): Promise<T>;
}

/** A get, of one key or of many. */
export abstract class RangeBuilder<T> extends Sent<T> implements IOperation {
  protected readonly kv: KVClient;
  protected readonly prefixed: KeyPrefix;
  protected readonly request: IRangeRequest = {};

  constructor(kv: KVClient, prefixed: KeyPrefix) {
    super();
    this.kv = kv;
    this.prefixed = prefixed;
  }

  /** Reads the store as it was at a revision. */
  revision(revision: number | string): this {
    this.request.revision = revision;
    return this;
  }

  /** Whether the member reads its own state without asking the others, which may be older. */
  serializable(isSerializable: boolean): this {
    this.request.serializable = isSerializable;
    return this;
  }

  minModRevision(revision: number | string): this {
    this.request.min_mod_revision = revision;
    return this;
  }

  maxModRevision(revision: number | string): this {
    this.request.max_mod_revision = revision;
    return this;
  }

  minCreateRevision(revision: number | string): this {
    this.request.min_create_revision = revision;
    return this;
  }

  maxCreateRevision(revision: number | string): this {
    this.request.max_create_revision = revision;
    return this;
  }

  async op(): Promise<IRequestOp> {
    return { request_range: this.prefixed.request(this.request) };
  }

  /** Sends it and returns the whole response. */
  exec(): Promise<IRangeResponse> {
    return this.kv.range(this.prefixed.request(this.request), this.callOptions);
  }
}

/** A get of one key; awaited, it is the value as a text. */
export class SingleRangeBuilder extends RangeBuilder<string | null> {
  constructor(kv: KVClient, prefixed: KeyPrefix, key: string | Buffer) {
    super(kv, prefixed);
    this.request.key = toBuffer(key);
    this.request.limit = 1;
  }

  async json(): Promise<unknown> {
    return JSON.parse((await this.string()) ?? "null");
  }

  /** Null for a key that is not there. */
  async string(encoding: Encoding = "utf8"): Promise<string | null> {
    return (await this.buffer())?.toString(encoding) ?? null;
  }

  async number(): Promise<number | null> {
    const text = await this.string();
    return text === null ? null : Number(text);
  }

  async buffer(): Promise<Buffer | null> {
    return (await this.exec()).kvs[0]?.value ?? null;
  }

  async exists(): Promise<boolean> {
    this.request.keys_only = true;
    return (await this.exec()).kvs.length > 0;
  }

  protected override send(): Promise<string | null> {
    return this.string();
  }
}

/** A get of many keys; awaited, it is an object of texts by key. */
export class MultiRangeBuilder extends RangeBuilder<{ [key: string]: string }> {
  constructor(kv: KVClient, prefixed: KeyPrefix) {
    super(kv, prefixed);
    this.all();
  }

  prefix(prefix: string | Buffer): this {
    return this.inRange({ prefix });
  }

  inRange(range: Rangable): this {
    const { start, end } = Range.from(range);
    this.request.key = start;
    this.request.range_end = end;
    return this;
  }

  /** All keys, which is what it is without a range. */
  all(): this {
    return this.prefix("");
  }

  /** @param count the most keys; Infinity for no limit */
  limit(count: number): this {
    this.request.limit = Number.isFinite(count) ? count : 0;
    return this;
  }

  sort(target: keyof typeof SortTarget, order: keyof typeof SortOrder): this {
    assertWord(SortTarget, target, "the target of sort()");
    assertWord(SortOrder, order, "the order of sort()");
    this.request.sort_target = target;
    this.request.sort_order = order;
    return this;
  }

  async count(): Promise<number> {
    this.request.count_only = true;
    return Number((await this.exec()).count);
  }

  async keys(encoding: Encoding = "utf8"): Promise<string[]> {
    return (await this.keyBuffers()).map((key) => key.toString(encoding));
  }

  async keyBuffers(): Promise<Buffer[]> {
    this.request.keys_only = true;
    return (await this.exec()).kvs.map(({ key }) => key);
  }

  json(): Promise<{ [key: string]: unknown }> {
    return this.#values((value) => JSON.parse(value.toString()));
  }

  strings(encoding: Encoding = "utf8"): Promise<{ [key: string]: string }> {
    return this.#values((value) => value.toString(encoding));
  }

  numbers(): Promise<{ [key: string]: number }> {
    return this.#values((value) => Number(value.toString()));
  }

  buffers(): Promise<{ [key: string]: Buffer }> {
    return this.#values((value) => value);
  }

  override async exec(): Promise<IRangeResponse> {
    const response = await super.exec();
    for (const kv of response.kvs) kv.key = this.prefixed.strip(kv.key);
    return response;
  }

  protected override send(): Promise<{ [key: string]: string }> {
    return this.strings();
  }

  async #values<T>(read: (value: Buffer) => T): Promise<{ [key: string]: T }> {
    const { kvs } = await this.exec();
    return Object.fromEntries(kvs.map(({ key, value }) => [key.toString(), read(value)]));
  }
}

/** A deletion of a key or a range. */
export class DeleteBuilder extends Sent<IDeleteRangeResponse> implements IOperation {
  readonly #kv: KVClient;
  readonly #prefixed: KeyPrefix;
  readonly #request: IDeleteRangeRequest = {};

  constructor(kv: KVClient, prefixed: KeyPrefix) {
    super();
    this.#kv = kv;
    this.#prefixed = prefixed;
  }

  key(key: string | Buffer): this {
    return this.inRange(toBuffer(key));
  }

  prefix(prefix: string | Buffer): this {
    return this.inRange({ prefix });
  }

  range(range: Range): this {
    return this.inRange(range);
  }

  /** All keys. */
  all(): this {
    return this.prefix("");
  }

  inRange(range: Rangable): this {
    const { start, end } = Range.from(range);
    this.#request.key = start;
    this.#request.range_end = end;
    return this;
  }

  /** Sends it and returns what was deleted. */
  async getPrevious(): Promise<IKeyValue[]> {
    this.#request.prev_kv = true;
    return (await this.exec()).prev_kvs;
  }

  exec(): Promise<IDeleteRangeResponse> {
    return this.#kv.deleteRange(this.#prefixed.request(this.#request), this.callOptions);
  }

  async op(): Promise<IRequestOp> {
    return { request_delete_range: this.#prefixed.request(this.#request) };
  }

  protected override send(): Promise<IDeleteRangeResponse> {
    return this.exec();
  }
}

/** A put. */
export class PutBuilder extends Sent<IPutResponse> implements IOperation {
  readonly #kv: KVClient;
  readonly #prefixed: KeyPrefix;
  readonly #request: IPutRequest = {};
  #lease: number | string | Promise<number | string> | undefined;

  constructor(kv: KVClient, prefixed: KeyPrefix, key: string | Buffer) {
    super();
    this.#kv = kv;
    this.#prefixed = prefixed;
    this.#request.key = toBuffer(key);
  }

  value(value: string | Buffer | number): this {
    this.#request.value = toBuffer(value);
    return this;
  }

  /** Attaches the key to a lease. */
  lease(lease: number | string | Promise<number | string>): this {
    this.#lease = lease;
    return this;
  }

  /** Leaves the key with the lease that it has. */
  ignoreLease(): this {
    this.#request.ignore_lease = true;
    return this;
  }

  /** Sends it and returns the record before it. */
  async getPrevious(): Promise<IKeyValue & { header: IResponseHeader }> {
    this.#request.prev_kv = true;
    const { prev_kv, header } = await this.exec();
    return { ...prev_kv, header };
  }

  /** Sends it without a value: the key keeps its own and gets a new revision. */
  touch(): Promise<IPutResponse> {
    delete this.#request.value;
    this.#request.ignore_value = true;
    return this.exec();
  }

  async exec(): Promise<IPutResponse> {
    return this.#kv.put(await this.#made(), this.callOptions);
  }

  async op(): Promise<IRequestOp> {
    return { request_put: await this.#made() };
  }

  protected override send(): Promise<IPutResponse> {
    return this.exec();
  }

  async #made(): Promise<IPutRequest> {
    if (this.#lease !== undefined) this.#request.lease = await this.#lease;
    return this.#prefixed.request(this.#request);
  }
}

/** A transaction. */
export class ComparatorBuilder {
  readonly #kv: KVClient;
  readonly #prefixed: KeyPrefix;
  readonly #compare: ICompare[] = [];
  #success: readonly (IRequestOp | IOperation)[] = [];
  #failure: readonly (IRequestOp | IOperation)[] = [];
  #callOptions: CallOptions | undefined;

  constructor(kv: KVClient, prefixed: KeyPrefix) {
    this.#kv = kv;
    this.#prefixed = prefixed;
  }

  options(options: CallOptions | undefined): this {
    this.#callOptions = options;
    return this;
  }

  /** One more comparison; all have to hold. Throws Error for a word that it does not know. */
  and(
    key: string | Buffer,
    column: keyof typeof compareTarget,
    comparison: keyof typeof comparator,
    value: string | Buffer | number,
  ): this {
    assertWord(compareTarget, column, "what is compared");
    assertWord(comparator, comparison, "the comparison");
    this.#compare.push({
      key: this.#prefixed.key(key),
      result: comparator[comparison],
      target: CompareTarget[column],
      [compareTarget[column]]: column === "Value" ? toBuffer(value) : value,
    });
    return this;
  }

  /** What is done if all comparisons hold. */
  // biome-ignore lint/suspicious/noThenProperty: the name in npm's etcd3
  then(...operations: (IRequestOp | IOperation)[]): this {
    this.#success = operations;
    return this;
  }

  /** What is done if one does not hold. */
  else(...operations: (IRequestOp | IOperation)[]): this {
    this.#failure = operations;
    return this;
  }

  async commit(): Promise<ITxnResponse> {
    const made = (operations: readonly (IRequestOp | IOperation)[]) =>
      Promise.all(operations.map(async (one) => ("op" in one ? one.op() : one)));
    const [success, failure] = await Promise.all([made(this.#success), made(this.#failure)]);
    return this.#kv.txn({ compare: this.#compare, success, failure }, this.#callOptions);
  }
}
