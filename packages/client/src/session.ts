/**
 * A session: a lease that is kept alive, which locks and candidacies hang on. When the process dies
 * the lease expires and what hung on it is free again.
 */
import type { LeaseEnd, LeaseKeeper } from "./lease-keeper.ts";
import type { Leases } from "./leases.ts";

export class Session {
  readonly lease: bigint;
  /**
   * Resolves when the session is over: closed, or its lease is gone. Whoever holds a lock by it
   * holds it no more.
   */
  readonly ended: Promise<LeaseEnd>;
  readonly #leases: Leases;
  readonly #keeper: LeaseKeeper;

  private constructor(leases: Leases, lease: bigint) {
    this.#leases = leases;
    this.lease = lease;
    this.#keeper = leases.keepAlive(lease);
    this.ended = this.#keeper.ended;
  }

  /** Opens a session. Rejects with ClientError. */
  static async open(leases: Leases, ttlSeconds: number): Promise<Session> {
    return new Session(leases, (await leases.grant(ttlSeconds)).ID);
  }

  /**
   * Ends the session and revokes its lease: everything that hangs on it is gone. Rejects with
   * ClientError.
   */
  async close(): Promise<void> {
    this.#keeper.stop();
    await this.ended;
    await this.#leases.revoke(this.lease);
  }
}
