/**
 * A session: a lease that is kept alive, with the locks and candidacies attached to it. When the
 * process dies the lease expires and releases them.
 */
import type { LeaseEnd, LeaseKeepAlive } from "./lease-keep-alive.ts";
import type { Leases } from "./leases.ts";

export class Session {
  readonly lease: bigint;
  /**
   * Resolves when the session was closed or its lease ended. Its locks are lost then.
   */
  readonly ended: Promise<LeaseEnd>;
  readonly #leases: Leases;
  readonly #keepAlive: LeaseKeepAlive;

  private constructor(leases: Leases, lease: bigint) {
    this.#leases = leases;
    this.lease = lease;
    this.#keepAlive = leases.keepAlive(lease);
    this.ended = this.#keepAlive.ended;
  }

  /** Opens a session. Rejects with ClientError. */
  static async open(leases: Leases, ttlSeconds: number): Promise<Session> {
    return new Session(leases, (await leases.grant(ttlSeconds)).ID);
  }

  /**
   * Ends the session and revokes its lease, which deletes all keys attached to it. Rejects with
   * ClientError.
   */
  async close(): Promise<void> {
    this.#keepAlive.stop();
    await this.ended;
    await this.#leases.revoke(this.lease);
  }
}
