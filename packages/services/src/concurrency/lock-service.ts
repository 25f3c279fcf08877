/**
 * v3lockpb.Lock: a mutex as a call that takes as long as it takes (etcd:
 * server/etcdserver/api/v3lock). See docs/guide/fencing.md.
 */

import type { Caller, Member } from "@quorate/member";
import {
  defined,
  EMPTY,
  errorOf,
  KeyValue,
  LockService,
  RangeRequest,
  type TxnResponse,
  v3lockpb,
} from "@quorate/proto";
import type { UnaryHandler } from "@quorate/rpc";
import {
  contestHandlers,
  enterContest,
  firstOf,
  givenUp,
  keyOf,
  prefixOf,
  putOp,
  rangeOp,
  sessionLease,
  waitForDeletes,
} from "./contest.ts";
import type { LocalClient } from "./local-client.ts";

const { LockRequest, LockResponse, UnlockRequest, UnlockResponse } = v3lockpb;

/** The handlers of the Lock service, by path. */
export function lockService(member: Member): ReadonlyMap<string, UnaryHandler> {
  const { Lock, Unlock } = LockService.methods;
  return contestHandlers(member, [
    [
      Lock.path,
      async (bytes, caller, client) => {
        const request = LockRequest.decode(bytes);
        const leave = enterContest(member.watches.contestBudget, caller, request.name);
        return LockResponse.encode(await lock(client, request, caller).finally(leave));
      },
    ],
    [
      Unlock.path,
      async (bytes, _caller, client) =>
        UnlockResponse.encode({ header: await client.delete(UnlockRequest.decode(bytes).key) }),
    ],
  ]);
}

async function lock(
  client: LocalClient,
  request: v3lockpb.LockRequest,
  caller: Caller,
): Promise<v3lockpb.LockResponse> {
  const prefix = prefixOf(request.name);
  const lease = await sessionLease(client, request.lease);
  const key = keyOf(prefix, lease);
  const own = RangeRequest.create({ key });
  const owner = rangeOp(firstOf(prefix));
  // A lease that has the lock, or waits for it, keeps its place.
  const answer = await client.txnIfCreatedAt(
    key,
    0,
    [putOp(key, EMPTY, lease), owner],
    [rangeOp(own), owner],
  );
  const createRevision = answer.succeeded
    ? answer.header.revision
    : defined(kvOf(answer, 0), "the pair").createRevision;
  const first = kvOf(answer, 1);
  if (first === undefined || first.createRevision === createRevision)
    return { header: answer.header, key, createRevision };

  let held: Awaited<ReturnType<LocalClient["range"]>>;
  try {
    if (!(await waitForDeletes(client, prefix, createRevision - 1, givenUp(caller))))
      throw errorOf("Canceled");
    held = await client.range(own);
  } catch (error) {
    // A caller that does not wait any more must not hold up the others.
    await client.delete(key).catch(() => {});
    throw error;
  }
  if (held.kvs[0]?.createRevision !== createRevision) throw new Error("mutex: session is expired");
  return { header: held.header, key, createRevision };
}

function kvOf(answer: TxnResponse, i: number): KeyValue | undefined {
  const response = answer.responses[i]?.response;
  const bytes = response?.case === "responseRange" ? response.value.kvs[0] : undefined;
  return bytes === undefined ? undefined : KeyValue.decode(bytes);
}
