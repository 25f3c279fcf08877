/** Calls about leases: client.leases. */
import {
  GrpcStatus,
  LeaseGrantRequest,
  type LeaseGrantResponse,
  type LeaseKeepAliveResponse,
  LeaseLeasesRequest,
  type LeaseLeasesResponse,
  LeaseRevokeRequest,
  type LeaseRevokeResponse,
  LeaseService,
  LeaseTimeToLiveRequest,
  type LeaseTimeToLiveResponse,
} from "@quorate/proto";
import { type Caller, pause } from "./caller.ts";
import { ClientError } from "./errors.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import { Backoff, isStaleToken, mayResume } from "./resume.ts";

export class Leases {
  readonly #caller: Caller;

  /** Made by the client. */
  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /**
   * Makes a lease of `ttlSeconds`; the server may give it longer. @param id 0n has the server
   * choose
   */
  grant(ttlSeconds: number, id = 0n): Promise<LeaseGrantResponse> {
    return this.#caller.call(
      LeaseService.methods.LeaseGrant,
      LeaseGrantRequest.create({ TTL: ttlSeconds, ID: id }),
      true,
    );
  }

  /** Ends a lease; its keys are deleted. */
  revoke(id: bigint): Promise<LeaseRevokeResponse> {
    return this.#caller.call(
      LeaseService.methods.LeaseRevoke,
      LeaseRevokeRequest.create({ ID: id }),
      true,
    );
  }

  /**
   * What is left of a lease, in seconds; TTL -1 for one that is not there. With `keys`, the keys
   * that are attached to it as well.
   */
  timeToLive(id: bigint, options: { keys?: boolean } = {}): Promise<LeaseTimeToLiveResponse> {
    const request = LeaseTimeToLiveRequest.create({ ID: id, keys: options.keys ?? false });
    return this.#caller.call(LeaseService.methods.LeaseTimeToLive, request, true);
  }

  /** All leases. */
  list(): Promise<LeaseLeasesResponse> {
    return this.#caller.call(LeaseService.methods.LeaseLeases, LeaseLeasesRequest.create(), true);
  }

  /**
   * Renews a lease once. Rejects with ClientError LeaseNotFound where there is none, or after the
   * time of a call.
   */
  async keepAliveOnce(id: bigint): Promise<LeaseKeepAliveResponse> {
    const stop = new AbortController();
    const forget = this.#caller.timer.after(this.#caller.timeoutMs, () => stop.abort());
    const backoff = new Backoff();
    let renewToken = false;
    let failure = new ClientError(GrpcStatus.DEADLINE_EXCEEDED, "context deadline exceeded");
    try {
      while (!stop.signal.aborted) {
        try {
          const stream = await this.#caller.stream(LeaseService.methods.LeaseKeepAlive, undefined, {
            renewToken,
          });
          stop.signal.addEventListener("abort", () => stream.abandon());
          stream.send({ ID: id });
          for await (const response of stream) {
            if (response.TTL <= 0)
              throw new ClientError(GrpcStatus.NOT_FOUND, "etcdserver: requested lease not found");
            return response;
          }
        } catch (error) {
          if (!(error instanceof ClientError) || !mayResume(error)) throw error;
          renewToken = isStaleToken(error.message);
          failure = new ClientError(
            GrpcStatus.DEADLINE_EXCEEDED,
            "context deadline exceeded",
            error.endpoint,
            { cause: error },
          );
        }
        await pause(this.#caller.timer, backoff.next(), stop.signal);
      }
      throw failure;
    } finally {
      forget();
    }
  }

  /**
   * Renews a lease again and again until it is stopped or the lease is gone. @param onRenewed told
   * of each answer
   */
  keepAlive(
    id: bigint,
    onRenewed: (response: LeaseKeepAliveResponse) => void = () => {},
  ): LeaseKeeper {
    return new LeaseKeeper(this.#caller, id, onRenewed);
  }
}
