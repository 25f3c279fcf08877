/**
 * What clients do while a cluster's members are replaced, and what they have lost by it: writes at
 * a rate, watches of them, leases that are renewed, and a lock that is held.
 */
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import {
  type Client,
  ClientError,
  type ClientOptions,
  connect,
  type Lock,
  lockNamed,
  type Session,
  type Watch,
} from "@quorate/client";
import { until } from "../../support/until.ts";
import type { Load } from "./move.ts";

/** Where the keys of the writers start. */
const PREFIX = "load/";
/** When a failed write is sent again. */
const REPEAT_MS = 50;
/** Failures that are closer to each other have one cause, such as a change of the leader. */
const ONE_CAUSE_MS = 10_000;
const COMPACT_EVERY_MS = 5000;
/** So many seconds of writes stay when the history is compacted. */
const KEPT_SECONDS = 20;
const TTL_SECONDS = 30;

export interface LoadOptions {
  /** How clients connect; they know all members that there will be. */
  readonly client: ClientOptions & { readonly endpoints: readonly string[] };
  /** The credentials of one who may compact. */
  readonly administrator: ClientOptions["auth"];
  /** Writes a second, of all writers together. */
  readonly rate: number;
  readonly writers: number;
  readonly watches: number;
  readonly leases: number;
}

/** A write that failed for its caller, who has repeated it. */
export interface Failure {
  readonly atMs: number;
  readonly text: string;
  /** Which of the causes, in order, it falls to. */
  readonly cause: number;
}

export class ClientLoad implements Load {
  readonly #options: LoadOptions;
  readonly #clients: readonly Client[];
  readonly #administrator: Client;
  readonly #sessions: Session[] = [];
  readonly #watches: { readonly watch: Watch; events: number; revision: number }[] = [];
  readonly #failures: Failure[] = [];
  #lock: Lock | undefined;
  #running: Promise<unknown> = Promise.resolve();
  readonly #stopping = new AbortController();
  #acknowledged = 0;
  #failedTwice = 0;
  #lastMs = 0;
  #startedMs = 0;
  #longestGapMs = 0;
  #longestGapAtMs = 0;
  #begunRevision = 0;
  #disorder: string | undefined;

  constructor(options: LoadOptions) {
    this.#options = options;
    const { client, administrator } = options;
    const { endpoints } = client;
    // Each begins with another member.
    this.#clients = [0, 1, 2].map((i) =>
      connect({ ...client, endpoints: [...endpoints.slice(i), ...endpoints.slice(0, i)] }),
    );
    this.#administrator = connect({ ...client, ...(administrator && { auth: administrator }) });
  }

  async start(): Promise<void> {
    const { writers, watches, leases } = this.#options;
    const { header } = await this.#client(0).put("begun", "");
    this.#begunRevision = header!.revision;
    for (let i = 0; i < leases; i++) {
      const session = await this.#client(i).session({ ttlSeconds: TTL_SECONDS });
      this.#sessions.push(session);
      await this.#client(i).put(`lease/${i}`, "held", { lease: session.lease });
    }
    const [session] = this.#sessions;
    if (session !== undefined) this.#lock = await lockNamed(this.#client(0), session, "lock");
    for (let i = 0; i < watches; i++) this.#watch(i);
    this.#startedMs = performance.now();
    this.#lastMs = this.#startedMs;
    this.#running = Promise.all([
      this.#compact(),
      ...Array.from({ length: writers }, (_, i) => this.#write(i)),
    ]);
    this.#running.catch(() => {});
  }

  #client(i: number): Client {
    return this.#clients[i % this.#clients.length]!;
  }

  async #write(i: number): Promise<void> {
    const { rate, writers } = this.#options;
    const intervalMs = (1000 * writers) / rate;
    let nextMs = performance.now() + (intervalMs * i) / writers;
    for (let n = 1; !this.#stopping.signal.aborted; n++) {
      await this.#put(this.#client(i), `${PREFIX}${i}`, String(n));
      // What could not be written in time is not made up for.
      nextMs = Math.max(nextMs + intervalMs, performance.now() - intervalMs);
      await delay(Math.max(0, nextMs - performance.now()));
    }
  }

  /** Puts until it is acknowledged, and notes what failed. */
  async #put(client: Client, key: string, value: string): Promise<void> {
    const causes = new Set<number>();
    for (;;) {
      try {
        await client.put(key, value);
        break;
      } catch (error) {
        if (!(error instanceof ClientError)) throw error;
        causes.add(this.#failed(error));
        await delay(REPEAT_MS);
      }
    }
    if (causes.size > 1) this.#failedTwice++;
    this.#acknowledged++;
    const nowMs = performance.now();
    if (nowMs - this.#lastMs > this.#longestGapMs) {
      this.#longestGapMs = nowMs - this.#lastMs;
      this.#longestGapAtMs = nowMs;
    }
    this.#lastMs = nowMs;
  }

  #failed({ message }: ClientError): number {
    const atMs = performance.now();
    const last = this.#failures.at(-1);
    const isSame = last !== undefined && atMs - last.atMs < ONE_CAUSE_MS;
    const cause = last === undefined ? 0 : last.cause + (isSame ? 0 : 1);
    this.#failures.push({ atMs, text: message, cause });
    return cause;
  }

  #watch(i: number): void {
    const watch = this.#client(i).watch(PREFIX, { prefix: true, revision: this.#begunRevision });
    const seen = { watch, events: 0, revision: 0 };
    this.#watches.push(seen);
    void (async () => {
      for await (const { kv } of watch.changes()) {
        if (kv.modRevision <= seen.revision)
          this.#disorder ??= `watch ${i}: ${kv.modRevision} follows ${seen.revision}`;
        seen.revision = kv.modRevision;
        seen.events++;
      }
    })().catch((error: Error) => {
      this.#disorder ??= `watch ${i} ended: ${error.message}`;
    });
  }

  async #compact(): Promise<void> {
    const { rate } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await delay(COMPACT_EVERY_MS, undefined, { signal }).catch(() => {});
      try {
        const { header } = await this.#administrator.get("begun", { timeoutMs: 5000 });
        const revision = header!.revision - KEPT_SECONDS * rate;
        if (revision > 1 && !signal.aborted) await this.#administrator.compact(revision);
      } catch (error) {
        // The next one does it.
        if (!(error instanceof ClientError)) throw error;
      }
    }
  }

  /** Ends the writers, and judges. Rejects with an AssertionError where something was lost. */
  async judge(): Promise<string> {
    this.#stopping.abort();
    await this.#running;
    const seconds = (performance.now() - this.#startedMs) / 1000;
    const client = this.#client(0);
    const { kvs } = await client.get(PREFIX, { prefix: true });
    const changes = kvs.reduce((sum, { version }) => sum + Number(version), 0);
    const newest = Math.max(...kvs.map(({ modRevision }) => modRevision));
    assert.ok(changes >= this.#acknowledged, `${changes} changes, ${this.#acknowledged} writes`);
    await until(
      "the watches have seen all",
      () =>
        this.#disorder !== undefined || this.#watches.every(({ revision }) => revision === newest),
    );
    assert.equal(this.#disorder, undefined);
    for (const { events } of this.#watches) assert.equal(events, changes, "each change once");
    const held = await client.get("lease/", { prefix: true });
    assert.deepEqual(
      held.kvs.map(({ lease, version }) => [lease, Number(version)]),
      this.#sessions.map(({ lease }) => [lease, 1]),
      "each lease has its key",
    );
    for (const { signal } of this.#sessions) assert.ok(!signal.aborted, "a lease was lost");
    const locks = await client.get("lock", { prefix: true });
    assert.equal(locks.kvs.length, 1, "the lock is held");
    assert.equal(this.#failedTwice, 0, `writes failed for more than one reason: ${this.#causes()}`);
    return (
      `${this.#acknowledged} writes in ${seconds.toFixed(1)} s ` +
      `(${(this.#acknowledged / seconds).toFixed(0)} a second), ${this.#failures.length} failed once ` +
      `and were repeated, longest gap ${this.#longestGapMs.toFixed(0)} ms at ` +
      `${((this.#longestGapAtMs - this.#startedMs) / 1000).toFixed(1)} s; ` +
      `${this.#watches.length} watches saw ${changes} changes once each, in order; ` +
      `${this.#sessions.length} leases and a lock were kept${this.#causes()}`
    );
  }

  #causes(): string {
    const lines: string[] = [];
    for (const [cause, of] of Object.entries(
      Object.groupBy(this.#failures, (one) => String(one.cause)),
    )) {
      const times = of!.map(({ atMs }) => (atMs - this.#startedMs) / 1000);
      const texts = [...new Set(of!.map(({ text }) => text))].join("; ");
      const when = `${Math.min(...times).toFixed(1)} to ${Math.max(...times).toFixed(1)} s`;
      lines.push(`\n  failures ${cause}, ${when}: ${of!.length}: ${texts}`);
    }
    return lines.join("");
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    for (const { watch } of this.#watches) watch.cancel();
    await this.#lock?.release().catch(() => {});
    for (const session of this.#sessions) await session.close().catch(() => {});
    for (const client of [...this.#clients, this.#administrator]) client.close();
  }
}
