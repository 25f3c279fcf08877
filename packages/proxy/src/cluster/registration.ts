/**
 * Registers the proxy under --resolver-prefix by a lease, and again when the lease is lost (etcd:
 * server/proxy/grpcproxy/register.go).
 */
import type { Clock, Logger, Timer } from "@quorate/host";
import {
  KVService,
  LeaseGrantRequest,
  LeaseGrantResponse,
  LeaseKeepAliveRequest,
  LeaseKeepAliveResponse,
  LeaseRevokeRequest,
  LeaseService,
  PutRequest,
} from "@quorate/proto";
import type { Upstream } from "../upstream/upstream.ts";
import type { UpstreamStream } from "../upstream/upstream-stream.ts";

const GRANT = { path: LeaseService.methods.LeaseGrant.path, isRepeatable: false };
const REVOKE = { path: LeaseService.methods.LeaseRevoke.path, isRepeatable: true };
const PUT = { path: KVService.methods.Put.path, isRepeatable: true };
/** Between two attempts, as in etcd. */
const RETRY_MS = 1000;
const CALL_TIMEOUT_MS = 5000;

export interface RegistrationOptions {
  /** The key as the cluster knows it, and its value. */
  readonly key: Uint8Array;
  readonly value: Uint8Array;
  /** The advertised address, for the log. */
  readonly address: string;
  readonly ttlSeconds: number;
}

export class Registration {
  readonly #upstream: Upstream;
  readonly #options: RegistrationOptions;
  readonly #logger: Logger;
  readonly #clock: Clock;
  #lease = 0n;
  /** When the lease ends if it is not kept alive, in monotonic milliseconds. */
  #endMs = 0;
  #timer: Timer | undefined;
  #stream: UpstreamStream | undefined;
  #isClosed = false;

  constructor(upstream: Upstream, options: RegistrationOptions, logger: Logger) {
    this.#upstream = upstream;
    this.#options = options;
    this.#logger = logger;
    this.#clock = upstream.clock;
  }

  /** Begins to register. Returns at once. */
  start(): void {
    this.#register().catch((error: Error) => {
      if (this.#isClosed) return;
      this.#logger.warn("failed to create a session", { error: error.message });
      this.#timer = this.#clock.after(RETRY_MS, () => this.start());
    });
  }

  /** Removes the registration by revoking its lease. Resolves also if that fails. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#stream?.cancel();
    if (this.#lease === 0n) return;
    const request = LeaseRevokeRequest.encode({ ID: this.#lease });
    await this.#upstream.call(REVOKE, request, this.#callOptions()).catch(() => {});
  }

  async #register(): Promise<void> {
    const { key, value, address, ttlSeconds } = this.#options;
    const askedMs = this.#clock.monotonicMs();
    const granted = LeaseGrantResponse.decode(
      await this.#upstream.call(
        GRANT,
        LeaseGrantRequest.encode({ TTL: ttlSeconds }),
        this.#callOptions(),
      ),
    );
    this.#lease = granted.ID;
    this.#endMs = askedMs + granted.TTL * 1000;
    const put = PutRequest.encode({ key, value, lease: granted.ID });
    await this.#upstream.call(PUT, put, this.#callOptions());
    if (this.#isClosed) return;
    this.#logger.info("registered session with lease", { addr: address, "lease-ttl": ttlSeconds });
    this.#later(granted.TTL);
  }

  #later(ttlSeconds: number): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.after((ttlSeconds * 1000) / 3, () => this.#keepAlive());
  }

  /** One request on a stream of its own: it goes to whichever member can be reached. */
  #keepAlive(): void {
    this.#stream?.cancel();
    if (this.#isClosed) return;
    const askedMs = this.#clock.monotonicMs();
    if (askedMs >= this.#endMs) {
      this.#lost();
      return;
    }
    this.#timer = this.#clock.after(Math.min(RETRY_MS, this.#endMs - askedMs), () =>
      this.#keepAlive(),
    );
    const stream = this.#upstream.stream(LeaseService.methods.LeaseKeepAlive.path, [], {
      message: (bytes) => {
        stream.cancel();
        const { TTL: ttlSeconds } = LeaseKeepAliveResponse.decode(bytes);
        if (ttlSeconds <= 0) this.#lost();
        else {
          this.#endMs = askedMs + ttlSeconds * 1000;
          this.#later(ttlSeconds);
        }
      },
      ended: () => {},
    });
    this.#stream = stream;
    stream.send(LeaseKeepAliveRequest.encode({ ID: this.#lease }));
  }

  #lost(): void {
    this.#timer?.cancel();
    this.#lease = 0n;
    this.#logger.warn("session expired; possible network partition or server restart");
    this.#logger.warn("creating a new session to rejoin");
    this.#timer = this.#clock.after(RETRY_MS, () => this.start());
  }

  #callOptions() {
    return { metadata: [], deadlineMs: this.#clock.monotonicMs() + CALL_TIMEOUT_MS };
  }
}
