/** The lock of npm's etcd3: a key that exists while someone holds it. */
import type { Buffer } from "node:buffer";
import { ComparatorBuilder, PutBuilder } from "./builder.ts";
import { EtcdLockFailedError } from "./errors.ts";
import { Lease } from "./lease.ts";
import type { CallOptions } from "./options.ts";
import type { ConnectionPool } from "./pool.ts";
import type { KeyPrefix } from "./range.ts";
import { KVClient } from "./services.ts";

const DEFAULT_TTL_SECONDS = 30;

/**
 * A lock that is taken at once or not at all, with the key of npm's etcd3, so that both exclude
 * each other. Those who may wait use lockNamed(), whose lock programs in Go see too.
 */
export class Lock {
  readonly #pool: ConnectionPool;
  readonly #prefixed: KeyPrefix;
  readonly #key: string | Buffer;
  #ttlSeconds = DEFAULT_TTL_SECONDS;
  #lease: Lease | undefined;
  #callOptions: CallOptions | undefined;

  /** Made by client.lock(). */
  constructor(pool: ConnectionPool, prefixed: KeyPrefix, key: string | Buffer) {
    this.#pool = pool;
    this.#prefixed = prefixed;
    this.#key = key;
  }

  /** The seconds after which it is free if its holder is gone. Throws once it is acquired. */
  ttl(seconds: number): this {
    if (this.#lease !== undefined)
      throw new Error("Cannot set a lock TTL after acquiring the lock");
    this.#ttlSeconds = seconds;
    return this;
  }

  options(options: CallOptions): this {
    this.#callOptions = options;
    return this;
  }

  /** Takes it. Rejects with EtcdLockFailedError if another one holds it. */
  async acquire(): Promise<this> {
    const lease = new Lease(this.#pool, this.#prefixed, this.#ttlSeconds);
    this.#lease = lease;
    const kv = new KVClient(this.#pool);
    const put = new PutBuilder(kv, this.#prefixed, this.#key).value("").lease(await lease.grant());
    const { succeeded } = await new ComparatorBuilder(kv, this.#prefixed)
      .and(this.#key, "Create", "==", 0)
      .then(put)
      .options(this.#callOptions)
      .commit();
    if (succeeded) return this;
    await this.release().catch(() => {});
    throw new EtcdLockFailedError(`another one holds the lock ${this.#key}`);
  }

  /** The lease of the lock; null before it is acquired. */
  async leaseId(): Promise<string | null> {
    return this.#lease === undefined ? null : this.#lease.grant();
  }

  /** Gives it back. Throws if it was never acquired. */
  release(): Promise<void> {
    if (this.#lease === undefined) throw new Error("the lock is not acquired");
    return this.#lease.revoke(this.#callOptions);
  }

  /** Takes it, runs a function, and gives it back. */
  async do<T>(run: () => T | Promise<T>): Promise<T> {
    await this.acquire();
    try {
      return await run();
    } finally {
      await this.release();
    }
  }
}
