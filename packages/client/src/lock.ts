/**
 * A lock that one session holds at a time, as etcd's own clients take it.
 *
 *   const session = await client.session({ ttlSeconds: 10 });
 *   const lock = await lockNamed(client, session, "jobs");
 *   ... and when `session.ended` resolves, the lock is lost ...
 *   await lock.release();
 */
import type { Client } from "./client.ts";
import { leavePlace, type Place, takePlace, waitTurn } from "./queue.ts";
import type { Session } from "./session.ts";

/** The session was over before the lock was had. */
export class SessionExpiredError extends Error {
  constructor() {
    super("mutex: session is expired");
    this.name = "SessionExpiredError";
  }
}

export class Lock {
  /**
   * The key whose existence is the lock: a transaction that compares its creation with
   * `place.revision` acts only while it is held.
   */
  readonly place: Place;
  /** The store's revision when the lock was had. */
  readonly headerRevision: number;
  readonly #client: Client;

  /** Made by lockNamed(). */
  constructor(client: Client, place: Place, headerRevision: number) {
    this.#client = client;
    this.place = place;
    this.headerRevision = headerRevision;
  }

  /** Lets the next one have it. Rejects with ClientError. */
  release(): Promise<void> {
    return leavePlace(this.#client, this.place);
  }
}

/**
 * Waits for the lock. When `signal` is aborted the place in the line is given up and it rejects
 * with the signal's reason. Rejects with SessionExpiredError if the session was over meanwhile, and
 * with ClientError.
 */
export async function lockNamed(
  client: Client,
  session: Session,
  name: string,
  signal = new AbortController().signal,
): Promise<Lock> {
  const place = await takePlace(client, name, session.lease, "");
  try {
    await waitTurn(client, name, place, signal);
  } catch (error) {
    await leavePlace(client, place).catch(() => {});
    throw error;
  }
  // While it waited the session may have expired, and its key with it.
  const { header, kvs } = await client.get(place.key);
  if (kvs[0]?.createRevision !== place.revision) throw new SessionExpiredError();
  return new Lock(client, place, header.revision);
}
