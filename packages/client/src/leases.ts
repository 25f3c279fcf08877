/** Calls about leases: client.leases. */
import {
  Backoff,
  CALLBACK,
  check,
  checkOptions,
  FLAG,
  ID,
  INTEGER,
  type Shape,
} from "@quorate/host";
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
import {
  CALL_SHAPE,
  type CallOptions,
  splitOptions,
  WAIT_SHAPE,
  type WaitOptions,
} from "./call-options.ts";
import { type Caller, pause } from "./caller.ts";
import { abortError, ClientError } from "./errors.ts";
import { type KeepAliveOptions, LeaseKeepAlive } from "./lease-keep-alive.ts";
import { isStaleToken, mayResume, REOPEN } from "./resume.ts";
import { Wait } from "./wait.ts";

const KEEP_ALIVE_SHAPE: Shape<KeepAliveOptions> = { ...WAIT_SHAPE, onBreak: CALLBACK };
const TIME_CALL = { keys: FLAG, ...CALL_SHAPE };

/** Calls about leases: `client.leases`. */
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
  async grant(ttlSeconds: number, id = 0n, options?: CallOptions): Promise<LeaseGrantResponse> {
    check("grant", "ttlSeconds", ttlSeconds, INTEGER);
    check("grant", "id", id, ID);
    const request = LeaseGrantRequest.create({ TTL: ttlSeconds, ID: id });
    return this.#caller.call(LeaseService.methods.LeaseGrant, request, false, options);
  }

  /** Ends a lease and deletes its keys. */
  async revoke(id: bigint, options?: CallOptions): Promise<LeaseRevokeResponse> {
    check("revoke", "id", id, ID);
    const request = LeaseRevokeRequest.create({ ID: id });
    return this.#caller.call(LeaseService.methods.LeaseRevoke, request, false, options);
  }

  /**
   * The remaining time of a lease, in seconds; TTL is -1 if it does not exist. With `keys`, also
   * the keys attached to it.
   */
  async timeToLive(
    id: bigint,
    options: { keys?: boolean } & CallOptions = {},
  ): Promise<LeaseTimeToLiveResponse> {
    check("timeToLive", "id", id, ID);
    const [{ keys = false }, call] = splitOptions("timeToLive", options, TIME_CALL);
    const request = LeaseTimeToLiveRequest.create({ ID: id, keys });
    return this.#caller.call(LeaseService.methods.LeaseTimeToLive, request, true, call);
  }

  /** All leases. */
  list(options?: CallOptions): Promise<LeaseLeasesResponse> {
    const request = LeaseLeasesRequest.create();
    return this.#caller.call(LeaseService.methods.LeaseLeases, request, true, options);
  }

  /**
   * Renews a lease once. Rejects with ClientError: LeaseNotFound if it does not exist, or a
   * deadline after `timeoutMs`, by default that of any call.
   */
  async keepAliveOnce(id: bigint, options: WaitOptions = {}): Promise<LeaseKeepAliveResponse> {
    check("keepAliveOnce", "id", id, ID);
    checkOptions("keepAliveOnce", options, WAIT_SHAPE);
    const timeoutMs = options.timeoutMs ?? this.#caller.timeoutMs;
    using wait = new Wait(this.#caller.timer, { ...options, timeoutMs });
    const backoff = new Backoff(REOPEN);
    const method = LeaseService.methods.LeaseKeepAlive;
    let renewToken = false;
    let last: ClientError | undefined;
    while (!wait.signal.aborted) {
      try {
        const { signal } = wait;
        const stream = await this.#caller.stream(method, undefined, { renewToken, signal });
        const abandon = (): void => stream.abandon();
        signal.addEventListener("abort", abandon);
        stream.send({ ID: id });
        for await (const response of stream) {
          if (response.TTL <= 0)
            throw new ClientError(GrpcCode.NotFound, "etcdserver: requested lease not found");
          return response;
        }
      } catch (error) {
        if (wait.signal.aborted) break;
        if (!(error instanceof ClientError) || !mayResume(error)) throw error;
        renewToken = isStaleToken(error.message);
        last = error;
      }
      await pause(this.#caller.timer, backoff.nextMs(), wait.signal);
    }
    const endpoint = last?.endpoint;
    throw abortError(wait.signal, { method: method.path, endpoint, cause: last });
  }

  /**
   * Keeps a lease alive until stop() is called or the lease ends.
   * @param onRenewed called with each response
   * @param options a signal that stops it; the time for the first response; who is told of breaks
   */
  keepAlive(
    id: bigint,
    onRenewed: (response: LeaseKeepAliveResponse) => void = () => {},
    options: KeepAliveOptions = {},
  ): LeaseKeepAlive {
    check("keepAlive", "id", id, ID);
    check("keepAlive", "onRenewed", onRenewed, CALLBACK);
    checkOptions("keepAlive", options, KEEP_ALIVE_SHAPE);
    return new LeaseKeepAlive(this.#caller, id, onRenewed, options);
  }
}
