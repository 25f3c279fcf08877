/**
 * Transactions as functions: what the function reads is of one revision, what it writes is made all
 * at once, and only if nothing that it read or writes has changed since; else it runs again. That
 * is the serializable snapshot of etcd's Go client (client/v3/concurrency/stm.go).
 *
 *   await client.transaction(async (t) => {
 *     const stock = Number((await t.getText("stock")) ?? 0);
 *     if (stock > 0) t.put("stock", String(stock - 1));
 *   });
 */
import { Backoff, checkOptions, INTEGER } from "@quorate/host";
import {
  CodedError,
  type Compare,
  type KeyValue,
  type RequestOp,
  toLatin1,
  toUtf8,
} from "@quorate/proto";
import { WAIT_SHAPE, type WaitOptions } from "./call-options.ts";
import { pause } from "./caller.ts";
import { abortError, ClientError } from "./errors.ts";
import type { KvCaller } from "./kv-caller.ts";
import {
  type Bytes,
  compareModRevision,
  opDelete,
  opGet,
  opPut,
  type PutOptions,
  toBytes,
} from "./requests.ts";
import type { OpResult } from "./responses.ts";
import { Wait } from "./wait.ts";

/** What client.transaction() takes. */
export interface TransactionOptions extends WaitOptions {
  /** How often the function runs at most; default 20. */
  readonly maxAttempts?: number;
}

/** Others changed what the function read, at each of its attempts. */
export class ConflictError extends CodedError<"Conflict"> {
  constructor(attempts: number) {
    super(
      "ConflictError",
      "Conflict",
      `the transaction met a conflict at each of ${attempts} attempts`,
    );
  }
}

const MAX_ATTEMPTS = 20;
/** Pauses after conflicts. */
const CONFLICTS = { firstMs: 1, mostMs: 100 };

const SHAPE = { ...WAIT_SHAPE, maxAttempts: INTEGER };

/** A key that was read, or that others may write. */
interface Read {
  readonly key: Uint8Array;
  readonly kv: KeyValue | undefined;
}

/** A write that waits for the end of the function. */
interface Write {
  readonly key: Uint8Array;
  readonly value: Uint8Array | undefined;
  readonly op: RequestOp;
}

/** What the function of a transaction reads and writes by. It is of use only while that runs. */
export class Transaction {
  readonly #client: KvCaller;
  readonly #signal: AbortSignal;
  /** What was read, by key in latin1. */
  readonly #reads = new Map<string, Read>();
  readonly #writes = new Map<string, Write>();
  /** Records that the attempt before fetched when it met a conflict. */
  readonly #fetched: ReadonlyMap<string, KeyValue | undefined>;
  /** The revision of all that is read; 0 until the first read. */
  #revision: number;

  /** Made by Client.transaction(). */
  constructor(client: KvCaller, signal: AbortSignal, before?: Conflict) {
    this.#client = client;
    this.#signal = signal;
    this.#fetched = before?.records ?? new Map();
    this.#revision = before?.revision ?? 0;
  }

  /**
   * The value of a key: what the function itself wrote, else of the transaction's revision.
   * Undefined if there is none. Rejects with ClientError.
   */
  async get(key: Bytes): Promise<Uint8Array | undefined> {
    const bytes = toBytes("get", "key", key);
    const name = toLatin1(bytes);
    const written = this.#writes.get(name);
    if (written !== undefined) return written.value;
    let read = this.#reads.get(name);
    if (read === undefined) {
      const kv = this.#fetched.has(name) ? this.#fetched.get(name) : await this.#load(bytes);
      read = { key: bytes, kv };
      this.#reads.set(name, read);
    }
    return read.kv?.value;
  }

  /** The same as a text. */
  async getText(key: Bytes): Promise<string | undefined> {
    const value = await this.get(key);
    return value === undefined ? undefined : toUtf8(value);
  }

  put(key: Bytes, value: Bytes, options: Pick<PutOptions, "lease"> = {}): void {
    const bytes = toBytes("put", "key", key);
    const op = opPut(bytes, value, options);
    this.#writes.set(toLatin1(bytes), { key: bytes, value: toBytes("put", "value", value), op });
  }

  delete(key: Bytes): void {
    const bytes = toBytes("delete", "key", key);
    this.#writes.set(toLatin1(bytes), { key: bytes, value: undefined, op: opDelete(bytes) });
  }

  async #load(key: Uint8Array): Promise<KeyValue | undefined> {
    const { header, kvs } = await this.#client.get(key, {
      revision: this.#revision,
      signal: this.#signal,
    });
    if (this.#revision === 0) this.#revision = header.revision;
    return kvs[0];
  }

  /** Makes the writes. @returns what others changed, if that is why nothing was made */
  async commit(): Promise<Conflict | undefined> {
    // All that was read is of one revision already.
    if (this.#writes.size === 0) return undefined;
    const reads = [...this.#reads.entries()];
    const compare: Compare[] = reads.map(([, { key, kv }]) =>
      compareModRevision(key, "=", kv?.modRevision ?? 0),
    );
    if (this.#revision > 0)
      for (const [name, { key }] of this.#writes)
        if (!this.#reads.has(name)) compare.push(compareModRevision(key, "<", this.#revision + 1));
    const parts = {
      compare,
      success: [...this.#writes.values()].map(({ op }) => op),
      failure: reads.map(([, { key }]) => opGet(key)),
    };
    const result = await this.#client.txn(parts, { signal: this.#signal });
    if (result.succeeded) return undefined;
    const records = result.responses.map(recordOf);
    return {
      revision: result.header.revision,
      records: new Map(reads.map(([name], i) => [name, records[i]])),
    };
  }
}

/** The state that refused an attempt: what it read, as of `revision`. */
export interface Conflict {
  readonly revision: number;
  readonly records: ReadonlyMap<string, KeyValue | undefined>;
}

function recordOf(response: OpResult): KeyValue | undefined {
  return response.kind === "get" ? response.result.kvs[0] : undefined;
}

/** Runs the function until its transaction is made. See Client.transaction(). */
export async function runTransaction<T>(
  client: KvCaller,
  body: (transaction: Transaction) => Promise<T>,
  options: TransactionOptions,
): Promise<T> {
  checkOptions("transaction", options, SHAPE);
  const { maxAttempts = MAX_ATTEMPTS, ...waits } = options;
  using wait = new Wait(client.timer, waits);
  const backoff = new Backoff(CONFLICTS);
  let conflict: Conflict | undefined;
  for (let attempt = 1; attempt <= maxAttempts; attempt++) {
    if (wait.signal.aborted) throw abortError(wait.signal, { attempts: attempt - 1 });
    try {
      const transaction = new Transaction(client, wait.signal, conflict);
      const result = await body(transaction);
      conflict = await transaction.commit();
      if (conflict === undefined) return result;
    } catch (error) {
      // What was read first has been dropped from the history meanwhile.
      if (!(error instanceof ClientError) || error.code !== "Compacted") throw error;
      conflict = undefined;
    }
    await pause(client.timer, backoff.nextMs(), wait.signal);
  }
  throw new ConflictError(maxAttempts);
}
