/**
 * Standing in line: each who waits has a key below one prefix, on the lease of its session, and it
 * is the turn of the one whose key was created first. Locks and elections are both this, with the
 * same keys as etcd's own clients make, so that they wait for one another.
 */
import { Event, Event_EventType, GrpcStatus, idToHex } from "@quorate/proto";
import type { Client } from "./client.ts";
import { ClientError } from "./errors.ts";
import { compareCreateRevision, opDelete, opGet, opPut } from "./requests.ts";
import type { OpResult } from "./responses.ts";

/** One place in a line. */
export interface Place {
  readonly key: string;
  /** The revision that made the key. */
  readonly revision: number;
}

/**
 * Takes a place in the line of `name` with a value, or finds that of the same lease again and gives
 * it the value.
 */
export async function takePlace(
  client: Client,
  name: string,
  lease: bigint,
  value: string,
): Promise<Place> {
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
  if (kv === undefined) throw new TypeError("the server found a key but did not give it");
  return kv.createRevision;
}

/**
 * Resolves when nobody is before `place` any more. Rejects with the signal's reason when it is
 * aborted, and with ClientError.
 */
export async function waitTurn(
  client: Client,
  name: string,
  place: Place,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    const { header, kvs } = await client.get(`${name}/`, {
      prefix: true,
      sortBy: "create",
      order: "descend",
      limit: 1,
      maxCreateRevision: place.revision - 1,
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
      // Compacted away: what became of the key is seen by looking again.
      if (response.canceled && response.compactRevision > 0) return;
      if (response.canceled)
        throw new ClientError(GrpcStatus.FAILED_PRECONDITION, response.cancelReason);
      if (response.events.some((bytes) => Event.decode(bytes).type === Event_EventType.DELETE))
        return;
    }
    signal.throwIfAborted();
  } finally {
    signal.removeEventListener("abort", cancel);
    watch.cancel();
  }
}

/** Leaves the line, if the place is still the same one. Rejects with ClientError. */
export async function leavePlace(client: Client, place: Place): Promise<void> {
  await client.txn({
    compare: [compareCreateRevision(place.key, "=", place.revision)],
    success: [opDelete(place.key)],
  });
}
