/**
 * Reads the mod revisions of keys for many requests with one request to the cluster, so that a
 * reader that holds an object knows whether it is the present one without reading its value.
 *
 *     gets of one turn, and those that came during the read before -> one transaction of ranges
 *
 * A request uses only a read that began after it: an earlier one may miss a write that the client
 * has seen acknowledged.
 */
import type { Clock } from "@quorate/host";
import { defined, fromUtf8 } from "@quorate/proto";
import type { ClusterClient } from "./cluster-client.ts";

/** Keys of one transaction; etcd refuses more than 128 operations (--max-txn-ops). */
export const MAX_KEYS_PER_READ = 100;

export class KeyRevisions {
  readonly #client: Pick<ClusterClient, "modRevisions">;
  readonly #clock: Pick<Clock, "endOfTurn">;
  /** The keys of the next read; one entry for all who want the same key. */
  #waiting = new Map<string, PromiseWithResolvers<number>>();
  #isPlanned = false;
  #running = 0;

  constructor(client: Pick<ClusterClient, "modRevisions">, clock: Pick<Clock, "endOfTurn">) {
    this.#client = client;
    this.#clock = clock;
  }

  /**
   * The key's mod revision at some moment after this call; 0 where there is no such key. Rejects
   * with the cluster's errors.
   * @param storeKey as in the store
   */
  read(storeKey: string): Promise<number> {
    let waiting = this.#waiting.get(storeKey);
    if (waiting === undefined) {
      waiting = Promise.withResolvers();
      this.#waiting.set(storeKey, waiting);
      this.#plan();
    }
    return waiting.promise;
  }

  /** Keys that wait for the next read. */
  get waiting(): number {
    return this.#waiting.size;
  }

  #plan(): void {
    if (this.#isPlanned || this.#running > 0) return;
    this.#isPlanned = true;
    this.#clock.endOfTurn(() => {
      this.#isPlanned = false;
      this.#start();
    });
  }

  #start(): void {
    const all = [...this.#waiting];
    this.#waiting = new Map();
    for (let at = 0; at < all.length; at += MAX_KEYS_PER_READ) {
      this.#running++;
      void this.#readTogether(all.slice(at, at + MAX_KEYS_PER_READ));
    }
  }

  async #readTogether(
    waiting: readonly (readonly [string, PromiseWithResolvers<number>])[],
  ): Promise<void> {
    try {
      const revisions = await this.#client.modRevisions(waiting.map(([key]) => fromUtf8(key)));
      for (const [index, [, { resolve }]] of waiting.entries())
        resolve(defined(revisions[index], "the revision"));
    } catch (error) {
      for (const [, { reject }] of waiting) reject(error);
    }
    this.#running--;
    if (this.#waiting.size > 0) this.#plan();
  }
}
