/** Elections of one leader among sessions, as etcd's own clients hold them. */
import { Event, Event_EventType, KeyValue, type ResponseHeader } from "@quorate/proto";
import type { Client } from "./client.ts";
import { leavePlace, type Place, takePlace, waitTurn } from "./queue.ts";
import type { GetResult } from "./responses.ts";
import type { Session } from "./session.ts";

/** The office that was won. */
export class Leadership {
  readonly place: Place;
  readonly #client: Client;

  /** Made by campaign(). */
  constructor(client: Client, place: Place) {
    this.#client = client;
    this.place = place;
  }

  /** Leaves the office to the next one. Rejects with ClientError. */
  resign(): Promise<void> {
    return leavePlace(this.#client, this.place);
  }
}

/**
 * Stands for election with a value, and waits until it is won. When `signal` is aborted the
 * candidacy is given up and it rejects with the signal's reason. Rejects with ClientError.
 */
export async function campaign(
  client: Client,
  session: Session,
  name: string,
  value: string,
  signal = new AbortController().signal,
): Promise<Leadership> {
  const place = await takePlace(client, name, session.lease, value);
  try {
    await waitTurn(client, name, place, signal);
  } catch (error) {
    await leavePlace(client, place).catch(() => {});
    throw error;
  }
  return new Leadership(client, place);
}

/** Who leads, and what the store's revision was. */
export type Observed = Pick<GetResult, "header"> & { readonly kv: KeyValue };

/**
 * Gives the leader's key and value, at once if there is a leader, and again whenever one of them
 * changes, until `signal` is aborted.
 */
export async function* observeElection(
  client: Client,
  name: string,
  signal: AbortSignal,
): AsyncGenerator<Observed, undefined> {
  while (!signal.aborted) {
    const { header, kvs } = await client.get(`${name}/`, {
      prefix: true,
      sortBy: "create",
      order: "ascend",
      limit: 1,
    });
    let leader: Observed | undefined = kvs[0] === undefined ? undefined : { header, kv: kvs[0] };
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
 * The changes of keys one by one; ends without them where history was compacted, to be looked at
 * anew.
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
        const kv = KeyValue.decode(event.kv!);
        // A response may hold several revisions; each change is told with its own.
        const header: ResponseHeader = { ...response.header!, revision: kv.modRevision };
        yield { header, kv, deleted: event.type === Event_EventType.DELETE };
      }
    }
  } finally {
    signal.removeEventListener("abort", cancel);
    watch.cancel();
  }
}
