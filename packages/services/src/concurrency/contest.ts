/**
 * What locks and elections have in common (etcd: client/v3/concurrency): each
 * contender puts a key under one prefix, bound to its lease; the key that was created first holds
 * the lock, every other waits for the deletion of the one before it.
 *
 *     name "jobs", leases 0x2a and 0x7f ->  jobs/2a (create revision 7, holds), jobs/7f (create
 *                                           revision 9, waits for jobs/2a)
 *
 * The keys are those of Go's concurrency package, so both can contend for the same thing.
 */

import type { ClientBudget, Member } from "@quorate/member";
import { type Caller, callerOf } from "@quorate/member";
import {
  fromUtf8,
  GrpcCode,
  PutRequest,
  RangeRequest,
  RangeRequest_SortOrder,
  RangeRequest_SortTarget,
  type RequestOp,
  WireError,
} from "@quorate/proto";
import { StatusError, type UnaryHandler } from "@quorate/rpc";
import { type KeyEvent, LocalClient } from "./local-client.ts";

/** The time to live of a lease for a request without one, in seconds (etcd: defaultSessionTTL). */
const SESSION_TTL_SECONDS = 60;
const SLASH = 0x2f;
const GRPC_UNKNOWN = 2;

/**
 * An error of these services. They are clients in etcd, whose errors reach the caller as plain
 * texts: all with status UNKNOWN, but for a request that does not decode.
 */
export function contestError(error: unknown): Error {
  if (error instanceof StatusError || error instanceof WireError) return error;
  return new StatusError(GRPC_UNKNOWN, error instanceof Error ? error.message : String(error));
}

/** A unary handler of these services, called with the caller and a client on its behalf. */
export type ContestHandler = (
  bytes: Uint8Array,
  caller: Caller,
  client: LocalClient,
) => Promise<Uint8Array>;

/** Makes handlers for rpc from those of these services, by path. */
export function contestHandlers(
  member: Member,
  handlers: readonly (readonly [path: string, handler: ContestHandler])[],
): ReadonlyMap<string, UnaryHandler> {
  const guarded =
    (handler: ContestHandler): UnaryHandler =>
    async (bytes, context) => {
      try {
        const caller = callerOf(context);
        return await handler(bytes, caller, new LocalClient(member, caller));
      } catch (error) {
        throw contestError(error);
      }
    };
  return new Map(handlers.map(([path, handler]) => [path, guarded(handler)]));
}

/**
 * What a caller takes that waits: its call, a watch and its messages, a key and a lease; and for
 * each byte of the name besides.
 */
const CONTESTANT_BYTES = 8192;
const CONTEST_NAME_FACTOR = 4;
const TOO_MANY =
  "etcdserver: too many requests: too many callers wait for locks and elections on this member";

/**
 * Counts a caller that may wait for long, until the function that it returns is called. Throws
 * StatusError if too many wait already, of this client or of all.
 */
export function enterContest(
  budget: ClientBudget,
  { client }: Caller,
  name: Uint8Array,
): () => void {
  const costBytes = CONTESTANT_BYTES + CONTEST_NAME_FACTOR * name.length;
  if (!budget.take(client, costBytes)) throw new StatusError(GrpcCode.ResourceExhausted, TOO_MANY);
  return () => budget.give(client, costBytes);
}

/** The range of all keys of a contest. */
export interface Prefix {
  readonly key: Uint8Array;
  readonly rangeEnd: Uint8Array;
}

export function prefixOf(name: Uint8Array): Prefix {
  const key = new Uint8Array(name.length + 1);
  key.set(name);
  key[name.length] = SLASH;
  const rangeEnd = key.slice();
  rangeEnd[name.length] = SLASH + 1;
  return { key, rangeEnd };
}

/** A contender's key: the prefix and its lease in hexadecimal, as Go prints an int64. */
export function keyOf(prefix: Prefix, lease: bigint): Uint8Array {
  const suffix = fromUtf8(lease.toString(16));
  const key = new Uint8Array(prefix.key.length + suffix.length);
  key.set(prefix.key);
  key.set(suffix, prefix.key.length);
  return key;
}

/** The lease given, or a new one. */
export async function sessionLease(client: LocalClient, lease: bigint): Promise<bigint> {
  return lease === 0n ? client.grant(SESSION_TTL_SECONDS) : lease;
}

/** The contender that was created first. */
export function firstOf(prefix: Prefix): RangeRequest {
  const sorted = {
    sortOrder: RangeRequest_SortOrder.ASCEND,
    sortTarget: RangeRequest_SortTarget.CREATE,
  };
  return RangeRequest.create({ ...prefix, ...sorted, limit: 1 });
}

export function putOp(key: Uint8Array, value: Uint8Array, lease: bigint): RequestOp {
  return { request: { case: "requestPut", value: PutRequest.create({ key, value, lease }) } };
}

export function rangeOp(value: RangeRequest): RequestOp {
  return { request: { case: "requestRange", value } };
}

/** Resolves when the caller gives up. */
export function givenUp(caller: Caller): Promise<void> {
  return new Promise((resolve) => {
    if (caller.cancelled) resolve();
    else caller.onCancel(resolve);
  });
}

/**
 * Waits until no key of the prefix is left that was created up to a revision. True when that is so,
 * false when the caller has given up. Rejects with EtcdError.
 */
export async function waitForDeletes(
  client: LocalClient,
  prefix: Prefix,
  maxCreateRevision: number,
  cancelled: Promise<void>,
): Promise<boolean> {
  const sorted = {
    sortOrder: RangeRequest_SortOrder.DESCEND,
    sortTarget: RangeRequest_SortTarget.CREATE,
  };
  const lastBefore = RangeRequest.create({ ...prefix, ...sorted, limit: 1, maxCreateRevision });
  for (;;) {
    const { header, kvs } = await client.range(lastBefore);
    const [last] = kvs;
    if (last === undefined) return true;
    let stop = () => {};
    const deleted = new Promise<boolean>((resolve) => {
      const onEvents = (events: readonly KeyEvent[] | undefined) => {
        // A watch that is over (its revision was compacted) does not matter: the next look shows
        // what has become of the key.
        if (events === undefined || events.some((event) => event.deleted)) resolve(true);
      };
      stop = client.watch(
        { key: last.key, rangeEnd: new Uint8Array(0), startRevision: header.revision },
        onEvents,
      );
    });
    const goOn = await Promise.race([deleted, cancelled.then(() => false)]);
    stop();
    if (!goOn) return false;
  }
}
