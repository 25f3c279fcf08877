/**
 * Watches on whole members: random writes and leases, watches from random revisions through any
 * member, slow readers, compactions, crashes, stops, partitions and leader changes. What each watch
 * receives is what the model says, in order, nothing twice and nothing missing. QUORATE_SEED begins
 * elsewhere, QUORATE_SEEDS runs more.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Random, SeededRandom } from "@quorate/host";
import { WATCH_LIMITS } from "@quorate/member";
import type { FaultPoint, WatchLimits } from "@quorate/member/testing";
import {
  CompactionRequest,
  DeleteRangeRequest,
  fromLatin1,
  LeaseGrantRequest,
  PutRequest,
  TxnRequest,
} from "@quorate/proto";
import { Follower, type FollowerCounts } from "./support/follower.ts";
import { KeyModel } from "./support/key-model.ts";
import { TIGHT } from "./support/watching.ts";
import { call, type Node, World } from "./support/world.ts";

const KEYS = ["a", "aa", "ab", "b", "b/1", "b/2", "c", "\xff"];
const FAULTS: readonly FaultPoint[] = [
  "before-wal-append",
  "after-wal-append",
  "after-wal-sync",
  "before-send",
  "before-apply",
  "after-apply",
];
const MAX_OPEN_REQUESTS = 40;
const STEPS = 350;

/** Small enough that members that were away get a snapshot. */
const FLAGS = ["--snapshot-count=40", "--snapshot-catchup-entries=10"];

class Scenario {
  readonly model = new KeyModel();
  readonly world: World;
  readonly #random: Random;
  readonly #counts: FollowerCounts;
  readonly #followers: Follower[] = [];
  #openRequests = 0;
  #written = 0;
  #lease = 0n;
  /** Nodes that are down, and when they come back. */
  readonly #down = new Map<Node, number>();
  leaders = new Set<string>();

  constructor(seed: bigint, limits: WatchLimits, counts: FollowerCounts) {
    this.#random = new SeededRandom(seed);
    this.#counts = counts;
    this.world = new World(3, FLAGS, seed, limits);
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#random.below(from.length)];
  }

  #running(): Node[] {
    return this.world.nodes.filter(({ member }) => member !== undefined);
  }

  /** A request through any member; no test step waits for its response, and it may fail. */
  #ask(path: string, request: Uint8Array): void {
    if (this.#openRequests >= MAX_OPEN_REQUESTS) return;
    this.#openRequests++;
    const over = () => {
      this.#openRequests--;
    };
    call(this.#pick(this.#running()).member!, path, request).then(over, over);
  }

  #write(): void {
    const random = this.#random;
    const value = () => fromLatin1(`${this.#written++}${"v".repeat(random.below(60))}`);
    const lease = this.#lease !== 0n && random.below(5) === 0 ? this.#lease : 0n;
    const kind = random.below(10);
    if (kind < 6)
      this.#ask(
        "/etcdserverpb.KV/Put",
        PutRequest.encode({ key: fromLatin1(this.#pick(KEYS)), value: value(), lease }),
      );
    else if (kind < 8) {
      const [from, to] = [this.#pick(KEYS), this.#pick(["", "", "b0", "\0"])];
      this.#ask(
        "/etcdserverpb.KV/DeleteRange",
        DeleteRangeRequest.encode({ key: fromLatin1(from), rangeEnd: fromLatin1(to) }),
      );
    } else {
      const ops = KEYS.filter(() => random.below(3) === 0).map((key) =>
        random.below(4) === 0
          ? { request: { case: "requestDeleteRange" as const, value: { key: fromLatin1(key) } } }
          : {
              request: {
                case: "requestPut" as const,
                value: { key: fromLatin1(key), value: value() },
              },
            },
      );
      this.#ask("/etcdserverpb.KV/Txn", TxnRequest.encode({ success: ops as never }));
    }
  }

  #watch(): void {
    const random = this.#random;
    if (this.#followers.length < 6) {
      const needsLeader = random.below(3) === 0;
      this.#followers.push(
        new Follower(`client ${this.#followers.length}`, this.model, this.#counts, needsLeader),
      );
    }
    const follower = this.#pick(this.#followers);
    if (follower.watchCount >= 5) return;
    const from = this.#pick(KEYS);
    const to = this.#pick(["", "", "\0", ...KEYS.filter((key) => key > from)]);
    const scope = { from, to, noPut: random.below(8) === 0, noDelete: random.below(8) === 0 };
    const past = Math.max(1, this.model.revision + 3 - random.below(60));
    follower.add(scope, random.below(2) === 0, random.below(3) === 0 ? undefined : past);
  }

  async #trouble(): Promise<void> {
    const { world } = this;
    const random = this.#random;
    const kind = random.below(6);
    const leader = world.leader();
    if (kind < 3 && this.#down.size === 0 && world.cutOff.size === 0) {
      const node = kind === 0 && leader !== undefined ? leader : this.#pick(world.nodes);
      this.#down.set(node, random.below(60));
      const { member } = node;
      if (kind === 2) {
        node.member = undefined;
        await world.settled(member!.stop());
        return;
      }
      node.crashAt = this.#pick(FAULTS);
      for (let i = 0; i < 3000 && node.ended === undefined; i++) await world.run(1);
      node.crashAt = undefined;
      if (node.ended === undefined) this.#down.delete(node);
      else node.disk.crash(random.fork(`crash ${random.uint32()}`));
    } else if (kind === 3 && this.#down.size === 0 && leader !== undefined)
      world.cutOff.add(leader.member!.id);
    else if (kind === 4 && this.#down.size === 0)
      world.cutOff.add(this.#pick(this.#running()).member!.id);
    else world.cutOff.clear();
    while (world.cutOff.size > 1) world.cutOff.delete([...world.cutOff][0]);
    // Long enough for streams that want a leader to be ended for lack of one.
    if (world.cutOff.size > 0 && random.below(3) === 0) await world.run(6000);
  }

  async #comeBack(now: boolean): Promise<void> {
    for (const [node, steps] of this.#down) {
      this.#down.set(node, steps - 1);
      if (steps > 0 && !now) continue;
      this.#down.delete(node);
      await this.world.start(node);
    }
  }

  /** Clients whose member is gone go to another one. */
  #reconnect(): void {
    for (const follower of this.#followers) {
      const isThere = this.#running().some(({ member }) => member === follower.member);
      if (!isThere)
        follower.connect(this.#pick(this.#running()).member!, 100 + this.#random.below(600));
    }
  }

  async #step(): Promise<void> {
    const { world, model } = this;
    const random = this.#random;
    const what = random.below(100);
    if (what < 40) for (let i = random.below(4); i >= 0; i--) this.#write();
    else if (what < 50) this.#watch();
    else if (what < 70) {
      if (this.#followers.length > 0) this.#pick(this.#followers).read(1 + random.below(6));
    } else if (what < 73) {
      if (this.#followers.length > 0) this.#pick(this.#followers).progress();
    } else if (what < 75) {
      if (this.#followers.length > 0) this.#pick(this.#followers).drop();
    } else if (what < 78) {
      // Just behind, at or before what a watch wants next is where mistakes would show.
      const near =
        random.below(3) > 0 && this.#followers.length > 0
          ? this.#pick(this.#followers).wantedRevision
          : undefined;
      const revision =
        near === undefined ? model.revision - random.below(30) : near + random.below(3);
      if (revision > 0)
        this.#ask("/etcdserverpb.KV/Compact", CompactionRequest.encode({ revision }));
    } else if (what < 80) {
      this.#lease = BigInt(1 + random.below(1e6));
      this.#ask(
        "/etcdserverpb.Lease/LeaseGrant",
        LeaseGrantRequest.encode({ ID: this.#lease, TTL: 2 + random.below(3) }),
      );
    } else if (what < 83) await this.#trouble();
    else await world.run(1 + random.below(random.below(10) === 0 ? 1500 : 40));
    await this.#comeBack(false);
    this.#reconnect();
    const leader = world.leader();
    if (leader !== undefined) this.leaders.add(`${leader.name} ${leader.member!.term}`);
  }

  async run(): Promise<void> {
    const { world, model } = this;
    await world.startAll();
    for (let step = 0; step < STEPS; step++) await this.#step();
    // Then everything heals, and every watch receives everything.
    world.cutOff.clear();
    await this.#comeBack(true);
    await world.until(() => world.leader() !== undefined && this.#openRequests === 0);
    await world.run(6000);
    const { revision } = model;
    await world.until(() =>
      world.nodes.every(({ member }) => member!.store.mvcc.currentRevision === revision),
    );
    await world.until(() => {
      this.#reconnect();
      for (const follower of this.#followers) follower.read(Number.POSITIVE_INFINITY);
      return this.#followers.every((follower) => follower.isUpToDate);
    });
    await world.run(100);
    assert.equal(model.revision, revision);
    for (const follower of this.#followers) {
      follower.read(Number.POSITIVE_INFINITY);
      follower.drop();
    }
    for (const { member } of world.nodes)
      assert.deepEqual([member!.watches.feed.watcherCount, member!.watches.streamCount], [0, 0]);
    await world.stopAll();
  }
}

const first = Number(process.env["QUORATE_SEED"] ?? 1);
const seeds = Number(process.env["QUORATE_SEEDS"] ?? 12);

for (const [name, limits] of [
  ["tight bounds", TIGHT],
  ["the bounds of a member", WATCH_LIMITS],
] as const) {
  test(`watches on a cluster that members and leaders come and go in, with ${name}`, async (t) => {
    const counts: FollowerCounts = { events: 0, compacted: 0, moves: 0, leaderless: 0 };
    let leaders = 0;
    let written = 0;
    for (let seed = first; seed < first + seeds; seed++) {
      const scenario = new Scenario(BigInt(seed), limits, counts);
      try {
        await scenario.model.observe(() => scenario.run());
      } catch (error) {
        throw new Error(`QUORATE_SEED=${seed} QUORATE_SEEDS=1 fails`, { cause: error });
      }
      leaders += scenario.leaders.size;
      written += scenario.model.events.length;
    }
    t.diagnostic(
      `${seeds} seeds from ${first}: ${written} changes, ${leaders} leaders, ${JSON.stringify(counts)}`,
    );
    if (seeds < 12) return;
    assert.ok(
      leaders > seeds && counts.compacted > 0 && counts.leaderless > 0 && counts.moves > 10 * seeds,
    );
  });
}
