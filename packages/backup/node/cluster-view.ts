/**
 * The calls that a backup makes to the cluster: its revision, its history, its leases, its hashes.
 */
import type { Client } from "@quorate/client";
import {
  equals,
  KeyValue,
  KVService,
  LeaseService,
  MaintenanceService,
  RangeRequest,
} from "@quorate/proto";
import type { RevisionChange } from "../src/format.ts";

/** Concurrent LeaseTimeToLive calls. */
const LEASES_AT_ONCE = 16;

/** The identity and the newest revision of a cluster. */
export interface ClusterState {
  readonly clusterId: bigint;
  readonly revision: number;
}

/** All methods reject with ClientError. */
export class ClusterView {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** By a linearizable read. */
  async state(): Promise<ClusterState> {
    const { header } = await this.#client.call(
      KVService.methods.Range,
      RangeRequest.create({ key: new Uint8Array(1), countOnly: true }),
      true,
    );
    return { clusterId: header!.clusterId, revision: header!.revision };
  }

  /**
   * Whether the cluster made exactly these changes at that revision. A cluster that was restored
   * from an earlier state has other changes there.
   * @returns "compacted" if the cluster no longer has that revision
   */
  async hasChanges(
    revision: number,
    changes: readonly RevisionChange[],
  ): Promise<boolean | "compacted"> {
    const [change] = changes;
    if (change === undefined) return true;
    const { key } = KeyValue.decode(change.record);
    try {
      const request = RangeRequest.create({ key, revision });
      const { kvs } = await this.#client.call(KVService.methods.Range, request, true);
      if (change.deleted) return kvs.length === 0;
      return (
        kvs[0] !== undefined && equals(KeyValue.encode(KeyValue.decode(kvs[0])), change.record)
      );
    } catch (error) {
      if (codeOf(error) === "Compacted") return "compacted";
      throw error;
    }
  }

  async leaseIds(): Promise<bigint[]> {
    const { leases } = await this.#client.call(LeaseService.methods.LeaseLeases, {}, true);
    return leases.map(({ ID }) => ID);
  }

  /** The granted times to live, in seconds, of those leases that exist. */
  async timesToLive(ids: readonly bigint[]): Promise<Map<bigint, number>> {
    const found = new Map<bigint, number>();
    for (let at = 0; at < ids.length; at += LEASES_AT_ONCE) {
      const some = ids.slice(at, at + LEASES_AT_ONCE);
      const responses = await Promise.all(
        some.map((ID) => this.#client.call(LeaseService.methods.LeaseTimeToLive, { ID }, true)),
      );
      for (const [i, { TTL, grantedTTL }] of responses.entries()) {
        if (TTL >= 0 && grantedTTL > 0) found.set(some[i], grantedTTL);
      }
    }
    return found;
  }

  /** The hash of a revision; undefined where the member has compacted it or not applied it yet. */
  async hashAt(revision: number): Promise<{ hash: number; compactRevision: number } | undefined> {
    try {
      return await this.#client.call(MaintenanceService.methods.HashKV, { revision }, true);
    } catch (error) {
      if (["Compacted", "FutureRev"].includes(codeOf(error))) return undefined;
      throw error;
    }
  }
}

function codeOf(error: unknown): string {
  return (error as { code?: string }).code ?? "";
}
