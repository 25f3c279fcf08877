/**
 * The streams of watches of a member: who may watch what, what all of them together may hold, and
 * the headers of their responses. How changes reach their watchers is the feed's (change-feed.ts).
 */
import { type Clock, type Random, TurnWork } from "@quorate/host";
import { EMPTY, type ResponseHeader } from "@quorate/proto";
import type { Raft } from "@quorate/raft";
import type { Status, StreamCall } from "@quorate/rpc";
import type { Steps } from "@quorate/store";
import type { Lifetime } from "../loop/lifetime.ts";
import { ChangeFeed } from "./change-feed.ts";
import { ClientBudget } from "./client-budget.ts";
import { headerField } from "./event.ts";
import { WATCH_LIMITS, type WatchLimits } from "./limits.ts";
import { type StreamOwner, WatchStream } from "./watch-stream.ts";
import type { StreamClient } from "./watcher.ts";

/** gRPC's share of a message, which etcd allows on top of the request limit. */
const GRPC_OVERHEAD_BYTES = 512 * 1024;
const MIN_PROGRESS_INTERVAL_MS = 100;
/** Watches that are checked before a look at the time. */
const WATCHES_BETWEEN_LOOKS = 64;
const RECHECK_MS = 2;

export interface WatchHubOptions {
  readonly progressNotifyIntervalMs: number;
  readonly maxRequestBytes: number;
  /** WATCH_LIMITS by default. */
  readonly limits?: WatchLimits | undefined;
}

export interface WatchHubDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly memberId: bigint;
  readonly clusterId: bigint;
  readonly raft: Pick<Raft, "term">;
  /** Counts events as they are sent. */
  readonly events: { add(amount: number): void };
  readonly lifetime: Pick<Lifetime, "end">;
}

export class WatchHub implements StreamOwner {
  readonly clock: Clock;
  readonly limits: WatchLimits;
  /** Where the watchers of all streams stand. */
  readonly feed: ChangeFeed;
  permissions = 0;
  readonly watchBudget: ClientBudget;
  /**
   * Bytes of the calls that wait for locks and elections; the watches that are made for them are
   * this member's own.
   */
  readonly contestBudget: ClientBudget;
  readonly maxFragmentBytes: number;
  backlogBytes = 0;
  pendingEvents = 0;
  readonly #deps: WatchHubDeps;
  readonly #progressIntervalMs: number;
  readonly #streams = new Set<WatchStream>();
  #isRecheckDue = false;
  /** The look at all watches that goes on. */
  #rechecks: Steps<void> | undefined;
  readonly #recheckWork: TurnWork;
  #headerRevision = -1;
  #headerTerm = -1;
  #headerField: Uint8Array = EMPTY;

  constructor(options: WatchHubOptions, deps: WatchHubDeps) {
    this.#deps = deps;
    this.clock = deps.clock;
    this.#recheckWork = new TurnWork(deps.clock.turns, {
      shareMs: RECHECK_MS,
      step: () => this.#recheckSome(),
    });
    this.limits = options.limits ?? WATCH_LIMITS;
    const { clock, lifetime } = deps;
    this.feed = new ChangeFeed({
      clock,
      lifetime,
      limits: this.limits,
      streams: this.#streams,
    });
    this.watchBudget = new ClientBudget({
      maxTotalBytes: this.limits.maxWatchesTotalBytes,
      maxClientBytes: this.limits.maxWatchesClientBytes,
    });
    this.contestBudget = new ClientBudget({
      maxTotalBytes: this.limits.maxContestTotalBytes,
      maxClientBytes: this.limits.maxContestClientBytes,
    });
    this.maxFragmentBytes = options.maxRequestBytes + GRPC_OVERHEAD_BYTES;
    this.#progressIntervalMs = Math.max(MIN_PROGRESS_INTERVAL_MS, options.progressNotifyIntervalMs);
  }

  /** Ends all streams with a status. */
  end(status: Status): void {
    for (const stream of [...this.#streams]) stream.end(status);
  }

  // --- Streams ---

  open(call: StreamCall, client: StreamClient): WatchStream {
    const stream = new WatchStream(call, client, this, this.feed);
    this.#streams.add(stream);
    return stream;
  }

  closed(stream: WatchStream): void {
    this.#streams.delete(stream);
  }

  get streamCount(): number {
    return this.#streams.size;
  }

  /**
   * Permissions have changed: checks those of every watch, in slices beside other work. A change
   * during that check starts one more.
   */
  recheck(): void {
    // What came before is for those who were permitted then.
    this.feed.settle();
    this.feed.looksAtEach = true;
    this.permissions++;
    this.#isRecheckDue = true;
    this.#rechecks ??= this.#recheckAll();
    this.#recheckWork.plan();
  }

  *#recheckAll(): Steps<void> {
    while (this.#isRecheckDue) {
      this.#isRecheckDue = false;
      let looked = 0;
      for (const stream of [...this.#streams]) {
        for (const watcher of [...stream.watchers]) {
          stream.recheck(watcher);
          if (++looked % WATCHES_BETWEEN_LOOKS === 0) yield;
        }
      }
    }
  }

  #recheckSome(): boolean {
    if (this.#rechecks?.next().done === false) return true;
    this.#rechecks = undefined;
    this.feed.looksAtEach = false;
    return false;
  }

  header(revision: number): ResponseHeader {
    const { clusterId, memberId, raft } = this.#deps;
    return { clusterId, memberId, revision, raftTerm: raft.term };
  }

  headerField(revision: number): Uint8Array {
    const { term } = this.#deps.raft;
    if (revision !== this.#headerRevision || term !== this.#headerTerm) {
      this.#headerField = headerField(this.header(revision));
      this.#headerRevision = revision;
      this.#headerTerm = term;
    }
    return this.#headerField;
  }

  /** With etcd's spread of a tenth, so that not all streams are notified at once. */
  progressPeriodMs(): number {
    return (
      this.#progressIntervalMs +
      this.#deps.random.below(Math.max(1, Math.floor(this.#progressIntervalMs / 10)))
    );
  }

  delivered(events: number): void {
    this.#deps.events.add(events);
  }
}
