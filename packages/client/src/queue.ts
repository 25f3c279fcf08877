/**
 * A queue of sessions: each has a key below one prefix, attached to its lease, and the session with
 * the oldest key has its turn. Locks and elections are such queues. The keys are those of etcd's
 * own clients (client/v3/concurrency), so both kinds of client wait for one another.
 */
import { idToHex } from "@quorate/proto";
import type { CallOptions, WaitOptions } from "./call-options.ts";
import { unlessAborted } from "./caller.ts";
import type { Change } from "./changes.ts";
import type { Client } from "./client.ts";
import { ClientError } from "./errors.ts";
import { type Bytes, compareCreateRevision, opDelete, opGet, opPut } from "./requests.ts";
import { Wait } from "./wait.ts";
import type { WatchOptions } from "./watch.ts";

/** One session's entry in a queue. */
export interface QueueEntry {
  readonly key: string;
  /** The revision that made the key. */
  readonly revision: number;
}

/** A place in a queue, for the session with this lease. */
export interface Place {
  /** The entry's key is below it. */
  readonly name: string;
  readonly lease: bigint;
  /** The entry's value; undefined for none, which leaves an entry of the same lease as it is. */
  readonly value?: string;
  /** Older entries with this prefix are before it; default those of the same name. */
  readonly behind?: string;
  /** It has its turn when fewer entries than so many are before it; default 1. */
  readonly permits?: number;
}

/** How long who gives up waits for a member, so that the entry is gone. */
const LEAVE_MS = 1000;

/**
 * Adds an entry and resolves with what `begin` makes of it when it has its turn. When `signal` is
 * aborted the entry is removed and the promise rejects with the signal's reason, after `timeoutMs`
 * with ClientError DeadlineExceeded; where no member responds it rejects a second or two later, and
 * the entry may stay until its session ends. Rejects with ClientError, and as `begin` does.
 */
export async function takeTurn<T>(
  client: Client,
  place: Place,
  options: WaitOptions,
  begin: (entry: QueueEntry, signal: AbortSignal) => T | Promise<T>,
): Promise<T> {
  using wait = new Wait(client.timer, options);
  const { signal } = wait;
  signal.throwIfAborted();
  const giveUp = new AbortController();
  const entering = enqueue(client, place, { signal: giveUp.signal });
  try {
    const entry = await unlessAborted(entering, signal);
    await waitTurn(client, place, entry, signal);
    return await begin(entry, signal);
  } catch (error) {
    // Before it rejects: the session may come again at once, and would find its entry.
    const forget = client.timer.after(LEAVE_MS, () => giveUp.abort());
    await entering
      .then((entry) => leaveQueue(client, entry, { timeoutMs: LEAVE_MS }))
      .catch(() => {});
    forget();
    throw signal.aborted ? signal.reason : error;
  }
}

/**
 * Adds an entry. An existing entry of the same lease is reused and gets the value, if there is one.
 */
async function enqueue(
  client: Client,
  { name, lease, value }: Place,
  options: CallOptions,
): Promise<QueueEntry> {
  const key = `${name}/${idToHex(lease)}`;
  const put = opPut(key, value ?? "", { lease });
  const { succeeded, header, responses } = await client.txn(
    {
      compare: [compareCreateRevision(key, "=", 0)],
      success: [put],
      failure: value === undefined ? [opGet(key)] : [opGet(key), put],
    },
    options,
  );
  if (succeeded) return { key, revision: header.revision };
  const [{ result }] = responses;
  const [kv] = result.kvs;
  if (kv === undefined) throw new TypeError("the server found a key but did not return it");
  return { key, revision: kv.createRevision };
}

async function waitTurn(
  client: Client,
  { name, behind = `${name}/`, permits = 1 }: Place,
  entry: QueueEntry,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const { header, kvs } = await client.get(behind, {
      prefix: true,
      sortBy: "create",
      order: "descend",
      limit: permits,
      maxCreateRevision: entry.revision - 1,
      signal,
    });
    const [before] = kvs;
    if (before === undefined || kvs.length < permits) return;
    const options = { revision: header.revision + 1, signal };
    // Only the last one before it matters where one has its turn at a time.
    if (permits === 1) await waitChange(client, "delete", before.key, options);
    else await waitChange(client, "delete", behind, { ...options, prefix: true });
  }
}

/**
 * Resolves at the next change of this kind (undefined for any), or where the history of it is
 * compacted: read the keys again. Rejects with the signal's reason, and with ClientError.
 */
export async function waitChange(
  client: Client,
  kind: Change["kind"] | undefined,
  key: Bytes,
  options: WatchOptions & { readonly signal: AbortSignal },
): Promise<void> {
  const only = kind === undefined ? {} : { only: kind };
  try {
    for await (const _ of client.watch(key, { ...options, ...only }).changes()) return;
  } catch (error) {
    if (error instanceof ClientError && error.code === "Compacted") return;
    throw error;
  }
  options.signal.throwIfAborted();
}

/** Removes the entry, unless its key was created again since. Rejects with ClientError. */
export async function leaveQueue(
  client: Client,
  { key, revision }: QueueEntry,
  options: CallOptions,
): Promise<void> {
  const compare = [compareCreateRevision(key, "=", revision)];
  // A second time it removes nothing.
  await client.txn({ compare, success: [opDelete(key)] }, { repeat: true, ...options });
}
