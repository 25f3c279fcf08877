/** Calls about leases: client.leases. */
import { Backoff, CALLBACK, check, checkOptions, FLAG, ID, INTEGER } from "@quorate/host";
import {
  GrpcCode,
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
import { LeaseKeepAlive } from "./lease-keep-alive.ts";
import { isStaleToken, mayResume, REOPEN } from "./resume.ts";

export class Leases {
  readonly #caller: Caller;

  /** Made by the client. */
  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /**
   * Grants a lease.
   * @param ttlSeconds time to live; the server may grant more
   * @param id 0n lets the server choose
   */
  async grant(ttlSeconds: number, id = 0n): Promise<LeaseGrantResponse> {
    check("grant", "ttlSeconds", ttlSeconds, INTEGER);
    check("grant", "id", id, ID);
    return this.#caller.call(
      LeaseService.methods.LeaseGrant,
      LeaseGrantRequest.create({ TTL: ttlSeconds, ID: id }),
      true,
    );
  }

  /** Ends a lease and deletes its keys. */
  async revoke(id: bigint): Promise<LeaseRevokeResponse> {
    check("revoke", "id", id, ID);
    return this.#caller.call(
      LeaseService.methods.LeaseRevoke,
      LeaseRevokeRequest.create({ ID: id }),
      true,
    );
  }

  /**
   * The remaining time of a lease, in seconds; TTL is -1 if it does not exist. With `keys`, also
   * the keys attached to it.
   */
  async timeToLive(id: bigint, options: { keys?: boolean } = {}): Promise<LeaseTimeToLiveResponse> {
    check("timeToLive", "id", id, ID);
    checkOptions("timeToLive", options, { keys: FLAG });
    const request = LeaseTimeToLiveRequest.create({ ID: id, keys: options.keys ?? false });
    return this.#caller.call(LeaseService.methods.LeaseTimeToLive, request, true);
  }

  /** All leases. */
  list(): Promise<LeaseLeasesResponse> {
    return this.#caller.call(LeaseService.methods.LeaseLeases, LeaseLeasesRequest.create(), true);
  }

  /**
   * Renews a lease once. Rejects with ClientError: LeaseNotFound if it does not exist, or a
   * deadline after `timeoutMs`.
   */
  async keepAliveOnce(id: bigint): Promise<LeaseKeepAliveResponse> {
    check("keepAliveOnce", "id", id, ID);
    const stop = new AbortController();
    const forget = this.#caller.timer.after(this.#caller.timeoutMs, () => stop.abort());
    const backoff = new Backoff(REOPEN);
    let renewToken = false;
    let failure = new ClientError(GrpcCode.DeadlineExceeded, "context deadline exceeded");
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
              throw new ClientError(GrpcCode.NotFound, "etcdserver: requested lease not found");
            return response;
          }
        } catch (error) {
          if (!(error instanceof ClientError) || !mayResume(error)) throw error;
          renewToken = isStaleToken(error.message);
          failure = new ClientError(
            GrpcCode.DeadlineExceeded,
            "context deadline exceeded",
            error.endpoint,
            { cause: error },
          );
        }
        await pause(this.#caller.timer, backoff.nextMs(), stop.signal);
      }
      throw failure;
    } finally {
      forget();
    }
  }

  /**
   * Keeps a lease alive until stop() is called or the lease ends.
   * @param onRenewed called with each response
   */
  keepAlive(
    id: bigint,
    onRenewed: (response: LeaseKeepAliveResponse) => void = () => {},
  ): LeaseKeepAlive {
    check("keepAlive", "id", id, ID);
    check("keepAlive", "onRenewed", onRenewed, CALLBACK);
    return new LeaseKeepAlive(this.#caller, id, onRenewed);
  }
}
