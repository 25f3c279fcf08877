/**
 * Clients with leases. Each makes one lease after the other, hangs keys on it, keeps it alive for a
 * while through whichever member it likes, asks what is left of it, and then revokes it or lets it
 * end. What a response reports of its lease is judged at once.
 */
import type { Random } from "@quorate/host";
import {
  errorNameOf,
  LeaseGrantRequest,
  LeaseGrantResponse,
  LeaseKeepAliveRequest,
  LeaseKeepAliveResponse,
  LeaseRevokeRequest,
  LeaseService,
  LeaseTimeToLiveRequest,
  LeaseTimeToLiveResponse,
  toLatin1,
} from "@quorate/proto";
import { Actor, type ActorDeps } from "./base/actor.ts";
import { violate } from "./base/violation.ts";
import type { LeaseCheck } from "./check/lease-lives.ts";
import type { Safety } from "./check/safety.ts";
import type { Clients } from "./clients.ts";
import type { ClientStream } from "./exchanges.ts";
import type { Node } from "./node.ts";

const { LeaseGrant, LeaseRevoke, LeaseKeepAlive, LeaseTimeToLive } = LeaseService.methods;

/** Leases that other clients may hang keys on. */
const MAX_SHARED_LEASES = 6;

export interface LeaseClientsDeps extends ActorDeps {
  readonly clients: Clients;
  readonly check: LeaseCheck;
  readonly safety: Safety;
}

export class LeaseClients extends Actor<LeaseClientsDeps> {
  readonly #renewals = new Set<Renewals>();
  #running = 0;

  get idle(): boolean {
    return this.#running === 0;
  }

  /**
   * The owners of all leases end at once, as with the machine that they ran on: what was answered
   * last is all that their leases have.
   */
  abandon(): void {
    for (const renewals of this.#renewals) renewals.abandon();
  }

  start(): void {
    for (let i = 0; i < this.options.leaseClients; i++) {
      this.#running++;
      this.#live(`l${i}`).then(
        () => {
          this.#running--;
        },
        (error: unknown) => this.deps.fail(error),
      );
    }
  }

  async #live(name: string): Promise<void> {
    const random = this.deps.random.fork(name);
    while (!this.isStopped) {
      await this.deps.scheduler.delay(random.unit() * 1000);
      if (!this.isStopped) await this.#lease(name, random);
    }
  }

  #anyNode(random: Random): Node {
    const { nodes } = this.deps;
    return nodes[random.below(nodes.length)];
  }

  async #lease(name: string, random: Random): Promise<void> {
    const { scheduler, clients, story } = this.deps;
    const id = await this.#grant(name, random);
    if (id === undefined) return;
    clients.leases.push(id);
    if (clients.leases.length > MAX_SHARED_LEASES) clients.leases.shift();
    const ttlMs = this.options.leaseTtlSeconds * 1000;
    const endMs = scheduler.nowMs + random.unit() * Math.max(12_000, 2 * ttlMs);
    // Renewed in good time, just in time, or not at all; where leaders are deaf for long, all the
    // time, so that one that has just been confirmed is asked.
    const { theme, longDeafness } = this.options;
    const isHurried = theme === "handovers" && longDeafness;
    const rare = isHurried ? ttlMs / 20 : undefined;
    const everyMs = [ttlMs / 3, ttlMs * 0.985, rare][random.below(3)];
    const renewals = new Renewals(name, id, everyMs, { ...this.deps, random: random.fork(id) });
    this.#renewals.add(renewals);
    for (let i = 0; !this.isStopped && !renewals.isOver && scheduler.nowMs < endMs; i++) {
      await scheduler.delay(random.unit() * Math.max(1500, ttlMs / 4));
      if (random.below(2) === 0) await this.#ask(name, random, id);
      else {
        const key = `k${String.fromCharCode(97 + random.below(this.options.keys))}`;
        const put = { kind: "put", key, value: `${name}.${id}.${i}`, lease: id } as const;
        const mode = { serializable: false, atRevision: 0 };
        await clients.call(name, this.#anyNode(random), put, mode, this.options.clientTimeoutMs);
      }
    }
    renewals.stop();
    this.#renewals.delete(renewals);
    if (random.below(3) > 0 || renewals.isAbandoned) return;
    story.record(name, `is done with lease ${id}`);
    await this.#revoke(name, random, id);
  }

  /** The id of a lease that was granted; undefined where that is not sure. */
  async #grant(name: string, random: Random): Promise<string | undefined> {
    const { network, story, scheduler, check } = this.deps;
    const own = random.below(2) === 0 ? (random.uint64() >> 1n) | 1n : 0n;
    const node = this.#anyNode(random);
    const askedMs = scheduler.nowMs;
    const bytes = LeaseGrantRequest.encode({ ID: own, TTL: this.options.leaseTtlSeconds });
    story.record(name, `asks ${node.name} for a lease`);
    const reply = await network.exchange(
      node,
      LeaseGrant.path,
      bytes,
      this.options.clientTimeoutMs,
    );
    if (reply.bytes === undefined) {
      story.record(name, `has no lease: ${reply.error}`);
      return undefined;
    }
    const { ID, TTL } = LeaseGrantResponse.decode(reply.bytes);
    story.record(name, `has the lease ${ID} for ${TTL} s`, reply.bytes);
    if (own !== 0n && ID !== own)
      violate("LEASE", `the lease ${own} was asked for, and ${ID} granted`);
    check.reportedAlive(`${ID}`, askedMs, TTL * 1000);
    return `${ID}`;
  }

  async #ask(name: string, random: Random, id: string): Promise<void> {
    const { network, story, scheduler, check, safety, clients } = this.deps;
    const node = this.#anyNode(random);
    const askedMs = scheduler.nowMs;
    const floor = clients.knownRevision;
    const promisedMs = check.promisedUntilMs(id);
    const bytes = LeaseTimeToLiveRequest.encode({ ID: BigInt(id), keys: true });
    const reply = await network.exchange(
      node,
      LeaseTimeToLive.path,
      bytes,
      this.options.clientTimeoutMs,
    );
    if (reply.bytes === undefined) return;
    const { TTL, grantedTTL, keys } = LeaseTimeToLiveResponse.decode(reply.bytes);
    story.record(name, `hears of ${node.name}: lease ${id} has ${TTL} s`, reply.bytes);
    // One that has expired and is not revoked yet has a time below 0, and still what it was granted
    // for.
    if (grantedTTL === 0) {
      check.reportedGone(id);
      return;
    }
    check.reportedTimeToLive(id, { askedMs, promisedMs }, TTL * 1000);
    const got = keys
      .map((key) => toLatin1(key))
      .sort()
      .join(" ");
    for (let revision = floor; revision <= safety.lastState.revision; revision++) {
      if (safety.stateAt(revision)?.keysOf(id).join(" ") === got) return;
    }
    violate(
      "LEASE-6",
      `the lease ${id} is said to have the keys ${got}, which it had at no revision from ${floor} on`,
    );
  }

  async #revoke(name: string, random: Random, id: string): Promise<void> {
    const { network, story, check } = this.deps;
    const node = this.#anyNode(random);
    check.askedToRevoke(id);
    story.record(name, `asks ${node.name} to revoke ${id}`);
    const bytes = LeaseRevokeRequest.encode({ ID: BigInt(id) });
    const reply = await network.exchange(
      node,
      LeaseRevoke.path,
      bytes,
      this.options.clientTimeoutMs,
    );
    story.record(name, `revoking ${id}: ${reply.error ?? "done"}`);
    if (reply.bytes !== undefined || errorNameOf(reply.error ?? "") === "LeaseNotFound")
      check.reportedGone(id);
  }
}

/** Keeps one lease alive over a stream, to one member after the other. */
class Renewals {
  readonly #name: string;
  readonly #id: string;
  readonly #deps: LeaseClientsDeps;
  #node: Node;
  #stream: ClientStream | undefined;
  /** When the renewals were asked for that are not answered, in order. */
  #askedMs: number[] = [];
  #streams = 0;
  /** The lease is gone, or no client wants it any more. */
  isOver = false;
  /** Its owner has ended without a word. */
  isAbandoned = false;

  /** @param everyMs how often it is renewed; undefined: never. */
  constructor(name: string, id: string, everyMs: number | undefined, deps: LeaseClientsDeps) {
    this.#name = name;
    this.#id = id;
    this.#deps = deps;
    this.#node = this.#anyNode();
    if (everyMs === undefined) return;
    this.#connect();
    this.#goOn(everyMs);
  }

  #anyNode(): Node {
    return this.#deps.nodes[this.#deps.random.below(this.#deps.nodes.length)];
  }

  stop(): void {
    this.isOver = true;
    this.#stream?.close();
  }

  abandon(): void {
    this.isAbandoned = true;
    this.stop();
  }

  #connect(): void {
    const number = ++this.#streams;
    this.#askedMs = [];
    this.#stream = this.#deps.network.open(this.#node, LeaseKeepAlive.path, {
      message: (bytes) => {
        if (number !== this.#streams || this.isOver) return;
        try {
          this.#hear(bytes);
        } catch (error) {
          this.#deps.fail(error);
        }
      },
      ended: () => {
        if (number === this.#streams) this.#lost();
      },
    });
  }

  #lost(): void {
    this.#streams++;
    this.#stream = undefined;
    this.#node = this.#anyNode();
    this.#deps.scheduler.after(this.#deps.random.unit() * 200, () => {
      if (!this.isOver) this.#connect();
    });
  }

  #goOn(everyMs: number): void {
    this.#deps.scheduler.after(everyMs * (0.9 + 0.1 * this.#deps.random.unit()), () => {
      if (this.isOver) return;
      if (this.#deps.random.below(12) === 0) {
        this.#stream?.close();
        this.#lost();
      } else if (this.#stream !== undefined) {
        this.#askedMs.push(this.#deps.scheduler.nowMs);
        this.#stream.send(LeaseKeepAliveRequest.encode({ ID: BigInt(this.#id) }));
      }
      this.#goOn(everyMs);
    });
  }

  #hear(bytes: Uint8Array): void {
    const { story, check } = this.#deps;
    const { ID, TTL } = LeaseKeepAliveResponse.decode(bytes);
    story.record(
      this.#name,
      `hears of ${this.#node.name}: lease ${ID} renewed for ${TTL} s`,
      bytes,
    );
    const askedMs = this.#askedMs.shift();
    if (askedMs === undefined || `${ID}` !== this.#id)
      violate("LEASE", `the lease ${ID} is renewed, and no client asked for it`);
    if (TTL > 0) check.reportedAlive(this.#id, askedMs, TTL * 1000);
    else {
      check.reportedGone(this.#id);
      this.stop();
    }
  }
}
