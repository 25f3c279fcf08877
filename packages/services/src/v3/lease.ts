/**
 * etcdserverpb.Lease. Grants and revocations go through Raft; keep-alives do not: the leader
 * answers them, from whichever member they come.
 */
import { type Caller, callerOf, type Member, type SliceTask } from "@quorate/member";
import {
  LeaseGrantRequest,
  LeaseGrantResponse,
  LeaseLeasesRequest,
  LeaseLeasesResponse,
  LeaseRevokeResponse,
  LeaseService,
  LeaseTimeToLiveRequest,
  LeaseTimeToLiveResponse,
} from "@quorate/proto";
import type { StreamHandler, UnaryHandler, UnaryResponse } from "@quorate/rpc";
import { STEP_KEYS, type Steps } from "@quorate/store";
import { completed, EncodedHeader } from "../calls/results.ts";
import { KeepAlives } from "./keep-alives.ts";
import { messageOf } from "./range-answer.ts";

/**
 * A message with a long repeated field, encoded in steps: a part of the field after the other,
 * which decodes as one message.
 */
function* inParts<T>(
  first: Uint8Array,
  items: readonly T[],
  encode: (part: T[]) => Uint8Array,
  charge: (bytes: number) => void,
): Steps<UnaryResponse> {
  const pieces = [first];
  for (let at = 0; at < items.length; at += STEP_KEYS) {
    if (at > 0) yield;
    const piece = encode(items.slice(at, at + STEP_KEYS));
    charge(piece.length);
    pieces.push(piece);
  }
  return messageOf(pieces);
}

/** The unary handlers of the Lease service, by path. */
export function leaseService(member: Member): ReadonlyMap<string, UnaryHandler> {
  const { LeaseGrant, LeaseRevoke, LeaseTimeToLive, LeaseLeases } = LeaseService.methods;
  return new Map<string, UnaryHandler>([
    [
      LeaseGrant.path,
      async (bytes, context) => {
        const { ID, TTL } = LeaseGrantRequest.decode(bytes);
        // What depends on this member's settings is decided before the entry, so that all members
        // apply the same.
        const request = LeaseGrantRequest.create({
          ID: ID === 0n ? member.newLeaseId() : ID,
          TTL: Math.max(TTL, member.minLeaseTtlSeconds),
        });
        const proposed = LeaseGrantRequest.encode(request);
        const applied = await member.propose(callerOf(context), "leaseGrant", proposed, request);
        return LeaseGrantResponse.encode(completed(member, applied));
      },
    ],
    [
      LeaseRevoke.path,
      async (bytes, context) => {
        const applied = await member.propose(callerOf(context), "leaseRevoke", bytes);
        return LeaseRevokeResponse.encode(completed(member, applied));
      },
    ],
    [
      LeaseTimeToLive.path,
      (bytes, context) => {
        const request = LeaseTimeToLiveRequest.decode(bytes);
        const caller = callerOf(context);
        return member.read(caller, {
          access: { kind: "leaseTimeToLive", request },
          // The leader answers, which confirms that it leads.
          linearizable: false,
          run: () => timeToLive(member, caller, request),
        });
      },
    ],
    [
      LeaseLeases.path,
      (bytes, context) => {
        LeaseLeasesRequest.decode(bytes);
        const caller = callerOf(context);
        return member.read(caller, {
          access: { kind: "leaseLeases" },
          linearizable: false,
          run: () => member.slices.run(caller, (task) => listLeases(member, task)),
        });
      },
    ],
  ]);
}

async function timeToLive(
  member: Member,
  caller: Caller,
  request: LeaseTimeToLiveRequest,
): Promise<UnaryResponse> {
  const found = await member.leases.timeToLive(request);
  const revision = found?.header?.revision ?? member.store.mvcc.currentRevision;
  const header = member.header(revision);
  if (found === undefined)
    return LeaseTimeToLiveResponse.encode({ header, ID: request.ID, TTL: -1 });
  const { keys, ...rest } = found;
  // The leader may have keys for it that were not attached here when the caller was permitted.
  if (keys.length > 0) await member.permit(caller, { kind: "leaseKeys", request: keys });
  const first = LeaseTimeToLiveResponse.encode({ ...rest, header });
  const encode = (part: Uint8Array[]) =>
    LeaseTimeToLiveResponse.encode({ ID: 0n, TTL: 0, keys: part });
  return member.slices.run(caller, (task) => inParts(first, keys, encode, task.charge));
}

function* listLeases(member: Member, { charge }: SliceTask): Steps<UnaryResponse> {
  const header = member.header(member.store.mvcc.currentRevision);
  const first = LeaseLeasesResponse.encode({ header });
  const encode = (part: bigint[]) =>
    LeaseLeasesResponse.encode({ leases: part.map((ID) => ({ ID })) });
  return yield* inParts(first, yield* member.leases.list(), encode, charge);
}

/** The streaming handlers of the Lease service, by path. */
export function leaseStreams(member: Member): ReadonlyMap<string, StreamHandler> {
  const header = new EncodedHeader(member);
  return new Map<string, StreamHandler>([
    [LeaseService.methods.LeaseKeepAlive.path, (call) => new KeepAlives(member, header, call)],
  ]);
}
