/**
 * A lock that one session holds at a time, with the keys of etcd's own clients.
 *
 *   await using session = await client.session({ ttlSeconds: 10 });
 *   await using lock = await lockNamed(client, session, "jobs");
 *   ... work until `lock.signal` is aborted: the lock is lost then ...
 */
import { check, checkOptions, TEXT } from "@quorate/host";
import { CodedError } from "@quorate/proto";
import { type CallOptions, WAIT_SHAPE, type WaitOptions } from "./call-options.ts";
import type { Client } from "./client.ts";
import { leaveQueue, type Place, type QueueEntry, takeTurn } from "./queue.ts";
import type { Session } from "./session.ts";

/** The session ended before it acquired the lock. */
export class SessionExpiredError extends CodedError<"SessionExpired"> {
  constructor() {
    super("SessionExpiredError", "SessionExpired", "mutex: session is expired");
  }
}

/** A lock that is held, until it is released or its session ends. */
export class Lock implements AsyncDisposable {
  /**
   * The key that represents the lock. A transaction that compares the key's create revision with
   * `token` takes effect only while the lock is held.
   */
  readonly entry: QueueEntry;
  /** The store's revision when the lock was acquired. */
  readonly headerRevision: number;
  /** For work that needs the lock: aborted when its session ends, with LeaseEndedError. */
  readonly signal: AbortSignal;
  readonly #client: Client;

  /** Made by lockNamed(). */
  constructor(client: Client, session: Session, entry: QueueEntry, headerRevision: number) {
    this.#client = client;
    this.signal = session.signal;
    this.entry = entry;
    this.headerRevision = headerRevision;
  }

  /**
   * The fencing token: the create revision of the key, which is higher for each later holder. Give
   * it to systems that refuse a lower one.
   */
  get token(): number {
    return this.entry.revision;
  }

  /** Releases the lock; the next session acquires it. Rejects with ClientError. */
  release(options: CallOptions = {}): Promise<void> {
    return leaveQueue(this.#client, this.entry, options);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}

/**
 * Waits for the lock. When `signal` is aborted, the session leaves the queue and the promise
 * rejects with the signal's reason; after `timeoutMs` (default: no limit) with ClientError
 * DeadlineExceeded. Rejects with SessionExpiredError if the session ended meanwhile, and with
 * ClientError.
 */
export async function lockNamed(
  client: Client,
  session: Session,
  name: string,
  options: WaitOptions = {},
): Promise<Lock> {
  check("lockNamed", "name", name, TEXT);
  return acquire(client, session, { name }, options);
}

/** Waits for a turn and makes it a lock. As lockNamed(). */
export async function acquire(
  client: Client,
  session: Session,
  place: Omit<Place, "lease">,
  options: WaitOptions,
): Promise<Lock> {
  checkOptions("lock", options, WAIT_SHAPE);
  const { lease } = session;
  return takeTurn(client, { ...place, lease }, options, async (entry, signal) => {
    // The session, and its key with it, may have expired during the wait.
    const { header, kvs } = await client.get(entry.key, { signal });
    if (kvs[0]?.createRevision !== entry.revision) throw new SessionExpiredError();
    return new Lock(client, session, entry, header.revision);
  });
}
