/**
 * A queue of sessions: each has a key below one prefix, attached to its lease, and the session with
 * the oldest key has its turn. Locks and elections are such queues. The keys are those of etcd's
 * own clients (client/v3/concurrency), so both kinds of client wait for one another.
 */
import { Event, Event_EventType, GrpcCode, idToHex } from "@quorate/proto";
import type { WaitOptions } from "./call-options.ts";
import { unlessAborted } from "./caller.ts";
import type { Client } from "./client.ts";
import { ClientError } from "./errors.ts";
import { type Bytes, compareCreateRevision, opDelete, opGet, opPut } from "./requests.ts";
import type { OpResult } from "./responses.ts";
import { Wait } from "./wait.ts";

/** One session's entry in a queue. */
export interface QueueEntry {
  readonly key: string;
  /** The revision that made the key. */
  readonly revision: number;
}

/** A place in the queue `name`, for the session with this lease. */
export interface Place {
  readonly name: string;
  readonly lease: bigint;
  readonly value: string;
}

/**
 * Adds an entry and resolves when no older one is left. When `signal` is aborted the entry is
 * removed and the promise rejects with the signal's reason, after `timeoutMs` with ClientError
 * DeadlineExceeded. Rejects with ClientError.
 */
export async function takeTurn(
  client: Client,
  place: Place,
  options: WaitOptions,
): Promise<QueueEntry> {
  using wait = new Wait(client.timer, options);
  wait.signal.throwIfAborted();
  const entering = enqueue(client, place);
  try {
    const entry = await unlessAborted(entering, wait.signal);
    await waitTurn(client, place.name, entry, wait.signal);
    return entry;
  } catch (error) {
    const leaving = entering.then((entry) => leaveQueue(client, entry)).catch(() => {});
    // A cluster that does not respond does not hold up who gives up.
    if (!wait.signal.aborted) await leaving;
    throw wait.signal.aborted ? wait.signal.reason : error;
  }
}

/**
 * Adds an entry. An existing entry of the same lease is reused and gets the value.
 */
async function enqueue(client: Client, { name, lease, value }: Place): Promise<QueueEntry> {
  const key = `${name}/${idToHex(lease)}`;
  const { succeeded, header, responses } = await client.txn({
    compare: [compareCreateRevision(key, "=", 0)],
    success: [opPut(key, value, { lease })],
    failure: [opGet(key), opPut(key, value, { lease })],
  });
  return { key, revision: succeeded ? header.revision : createRevisionOf(responses[0]) };
}

function createRevisionOf(result: OpResult | undefined): number {
  const kv = result?.kind === "get" ? result.result.kvs[0] : undefined;
  if (kv === undefined) throw new TypeError("the server found a key but did not return it");
  return kv.createRevision;
}

async function waitTurn(
  client: Client,
  name: string,
  entry: QueueEntry,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const { header, kvs } = await client.get(`${name}/`, {
      prefix: true,
      sortBy: "create",
      order: "descend",
      limit: 1,
      maxCreateRevision: entry.revision - 1,
      signal,
    });
    const before = kvs[0];
    if (before === undefined) return;
    await waitDeleted(client, before.key, header.revision + 1, signal);
  }
}

/**
 * Resolves when the key was deleted at this revision or later, or the history of it is compacted:
 * read again then. Rejects with the signal's reason, and with ClientError.
 */
export async function waitDeleted(
  client: Client,
  key: Bytes,
  revision: number,
  signal: AbortSignal,
): Promise<void> {
  for await (const response of client.watch(key, { revision, signal })) {
    if (response.canceled && response.compactRevision > 0) return;
    if (response.canceled)
      throw new ClientError(GrpcCode.FailedPrecondition, response.cancelReason);
    if (response.events.some((bytes) => Event.decode(bytes).type === Event_EventType.DELETE))
      return;
  }
  signal.throwIfAborted();
}

/** Removes the entry, unless its key was created again since. Rejects with ClientError. */
export async function leaveQueue(client: Client, entry: QueueEntry): Promise<void> {
  await client.txn({
    compare: [compareCreateRevision(entry.key, "=", entry.revision)],
    success: [opDelete(entry.key)],
  });
}
