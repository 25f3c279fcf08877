/**
 * Watchers: each follows a range of keys through members that come and go. When its stream breaks
 * it goes on at another member, from the revision behind the last one that it has, as a client
 * library does.
 */
import type { Random } from "@quorate/host";
import { Event, type WatchResponse } from "@quorate/proto";
import { toModelKv, type WatchEvent } from "@quorate/sim";
import { WatchClient } from "../support/watch.ts";
import type { Shared } from "./workload.ts";

const RECONNECT_MS = 200;
/**
 * A stream that says nothing for so long, not even progress that it was asked for, is left for
 * another.
 */
const SILENCE_MS = 4000;
const ASK_MS = 1000;
/** Once in so many times that it asks, a watcher turns to another member without need. */
const MOVE_ONE_IN = 12;

export class Watcher {
  readonly name: string;
  readonly #shared: Shared;
  readonly #random: Random;
  readonly #key: string;
  readonly #end: string;
  #client: WatchClient | undefined;
  #id = 0;
  /** All up to this revision has come, on this stream or those before. */
  #through: number;
  #heardMs = 0;
  #fragments: Uint8Array[] = [];
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  /** Watches from `key` and below `end`; `key` alone if that is empty. */
  constructor(name: string, shared: Shared, random: Random, range: { key: string; end: string }) {
    this.name = name;
    this.#shared = shared;
    this.#random = random;
    this.#key = range.key;
    this.#end = range.end;
    this.#through = shared.base;
    this.#connect();
    this.#timer = setInterval(() => this.#look(), ASK_MS);
  }

  get through(): number {
    return this.#through;
  }

  #connect(): void {
    if (this.#closed) return;
    const { running, recorder } = this.#shared;
    const node = running.nodes[this.#random.below(running.nodes.length)];
    const from = this.#through + 1;
    const client = new WatchClient(node.test.clientAddress, {}, running.cluster.identity);
    this.#client = client;
    this.#id = recorder.stream({
      name: `${this.name}@${node.name}`,
      key: this.#key,
      end: this.#end,
      from,
    });
    this.#heardMs = performance.now();
    this.#fragments = [];
    client.onResponse = (response) => {
      if (this.#client === client) this.#take(response);
    };
    client.onEnd = () => {
      if (this.#client !== client) return;
      client.close();
      this.#client = undefined;
      setTimeout(() => this.#connect(), RECONNECT_MS);
    };
    const latin1 = (text: string): Uint8Array => Buffer.from(text, "latin1");
    client.create({
      key: latin1(this.#key),
      rangeEnd: latin1(this.#end),
      startRevision: from,
      fragment: true,
    });
  }

  /**
   * Asks for progress, so that a range in which nothing happens is known to be complete; leaves a
   * stream that is silent, or by chance.
   */
  #look(): void {
    const client = this.#client;
    if (client === undefined) return;
    const isRestless = !this.#shared.stopped && this.#random.below(MOVE_ONE_IN) === 0;
    if (isRestless || performance.now() - this.#heardMs > SILENCE_MS) this.#leave();
    else client.progress();
  }

  #leave(): void {
    const client = this.#client;
    this.#client = undefined;
    client?.close();
    setTimeout(() => this.#connect(), RECONNECT_MS);
  }

  #take(response: WatchResponse): void {
    this.#heardMs = performance.now();
    const { recorder } = this.#shared;
    if (response.canceled) {
      // What it wanted is compacted: it goes on from where history begins.
      if (response.compactRevision > 0)
        this.#through = Math.max(this.#through, response.compactRevision - 1);
      this.#leave();
      return;
    }
    if (response.created) return;
    this.#fragments.push(...response.events);
    if (response.fragment) return;
    const revision = response.header!.revision;
    const events = this.#fragments.map(toWatchEvent);
    this.#fragments = [];
    recorder.write({ t: "batch", id: this.#id, at: recorder.now(), revision, events });
    const last = events.at(-1)?.mod ?? revision;
    this.#through = Math.max(this.#through, last);
  }

  /** Notes that all up to `revision` must have come on the stream that is open now. */
  settle(revision: number): void {
    this.#shared.recorder.write({ t: "through", id: this.#id, revision });
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#timer);
    this.#client?.close();
  }
}

function toWatchEvent(bytes: Uint8Array): WatchEvent {
  const { type, kv } = Event.decode(bytes);
  const put = toModelKv(kv!);
  return type === 0
    ? { type: "put", ...put }
    : { type: "delete", key: put.key, value: "", create: 0, mod: put.mod, version: 0 };
}
