/**
 * A queue of sessions: each has a key below one prefix, attached to its lease, and the session with
 * the oldest key has its turn. Locks and elections are such queues. The keys are those of etcd's
 * own clients (client/v3/concurrency), so both kinds of client wait for one another.
 */
import { Event, Event_EventType, GrpcCode, idToHex } from "@quorate/proto";
import type { Client } from "./client.ts";
import { ClientError } from "./errors.ts";
import { compareCreateRevision, opDelete, opGet, opPut } from "./requests.ts";
import type { OpResult } from "./responses.ts";

/** One session's entry in a queue. */
export interface QueueEntry {
  readonly key: string;
  /** The revision that made the key. */
  readonly revision: number;
}

/**
 * Adds an entry with a value to the queue `name`. An existing entry of the same lease is reused and
 * gets the value.
 */
export async function enqueue(
  client: Client,
  name: string,
  lease: bigint,
  value: string,
): Promise<QueueEntry> {
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

/**
 * Resolves when no older entry is left. Rejects with the signal's reason when it is aborted, and
 * with ClientError.
 */
export async function waitTurn(
  client: Client,
  name: string,
  entry: QueueEntry,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    const { header, kvs } = await client.get(`${name}/`, {
      prefix: true,
      sortBy: "create",
      order: "descend",
      limit: 1,
      maxCreateRevision: entry.revision - 1,
    });
    const before = kvs[0];
    if (before === undefined) return;
    await waitDeleted(client, before.key, header.revision + 1, signal);
  }
}

async function waitDeleted(
  client: Client,
  key: Uint8Array,
  revision: number,
  signal: AbortSignal,
): Promise<void> {
  const watch = client.watch(key, { revision });
  const cancel = (): void => watch.cancel();
  signal.addEventListener("abort", cancel);
  try {
    signal.throwIfAborted();
    for await (const response of watch) {
      // The watch's history was compacted: the caller reads the queue again.
      if (response.canceled && response.compactRevision > 0) return;
      if (response.canceled)
        throw new ClientError(GrpcCode.FailedPrecondition, response.cancelReason);
      if (response.events.some((bytes) => Event.decode(bytes).type === Event_EventType.DELETE))
        return;
    }
    signal.throwIfAborted();
  } finally {
    signal.removeEventListener("abort", cancel);
    watch.cancel();
  }
}

/** Removes the entry, unless its key was created again since. Rejects with ClientError. */
export async function leaveQueue(client: Client, entry: QueueEntry): Promise<void> {
  await client.txn({
    compare: [compareCreateRevision(entry.key, "=", entry.revision)],
    success: [opDelete(entry.key)],
  });
}
