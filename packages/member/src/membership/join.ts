/**
 * The first start of a member that joins a running cluster, and the look around before one that
 * forms a new cluster (etcd: bootstrapExistingClusterNoWAL, isMemberBootstrapped).
 *
 *     --initial-cluster a=.., b=.., self=..   asked of a and b: /members   each of theirs is one of
 *                                             ours, by URL   our ids are theirs
 */
import type { Logger } from "@quorate/host";
import { CodedError, idToHex } from "@quorate/proto";
import type { Member } from "@quorate/store";
import type { PeerCall } from "@quorate/transport";
import { verifyJoin } from "../config/bootstrap.ts";
import type { MemberConfig } from "../config/member-config.ts";
import { parseUrl, sameUrl } from "../config/url.ts";
import { clusterVersionOf, MIN_CLUSTER_VERSION, SERVER_VERSION } from "../config/version.ts";
import { hasEtcdMembers } from "./features.ts";
import { fetchCluster, fetchVersions, type RemoteCluster } from "./remote-cluster.ts";
import { compareVersions, minorVersion } from "./versions.ts";

/** How long a peer may take to report its cluster (etcd: GetClusterFromRemotePeers). */
const FETCH_TIMEOUT_MS = 10_000;
/**
 * The same where it can do without an answer, because the others may be down (etcd:
 * BootstrapTimeoutEffective).
 */
const LOOK_AROUND_TIMEOUT_MS = 1000;

/** The member cannot be started this way; the text says why and what to do. */
export class JoinError extends CodedError<"CannotJoin"> {
  constructor(message: string) {
    super("JoinError", "CannotJoin", message);
  }
}

export interface JoinDeps {
  readonly call: PeerCall;
  readonly logger: Logger;
}

/** What a joining member starts from. */
export interface Joining {
  readonly memberId: bigint;
  readonly clusterId: bigint;
  /** All members of the cluster, this one among them. */
  readonly members: readonly Member[];
  /** Whether members of etcd are among them, or were. */
  readonly followsEtcd: boolean;
}

/** The peer URLs of the others that --initial-cluster names, in order. */
function otherUrls(config: MemberConfig): string[] {
  const others = [...config.initialCluster].filter(([name]) => name !== config.name);
  return others.flatMap(([, urls]) => urls.map((url) => url.text)).sort();
}

/** Finds this member among those of the running cluster. Throws ConfigError and JoinError. */
export async function joinCluster(config: MemberConfig, deps: JoinDeps): Promise<Joining> {
  verifyJoin(config);
  const asking = { call: deps.call, logger: deps.logger, timeoutMs: FETCH_TIMEOUT_MS };
  const urls = otherUrls(config);
  const remote = await fetchCluster(urls, asking);
  if (remote === undefined) {
    const asked =
      urls.length === 0 ? "--initial-cluster names no other member" : `asked: ${urls.join(", ")}`;
    throw new JoinError(
      `cannot fetch cluster info from peer urls: could not retrieve cluster information from the given URLs (${asked}); ` +
        "--initial-cluster must name the members of a running cluster and this one, as `quoratectl member add` prints it",
    );
  }
  const self = matchMembers(config, remote);
  if (self.name !== "") {
    throw new JoinError(
      `member ${idToHex(self.id)} has been started before as ${JSON.stringify(self.name)}, and its data is not in ${config.dataDir}: ` +
        "without its data it cannot keep what it has promised to the others. Bring the data back, or remove the member from the cluster " +
        "and add it again",
    );
  }
  const learners = remote.members.filter((member) => member.isLearner).length;
  if (learners > config.maxLearners) {
    throw new JoinError(
      `membership: too many learner members in cluster: there are ${learners}, and --max-learners is ${config.maxLearners}; ` +
        "it must be the same on all members",
    );
  }
  await checkVersions(config, remote, self.id, deps);
  const others = remote.members.filter(({ id }) => id !== self.id);
  const followsEtcd = await hasEtcdMembers(
    others.flatMap(({ peerUrls }) => peerUrls),
    deps.call,
    FETCH_TIMEOUT_MS,
  );
  // What was taken for granted here could not be changed later: the next start asks again.
  if (followsEtcd === undefined)
    throw new JoinError(
      "no member of the cluster says whether members of etcd are among them, though one has told its members: " +
        "start this one again when they respond",
    );
  const { clusterId, members } = remote;
  return { memberId: self.id, clusterId, members, followsEtcd };
}

/**
 * Finds for each member of the cluster the one of --initial-cluster with the same URLs; returns the
 * one that is this member.
 */
function matchMembers(config: MemberConfig, remote: RemoteCluster): Member {
  const shown = `{ClusterID:${idToHex(remote.clusterId)} Members:[${remote.members.map(memberText).join(" ")}]}`;
  if (remote.members.length !== config.initialCluster.size) {
    throw new JoinError(
      `error validating peerURLs ${shown}: member count is unequal: the cluster has ${remote.members.length}, ` +
        `--initial-cluster names ${config.initialCluster.size}; a new member has to be added (\`quoratectl member add\`) before it ` +
        "starts, and started with the --initial-cluster that this prints",
    );
  }
  let self: Member | undefined;
  for (const member of remote.members) {
    const local = [...config.initialCluster].find(([, urls]) => sameUrls(member.peerUrls, urls));
    if (local === undefined) {
      throw new JoinError(
        `error validating peerURLs ${shown}: PeerURLs: no match found for existing member ` +
          `(${idToHex(member.id)}, [${member.peerUrls.join(" ")}]) in --initial-cluster`,
      );
    }
    if (local[0] === config.name) self = member;
  }
  if (self !== undefined) return self;
  throw new JoinError(
    `error validating peerURLs ${shown}: none of them is this member, ${JSON.stringify(config.name)}`,
  );
}

function memberText({ id, name, peerUrls }: Member): string {
  return `${idToHex(id)}(${name === "" ? "unstarted" : name})=${peerUrls.join(",")}`;
}

function sameUrls(texts: readonly string[], urls: readonly ReturnType<typeof parseUrl>[]): boolean {
  const parsed = texts.map(parseUrl);
  return (
    parsed.length === urls.length &&
    parsed.every((url) => urls.some((other) => sameUrl(url, other))) &&
    urls.every((url) => parsed.some((other) => sameUrl(url, other)))
  );
}

/**
 * The members of the cluster, as one of those that --initial-cluster names reports them; none if
 * none does soon.
 */
export async function otherMembers(
  config: MemberConfig,
  { call, logger }: JoinDeps,
): Promise<readonly Member[]> {
  const remote = await fetchCluster(otherUrls(config), {
    call,
    logger,
    timeoutMs: LOOK_AROUND_TIMEOUT_MS,
  });
  return remote?.members ?? [];
}

/**
 * At least one member must report a cluster version that this one can be part of, and none another
 * (etcd: isCompatibleWithCluster).
 */
async function checkVersions(
  config: MemberConfig,
  remote: RemoteCluster,
  selfId: bigint,
  deps: JoinDeps,
): Promise<void> {
  const asking = {
    call: deps.call,
    logger: deps.logger,
    timeoutMs: 5000 + 2 * config.electionTimeoutMs,
  };
  const others = remote.members.filter((member) => member.id !== selfId);
  let compatible = 0;
  let reason = "no member reports its cluster version";
  await Promise.all(
    others.map(async (member) => {
      const versions = await fetchVersions(member.peerUrls, asking);
      const cluster = versions === undefined ? undefined : minorVersion(versions.cluster);
      if (cluster === undefined) return;
      const fits =
        compareVersions(cluster, MIN_CLUSTER_VERSION) >= 0 &&
        compareVersions(cluster, clusterVersionOf(SERVER_VERSION)) <= 0;
      if (fits) compatible++;
      else {
        compatible = Number.NEGATIVE_INFINITY;
        reason =
          `member ${idToHex(member.id)} is of a cluster of version ${cluster}, ` +
          `this one works with ${MIN_CLUSTER_VERSION} to ${SERVER_VERSION}`;
      }
    }),
  );
  if (compatible <= 0) throw new JoinError(`incompatible with current running cluster: ${reason}`);
}

/**
 * Before a member of a new cluster starts without a log: if the others know it, its data is lost,
 * and it must not vote a second time. Throws JoinError. Says nothing where no other member answers,
 * as when all of them start for the first time.
 */
export async function checkNotStartedBefore(
  config: MemberConfig,
  selfId: bigint,
  deps: JoinDeps,
): Promise<void> {
  const remote = await fetchCluster(otherUrls(config), {
    call: deps.call,
    timeoutMs: LOOK_AROUND_TIMEOUT_MS,
  });
  const known = remote?.members.find((member) => member.id === selfId);
  if (known === undefined || known.clientUrls.length === 0) return;
  throw new JoinError(
    `member ${idToHex(selfId)} has already been bootstrapped, and its data is not in ${config.dataDir}: bring the data back, or remove ` +
      'the member from the cluster, add it again, and start it with --initial-cluster-state "existing"',
  );
}
