/**
 * The keys below a prefix as a map of a program's own values: keys are texts without the prefix,
 * values go through a codec.
 *
 *   const config = client.namespace("config/", json(schema));
 *   await config.put("web", { port: 80 });
 *   for await (const change of config.follow()) if (change.kind === "put") apply(change.value);
 */
import { check, FLAG, ID, INTEGER, TEXT } from "@quorate/host";
import { type KeyValue, toUtf8 } from "@quorate/proto";
import { CALL_SHAPE, type CallOptions, splitOptions, type WaitOptions } from "./call-options.ts";
import type { ValueCodec } from "./codec.ts";
import { type FollowOptions, follow } from "./follow.ts";
import type { KvCaller } from "./kv-caller.ts";
import { getEach } from "./range-stream.ts";
import type { PutOptions } from "./requests.ts";
import type { Transaction } from "./transaction.ts";

/** A key with its value. */
export interface Entry<Out> {
  /** Without the namespace's prefix. */
  readonly key: string;
  readonly value: Out;
  /** The revision of its last change. */
  readonly revision: number;
  /** The record as the store has it, with the whole key. */
  readonly kv: KeyValue;
}

/** A change below the prefix; "synced" as that of `Followed`. */
export type EntryChange<Out> =
  | (Entry<Out> & { readonly kind: "put" })
  | { readonly kind: "delete"; readonly key: string; readonly revision: number }
  | { readonly kind: "synced"; readonly revision: number };

/** What a transaction does below the prefix. */
export interface NamespaceTransaction<Out, In> {
  /** Rejects with ClientError, and with InvalidValueError. */
  get(key: string): Promise<Out | undefined>;
  /** Rejects with InvalidValueError. Await it before the transaction's function ends. */
  put(key: string, value: In): Promise<void>;
  delete(key: string): void;
}

const GET_CALL = { revision: INTEGER, serializable: FLAG, ...CALL_SHAPE };
const PUT_CALL = { lease: ID, ...CALL_SHAPE };

/** A map below a prefix, from texts to values of a codec. */
export class Namespace<Out, In = Out> {
  readonly prefix: string;
  readonly #caller: KvCaller;
  readonly #codec: ValueCodec<Out, In>;

  /** Made by Client.namespace(). */
  constructor(caller: KvCaller, prefix: string, codec: ValueCodec<Out, In>) {
    check("namespace", "prefix", prefix, TEXT);
    this.#caller = caller;
    this.prefix = prefix;
    this.#codec = codec;
  }

  /** Undefined where there is no such key. Rejects with ClientError, and with InvalidValueError. */
  async get(
    key: string,
    options: { revision?: number; serializable?: boolean } & CallOptions = {},
  ): Promise<Entry<Out> | undefined> {
    const [own, call] = splitOptions("get", options, GET_CALL);
    const { kvs } = await this.#caller.get(this.#whole("get", key), { ...own, ...call });
    return kvs[0] === undefined ? undefined : this.#entry(kvs[0]);
  }

  /**
   * All entries, by ascending keys and of one revision, however many there are. Rejects with
   * ClientError, and with InvalidValueError.
   */
  async *entries(
    options: { revision?: number } & WaitOptions = {},
  ): AsyncGenerator<Entry<Out>, undefined> {
    for await (const kv of getEach(this.#caller, this.prefix, { ...options, prefix: true }))
      yield await this.#entry(kv);
  }

  /** Returns the revision of the change. Rejects with ClientError, and with InvalidValueError. */
  async put(
    key: string,
    value: In,
    options: Pick<PutOptions, "lease"> & CallOptions = {},
  ): Promise<number> {
    const [own, call] = splitOptions("put", options, PUT_CALL);
    const whole = this.#whole("put", key);
    const encoded = await this.#codec.encode(value, whole);
    return (await this.#caller.put(whole, encoded, { ...own, ...call })).header.revision;
  }

  /** Returns whether there was such a key. Rejects with ClientError. */
  async delete(key: string, options: CallOptions = {}): Promise<boolean> {
    return (await this.#caller.delete(this.#whole("delete", key), options)).deleted > 0;
  }

  /** All entries and then every change. Throws as follow() does, and InvalidValueError. */
  async *follow(
    options: Omit<FollowOptions, "prefix" | "fromKey" | "rangeEnd" | "prevKv"> = {},
  ): AsyncGenerator<EntryChange<Out>, undefined> {
    for await (const change of follow(this.#caller, this.prefix, { ...options, prefix: true })) {
      if (change.kind === "put") yield { kind: "put", ...(await this.#entry(change.kv)) };
      else if (change.kind === "synced") yield change;
      else {
        const { key, modRevision } = change.kv;
        yield { kind: "delete", key: this.#own(key), revision: modRevision };
      }
    }
  }

  /** Reads and writes of this namespace in a transaction. */
  within(transaction: Transaction): NamespaceTransaction<Out, In> {
    return {
      get: async (key) => {
        const whole = this.#whole("get", key);
        const value = await transaction.get(whole);
        return value === undefined ? undefined : this.#codec.decode(value, whole);
      },
      put: async (key, value) => {
        const whole = this.#whole("put", key);
        transaction.put(whole, await this.#codec.encode(value, whole));
      },
      delete: (key) => transaction.delete(this.#whole("delete", key)),
    };
  }

  async #entry(kv: KeyValue): Promise<Entry<Out>> {
    const whole = toUtf8(kv.key);
    const value = await this.#codec.decode(kv.value, whole);
    return { key: whole.slice(this.prefix.length), value, revision: kv.modRevision, kv };
  }

  #whole(call: string, key: string): string {
    check(call, "key", key, TEXT);
    return this.prefix + key;
  }

  #own(key: Uint8Array): string {
    return toUtf8(key).slice(this.prefix.length);
  }
}
