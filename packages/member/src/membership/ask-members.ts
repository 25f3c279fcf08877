/**
 * The membership as other members report it, for a member whose own may be old: the transport takes
 * messages of an unknown member only once another member has listed it.
 */
import type { Logger } from "@quorate/host";
import { idFromHex } from "@quorate/proto";
import { decodeMembers } from "@quorate/store";
import type { AskMembers, PeerCall } from "@quorate/transport";
import type { MemberConfig } from "../config/member-config.ts";

/** How long a member may take to answer. */
const ASK_TIMEOUT_MS = 2000;
/** So many members of one answer are looked at; a cluster has a handful. */
const MAX_LISTED_MEMBERS = 100;

export interface AskMembersParts {
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
