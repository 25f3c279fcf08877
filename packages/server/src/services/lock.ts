/**
 * v3lockpb.Lock: a mutex as a call that takes as long as it takes (etcd:
 * server/etcdserver/api/v3lock). See docs/fencing.md.
 */
import {
  EMPTY,
  errorOf,
  KeyValue,
  LockService,
  RangeRequest,
  type TxnResponse,
  v3lockpb,
} from "@quorate/proto";
import type { CallContext, UnaryHandler } from "@quorate/rpc";
import {
  contestError,
  enterContest,
  firstOf,
  givenUp,
  keyOf,
  prefixOf,
  putOp,
  rangeOp,
  sessionLease,
  waitForDeletes,
} from "../lease/contest.ts";
import { LocalClient } from "../lease/local-client.ts";
import type { Member } from "../member/member.ts";

const { LockRequest, LockResponse, UnlockRequest, UnlockResponse } = v3lockpb;

/** The handlers of the Lock service, by path. */
export function lockService(member: Member): ReadonlyMap<string, UnaryHandler> {
  const client = new LocalClient(member);
  const { Lock, Unlock } = LockService.methods;
  const guarded =
    (handler: UnaryHandler): UnaryHandler =>
    async (bytes, context) => {
      try {
        return await handler(bytes, context);
      } catch (error) {
        throw contestError(error);
      }
    };
  return new Map<string, UnaryHandler>([
    [
      Lock.path,
      guarded(async (bytes, context) => {
        const request = LockRequest.decode(bytes);
        const leave = enterContest(member.watches.contestBudget, context, request.name);
        return LockResponse.encode(await lock(client.of(context), request, context).finally(leave));
      }),
    ],
    [
      Unlock.path,
      guarded(async (bytes) =>
        UnlockResponse.encode({ header: await client.delete(UnlockRequest.decode(bytes).key) }),
      ),
    ],
  ]);
}

async function lock(
  client: LocalClient,
  request: v3lockpb.LockRequest,
  context: CallContext,
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
    ? answer.header!.revision
    : kvOf(answer, 0)!.createRevision;
  const first = kvOf(answer, 1);
  if (first === undefined || first.createRevision === createRevision)
    return { header: answer.header, key, createRevision };

  let held: Awaited<ReturnType<LocalClient["range"]>>;
  try {
    if (!(await waitForDeletes(client, prefix, createRevision - 1, givenUp(context))))
      throw errorOf("Canceled");
    held = await client.range(own);
  } catch (error) {
    // Whoever does not wait any more must not hold up the others.
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
