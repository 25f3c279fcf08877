/**
 * A client that keeps a copy of all objects, as client-go's informers do: a list, then watches,
 * each from where the last one ended. Counters only grow by one, so it sees by itself whether an
 * event is missing or comes twice.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { ApiClient, StreamEvent } from "./api-client.ts";
import { SELECTOR } from "./counters.ts";

const RETRY_MS = 100;

export class Informer {
  readonly #clients: readonly ApiClient[];
  readonly #path: string;
  /** Counter values by name. */
  readonly counters = new Map<string, number>();
  readonly problems: string[] = [];
  /** Lists, the first included. */
  lists = 0;
  watches = 0;
  events = 0;
  #revision = 0;
  #next: number;
  #isOver = false;
  #abort = new AbortController();

  /** @param first which of the servers it begins with */
  constructor(clients: readonly ApiClient[], path: string, first: number) {
    this.#clients = clients;
    this.#path = path;
    this.#next = first;
  }

  async run(): Promise<void> {
    while (!this.#isOver) {
      const client = this.#clients[this.#next++ % this.#clients.length];
      try {
        if (this.#revision === 0) await this.#list(client);
        await this.#watch(client);
      } catch {
        // The server is gone, or on its way: the next one may be there.
        if (!this.#isOver) await delay(RETRY_MS);
      }
    }
  }

  stop(): void {
    this.#isOver = true;
    this.#abort.abort();
  }

  async #list(client: ApiClient): Promise<void> {
    const { code, body } = await client.call("GET", `${this.#path}?labelSelector=${SELECTOR}`);
    if (code !== 200) throw new Error(`list: ${code}`);
    this.lists++;
    this.counters.clear();
    for (const { metadata, data } of body.items)
      this.counters.set(metadata.name, Number(data.count));
    this.#revision = Number(body.metadata.resourceVersion);
  }

  async #watch(client: ApiClient): Promise<void> {
    this.watches++;
    this.#abort = new AbortController();
    const path = `${this.#path}?watch=1&allowWatchBookmarks=true&labelSelector=${SELECTOR}&resourceVersion=${this.#revision}`;
    for await (const event of client.watch(path, this.#abort.signal)) {
      if (event.type === "ERROR") {
        if (event.object.code === 410) this.#revision = 0;
        await delay(RETRY_MS);
        return;
      }
      this.#take(event);
    }
  }

  #take({ type, object }: StreamEvent): void {
    const { name, resourceVersion } = object.metadata;
    const revision = Number(resourceVersion);
    if (type === "BOOKMARK") {
      if (revision < this.#revision)
        this.problems.push(`bookmark ${revision} after ${this.#revision}`);
      this.#revision = revision;
      return;
    }
    this.events++;
    const count = Number(object.data.count);
    const before = this.counters.get(name);
    const isNext = type === "ADDED" ? before === undefined : count === (before ?? 0) + 1;
    if (!isNext || revision <= this.#revision)
      this.problems.push(
        `${type} ${name} ${count} at ${revision} after ${before} at ${this.#revision}`,
      );
    this.counters.set(name, count);
    this.#revision = revision;
  }
}
