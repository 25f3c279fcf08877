/**
 * What clients of all identities do besides reading and writing keys: leases with others' keys on
 * them, renewals, lists, status, and requests that are for root alone.
 */
import {
  AlarmRequest,
  AuthRoleGetRequest,
  AuthService,
  AuthStatusRequest,
  AuthUserGetRequest,
  AuthUserListRequest,
  ClusterService,
  HashKVRequest,
  LeaseKeepAliveRequest,
  LeaseLeasesRequest,
  LeaseRevokeRequest,
  LeaseService,
  LeaseTimeToLiveRequest,
  MaintenanceService,
  MemberListRequest,
  StatusRequest,
} from "@quorate/proto";
import { Actor, type ActorDeps } from "../base/actor.ts";
import type { LeaseCheck } from "../check/lease-lives.ts";
import type { Clients } from "../clients.ts";
import type { Node } from "../node.ts";
import { ROLES, USERS } from "./administrator.ts";
import type { Identity } from "./identity.ts";
import type { UserNetwork } from "./user-network.ts";

const { LeaseRevoke, LeaseTimeToLive, LeaseLeases, LeaseKeepAlive } = LeaseService.methods;
const { Alarm, HashKV, Status } = MaintenanceService.methods;
const { AuthStatus, UserGet, UserList, RoleGet } = AuthService.methods;
const TIMEOUT_MS = 3000;

export interface UserClientsDeps extends Pick<ActorDeps, "nodes" | "scheduler" | "random"> {
  readonly clients: Clients;
  readonly leaseCheck: LeaseCheck;
  readonly network: UserNetwork;
  anyone(): Identity;
}

export class UserClients extends Actor<UserClientsDeps, { readonly keys: number }> {
  #values = 0;

  async work(): Promise<void> {
    while (!this.isStopped) {
      await this.deps.scheduler.delay(this.random.unit() * 120);
      if (this.isStopped) return;
      const { nodes } = this.deps;
      await this.one(nodes[this.random.below(nodes.length)]);
    }
  }

  #ask(node: Node, path: string, bytes: Uint8Array) {
    return this.deps.network.ask(this.deps.anyone(), node, path, bytes, TIMEOUT_MS);
  }

  /** One call of a random kind, by a caller of random identity. */
  async one(node: Node): Promise<void> {
    const random = this.random;
    const { clients } = this.deps;
    const lease = clients.leases[random.below(Math.max(1, clients.leases.length))];
    const ID = BigInt(lease ?? 1);
    switch (random.below(14)) {
      case 0:
      case 1:
      case 2:
        return this.#put(node, lease);
      case 3:
      case 4:
        await this.#ask(
          node,
          LeaseTimeToLive.path,
          LeaseTimeToLiveRequest.encode({ ID, keys: true }),
        );
        return;
      case 5:
        return this.#renew(node, ID);
      case 6:
        return this.#revoke(node, lease);
      case 7:
        await this.#ask(node, LeaseLeases.path, LeaseLeasesRequest.encode({}));
        return;
      case 8:
        return this.#attachAndAsk(node, lease);
      case 9:
        return this.#read(node);
      default:
        return this.#other(node);
    }
  }

  #range() {
    const key = `k${String.fromCharCode(97 + this.random.below(this.options.keys))}`;
    const ends = ["", "", `${key}~`, "l", "\0"];
    return { key, end: ends[this.random.below(ends.length)] };
  }

  async #put(node: Node, lease: string | undefined): Promise<void> {
    const { key } = this.#range();
    const value = `user.${this.#values++}`;
    const put = { kind: "put", key, value } as const;
    const request = {
      ...put,
      ...(lease !== undefined && { lease }),
      ...(this.random.below(2) === 0 && { prevKv: true }),
    };
    const mode = { serializable: false, atRevision: 0 };
    await this.deps.clients.call("user", node, request, mode, TIMEOUT_MS);
  }

  /**
   * A key is attached to a lease, and at once another member, which may not have heard of it, is
   * asked for the lease's keys.
   */
  async #attachAndAsk(node: Node, lease: string | undefined): Promise<void> {
    const { nodes, clients } = this.deps;
    if (lease === undefined) return;
    const { key } = this.#range();
    const put = { kind: "put", key, value: `operator.${this.#values++}`, lease } as const;
    const mode = { serializable: false, atRevision: 0 };
    const { outcome } = await clients.call("operator", node, put, mode, TIMEOUT_MS);
    if (outcome?.kind !== "answered") return;
    const bytes = LeaseTimeToLiveRequest.encode({ ID: BigInt(lease), keys: true });
    const others = nodes.filter((one) => one !== node);
    await Promise.all(others.map((other) => this.#ask(other, LeaseTimeToLive.path, bytes)));
  }

  /** Writes of root's, which come into the log next to what others ask at this moment. */
  async beside(node: Node, key: string): Promise<void> {
    await this.deps.scheduler.delay(this.random.below(4));
    const put = { kind: "put", key, value: `operator.${this.#values++}` } as const;
    const mode = { serializable: false, atRevision: 0 };
    await this.deps.clients.call("operator", node, put, mode, TIMEOUT_MS);
  }

  async #read(node: Node): Promise<void> {
    const mode = { serializable: this.random.below(2) === 0, atRevision: 0 };
    const request = { kind: "range", ...this.#range() } as const;
    await this.deps.clients.call("user", node, request, mode, TIMEOUT_MS);
  }

  async #renew(node: Node, ID: bigint): Promise<void> {
    const { network, scheduler } = this.deps;
    let isOver = false;
    const stream = network.openAs(this.deps.anyone(), node, LeaseKeepAlive.path, {
      message: () => {},
      ended: () => {
        isOver = true;
      },
    });
    for (let i = this.random.below(5); i >= 0 && !isOver; i--) {
      stream.send(LeaseKeepAliveRequest.encode({ ID }));
      await scheduler.delay(this.random.unit() * 200);
    }
    stream.close();
  }

  async #revoke(node: Node, lease: string | undefined): Promise<void> {
    if (lease === undefined || this.random.below(3) > 0) return;
    this.deps.leaseCheck.askedToRevoke(lease);
    await this.#ask(node, LeaseRevoke.path, LeaseRevokeRequest.encode({ ID: BigInt(lease) }));
  }

  async #other(node: Node): Promise<void> {
    const random = this.random;
    const { clients } = this.deps;
    const name = USERS[random.below(USERS.length)];
    const role = ROLES[random.below(ROLES.length)];
    const calls: readonly [string, Uint8Array][] = [
      [AuthStatus.path, AuthStatusRequest.encode({})],
      [UserGet.path, AuthUserGetRequest.encode({ name })],
      [RoleGet.path, AuthRoleGetRequest.encode({ role })],
      [UserList.path, AuthUserListRequest.encode({})],
      [ClusterService.methods.MemberList.path, MemberListRequest.encode({ linearizable: true })],
      [Status.path, StatusRequest.encode({})],
      [HashKV.path, HashKVRequest.encode({ revision: 0 })],
      [Alarm.path, AlarmRequest.encode({})],
    ];
    const picked = random.below(calls.length + 1);
    if (picked === calls.length) {
      await clients.compact("user", node, Math.max(1, clients.knownRevision - random.below(10)));
      return;
    }
    const [path, bytes] = calls[picked];
    await this.#ask(node, path, bytes);
  }
}
