/**
 * How a member makes itself known: it tells the cluster its name and client URLs, a leader decides the cluster's version where there is
 * none
 * yet, and when both are done the member is ready to serve. The messages are those that scripts wait for in etcd's logs.
 */
import type { Logger } from "@quorate/host";
import { idToHex, membershippb } from "@quorate/proto";
import type { Applied, RequestKind, Store } from "@quorate/store";
import type { ServerConfig } from "../config/index.ts";
import type { MemberMetrics } from "../metrics/member-metrics.ts";
import { clusterVersionOf, majorMinor, SERVER_VERSION } from "../version.ts";

export interface PublicationParts {
  readonly memberId: bigint;
  readonly clusterId: bigint;
  readonly config: ServerConfig;
  readonly metrics: MemberMetrics;
  readonly logger: Logger;
  readonly store: () => Store;
  /** True once the member is ending: nothing is tried again. */
  readonly hasEnded: () => boolean;
  propose(kind: RequestKind, request: Uint8Array): Promise<Applied>;
}

export class Publication {
  /** Resolves when the member has published itself and the cluster's version is known; never rejects. */
  readonly ready: Promise<void>;
  readonly #parts: PublicationParts;
  readonly #reportReady: () => void;
  #published = false;
  #announced = false;

  constructor(parts: PublicationParts) {
    this.#parts = parts;
    const ready = Promise.withResolvers<void>();
    this.ready = ready.promise;
    this.#reportReady = ready.resolve;
  }

  /** Tells the cluster this member's name and client URLs, until it has gone through. */
  async publish(): Promise<void> {
    const { memberId, clusterId, config, logger } = this.#parts;
    const attributes = { name: config.name, clientUrls: config.advertiseClientUrls.map((url) => url.text) };
    const request = membershippb.ClusterMemberAttrSetRequest.encode({ member_ID: memberId, memberAttributes: attributes });
    while (!this.#parts.hasEnded()) {
      try {
        const applied = await this.#parts.propose("clusterMemberAttrSet", request);
        if (applied.error !== undefined) throw applied.error;
        break;
      } catch (error) {
        if (this.#parts.hasEnded()) return;
        logger.warn("failed to publish local member to cluster through raft", {
          "local-member-id": idToHex(memberId),
          error: (error as Error).message,
        });
      }
    }
    this.#published = true;
    logger.info("published local member to cluster through raft", {
      "local-member-id": idToHex(memberId),
      "local-member-attributes": `{Name:${attributes.name} ClientURLs:[${attributes.clientUrls.join(" ")}]}`,
      "cluster-id": idToHex(clusterId),
    });
    this.versionMayBeKnown();
  }

  /** This member leads: it decides the cluster's version, if nobody has. */
  lead(): void {
    const { store, logger } = this.#parts;
    if (store().membership.clusterVersion !== undefined) return;
    const request = membershippb.ClusterVersionSetRequest.encode({ ver: clusterVersionOf(SERVER_VERSION) });
    logger.info("setting up initial cluster version using v3 API", { "cluster-version": majorMinor(SERVER_VERSION) });
    this.#parts.propose("clusterVersionSet", request).catch((error: Error) => {
      logger.warn("failed to update cluster version", { error: error.message });
    });
  }

  /** The store may have learnt the cluster's version. */
  versionMayBeKnown(): void {
    const version = this.#parts.store().membership.clusterVersion;
    if (version !== undefined && !this.#announced) {
      this.#announced = true;
      this.#parts.metrics.clusterVersion.with(majorMinor(version)).value = 1;
      this.#parts.logger.info("enabled capabilities for version", { "cluster-version": majorMinor(version) });
    }
    if (this.#published && this.#announced) this.#reportReady();
  }
}
