/**
 * A driver for unstorage, the storage layer of Nitro and Nuxt: values below a prefix, as they are.
 * One with a time to live has a lease, so that it goes by itself. `watch` tells what other programs
 * change, too.
 */
import { type Client, toUtf8 } from "@quorate/client";

/** Options of a call; `ttl` is in seconds, at least one. */
interface CallOptions {
  readonly ttl?: number;
}

interface Item {
  readonly key: string;
  readonly value: string;
  readonly options?: CallOptions;
}

type WatchCallback = (event: "update" | "remove", key: string) => unknown;

/**
 * What `createStorage({ driver })` takes.
 * @param client stays the program's: dispose() does not close it
 */
export function quorateDriver(client: Client, prefix = "unstorage/") {
  const stop = new AbortController();

  async function read(key: string): Promise<Uint8Array | null> {
    return (await client.get(prefix + key)).kvs[0]?.value ?? null;
  }

  async function write(key: string, value: string | Uint8Array, ttl?: number): Promise<void> {
    if (ttl === undefined) {
      await client.put(prefix + key, value);
      return;
    }
    const { ID: lease } = await client.leases.grant(Math.max(1, Math.ceil(ttl)));
    await client.put(prefix + key, value, { lease });
  }

  async function readText(key: string): Promise<string | null> {
    const value = await read(key);
    return value === null ? null : toUtf8(value);
  }

  return {
    name: "quorate",
    flags: { ttl: true },
    getInstance: () => client,
    async hasItem(key: string): Promise<boolean> {
      return (await client.get(prefix + key, { countOnly: true })).count > 0;
    },
    getItem: readText,
    getItems: (items: readonly { readonly key: string }[]) =>
      Promise.all(items.map(async ({ key }) => ({ key, value: await readText(key) }))),
    getItemRaw: read,
    setItem: (key: string, value: string, { ttl }: CallOptions = {}) => write(key, value, ttl),
    async setItems(items: readonly Item[], { ttl }: CallOptions = {}): Promise<void> {
      await Promise.all(
        items.map(({ key, value, options }) => write(key, value, options?.ttl ?? ttl)),
      );
    },
    setItemRaw: (key: string, value: string | Uint8Array, { ttl }: CallOptions = {}) =>
      write(key, value, ttl),
    async removeItem(key: string): Promise<void> {
      await client.delete(prefix + key);
    },
    async getKeys(base = ""): Promise<string[]> {
      const { kvs } = await client.get(prefix + base, { prefix: true, keysOnly: true });
      return kvs.map(({ key }) => toUtf8(key).slice(prefix.length));
    },
    async clear(base = ""): Promise<void> {
      await client.delete(prefix + base, { prefix: true });
    },
    /** Calls back for each change, in order, until the function that it returns is called. */
    async watch(callback: WatchCallback): Promise<() => void> {
      const ended = new AbortController();
      const signal = AbortSignal.any([stop.signal, ended.signal]);
      const changes = client.follow(prefix, { prefix: true, snapshot: false, signal });
      // From the revision on that it has now.
      await changes.next();
      const tell = async (): Promise<void> => {
        for await (const change of changes) {
          if (change.kind === "synced") continue;
          const key = toUtf8(change.kv.key).slice(prefix.length);
          callback(change.kind === "put" ? "update" : "remove", key);
        }
      };
      // It ends with the client, too; unstorage has no event for that.
      tell().catch(() => {});
      return () => ended.abort();
    },
    dispose(): void {
      stop.abort();
    },
  };
}
