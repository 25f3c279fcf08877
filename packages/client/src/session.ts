/**
 * A session: a lease that is kept alive, with the locks and candidacies attached to it. When the
 * process dies the lease expires and releases them.
 *
 *   await using session = await client.session({ ttlSeconds: 10 });
 *   await using lock = await lockNamed(client, session, "jobs");
 *   await work(lock.signal);
 */
import type { CallOptions } from "./call-options.ts";
import { ClientError } from "./errors.ts";
import type { LeaseEnd, LeaseKeepAlive } from "./lease-keep-alive.ts";
import type { Leases } from "./leases.ts";

/** What client.session() takes. */
export interface SessionOptions extends CallOptions {
  /** Time to live of its lease; default 60. */
  readonly ttlSeconds?: number;
}

/** A lease that is kept alive, with what is attached to it. */
export class Session implements AsyncDisposable {
  readonly lease: bigint;
  /**
   * Resolves when the session was closed or its lease ended. Its locks are lost then.
   */
  readonly ended: Promise<LeaseEnd>;
  /**
   * For work that depends on the session: aborted when it was closed or its lease ended, with
   * LeaseEndedError.
   */
  readonly signal: AbortSignal;
  readonly #leases: Leases;
  readonly #keepAlive: LeaseKeepAlive;

  private constructor(leases: Leases, lease: bigint) {
    this.#leases = leases;
    this.lease = lease;
    this.#keepAlive = leases.keepAlive(lease);
    this.ended = this.#keepAlive.ended;
    this.signal = this.#keepAlive.signal;
  }

  /** Opens a session. Rejects with ClientError. */
  static async open(leases: Leases, ttlSeconds: number, options: CallOptions): Promise<Session> {
    // A lease that nobody knows of ends by itself.
    const { ID } = await leases.grant(ttlSeconds, 0n, { repeat: true, ...options });
    return new Session(leases, ID);
  }

  /**
   * Ends the session and revokes its lease, which deletes all keys attached to it. Rejects with
   * ClientError.
   */
  async close(options: CallOptions = {}): Promise<void> {
    this.#keepAlive.stop();
    await this.ended;
    try {
      await this.#leases.revoke(this.lease, { repeat: true, ...options });
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }

  /** Closes the session. Without a response its lease ends by itself. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close().catch((error: unknown) => {
      if (!(error instanceof ClientError)) throw error;
    });
  }
}

/** Whether the lease had ended before. */
function isGone(error: unknown): boolean {
  return error instanceof ClientError && error.code === "LeaseNotFound";
}
