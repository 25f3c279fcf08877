/**
 * Clients that watch. Each has a stream with a few watches on a member it likes, goes to another
 * when it breaks or for no reason, and takes its watches up again there behind what it received
 * last. What comes in is judged at once.
 */
import type { Random } from "@quorate/host";
import {
  WatchCreateRequest_FilterType as Filter,
  fromLatin1,
  type WatchId,
  WatchRequest,
  WatchResponse,
  WatchService,
} from "@quorate/proto";
import type { ModelRange } from "./base/model.ts";
import type { SimOptions } from "./base/options.ts";
import type { Scheduler } from "./base/scheduler.ts";
import { violate } from "./base/violation.ts";
import type { Safety } from "./check/safety.ts";
import { type WatchCheck, type Watching, wireEnd } from "./check/watches.ts";
import type { ClientStream, Exchanges } from "./exchanges.ts";
import type { Node } from "./node.ts";
import type { Story } from "./report/story.ts";

const PATH = WatchService.methods.Watch.path;

export interface WatchClientsDeps {
  readonly nodes: readonly Node[];
  readonly scheduler: Scheduler;
  readonly story: Story;
  readonly random: Random;
  readonly network: Exchanges;
  readonly check: WatchCheck;
  readonly safety: Safety;
  /** Something is wrong. */
  fail(error: unknown): void;
}

export class WatchClients {
  readonly #clients: WatchClient[];

  constructor(options: SimOptions, deps: WatchClientsDeps) {
    this.#clients = Array.from(
      { length: options.watchers },
      (_, i) => new WatchClient(`w${i}`, options, deps),
    );
  }

  start(): void {
    for (const client of this.#clients) client.start();
  }

  /** From now on no client moves without need. */
  settle(): void {
    for (const client of this.#clients) client.settle();
  }

  stop(): void {
    for (const client of this.#clients) client.stop();
  }

  /** Those that have not been notified of everything yet, in words. */
  behind(): string[] {
    return this.#clients.flatMap((client) => client.behind());
  }
}

class WatchClient {
  readonly #name: string;
  readonly #options: SimOptions;
  readonly #deps: WatchClientsDeps;
  readonly #random: Random;
  readonly #watches: Watching[];
  #node: Node;
  #stream: ClientStream | undefined;
  /** Counts streams: what an old one still brings is not listened to. */
  #streams = 0;
  /** Watches whose creation is not answered, in order. */
  #creating: Watching[] = [];
  #byId = new Map<WatchId, Watching>();
  #cancelling = new Set<WatchId>();
  #isSlow = false;
  /**
   * Whether the member's store differed when the stream was opened, and how often it had been made
   * to by then.
   */
  #wasAltered = false;
  #timesAltered = 0;
  #settled = false;
  #stopped = false;

  constructor(name: string, options: SimOptions, deps: WatchClientsDeps) {
    this.#name = name;
    this.#options = options;
    this.#deps = deps;
    this.#random = deps.random.fork(name);
    this.#node = this.#anyNode();
    this.#watches = Array.from({ length: 1 + this.#random.below(3) }, (_, i) =>
      this.#draw(`${name}.${i}`),
    );
  }

  #anyNode(): Node {
    const { nodes } = this.#deps;
    return nodes[this.#random.below(nodes.length)];
  }

  #draw(name: string): Watching {
    const random = this.#random;
    const key = `k${String.fromCharCode(97 + random.below(this.#options.keys))}`;
    const ranges: ModelRange[] = [
      { key, end: "" },
      { key: "k", end: "l" },
      { key, end: `${key}~` },
      { key: "\0", end: "\xff" },
      { key, end: "\xff" },
    ];
    return {
      name,
      range: ranges[random.below(ranges.length)],
      noPut: random.below(8) === 0,
      noDelete: random.below(8) === 0,
      prevKv: random.below(2) === 0,
      fragment: random.below(4) === 0,
      progressNotify: random.below(3) === 0,
      next: this.#firstRevision(),
      partial: [],
    };
  }

  /** From now on, from the past, or from what is still to come. */
  #firstRevision(): number {
    const { revision } = this.#deps.safety.lastState;
    const way = this.#random.below(4);
    if (way < 2) return 0;
    return way === 2
      ? Math.max(1, revision - this.#random.below(40))
      : revision + 1 + this.#random.below(10);
  }

  start(): void {
    this.#connect();
    this.#goOn();
  }

  settle(): void {
    this.#settled = true;
    // One that takes its time would take all of it.
    if (this.#isSlow) this.#move();
  }

  stop(): void {
    this.#stopped = true;
    this.#stream?.close();
  }

  behind(): string[] {
    return this.#watches
      .filter((watch) => !this.#deps.check.isUpToDate(watch))
      .map((watch) => `${watch.name} on ${this.#node.name} waits for revision ${watch.next}`);
  }

  #connect(): void {
    if (this.#stopped) return;
    const { network, story } = this.#deps;
    const random = this.#random;
    const number = ++this.#streams;
    this.#creating = [];
    this.#byId.clear();
    this.#cancelling.clear();
    for (const watch of this.#watches) watch.partial = [];
    story.record(this.#name, `opens a stream to ${this.#node.name}`);
    this.#isSlow = !this.#settled && random.below(6) === 0;
    this.#wasAltered = this.#node.isAltered;
    this.#timesAltered = this.#node.timesAltered;
    this.#stream = network.open(
      this.#node,
      PATH,
      {
        message: (bytes) => {
          if (number === this.#streams) this.#guard(() => this.#hear(bytes));
        },
        ended: (reason) => {
          if (number === this.#streams) this.#lost(reason);
        },
      },
      {
        needsLeader: random.below(4) === 0,
        readMs: this.#isSlow ? 300 : 0,
        budgetBytes: random.below(3) === 0 ? 2000 : 64 * 1024,
      },
    );
    for (const watch of this.#watches) this.#create(watch);
  }

  #lost(reason: string): void {
    this.#deps.story.record(this.#name, `lost its stream to ${this.#node.name}: ${reason}`);
    this.#move();
  }

  #move(): void {
    const number = ++this.#streams;
    this.#stream?.close();
    this.#node = this.#anyNode();
    this.#deps.scheduler.after(20 + this.#random.unit() * 300, () => {
      if (number === this.#streams) this.#connect();
    });
  }

  #create(watch: Watching): void {
    const { range, noPut, noDelete, prevKv, fragment, progressNotify, next } = watch;
    const value = {
      key: fromLatin1(range.key),
      rangeEnd: fromLatin1(wireEnd(range)),
      startRevision: next,
      filters: [...(noPut ? [Filter.NOPUT] : []), ...(noDelete ? [Filter.NODELETE] : [])],
      prevKv,
      fragment,
      progressNotify,
      // An id of its own, or the server's choice.
      watchId: this.#random.below(3) === 0 ? 100 + this.#random.below(1_000_000) : 0,
    };
    this.#creating.push(watch);
    this.#deps.story.record(this.#name, `asks ${this.#node.name} for ${watch.name} from ${next}`);
    this.#stream?.send(WatchRequest.encode({ requestUnion: { case: "createRequest", value } }));
  }

  #guard(judge: () => void): void {
    try {
      judge();
    } catch (error) {
      this.#deps.fail(error);
    }
  }

  #hear(bytes: Uint8Array): void {
    const { check, story } = this.#deps;
    const response = WatchResponse.decode(bytes);
    const { watchId, created, canceled, compactRevision, events, header } = response;
    const what = created
      ? "created"
      : canceled
        ? `canceled, compacted ${compactRevision}`
        : `${events.length} events`;
    story.record(this.#name, `hears of ${watchId} at ${header?.revision}: ${what}`, bytes);
    if (created) {
      const watch = this.#creating.shift();
      if (watch === undefined || canceled)
        violate("WATCH", `${this.#name}: a watch is refused: ${response.cancelReason}`);
      this.#byId.set(watchId, watch);
      check.created(watch, response);
      return;
    }
    if (watchId === -1) {
      for (const watch of this.#byId.values()) check.progress(watch, response);
      return;
    }
    const watch = this.#byId.get(watchId);
    // Cancelled by a compaction and by its client at the same time, which is notified of both.
    if (watch === undefined && canceled && this.#cancelling.delete(watchId)) return;
    if (watch === undefined)
      violate("WATCH", `${this.#name} hears of the watch ${watchId}, which it does not have`);
    if (canceled) {
      this.#byId.delete(watchId);
      if (compactRevision !== 0) check.compacted(watch, response);
      else if (!this.#cancelling.delete(watchId))
        violate("WATCH", `${watch.name} is cancelled: ${response.cancelReason}`);
      this.#create(watch);
      return;
    }
    if (events.length > 0 || watch.partial.length > 0)
      check.onResponse(
        watch,
        response,
        this.#wasAltered || this.#node.timesAltered > this.#timesAltered,
      );
    else check.progress(watch, response);
  }

  /** Now and then a client does something. */
  #goOn(): void {
    this.#deps.scheduler.after(50 + this.#random.unit() * 1500, () => {
      if (this.#stopped) return;
      const way = this.#random.below(8);
      if (way === 0 && !this.#settled) this.#move();
      else if (way === 1 && !this.#settled) this.#cancelOne();
      else if (way < 5)
        this.#stream?.send(
          WatchRequest.encode({ requestUnion: { case: "progressRequest", value: {} } }),
        );
      this.#goOn();
    });
  }

  #cancelOne(): void {
    const ids = [...this.#byId.keys()].filter((id) => !this.#cancelling.has(id));
    if (ids.length === 0) return;
    const watchId = ids[this.#random.below(ids.length)];
    this.#cancelling.add(watchId);
    this.#stream?.send(
      WatchRequest.encode({ requestUnion: { case: "cancelRequest", value: { watchId } } }),
    );
  }
}
