/** What the parts of a random history share: stores, caches, time and the list of problems. */
import { type Clock, type Random, silentLogger } from "@quorate/host";
import { identityTransformer } from "@quorate/kube-storage";
import { Cacher } from "../../../src/cacher/cacher.ts";
import { jsonCodec } from "../../../src/codec/json-codec.ts";
import { ApiError } from "../../../src/meta/status.ts";
import type { ClusterClient } from "../../../src/storage/cluster-client.ts";
import { StorageError } from "../../../src/storage/errors.ts";
import { EtcdStore } from "../../../src/storage/etcd-store.ts";
import type { StorageInterface } from "../../../src/storage/interface.ts";
import { LeaseManager } from "../../../src/storage/lease-manager.ts";
import { ClusterConnection, RecordedCluster, ROOT } from "../support/cluster-connection.ts";
import { FakeStorage } from "../support/fake-storage.ts";
import type { Faults } from "../support/faults.ts";
import type { History, Interest } from "../support/history.ts";
import { WIDGETS } from "../support/world.ts";
import type { Below } from "./below.ts";

/** Small, so that its edges are reached all the time. */
const WINDOW = {
  lowerCapacity: 8,
  upperCapacity: 32,
  freshMs: 2000,
  maxBytes: 2500,
  snapshotInterval: 5,
};
export const { lowerCapacity: LEAST_WINDOW } = WINDOW;

export const NAMESPACES = ["a", "b", "c"];
const NAMES = ["u", "v", "w", "x", "y", "z"];
const COLORS = ["red", "green"];
const NODES = ["n1", "n2", "n3"];

/** A cluster that the tests of other places bring along. */
export interface OtherCluster {
  connect(server: number, random: Random): ClusterClient & Faults;
  compact(revision: number): void;
}

/** A Cacher and its connection to the store. */
export interface Server {
  readonly connection: Faults;
  readonly cacher: Cacher;
}

export class Run {
  readonly clock: Clock;
  readonly history: History;
  readonly random: Random;
  readonly servers: readonly Server[];
  readonly problems: string[] = [];
  /** The latest revision when both caches had been filled. */
  startRevision = 0;
  /** How often what happened, for the summary. */
  readonly counts = new Map<string, number>();
  /** Actors begin nothing new. */
  isOver = false;
  /** Nothing fails and no client is slow. */
  isHealed = false;

  readonly #cluster: RecordedCluster | undefined;
  readonly #other: OtherCluster | undefined;

  constructor(clock: Clock, history: History, random: Random, below: Below | OtherCluster) {
    this.clock = clock;
    this.history = history;
    this.random = random;
    this.#cluster = below === "etcd" ? new RecordedCluster(history) : undefined;
    this.#other = typeof below === "string" ? undefined : below;
    this.servers = [0, 1].map((number) => this.#server(number));
  }

  #server(number: number): Server {
    const random = this.random.fork(`server ${number}`);
    const delays = { callMs: random.below(20), eventMs: random.below(60) };
    const { connection, storage } = this.#connect(number, random.fork("storage"), delays);
    const cacher = new Cacher(
      {
        ...WIDGETS,
        window: WINDOW,
        fill: pick(random, ["list", "list", "watch-list"] as const),
        historyRevisions: pick(random, [0, 20, 100]),
      },
      { storage, clock: this.clock, random: random.fork("cacher"), logger: silentLogger },
    );
    return { connection, cacher };
  }

  #connect(
    number: number,
    random: Random,
    delays: Faults["delays"],
  ): { connection: Faults; storage: StorageInterface } {
    const { clock } = this;
    if (this.#other !== undefined) return this.#stored(this.#other.connect(number, random));
    if (this.#cluster === undefined) {
      const storage = new FakeStorage(this.history, clock, random, delays);
      return { connection: storage, storage };
    }
    return this.#stored(new ClusterConnection(this.#cluster, clock, random, delays));
  }

  #stored(connection: ClusterClient & Faults): { connection: Faults; storage: StorageInterface } {
    const { clock } = this;
    const { kind, resourcePrefix, attributesOf } = WIDGETS;
    const leases = new LeaseManager(
      (ttl) => connection.grantLease(ttl),
      () => clock.monotonicMs(),
    );
    const storage = new EtcdStore(
      { kind, resourcePrefix, root: ROOT },
      {
        client: connection,
        codec: jsonCodec,
        transformer: identityTransformer,
        attributesOf,
        leases,
        clock,
        compactRevision: () => this.history.compactRevision,
      },
    );
    return { connection, storage };
  }

  /** A write to another resource. */
  writeElsewhere(): void {
    // In another cluster others write anyhow.
    if (this.#other !== undefined) return;
    if (this.#cluster === undefined) this.history.writeElsewhere();
    else this.#cluster.writeElsewhere();
  }

  compact(revision: number): void {
    if (revision <= this.history.compactRevision) return;
    if (this.#other !== undefined) {
      this.#other.compact(revision);
      return;
    }
    this.history.compactRevision = revision;
    void this.#cluster?.compact(revision);
    for (const { connection } of this.servers) connection.compacted(revision);
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  problem(text: string): void {
    this.problems.push(
      `at ${this.clock.monotonicMs()} ms, revision ${this.history.revision}: ${text}`,
    );
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.clock.after(ms, resolve);
    });
  }

  server(random: Random): Server {
    return this.servers[random.below(this.servers.length)];
  }

  key(random: Random): string {
    return `/widgets/${pick(random, NAMESPACES)}/${pick(random, NAMES)}`;
  }

  labels(random: Random): { color: string } {
    return { color: pick(random, COLORS) };
  }

  spec(random: Random): { node: string } {
    return { node: pick(random, NODES) };
  }

  /** One object, a namespace or all, with or without selectors. */
  interest(random: Random): Interest {
    const key = pick(random, [
      "/widgets/",
      "/widgets/",
      `/widgets/${pick(random, NAMESPACES)}/`,
      this.key(random),
    ]);
    return {
      key,
      color: random.below(3) === 0 ? pick(random, COLORS) : "",
      node: random.below(4) === 0 ? pick(random, NODES) : "",
    };
  }
}

export function pick<T>(random: Random, choices: readonly T[]): T {
  return choices[random.below(choices.length)];
}

/** The code of an error that faults explain; rethrows others. */
export function expectedCode(error: unknown): string {
  if (error instanceof StorageError || error instanceof ApiError) return error.code;
  throw error;
}
