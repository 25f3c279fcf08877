/**
 * The members of a new cluster by a token, through etcd's discovery service: keys in another
 * cluster (etcd: api/v3discovery/discovery.go).
 *
 *     /_etcd/registry/TOKEN/_config/size          how many members the cluster has
 *     /_etcd/registry/TOKEN/members/MEMBER-ID     name=url,name=url of a member that registered
 *
 * Of more members than the size, those that registered first are the cluster.
 */
import { Backoff, type Clock, LineLimit, type Logger, sleep } from "@quorate/host";
import { CodedError, idToHex } from "@quorate/proto";
import type { DiscoveryConfig } from "../config/discovery-config.ts";
import type { MemberConfig } from "../config/member-config.ts";
import { type InitialCluster, initialClusterText, parseInitialCluster } from "../config/url.ts";

/** A key of the service. */
export interface RegistryRecord {
  readonly key: string;
  readonly value: string;
  readonly createRevision: number;
}

/** The discovery service. All calls reject where it cannot be reached. */
export interface Registry {
  /** A key's value; undefined if there is none. */
  get(key: string): Promise<string | undefined>;
  put(key: string, value: string): Promise<void>;
  /** The keys with a prefix, at most `limit`, and the revision of this state. */
  list(
    prefix: string,
    limit: number,
  ): Promise<{ readonly records: readonly RegistryRecord[]; readonly revision: number }>;
  /**
   * Resolves with keys of this prefix that were put at `revision` or later, as soon as there are
   * any.
   */
  puts(
    prefix: string,
    revision: number,
  ): Promise<{ readonly records: readonly RegistryRecord[]; readonly revision: number }>;
  close(): Promise<void>;
}

/** Opens the service of a configuration. Rejects where its files cannot be read. */
export type OpenRegistry = (config: DiscoveryConfig) => Promise<Registry>;

export type DiscoveryErrorCode = "SizeNotFound" | "BadSize" | "Full" | "BadUrls" | "DuplicateUrl";

/** Discovery has failed for good; the messages are etcd's, with what to do. */
export class DiscoveryError extends CodedError<DiscoveryErrorCode> {
  constructor(code: DiscoveryErrorCode, message: string) {
    super("DiscoveryError", code, message);
  }
}

/** More members than any cluster has; a size key beyond it is bad. */
const MAX_CLUSTER_SIZE = 100;
/** Registrations that are read: those beyond the size came too late. */
const MAX_RECORDS = 1000;
/** The longest registration: the URLs of one member, as long as they may be. */
const MAX_RECORD_CHARS: number = 64 * 1024;
/** Of what the service holds, in a message: it comes from others. */
const SHOWN_CHARS = 1000;
const FIRST_RETRY_MS = 2000;
/** 2^8 seconds, as in etcd. */
const LAST_RETRY_MS = 256_000;

export interface TokenDiscoveryDeps {
  readonly open: OpenRegistry;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Registers this member and waits until all members have: they, by name. Retries for as long as the
 * service cannot be reached. Rejects with DiscoveryError.
 * @param memberId derived from its URLs and the token
 */
export async function discoverByToken(
  config: MemberConfig,
  where: DiscoveryConfig,
  memberId: bigint,
  deps: TokenDiscoveryDeps,
): Promise<InitialCluster> {
  const logger = deps.logger.child("discovery", {
    "discovery-token": where.token,
    "discovery-endpoints": where.endpoints.join(","),
  });
  logger.info("Bootstrapping cluster using v3 discovery.");
  const registry = await deps.open(where);
  try {
    const joining = new Joining(registry, where.token, memberId, deps.clock, logger);
    const own = initialClusterText(new Map([[config.name, config.advertisePeerUrls]]));
    const cluster = await joining.join(own);
    logger.info("discovery joined cluster successfully", { cluster: initialClusterText(cluster) });
    return cluster;
  } catch (error) {
    logger.error("discovery failed to join cluster", { error: (error as Error).message });
    throw error;
  } finally {
    await registry.close();
  }
}

/** The members that have registered, by key. */
type Found = Map<string, RegistryRecord>;

class Joining {
  readonly #registry: Registry;
  readonly #prefix: string;
  readonly #membersPrefix: string;
  readonly #ownKey: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #lines = new LineLimit();
  readonly #retries = new Backoff({ firstMs: FIRST_RETRY_MS, mostMs: LAST_RETRY_MS });

  constructor(registry: Registry, token: string, memberId: bigint, clock: Clock, logger: Logger) {
    this.#registry = registry;
    this.#prefix = `/_etcd/registry/${token}`;
    this.#membersPrefix = `${this.#prefix}/members/`;
    this.#ownKey = this.#membersPrefix + idToHex(memberId);
    this.#clock = clock;
    this.#logger = logger;
  }

  async join(own: string): Promise<InitialCluster> {
    const size = await this.#size();
    this.#checkPlace(await this.#members(size), size);
    await this.#untilReached("register member itself", () => this.#registry.put(this.#ownKey, own));
    const fields = { memberKey: this.#ownKey, memberInfo: own };
    this.#logger.info("register member itself successfully", fields);
    const members = await this.#members(size);
    this.#checkPlace(members, size);
    await this.#wait(members, size);
    return this.#clusterOf(members.found, size);
  }

  async #size(): Promise<number> {
    const key = `${this.#prefix}/_config/size`;
    const text = await this.#untilReached("cluster status check", () => this.#registry.get(key));
    if (text === undefined)
      throw new DiscoveryError(
        "SizeNotFound",
        `discovery: size key not found: put the number of members into ${key} of the discovery service`,
      );
    const size = /^\d{1,9}$/.test(text.trim()) ? Number(text) : 0;
    if (size < 1 || size > MAX_CLUSTER_SIZE)
      throw new DiscoveryError(
        "BadSize",
        `discovery: size key is bad: ${key} must be a number from 1 to ${MAX_CLUSTER_SIZE}, got ${JSON.stringify(text.slice(0, 40))}`,
      );
    return size;
  }

  async #members(size: number): Promise<{ found: Found; revision: number }> {
    const { records, revision } = await this.#untilReached("cluster status check", () =>
      this.#registry.list(this.#membersPrefix, MAX_RECORDS),
    );
    const found: Found = new Map();
    for (const record of records.slice(0, MAX_RECORDS)) this.#add(found, record, size);
    return { found, revision };
  }

  #add(found: Found, { key, value, createRevision }: RegistryRecord, size: number): void {
    const fields = { memberKey: shown(key), memberInfo: shown(value) };
    if (!value.includes("=") || value.length > MAX_RECORD_CHARS) {
      const omitted = this.#lines.allow(this.#clock.monotonicMs());
      if (omitted === undefined) return;
      const text = "invalid peer info returned from discovery service";
      this.#logger.warn(text, { ...fields, ...omitted });
    } else {
      found.set(key, { key, value: value.trim(), createRevision });
      if (found.size <= size) this.#logger.info("found peer from discovery service", fields);
    }
  }

  /** Throws where this member has not registered among the first `size`, and cannot any more. */
  #checkPlace({ found }: { readonly found: Found }, size: number): void {
    const place = inOrder(found).findIndex(({ key }) => key === this.#ownKey);
    if (place >= 0 ? place < size : found.size < size) return;
    throw new DiscoveryError(
      "Full",
      `discovery: cluster is full: ${size} members have registered under this token; start this member ` +
        "with another token, or add it to the cluster (quoratectl member add)",
    );
  }

  async #wait(members: { found: Found; revision: number }, size: number): Promise<void> {
    const { found } = members;
    let { revision } = members;
    const count = () => ({ clusterSize: size, "found-peers": found.size });
    if (found.size < size) this.#logger.info("waiting for peers from discovery service", count());
    while (found.size < size) {
      // Where the watch breaks or its history is gone, the list has all that it missed.
      const before = found.size;
      const put = await this.#untilReached("wait for peers", () => this.#next(revision));
      revision = put.revision;
      for (const record of put.records.slice(0, MAX_RECORDS))
        if (!found.has(record.key)) this.#add(found, record, size);
      // A service whose watches break at once, or that repeats itself, is not asked all the time.
      if (found.size === before) await sleep(this.#clock, FIRST_RETRY_MS);
    }
    this.#logger.info("found all needed peers from discovery service", count());
  }

  /** What was registered behind a revision, as soon as there is anything. */
  async #next(revision: number) {
    try {
      return await this.#registry.puts(this.#membersPrefix, revision + 1);
    } catch {
      return this.#registry.list(this.#membersPrefix, MAX_RECORDS);
    }
  }

  #clusterOf(found: Found, size: number): InitialCluster {
    const text = inOrder(found)
      .slice(0, size)
      .map(({ value }) => value)
      .join(",");
    let cluster: InitialCluster;
    try {
      cluster = parseInitialCluster(text);
    } catch (error) {
      throw new DiscoveryError(
        "BadUrls",
        `discovery: invalid peer URL: ${shown((error as Error).message)} (in ${shown(text)})`,
      );
    }
    const urls = [...cluster.values()].flat().map((url) => url.text);
    if (new Set(urls).size !== urls.length)
      throw new DiscoveryError(
        "DuplicateUrl",
        `discovery cluster ${shown(text)} has duplicate url`,
      );
    return cluster;
  }

  /** The result of `call`, retried for as long as the service cannot be reached. */
  async #untilReached<T>(reason: string, call: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        const result = await call();
        this.#retries.reset();
        return result;
      } catch (error) {
        const pauseMs = this.#retries.nextMs();
        this.#logger.warn("retry connecting to discovery service", {
          reason,
          backoff: `${pauseMs / 1000}s`,
          error: (error as Error).message,
        });
        await sleep(this.#clock, pauseMs);
      }
    }
  }
}

function inOrder(found: Found): RegistryRecord[] {
  return [...found.values()].sort((a, b) => a.createRevision - b.createRevision);
}

function shown(text: string): string {
  return text.slice(0, SHOWN_CHARS);
}
