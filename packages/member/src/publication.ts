/**
 * How a member publishes itself: it proposes its name and client URLs, and when that is
 * done and the cluster has a version, the member is ready to serve. The messages are those that
 * scripts wait for in etcd's logs.
 */
import { type Clock, type Logger, sleep } from "@quorate/host";
import { idToHex, membershippb } from "@quorate/proto";
import type { MemberConfig } from "./config/member-config.ts";
import { majorMinor, SERVER_VERSION } from "./config/version.ts";
import type { Proposals } from "./loop/proposals.ts";
import { compareVersions } from "./membership/versions.ts";
import type { MemberMetrics } from "./metrics/member-metrics.ts";
import type { StoreRef } from "./reads/store-ref.ts";

/** A publication that failed is tried again after this long. */
export const PUBLISH_RETRY_MS = 100;

export interface PublicationParts {
  readonly clock: Clock;
  readonly memberId: bigint;
  readonly clusterId: bigint;
  readonly config: MemberConfig;
  readonly metrics: MemberMetrics;
  readonly logger: Logger;
  readonly store: StoreRef;
  readonly lifetime: { readonly hasEnded: boolean };
  readonly proposals: Pick<Proposals, "propose">;
}

export class Publication {
  /**
   * Resolves when the member has published itself and the cluster's version is known; never
   * rejects.
   */
  readonly ready: Promise<void>;
  readonly #parts: PublicationParts;
  readonly #reportReady: () => void;
  #published = false;
  /** The cluster's version that was last announced. */
  #announced: string | undefined;

  constructor(parts: PublicationParts) {
    this.#parts = parts;
    const ready = Promise.withResolvers<void>();
    this.ready = ready.promise;
    this.#reportReady = ready.resolve;
  }

  /** Proposes this member's name and client URLs, until it has gone through. */
  async publish(): Promise<void> {
    const { memberId, clusterId, config, logger } = this.#parts;
    const attributes = {
      name: config.name,
      clientUrls: config.advertiseClientUrls.map((url) => url.text),
    };
    const request = membershippb.ClusterMemberAttrSetRequest.encode({
      member_ID: memberId,
      memberAttributes: attributes,
    });
    while (!this.#parts.lifetime.hasEnded) {
      try {
        const applied = await this.#parts.proposals.propose("clusterMemberAttrSet", request);
        if (applied.error !== undefined) throw applied.error;
        break;
      } catch (error) {
        if (this.#parts.lifetime.hasEnded) return;
        logger.warn("failed to publish local member to cluster through raft", {
          "local-member-id": idToHex(memberId),
          error: (error as Error).message,
        });
        // What is refused at once would be refused again and again, and the member would do nothing
        // else.
        await sleep(this.#parts.clock, PUBLISH_RETRY_MS);
      }
    }
    if (this.#parts.lifetime.hasEnded) return;
    this.#published = true;
    logger.info("published local member to cluster through raft", {
      "local-member-id": idToHex(memberId),
      "local-member-attributes": `{Name:${attributes.name} ClientURLs:[${attributes.clientUrls.join(" ")}]}`,
      "cluster-id": idToHex(clusterId),
    });
    this.versionMayBeKnown();
  }

  /** The store may have learnt the cluster's version. */
  versionMayBeKnown(): void {
    const version = this.#parts.store.current.membership.clusterVersion;
    if (version !== undefined && version !== this.#announced) {
      const { metrics, logger } = this.#parts;
      if (compareVersions(SERVER_VERSION, version) < 0) {
        throw new Error(
          `invalid downgrade; server version is lower than determined cluster version: the cluster is at ${majorMinor(version)}, this ` +
            `member speaks ${majorMinor(SERVER_VERSION)}; start it with a version that is no older than the cluster's`,
        );
      }
      if (this.#announced !== undefined)
        metrics.clusterVersion.with(majorMinor(this.#announced)).value = 0;
      this.#announced = version;
      metrics.clusterVersion.with(majorMinor(version)).value = 1;
      logger.info("enabled capabilities for version", { "cluster-version": majorMinor(version) });
    }
    if (this.#published && this.#announced !== undefined) this.#reportReady();
  }
}
