/**
 * The cluster's version: the lowest minor version among its members (etcd:
 * server/etcdserver/version/monitor.go). The leader asks all members for theirs, when it begins to
 * lead and from time to time, and raises the cluster's version when all have a higher one. Where
 * there is none yet and a member does not report its own, the lowest that any cluster has is
 * decided, and raised when it does.
 */
import type { Clock, Logger, Timer } from "@quorate/host";
import { idToHex, membershippb } from "@quorate/proto";
import type { PeerCall } from "@quorate/transport";
import {
  clusterVersionOf,
  MIN_CLUSTER_VERSION,
  majorMinor,
  SERVER_VERSION,
} from "../config/version.ts";
import type { LeaderView } from "../loop/leader-view.ts";
import type { Lifetime } from "../loop/lifetime.ts";
import type { Proposals } from "../loop/proposals.ts";
import type { StoreRef } from "../reads/store-ref.ts";
import { fetchVersions } from "./remote-cluster.ts";
import { compareVersions, minorVersion } from "./versions.ts";

/**
 * How often the leader asks (etcd: monitorVersionInterval); more often while the cluster is below
 * the leader's own version.
 */
const ASK_EVERY_MS = 4000;
const ASK_SOON_MS = 500;
/** How long a member may take to report its version. */
const ANSWER_TIMEOUT_MS = 2000;

export interface VersionMonitorParts {
  readonly memberId: bigint;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly call: PeerCall;
  readonly store: StoreRef;
  readonly leader: LeaderView;
  readonly lifetime: Lifetime;
  readonly proposals: Proposals;
}

export class VersionMonitor {
  readonly #parts: VersionMonitorParts;
  #timer: Timer | undefined;
  /** Counts the times that this member began to lead, so that a round of an earlier time ends. */
  #epoch = 0;

  constructor(parts: VersionMonitorParts) {
    this.#parts = parts;
  }

  /** This member leads from now on. */
  lead(): void {
    this.stop();
    void this.#watch(this.#epoch);
  }

  /** It does not lead any more, or ends. */
  stop(): void {
    this.#epoch++;
    this.#timer?.cancel();
  }

  async #watch(epoch: number): Promise<void> {
    const { clock, lifetime, leader, logger, store } = this.#parts;
    try {
      await this.#update(epoch);
    } catch (error) {
      logger.warn("failed to update cluster version", { error: (error as Error).message });
    }
    if (epoch !== this.#epoch || lifetime.hasEnded || !leader.isLeader) return;
    const decided = store.current.membership.clusterVersion;
    const isBehind = decided === undefined || compareVersions(decided, SERVER_VERSION) < 0;
    this.#timer = clock.after(isBehind ? ASK_SOON_MS : ASK_EVERY_MS, () => void this.#watch(epoch));
  }

  async #update(epoch: number): Promise<void> {
    const { lifetime, logger, store, proposals } = this.#parts;
    const lowest = await this.#lowest();
    if (epoch !== this.#epoch || lifetime.hasEnded) return;
    const decided = store.current.membership.clusterVersion;
    const next = decided === undefined ? (lowest ?? MIN_CLUSTER_VERSION) : lowest;
    if (next === undefined || (decided !== undefined && compareVersions(next, decided) <= 0))
      return;
    if (decided === undefined)
      logger.info("setting up initial cluster version using v3 API", {
        "cluster-version": majorMinor(next),
      });
    else
      logger.info("updating cluster version using v3 API", {
        from: majorMinor(decided),
        to: majorMinor(next),
      });
    const request = membershippb.ClusterVersionSetRequest.encode({ ver: next });
    await proposals.propose("clusterVersionSet", request);
  }

  /** The lowest minor version of all members; undefined if one does not report it. */
  async #lowest(): Promise<string | undefined> {
    const { call, logger, store, memberId } = this.#parts;
    const others = store.current.membership.members().filter((member) => member.id !== memberId);
    const reported = await Promise.all(
      others.map(async ({ id, peerUrls }) => {
        const versions = await fetchVersions(peerUrls, { call, timeoutMs: ANSWER_TIMEOUT_MS });
        if (versions === undefined) return undefined;
        const version = minorVersion(versions.server);
        if (version !== undefined && compareVersions(version, SERVER_VERSION) > 0) {
          const member = {
            "remote-member-id": idToHex(id),
            "remote-member-version": versions.server,
          };
          logger.warn("leader found higher-versioned member", {
            "local-member-version": SERVER_VERSION,
            ...member,
          });
        }
        return version;
      }),
    );
    let lowest = clusterVersionOf(SERVER_VERSION);
    for (const version of reported) {
      if (version === undefined) return undefined;
      if (compareVersions(version, lowest) < 0) lowest = version;
    }
    return lowest;
  }
}
