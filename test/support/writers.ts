/**
 * Clients that write without pause while a test breaks things, and remember which writes were
 * acknowledged. Each write has a key of its own, so that afterwards each acknowledged one can be
 * looked for on every member.
 */
import { setTimeout as delay } from "node:timers/promises";
import { fromLatin1, KVService } from "@quorate/proto";
import { TestClient } from "./client.ts";
import type { TestCluster } from "./cluster.ts";

/** After this long without an answer a writer turns to another member, as a real client would. */
const callLimitMs = 1000;
const backOffMs = 20;

/** Where the keys of writers start. */
export const writerPrefix = "w/";

export class Writers {
  readonly #cluster: TestCluster;
  readonly #valueBytes: number;
  readonly #pauseMs: number;
  /** What was acknowledged: key to value. */
  readonly acknowledged = new Map<string, string>();
  /** The longest time in milliseconds that passed between two acknowledgements. */
  longestGapMs = 0;
  #lastAckAt: number | undefined;
  #stopped = false;
  #loops: Promise<void>[] = [];
  #waiters: { readonly since: number; readonly done: () => void }[] = [];

  /**
   * `count` writers, each on a connection of its own, spread over the members. Values are filled up
   * to `valueBytes`. Each rests for `pauseMs` after a write: tests in which the steps count, and not
   * the load, leave the processors to the members and to other tests so.
   */
  constructor(cluster: TestCluster, count: number, valueBytes = 16, pauseMs = 0) {
    this.#cluster = cluster;
    this.#valueBytes = valueBytes;
    this.#pauseMs = pauseMs;
    for (let index = 0; index < count; index++) this.#loops.push(this.#run(index));
  }

  /** Resolves once `count` writes more than now are acknowledged. */
  async more(count: number): Promise<void> {
    const goal = this.acknowledged.size + count;
    while (this.acknowledged.size < goal) await this.nextStarted();
  }

  /**
   * Resolves at the first acknowledgement of a write that starts after this call; returns the
   * milliseconds from call to then.
   */
  async nextStarted(): Promise<number> {
    const since = performance.now();
    await new Promise<void>((done) => this.#waiters.push({ since, done }));
    return performance.now() - since;
  }

  /** Ends the writers; resolves when none has a call open. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#loops);
  }

  async #run(index: number): Promise<void> {
    const { members, identity } = this.#cluster;
    let member = index % members.length;
    let client = new TestClient(members[member].clientAddress, identity);
    for (let turn = 0; !this.#stopped; turn++) {
      const key = `${writerPrefix}${index}/${turn}`;
      const value = `${index}.${turn}.`.padEnd(this.#valueBytes, "v");
      const startedAt = performance.now();
      try {
        await client.call(
          KVService.methods.Put,
          { key: fromLatin1(key), value: fromLatin1(value) },
          callLimitMs,
        );
      } catch {
        // The write may have happened or not; nothing is promised about it. A key is never written
        // twice.
        client.close();
        member = (member + 1) % members.length;
        client = new TestClient(members[member].clientAddress, identity);
        if (!this.#stopped) await delay(backOffMs);
        continue;
      }
      this.acknowledged.set(key, value);
      const now = performance.now();
      if (this.#lastAckAt !== undefined)
        this.longestGapMs = Math.max(this.longestGapMs, now - this.#lastAckAt);
      this.#lastAckAt = now;
      const waiting = this.#waiters;
      this.#waiters = waiting.filter((waiter) => startedAt < waiter.since);
      for (const waiter of waiting) if (startedAt >= waiter.since) waiter.done();
      if (this.#pauseMs > 0) await delay(this.#pauseMs);
    }
    client.close();
  }
}
