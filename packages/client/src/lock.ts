/**
 * A lock that one session holds at a time, with the keys of etcd's own clients.
 *
 *   const session = await client.session({ ttlSeconds: 10 });
 *   const lock = await lockNamed(client, session, "jobs");
 *   ... and when `session.ended` resolves, the lock is lost ...
 *   await lock.release();
 */
import { check, TEXT } from "@quorate/host";
import { CodedError } from "@quorate/proto";
import { SIGNAL } from "./caller.ts";
import type { Client } from "./client.ts";
import { enqueue, leaveQueue, type QueueEntry, waitTurn } from "./queue.ts";
import type { Session } from "./session.ts";

/** The session ended before it acquired the lock. */
export class SessionExpiredError extends CodedError<"SessionExpired"> {
  constructor() {
    super("SessionExpiredError", "SessionExpired", "mutex: session is expired");
  }
}

export class Lock {
  /**
   * The key that represents the lock. A transaction that compares the key's create revision with
   * `entry.revision` takes effect only while the lock is held.
   */
  readonly entry: QueueEntry;
  /** The store's revision when the lock was acquired. */
  readonly headerRevision: number;
  readonly #client: Client;

  /** Made by lockNamed(). */
  constructor(client: Client, entry: QueueEntry, headerRevision: number) {
    this.#client = client;
    this.entry = entry;
    this.headerRevision = headerRevision;
  }

  /** Releases the lock; the next session acquires it. Rejects with ClientError. */
  release(): Promise<void> {
    return leaveQueue(this.#client, this.entry);
  }
}

/**
 * Waits for the lock. When `signal` is aborted, the session leaves the queue and the promise
 * rejects with the signal's reason. Rejects with SessionExpiredError if the session ended
 * meanwhile, and with ClientError.
 */
export async function lockNamed(
  client: Client,
  session: Session,
  name: string,
  signal: AbortSignal = new AbortController().signal,
): Promise<Lock> {
  check("lockNamed", "name", name, TEXT);
  check("lockNamed", "signal", signal, SIGNAL);
  const entry = await enqueue(client, name, session.lease, "");
  try {
    await waitTurn(client, name, entry, signal);
  } catch (error) {
    await leaveQueue(client, entry).catch(() => {});
    throw error;
  }
  // The session, and its key with it, may have expired during the wait.
  const { header, kvs } = await client.get(entry.key);
  if (kvs[0]?.createRevision !== entry.revision) throw new SessionExpiredError();
  return new Lock(client, entry, header.revision);
}
