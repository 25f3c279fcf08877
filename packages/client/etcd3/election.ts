/**
 * The elections of npm's etcd3. The keys are "election/NAME/LEASE", so that its programs and ours
 * stand in one election; campaign() has the keys of etcd's client for Go.
 */
import type { Buffer } from "node:buffer";
import { EventEmitter } from "node:events";
import { ClientError } from "../src/errors.ts";
import type { ComparatorBuilder, MultiRangeBuilder, PutBuilder } from "./builder.ts";
import { castGrpcError, NotCampaigningError } from "./errors.ts";
import type { Lease } from "./lease.ts";
import type { IKeyValue } from "./messages.ts";
import { toBuffer } from "./range.ts";

type Encoding = "utf8" | "utf-8" | "hex" | "base64" | "base64url" | "latin1" | "ascii" | "binary";

function textOf(
  kv: IKeyValue | undefined,
  encoding: Encoding | "buffer",
): string | Buffer | undefined {
  return encoding === "buffer" ? kv?.value : kv?.value.toString(encoding);
}

/** What an election needs of a namespace. */
export interface ElectionKeys {
  readonly prefix: Buffer;
  getAll(): MultiRangeBuilder;
  put(key: string): PutBuilder;
  if(key: string, column: "Create", comparison: "==", revision: string): ComparatorBuilder;
  lease(ttlSeconds: number): Lease;
  namespace(prefix: string): ElectionKeys;
  changed(revision: number, signal: AbortSignal): Promise<void>;
  deleted(key: Buffer, revision: number, signal: AbortSignal): Promise<void>;
}

interface ObserverEvents {
  /** Another leader, or another value of the same one; undefined for none. */
  change: [value: string | undefined];
  error: [error: Error];
}

/** Follows who leads, until cancel(). */
export class ElectionObserver extends EventEmitter<ObserverEvents> {
  readonly #namespace: ElectionKeys;
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;
  #leader: IKeyValue | undefined;
  #isKnown = false;

  /** Made by Election.observe(). */
  constructor(namespace: ElectionKeys) {
    super();
    this.#namespace = namespace;
    this.#ended = this.#run().catch((error: Error) => {
      if (!this.#stop.signal.aborted) this.emit("error", castGrpcError(error));
    });
  }

  get hasLeader(): boolean {
    return this.#leader !== undefined;
  }

  /** The leader's value; undefined without a leader. */
  leader(encoding?: Encoding): string | undefined;
  leader(encoding: "buffer"): Buffer | undefined;
  leader(encoding: Encoding | "buffer" = "utf8"): string | Buffer | undefined {
    return textOf(this.#leader, encoding);
  }

  async cancel(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const { header, kvs } = await first(this.#namespace).exec();
      if (signal.aborted) return;
      this.#set(kvs[0]);
      await this.#namespace.changed(Number(header.revision) + 1, signal);
    }
  }

  #set(leader: IKeyValue | undefined): void {
    const before = this.#leader;
    this.#leader = leader;
    const isSame =
      before?.create_revision === leader?.create_revision &&
      (leader === undefined || before?.value.equals(leader.value) === true);
    if (this.#isKnown && isSame) return;
    this.#isKnown = true;
    this.emit("change", leader?.value.toString());
  }
}

/** The get of the oldest candidate, who leads. */
function first(namespace: ElectionKeys): MultiRangeBuilder {
  return namespace.getAll().sort("Create", "Ascend").limit(1);
}

interface CampaignEvents {
  elected: [];
  /** The candidate is out: its lease is lost, or a call failed. */
  error: [error: Error];
  /** As in npm's etcd3, whose own tests wait for it. */
  _isWaiting: [];
}

/** A candidate: it waits until those before it are gone, and leads until it resigns. */
export class Campaign extends EventEmitter<CampaignEvents> {
  readonly #namespace: ElectionKeys;
  readonly #lease: Lease;
  readonly #stop = new AbortController();
  /** The create revision of its key, once that is there. */
  readonly #entered: Promise<string>;
  #value: Buffer;

  /** Made by Election.campaign(). */
  constructor(namespace: ElectionKeys, value: string | Buffer, ttl: number) {
    super();
    this.#namespace = namespace;
    this.#value = toBuffer(value);
    this.#lease = namespace.lease(ttl);
    this.#lease.on("lost", (error) => this.#fail(error));
    this.#entered = this.#enter();
    this.#wait().catch((error: Error) => this.#fail(error));
  }

  /** Resolves when it leads. Rejects with what took it out before. */
  wait(): Promise<this> {
    return new Promise((resolve, reject) => {
      this.once("elected", () => resolve(this));
      this.once("error", reject);
    });
  }

  /** Gives it another value. Rejects with NotCampaigningError if it resigned or its key is gone. */
  async proclaim(value: string | Buffer): Promise<void> {
    if (this.#stop.signal.aborted) throw new NotCampaigningError();
    const bytes = toBuffer(value);
    const revision = await this.#entered;
    if (bytes.equals(this.#value)) return;
    const id = await this.#lease.grant();
    const { succeeded } = await this.#namespace
      .if(id, "Create", "==", revision)
      .then(this.#namespace.put(id).value(bytes).lease(id))
      .commit();
    this.#value = bytes;
    if (succeeded) return;
    await this.resign().catch(() => {});
    throw new NotCampaigningError();
  }

  /** The key of the candidate. */
  async getCampaignKey(): Promise<string> {
    return this.#namespace.prefix.toString() + (await this.#lease.grant());
  }

  /** Withdraws, or gives up the leadership. */
  async resign(): Promise<void> {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort();
    await this.#lease.revoke();
  }

  async #enter(): Promise<string> {
    const id = await this.#lease.grant();
    const { header } = await this.#namespace.put(id).value(this.#value).lease(id);
    return header.revision;
  }

  async #wait(): Promise<void> {
    const revision = await this.#entered;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const { header, kvs } = await this.#namespace
        .getAll()
        .maxCreateRevision(String(BigInt(revision) - 1n))
        .sort("Create", "Descend")
        .limit(1)
        .exec();
      if (signal.aborted) return;
      const before = kvs[0];
      if (before === undefined) {
        this.emit("elected");
        return;
      }
      this.emit("_isWaiting");
      await this.#namespace.deleted(before.key, Number(header.revision) + 1, signal);
    }
  }

  #fail(error: Error): void {
    if (this.#stop.signal.aborted) return;
    this.resign().catch(() => {});
    // Without a listener it would end the program, also where the caller waits elsewhere.
    this.emit("error", error instanceof ClientError ? castGrpcError(error) : error);
  }
}

/** An election by its name. */
export class Election {
  /** Where the keys of all elections are. */
  static readonly prefix = "election";
  readonly name: string;
  readonly #namespace: ElectionKeys;
  readonly #ttlSeconds: number;

  constructor(parent: ElectionKeys, name: string, ttlSeconds = 60) {
    this.name = name;
    this.#namespace = parent.namespace(`${Election.prefix}/${name}/`);
    this.#ttlSeconds = ttlSeconds;
  }

  /** Enters a candidate with a value. */
  campaign(value: string | Buffer): Campaign {
    return new Campaign(this.#namespace, value, this.#ttlSeconds);
  }

  /** The leader's value; undefined without a leader. */
  async leader(encoding?: Encoding): Promise<string | undefined>;
  async leader(encoding: "buffer"): Promise<Buffer | undefined>;
  async leader(encoding: Encoding | "buffer" = "utf8"): Promise<string | Buffer | undefined> {
    return textOf((await first(this.#namespace).exec()).kvs[0], encoding);
  }

  /** Follows the leader; resolves when the present one is known. */
  async observe(): Promise<ElectionObserver> {
    const observer = new ElectionObserver(this.#namespace);
    return new Promise((resolve, reject) => {
      observer.once("change", () => resolve(observer));
      observer.once("error", reject);
    });
  }
}
