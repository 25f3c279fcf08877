/** The keys below a prefix, as npm's etcd3 has them: gets, puts, transactions, leases, watches. */
import { Buffer } from "node:buffer";
import { waitChange } from "../src/queue.ts";
import {
  ComparatorBuilder,
  type comparator,
  type compareTarget,
  DeleteBuilder,
  MultiRangeBuilder,
  PutBuilder,
  SingleRangeBuilder,
} from "./builder.ts";
import { Election } from "./election.ts";
import { type ILeaseOptions, Lease } from "./lease.ts";
import { Lock } from "./lock.ts";
import type { ConnectionPool } from "./pool.ts";
import { KeyPrefix, type Rangable, Range, toBuffer } from "./range.ts";
import { KVClient, LeaseClient, WatchClient } from "./services.ts";
import { type ISTMOptions, SoftwareTransaction } from "./stm.ts";
import { WatchBuilder, WatchManager } from "./watch.ts";

export class Namespace {
  readonly kv: KVClient;
  readonly leaseClient: LeaseClient;
  readonly watchClient: WatchClient;
  readonly prefix: Buffer;
  protected readonly pool: ConnectionPool;
  protected readonly watchManager: WatchManager = new WatchManager();
  readonly #prefixed: KeyPrefix;

  /** Made by client.namespace(). */
  constructor(prefix: Buffer, pool: ConnectionPool) {
    this.prefix = prefix;
    this.pool = pool;
    this.#prefixed = new KeyPrefix(prefix);
    this.kv = new KVClient(pool);
    this.leaseClient = new LeaseClient(pool);
    this.watchClient = new WatchClient(pool);
  }

  /** A get of one key. */
  get(key: string | Buffer): SingleRangeBuilder {
    return new SingleRangeBuilder(this.kv, this.#prefixed, key);
  }

  /** A get of many keys; all, without a range. */
  getAll(): MultiRangeBuilder {
    return new MultiRangeBuilder(this.kv, this.#prefixed);
  }

  put(key: string | Buffer): PutBuilder {
    return new PutBuilder(this.kv, this.#prefixed, key);
  }

  delete(): DeleteBuilder {
    return new DeleteBuilder(this.kv, this.#prefixed);
  }

  /** A lease of so many seconds, which the client renews. Throws RangeError for less than one. */
  lease(ttl: number, options?: ILeaseOptions): Lease {
    return new Lease(this.pool, this.#prefixed, ttl, options);
  }

  lock(key: string | Buffer): Lock {
    return new Lock(this.pool, this.#prefixed, key);
  }

  /** A function as a transaction. */
  stm(options: Partial<ISTMOptions> = {}): SoftwareTransaction {
    return new SoftwareTransaction(options, this.#prefixed, this.kv);
  }

  /** A transaction that begins with a comparison. */
  if(
    key: string | Buffer,
    column: keyof typeof compareTarget,
    comparison: keyof typeof comparator,
    value: string | Buffer | number,
  ): ComparatorBuilder {
    return new ComparatorBuilder(this.kv, this.#prefixed).and(key, column, comparison, value);
  }

  watch(): WatchBuilder {
    return new WatchBuilder(this.pool, this.watchManager, this.#prefixed);
  }

  range(range: Rangable): Range {
    return Range.from(range);
  }

  /** The keys below a further prefix. */
  namespace(prefix: string | Buffer): Namespace {
    return new Namespace(Buffer.concat([this.prefix, toBuffer(prefix)]), this.pool);
  }

  /** An election by its name. @param ttl seconds after which a candidate that is gone is out */
  election(name: string, ttl?: number): Election {
    return new Election(this, name, ttl);
  }

  /**
   * Resolves at the next change of any key of it, or where the history is compacted. Rejects with
   * the signal's reason, and with ClientError.
   */
  changed(revision: number, signal: AbortSignal): Promise<void> {
    return waitChange(this.pool.client, undefined, this.prefix, { prefix: true, revision, signal });
  }

  /** As changed(), at the deletion of one key. */
  deleted(key: string | Buffer, revision: number, signal: AbortSignal): Promise<void> {
    return waitChange(this.pool.client, "delete", this.#prefixed.key(key), { revision, signal });
  }
}
