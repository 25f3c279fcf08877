/** Elections of one leader among sessions, with the keys of etcd's own clients. */
import { check, checkOptions, TEXT } from "@quorate/host";
import {
  CodedError,
  defined,
  Event,
  Event_EventType,
  KeyValue,
  type ResponseHeader,
} from "@quorate/proto";
import { type CallOptions, WAIT_SHAPE, type WaitOptions } from "./call-options.ts";
import type { Client } from "./client.ts";
import { leaveQueue, type QueueEntry, takeTurn } from "./queue.ts";
import { compareCreateRevision, opPut } from "./requests.ts";
import { type GetResult, withJson } from "./responses.ts";
import type { Session } from "./session.ts";
import type { WatchOptions } from "./watch.ts";

/** The candidate is the leader no more: its session ended, or it resigned. */
export class NotLeaderError extends CodedError<"NotLeader"> {
  constructor() {
    super("NotLeaderError", "NotLeader", "election: not leader");
  }
}

/** An election that was won. */
export class Leadership implements AsyncDisposable {
  readonly entry: QueueEntry;
  /** For work that only the leader does: aborted when its session ends, with LeaseEndedError. */
  readonly signal: AbortSignal;
  readonly #client: Client;
  readonly #lease: bigint;

  /** Made by campaign(). */
  constructor(client: Client, session: Session, entry: QueueEntry) {
    this.#client = client;
    this.#lease = session.lease;
    this.signal = session.signal;
    this.entry = entry;
  }

  /** The fencing token: higher for each later leader. */
  get token(): number {
    return this.entry.revision;
  }

  /** Replaces the leader's value. Rejects with NotLeaderError, and with ClientError. */
  async proclaim(value: string, options?: CallOptions): Promise<void> {
    check("proclaim", "value", value, TEXT);
    const { key, revision } = this.entry;
    const parts = {
      compare: [compareCreateRevision(key, "=", revision)],
      success: [opPut(key, value, { lease: this.#lease })],
    };
    if (!(await this.#client.txn(parts, options)).succeeded) throw new NotLeaderError();
  }

  /** Ends the leadership; the next candidate wins. Rejects with ClientError. */
  resign(options: CallOptions = {}): Promise<void> {
    return leaveQueue(this.#client, this.entry, options);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.resign();
  }
}

/**
 * Campaigns with a value and resolves when the election is won. When `signal` is aborted, the
 * candidate withdraws and the promise rejects with the signal's reason; after `timeoutMs` (default:
 * no limit) with ClientError DeadlineExceeded. Rejects with ClientError.
 */
export async function campaign(
  client: Client,
  session: Session,
  name: string,
  value: string,
  options: WaitOptions = {},
): Promise<Leadership> {
  check("campaign", "name", name, TEXT);
  check("campaign", "value", value, TEXT);
  checkOptions("campaign", options, WAIT_SHAPE);
  const place = { name, lease: session.lease, value };
  return takeTurn(client, place, options, (entry) => new Leadership(client, session, entry));
}

/** The leader's key and value, with the store's revision. */
export type Observed = Pick<GetResult, "header"> & { readonly kv: KeyValue };

/** The leader at present, or undefined. Rejects with ClientError. */
export async function electedLeader(
  client: Client,
  name: string,
  options: CallOptions = {},
): Promise<Observed | undefined> {
  check("electedLeader", "name", name, TEXT);
  const { header, kvs } = await client.get(`${name}/`, { ...FIRST, ...options });
  return kvs[0] === undefined ? undefined : withJson({ header, kv: kvs[0] });
}

const FIRST = { prefix: true, sortBy: "create", order: "ascend", limit: 1 } as const;

/**
 * Yields the leader's key and value: at once if there is a leader, then after every change, until
 * `signal` is aborted. `timeoutMs` is the time for a member to respond, at first and after each
 * break. Throws ClientError.
 */
export async function* observeElection(
  client: Client,
  name: string,
  options: WaitOptions = {},
): AsyncGenerator<Observed, undefined> {
  check("observeElection", "name", name, TEXT);
  checkOptions("observeElection", options, WAIT_SHAPE);
  try {
    const { signal, timeoutMs } = options;
    yield* observed(client, name, { signal, timeoutMs });
  } catch (error) {
    if (!options.signal?.aborted) throw error;
  }
}

async function* observed(
  client: Client,
  name: string,
  wait: WaitOptions,
): AsyncGenerator<Observed, undefined> {
  const { signal } = wait;
  while (!signal?.aborted) {
    const { header, kvs } = await client.get(`${name}/`, { ...FIRST, ...wait });
    let leader: Observed | undefined =
      kvs[0] === undefined ? undefined : withJson({ header, kv: kvs[0] });
    if (leader === undefined) {
      const options = { ...wait, prefix: true, revision: header.revision + 1 };
      for await (const change of changes(client, `${name}/`, options)) {
        if (change.deleted) continue;
        leader = change;
        break;
      }
    }
    if (leader === undefined || signal?.aborted) return;
    yield leader;
    const options = { ...wait, revision: leader.header.revision + 1 };
    for await (const change of changes(client, leader.kv.key, options)) {
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
  options: WatchOptions,
): AsyncGenerator<Observed & { deleted: boolean }, undefined> {
  for await (const response of client.watch(key, options)) {
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
}
