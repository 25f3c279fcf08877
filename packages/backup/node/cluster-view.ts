/**
 * The calls that a backup makes to the cluster: its revision, its history, its leases, its users
 * and roles, its hashes.
 */
import type { Client } from "@quorate/client";
import {
  AuthService,
  defined,
  equals,
  KeyValue,
  KVService,
  LeaseService,
  MaintenanceService,
  RangeRequest,
} from "@quorate/proto";
import type { LaterUsers } from "@quorate/store";
import type { RevisionChange } from "../src/format.ts";

/** Concurrent calls for leases, users and roles. */
const CALLS_AT_ONCE = 16;

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
    const { clusterId, revision } = defined(header, "the header");
    return { clusterId, revision };
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
    const found = await inParts(ids, (ID) =>
      this.#client.call(LeaseService.methods.LeaseTimeToLive, { ID }, true),
    );
    return new Map(
      found
        .filter(([, { TTL, grantedTTL }]) => TTL >= 0 && grantedTTL > 0)
        .map(([id, { grantedTTL }]) => [id, grantedTTL]),
    );
  }

  /**
   * Users and roles, where they are others than at an auth revision.
   * @returns undefined where they are the same, change meanwhile, or this client may not see them
   */
  async usersSince(authRevision: number): Promise<LaterUsers | undefined> {
    const before = await this.#client.call(AuthService.methods.AuthStatus, {}, true);
    if (before.authRevision === authRevision) return undefined;
    try {
      const { users } = await this.#client.call(AuthService.methods.UserList, {}, true);
      const { roles } = await this.#client.call(AuthService.methods.RoleList, {}, true);
      const rolesOf = await inParts(users, (name) =>
        this.#client.call(AuthService.methods.UserGet, { name }, true),
      );
      const permissions = await inParts(roles, (role) =>
        this.#client.call(AuthService.methods.RoleGet, { role }, true),
      );
      const after = await this.#client.call(AuthService.methods.AuthStatus, {}, true);
      if (after.authRevision !== before.authRevision) return undefined;
      return {
        isEnabled: after.enabled,
        authRevision: after.authRevision,
        users: new Map(rolesOf.map(([name, one]) => [name, one.roles])),
        roles: new Map(permissions.map(([name, one]) => [name, one.perm])),
      };
    } catch (error) {
      if (HIDDEN.has(codeOf(error))) return undefined;
      throw error;
    }
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

/** Answers to a client that may not see users, and for those that were deleted meanwhile. */
const HIDDEN: ReadonlySet<string> = new Set([
  "PermissionDenied",
  "UserEmpty",
  "UserNotFound",
  "RoleNotFound",
]);

/** What is called for each one, some at a time. */
async function inParts<K, T>(
  all: readonly K[],
  call: (one: K) => Promise<T>,
): Promise<(readonly [K, T])[]> {
  const found: (readonly [K, T])[] = [];
  for (let at = 0; at < all.length; at += CALLS_AT_ONCE) {
    const some = all.slice(at, at + CALLS_AT_ONCE);
    found.push(...(await Promise.all(some.map(async (one) => [one, await call(one)] as const))));
  }
  return found;
}

function codeOf(error: unknown): string {
  return (error as { code?: string }).code ?? "";
}
