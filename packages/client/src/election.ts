/** Elections of one leader among sessions, with the keys of etcd's own clients. */
import { check, TEXT } from "@quorate/host";
import { defined, Event, Event_EventType, KeyValue, type ResponseHeader } from "@quorate/proto";
import { SIGNAL } from "./caller.ts";
import type { Client } from "./client.ts";
import { withJson } from "./json.ts";
import { enqueue, leaveQueue, type QueueEntry, waitTurn } from "./queue.ts";
import type { GetResult } from "./responses.ts";
import type { Session } from "./session.ts";

/** An election that was won. */
export class Leadership {
  readonly entry: QueueEntry;
  readonly #client: Client;

  /** Made by campaign(). */
  constructor(client: Client, entry: QueueEntry) {
    this.#client = client;
    this.entry = entry;
  }

  /** Ends the leadership; the next candidate wins. Rejects with ClientError. */
  resign(): Promise<void> {
    return leaveQueue(this.#client, this.entry);
  }
}

/**
 * Campaigns with a value and resolves when the election is won. When `signal` is aborted, the
 * candidate withdraws and the promise rejects with the signal's reason. Rejects with ClientError.
 */
export async function campaign(
  client: Client,
  session: Session,
  name: string,
  value: string,
  signal: AbortSignal = new AbortController().signal,
): Promise<Leadership> {
  check("campaign", "name", name, TEXT);
  check("campaign", "value", value, TEXT);
  check("campaign", "signal", signal, SIGNAL);
  const entry = await enqueue(client, name, session.lease, value);
  try {
    await waitTurn(client, name, entry, signal);
  } catch (error) {
    await leaveQueue(client, entry).catch(() => {});
    throw error;
  }
  return new Leadership(client, entry);
}

/** The leader's key and value, with the store's revision. */
export type Observed = Pick<GetResult, "header"> & { readonly kv: KeyValue };

/**
 * Yields the leader's key and value: at once if there is a leader, then after every change, until
 * `signal` is aborted.
 */
export async function* observeElection(
  client: Client,
  name: string,
  signal: AbortSignal,
): AsyncGenerator<Observed, undefined> {
  check("observeElection", "name", name, TEXT);
  check("observeElection", "signal", signal, SIGNAL);
  while (!signal.aborted) {
    const { header, kvs } = await client.get(`${name}/`, {
      prefix: true,
      sortBy: "create",
      order: "ascend",
      limit: 1,
    });
    let leader: Observed | undefined =
      kvs[0] === undefined ? undefined : withJson({ header, kv: kvs[0] });
    if (leader === undefined) {
      for await (const change of changes(
        client,
        `${name}/`,
        { prefix: true, revision: header.revision + 1 },
        signal,
      )) {
        if (change.deleted) continue;
        leader = change;
        break;
      }
    }
    if (leader === undefined || signal.aborted) return;
    yield leader;
    for await (const change of changes(
      client,
      leader.kv.key,
      { revision: leader.header.revision + 1 },
      signal,
    )) {
      if (change.deleted) break;
      yield change;
    }
  }
}

/**
 * The changes of keys, one at a time. Ends early where the history was compacted; the caller reads
 * the keys again.
 */
async function* changes(
  client: Client,
  key: string | Uint8Array,
  options: { prefix?: boolean; revision: number },
  signal: AbortSignal,
): AsyncGenerator<Observed & { deleted: boolean }, undefined> {
  const watch = client.watch(key, options);
  const cancel = (): void => watch.cancel();
  signal.addEventListener("abort", cancel);
  try {
    if (signal.aborted) return;
    for await (const response of watch) {
      for (const bytes of response.events) {
        const event = Event.decode(bytes);
        const kv = KeyValue.decode(defined(event.kv, "the kv"));
        // A response may hold several revisions; each change carries its own.
        const header: ResponseHeader = {
          ...defined(response.header, "the header"),
          revision: kv.modRevision,
        };
        yield withJson({ header, kv, deleted: event.type === Event_EventType.DELETE });
      }
    }
  } finally {
    signal.removeEventListener("abort", cancel);
    watch.cancel();
  }
}
