/**
 * A storage adapter for Keyv 6: values below a prefix, as JSON with the time of their end. A key
 * with an end has a lease, so that it goes by itself; the time in the value is exact, the lease's
 * is in whole seconds.
 */
import { EventEmitter } from "node:events";
import { type Client, json, type Namespace } from "@quorate/client";

interface Stored {
  readonly value: unknown;
  /** Milliseconds since 1970. */
  readonly expires?: number | undefined;
}

/** An entry of setMany. */
interface Given {
  readonly key: string;
  readonly value: unknown;
  readonly expires?: number | undefined;
}

export class QuorateStore extends EventEmitter {
  /** Set by Keyv. */
  namespace: string | undefined;
  /** What says to Keyv that `set` takes the time of the end. */
  readonly capabilities = { expires: true };
  readonly #client: Client;
  readonly #prefix: string;

  /** @param client stays the program's: disconnect() does not close it */
  constructor(client: Client, prefix = "keyv/") {
    super();
    this.#client = client;
    this.#prefix = prefix;
  }

  get #values(): Namespace<Stored> {
    const below = this.namespace === undefined ? "" : `${this.namespace}:`;
    return this.#client.namespace(`${this.#prefix}${below}`, json<Stored>());
  }

  async get<T>(key: string): Promise<T | undefined> {
    const stored = (await this.#values.get(key))?.value;
    return stored !== undefined && isAlive(stored) ? (stored.value as T) : undefined;
  }

  async set(key: string, value: unknown, expires?: number): Promise<boolean> {
    if (expires === undefined) {
      await this.#values.put(key, { value });
      return true;
    }
    const seconds = Math.max(1, Math.ceil((expires - Date.now()) / 1000));
    const { ID: lease } = await this.#client.leases.grant(seconds);
    await this.#values.put(key, { value, expires }, { lease });
    return true;
  }

  delete(key: string): Promise<boolean> {
    return this.#values.delete(key);
  }

  async has(key: string): Promise<boolean> {
    const stored = (await this.#values.get(key))?.value;
    return stored !== undefined && isAlive(stored);
  }

  async clear(): Promise<void> {
    await this.#client.delete(this.#values.prefix, { prefix: true });
  }

  getMany<T>(keys: readonly string[]): Promise<(T | undefined)[]> {
    return Promise.all(keys.map((key) => this.get<T>(key)));
  }

  setMany(entries: readonly Given[]): Promise<boolean[]> {
    return Promise.all(entries.map(({ key, value, expires }) => this.set(key, value, expires)));
  }

  deleteMany(keys: readonly string[]): Promise<boolean[]> {
    return Promise.all(keys.map((key) => this.delete(key)));
  }

  hasMany(keys: readonly string[]): Promise<boolean[]> {
    return Promise.all(keys.map((key) => this.has(key)));
  }

  async *iterator<T>(): AsyncGenerator<[string, T], void> {
    for await (const { key, value } of this.#values.entries())
      if (isAlive(value)) yield [key, value.value as T];
  }

  async disconnect(): Promise<void> {}
}

function isAlive({ expires }: Stored): boolean {
  return expires === undefined || Date.now() < expires;
}
