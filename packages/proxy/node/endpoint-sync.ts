/** --endpoints-auto-sync-interval: the endpoints follow the members of the cluster. */
import type { Clock, Logger, Timer } from "@quorate/host";
import { ClusterService, MemberListRequest, MemberListResponse } from "@quorate/proto";
import type { MemberChannel } from "../src/upstream/member-channel.ts";
import type { Upstream } from "../src/upstream/upstream.ts";

const LIST = { path: ClusterService.methods.MemberList.path, isRepeatable: true };
const CALL_TIMEOUT_MS = 5000;
/** More endpoints than a cluster has are not taken. */
const MAX_ENDPOINTS = 64;

/** Begins to follow the members. Returns the timer. */
export function followMembers(
  upstream: Upstream,
  options: { readonly intervalMs: number; readonly open: (endpoint: string) => MemberChannel },
  deps: { readonly clock: Clock; readonly logger: Logger },
): Timer {
  let isBusy = false;
  return deps.clock.every(options.intervalMs, () => {
    if (isBusy) return;
    isBusy = true;
    sync(upstream, options.open, deps.logger)
      .catch((error: Error) =>
        deps.logger.info("Auto sync endpoints failed.", { error: error.message }),
      )
      .finally(() => {
        isBusy = false;
      });
  });
}

async function sync(
  upstream: Upstream,
  open: (endpoint: string) => MemberChannel,
  logger: Logger,
): Promise<void> {
  const deadlineMs = upstream.clock.monotonicMs() + CALL_TIMEOUT_MS;
  const request = MemberListRequest.encode({ linearizable: true });
  const response = await upstream.call(LIST, request, { metadata: [], deadlineMs });
  const { members } = MemberListResponse.decode(response);
  // A member that has not started has no name yet, and a learner serves no reads.
  const endpoints = members
    .filter(({ name, isLearner }) => name !== "" && !isLearner)
    .flatMap(({ clientURLs }) => clientURLs)
    .slice(0, MAX_ENDPOINTS);
  const known = new Map(upstream.channels.map((channel) => [channel.endpoint, channel]));
  if (endpoints.length > 0 && endpoints.join() !== [...known.keys()].join())
    logger.info("the endpoints have changed with the members", { endpoints });
  upstream.replace(endpoints.map((endpoint) => known.get(endpoint) ?? open(endpoint)));
}
