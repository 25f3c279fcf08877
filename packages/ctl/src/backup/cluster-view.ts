/**
 * What a backup asks of a cluster: where it stands, whether its history is the one that was
 * recorded, its leases, hashes.
 */
import type { RevisionChange } from "@quorate/backup";
import type { Client } from "@quorate/client";
import {
  equals,
  KeyValue,
  KVService,
  LeaseService,
  MaintenanceService,
  RangeRequest,
} from "@quorate/proto";

/** Leases whose time to live is asked for at once. */
const LEASES_AT_ONCE = 16;

/** Where a cluster stands. */
export interface Standing {
  readonly clusterId: bigint;
  readonly revision: number;
}

export class ClusterView {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** The newest revision, by a linearizable read. Rejects with ClientError. */
  async standing(): Promise<Standing> {
    const { header } = await this.#client.call(
      KVService.methods.Range,
      RangeRequest.create({ key: new Uint8Array(1), countOnly: true }),
      true,
    );
    return { clusterId: header!.clusterId, revision: header!.revision };
  }

  /**
   * Whether the cluster's history has these changes at that revision; "compacted" if it has
   * forgotten. One that was restored from an earlier state has other ones there.
   */
  async hasChanges(
    revision: number,
    changes: readonly RevisionChange[],
  ): Promise<boolean | "compacted"> {
    const [change] = changes;
    if (change === undefined) return true;
    const { key } = KeyValue.decode(change.record);
    try {
      const { kvs } = await this.#client.call(
        KVService.methods.Range,
        RangeRequest.create({ key, revision }),
        true,
      );
      if (change.deleted) return kvs.length === 0;
      return (
        kvs[0] !== undefined && equals(KeyValue.encode(KeyValue.decode(kvs[0])), change.record)
      );
    } catch (error) {
      if ((error as { code?: string }).code === "Compacted") return "compacted";
      throw error;
    }
  }

  async leaseIds(): Promise<bigint[]> {
    const { leases } = await this.#client.call(LeaseService.methods.LeaseLeases, {}, true);
    return leases.map(({ ID }) => ID);
  }

  /** Times to live as granted, of those leases that exist. */
  async timesToLive(ids: readonly bigint[]): Promise<Map<bigint, number>> {
    const found = new Map<bigint, number>();
    for (let at = 0; at < ids.length; at += LEASES_AT_ONCE) {
      const some = ids.slice(at, at + LEASES_AT_ONCE);
      const answers = await Promise.all(
        some.map((ID) => this.#client.call(LeaseService.methods.LeaseTimeToLive, { ID }, true)),
      );
      for (const [i, { TTL, grantedTTL }] of answers.entries())
        if (TTL >= 0 && grantedTTL > 0) found.set(some[i], grantedTTL);
    }
    return found;
  }

  /**
   * The hash at a revision; undefined where the member that is asked cannot give it (compacted, or
   * not that far yet).
   */
  async hashAt(revision: number): Promise<{ hash: number; compactRevision: number } | undefined> {
    try {
      return await this.#client.call(MaintenanceService.methods.HashKV, { revision }, true);
    } catch (error) {
      if (["Compacted", "FutureRev"].includes((error as { code?: string }).code ?? ""))
        return undefined;
      throw error;
    }
  }
}
