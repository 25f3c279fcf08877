/** Leases as npm's etcd3 has them. */
import type { Buffer } from "node:buffer";
import { EventEmitter } from "node:events";
import { LeaseKeepAliveResponse } from "@quorate/proto";
import type { LeaseEnd, LeaseKeepAlive } from "../src/lease-keep-alive.ts";
import { PutBuilder } from "./builder.ts";
import { castGrpcError, EtcdLeaseInvalidError } from "./errors.ts";
import type { ILeaseGrantResponse, ILeaseKeepAliveResponse } from "./messages.ts";
import { type CallOptions, waitOptions } from "./options.ts";
import type { ConnectionPool, ICallable } from "./pool.ts";
import type { KeyPrefix } from "./range.ts";
import { KVClient, LeaseClient } from "./services.ts";
import { shapeOf } from "./shape.ts";

export const LeaseState = { Pending: 0, Alive: 1, Revoked: 2 } as const;
export type LeaseState = (typeof LeaseState)[keyof typeof LeaseState];

export interface ILeaseOptions extends CallOptions {
  /** Whether the client renews it; default true. */
  readonly autoKeepAlive?: boolean;
}

/** What a lease tells, and with which values. */
interface LeaseEvents {
  /** The lease is gone: give up what depends on it. */
  lost: [error: Error];
  keepaliveFired: [];
  keepaliveSucceeded: [response: ILeaseKeepAliveResponse];
  /** No member renewed it now; the client tries again. */
  keepaliveFailed: [error: Error];
  keepaliveEstablished: [];
}

/**
 * A lease, which is granted at once and renewed after a third of its time until it is revoked or
 * released. "lost" tells that it is over: at the latest when its time has passed by the clock of
 * this machine, also where no member can be reached.
 */
export class Lease extends EventEmitter<LeaseEvents> {
  readonly #pool: ConnectionPool;
  readonly #prefixed: KeyPrefix;
  readonly #client: LeaseClient;
  readonly #callOptions: CallOptions;
  readonly #granted: Promise<ILeaseGrantResponse>;
  #state: LeaseState = LeaseState.Pending;
  #keepAlive: LeaseKeepAlive | undefined;

  /** Made by client.lease(). Throws RangeError for less than a second. */
  constructor(pool: ConnectionPool, prefixed: KeyPrefix, ttl: number, options: ILeaseOptions = {}) {
    super();
    if (!(ttl >= 1))
      throw new RangeError(`the TTL of a lease must be at least 1 second, not ${ttl}`);
    const { autoKeepAlive = true, deadline: _, ...rest } = options;
    this.#pool = pool;
    this.#prefixed = prefixed;
    this.#client = new LeaseClient(pool);
    this.#callOptions = rest;
    this.#granted = this.#client.leaseGrant({ TTL: ttl }, options);
    this.#granted.then(
      ({ ID }) => {
        if (this.#state === LeaseState.Revoked) return;
        this.#state = LeaseState.Alive;
        if (autoKeepAlive && !pool.isMocked) this.#renew(ID);
      },
      (error: Error) => this.#lose(error),
    );
  }

  get state(): LeaseState {
    return this.#state;
  }

  /** The id, once it is granted. */
  async grant(): Promise<string> {
    return (await this.#granted).ID;
  }

  /** Ends the lease, and deletes its keys. */
  async revoke(options: CallOptions | undefined = this.#callOptions): Promise<void> {
    this.release();
    const granted = await this.#granted.catch(() => undefined);
    if (granted === undefined) return;
    try {
      await this.#client.leaseRevoke({ ID: granted.ID }, options);
    } catch (error) {
      if (!(error instanceof EtcdLeaseInvalidError)) throw error;
    }
  }

  /** Ends the renewals: the lease and its keys live until its time has passed. */
  release(): void {
    this.#state = LeaseState.Revoked;
    this.#keepAlive?.stop();
  }

  /** A put of a key that lives as long as the lease. */
  put(key: string | Buffer): PutBuilder {
    const callable: ICallable = {
      exec: async (service, method, request, options) => {
        try {
          return await this.#pool.exec(service, method, request, options);
        } catch (error) {
          if (error instanceof EtcdLeaseInvalidError) this.#lose(error);
          throw error;
        }
      },
      withConnection: (service, run) => this.#pool.withConnection(service, run),
    };
    return new PutBuilder(new KVClient(callable), this.#prefixed, key).lease(this.grant());
  }

  /** Renews it now. Rejects with EtcdLeaseInvalidError if it is over. */
  async keepaliveOnce(
    options: CallOptions | undefined = this.#callOptions,
  ): Promise<ILeaseKeepAliveResponse> {
    const id = BigInt(await this.grant());
    try {
      return toShape(await this.#pool.client.leases.keepAliveOnce(id, waitOptions(options)));
    } catch (error) {
      const cast = castGrpcError(error as Error);
      if (cast instanceof EtcdLeaseInvalidError) this.#lose(cast);
      throw cast;
    }
  }

  /** Whether it is over: revoked, released or lost. */
  revoked(): boolean {
    return this.#state === LeaseState.Revoked;
  }

  #renew(id: string): void {
    let isEstablished = false;
    const renewed = (response: LeaseKeepAliveResponse): void => {
      if (!isEstablished) this.emit("keepaliveEstablished");
      isEstablished = true;
      this.emit("keepaliveFired");
      this.emit("keepaliveSucceeded", toShape(response));
    };
    const onBreak = (error: Error): void => {
      isEstablished = false;
      this.emit("keepaliveFailed", castGrpcError(error));
    };
    this.#keepAlive = this.#pool.client.leases.keepAlive(BigInt(id), renewed, {
      onBreak,
      signal: this.#pool.closed,
    });
    void this.#keepAlive.ended.then((end) => this.#ended(id, end));
  }

  #ended(id: string, end: LeaseEnd): void {
    if (end.kind === "stopped") return;
    const error = new EtcdLeaseInvalidError(id);
    if (end.kind === "unreachable") {
      error.message = `Lease ${id}: we lost connection to etcd and our lease has expired`;
      error.cause = end.cause;
    }
    this.#lose(error);
  }

  #lose(error: Error): void {
    this.release();
    this.emit("lost", error);
  }
}

function toShape(response: LeaseKeepAliveResponse): ILeaseKeepAliveResponse {
  const { typeName } = LeaseKeepAliveResponse;
  return shapeOf(typeName).decode(LeaseKeepAliveResponse.encode(response)) as never;
}
