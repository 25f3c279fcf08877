/**
 * What a member fetches from the others' peer ports (etcd: server/etcdserver/cluster_util.go).
 *
 *     it starts without a log        the cluster's members and its versions: every question is put
 *                                    to all URLs at once, and the first good answer counts
 *     its own membership may be old  the members again: the transport takes messages of an unknown
 *                                    member only once another member has listed it
 */
import type { Logger } from "@quorate/host";
import { idFromHex, toUtf8 } from "@quorate/proto";
import { decodeMembers, type Member } from "@quorate/store";
import type { AskMembers, PeerCall } from "@quorate/transport";
import type { MemberConfig } from "../config/member-config.ts";

/** The cluster, as one of its members reports it. */
export interface RemoteCluster {
  readonly clusterId: bigint;
  readonly members: readonly Member[];
}

/** What /version returns. */
export interface RemoteVersions {
  readonly server: string;
  /** "not_decided" before the members have agreed on one. */
  readonly cluster: string;
}

export interface Asking {
  readonly call: PeerCall;
  readonly timeoutMs: number;
  /** Where failures are logged; silent without it. */
  readonly logger?: Logger | undefined;
}

/** Asks the URLs for the cluster that they belong to; undefined if none of them responds. */
export async function fetchCluster(
  urls: readonly string[],
  asking: Asking,
): Promise<RemoteCluster | undefined> {
  return firstOf(urls, "/members", asking, (answer) => {
    const members = decodeMembers(answer.body);
    const clusterId = idFromHex(answer.clusterId ?? "");
    if (clusterId === undefined) throw new SyntaxError("the answer does not name its cluster");
    if (members.length === 0) throw new SyntaxError("the answer names no members");
    return { clusterId, members };
  });
}

/** Asks a member for its versions; undefined if it does not respond. */
export async function fetchVersions(
  urls: readonly string[],
  asking: Asking,
): Promise<RemoteVersions | undefined> {
  return firstOf(urls, "/version", asking, (answer) => {
    const { etcdserver, etcdcluster } = JSON.parse(toUtf8(answer.body)) as {
      etcdserver?: unknown;
      etcdcluster?: unknown;
    };
    if (typeof etcdserver !== "string" || typeof etcdcluster !== "string")
      throw new SyntaxError("the answer names no versions");
    return { server: etcdserver, cluster: etcdcluster };
  });
}

/**
 * The first good answer of several URLs of one member; undefined if there is none.
 * @param read throws for an answer that is not good
 */
export async function firstOf<T>(
  urls: readonly string[],
  path: string,
  { call, timeoutMs, logger }: Asking,
  read: (answer: Awaited<ReturnType<PeerCall>>) => T,
): Promise<T | undefined> {
  const asked = urls.map(async (url) => {
    try {
      const answer = await call(url, path, undefined, timeoutMs);
      if (answer.status !== 200)
        throw new Error(`status ${answer.status}: ${toUtf8(answer.body).trim()}`);
      return read(answer);
    } catch (error) {
      logger?.warn("failed to get an answer from a peer", {
        address: url + path,
        error: (error as Error).message,
      });
      throw error;
    }
  });
  try {
    return await Promise.any(asked);
  } catch {
    return undefined;
  }
}

/** How long a member may take to answer. */
const ASK_TIMEOUT_MS = 2000;
/** So many members of one answer are looked at; a cluster has a handful. */
const MAX_LISTED_MEMBERS = 100;

interface AskMembersParts {
  readonly clusterId: bigint;
  readonly config: Pick<MemberConfig, "name" | "initialCluster">;
  readonly call: PeerCall;
  readonly logger: Logger;
}

/**
 * Asks every member that this one knows, and those that --initial-cluster names: where all that it
 * knew were replaced while it was down, the flag names one that is there. Resolves when all have
 * answered or had their time; never rejects.
 * @param peerUrls of the members that this one knows
 * @param onMembers called with each response that names this cluster, as it comes
 */
export async function askMembers(
  { clusterId, config, call, logger }: AskMembersParts,
  peerUrls: readonly string[],
  onMembers: Parameters<AskMembers>[1],
): Promise<void> {
  const initial = [...config.initialCluster]
    .filter(([name]) => name !== config.name)
    .flatMap(([, urls]) => urls.map((url) => url.text));
  const ask = async (url: string): Promise<void> => {
    try {
      const answer = await call(url, "/members", undefined, ASK_TIMEOUT_MS);
      if (answer.status !== 200) throw new Error(`status ${answer.status}`);
      if (idFromHex(answer.clusterId ?? "") !== clusterId)
        throw new Error("the answer is of another cluster");
      onMembers(decodeMembers(answer.body).slice(0, MAX_LISTED_MEMBERS));
    } catch (error) {
      logger.debug("failed to ask a peer for the membership", {
        address: url,
        error: (error as Error).message,
      });
    }
  };
  await Promise.all([...new Set([...peerUrls, ...initial])].map(ask));
}
