/**
 * etcdserverpb.Lease. Grants and revocations go through Raft; keep-alives do not: the leader
 * answers them, from whichever member they come.
 */
import {
  LeaseGrantRequest,
  LeaseGrantResponse,
  LeaseKeepAliveRequest,
  LeaseKeepAliveResponse,
  LeaseLeasesRequest,
  LeaseLeasesResponse,
  LeaseRevokeResponse,
  LeaseService,
  LeaseTimeToLiveRequest,
  LeaseTimeToLiveResponse,
  type ResponseHeader,
} from "@quorate/proto";
import type {
  MessageBytes,
  StreamCall,
  StreamHandler,
  StreamListener,
  UnaryHandler,
} from "@quorate/rpc";
import { LEASE_COST_BYTES, STEP_KEYS, type Steps } from "@quorate/store";
import type { Member } from "../member/member.ts";
import { callerOf } from "../reads/pinned.ts";
import { messageOf } from "./range-answer.ts";
import { toStatusError } from "./status.ts";

/** Keep-alives of a stream that wait for their answer; beyond, the stream takes no more. */
export const MAX_WAITING_KEEP_ALIVES = 1024;

/**
 * A message with a long repeated field, encoded in steps: a part of the field after the other,
 * which decodes as one message.
 */
function* inParts<T>(
  first: Uint8Array,
  items: readonly T[],
  encode: (part: T[]) => Uint8Array,
  charge: (bytes: number) => void,
): Steps<MessageBytes> {
  const pieces = [first];
  let sizeBytes = first.length;
  for (let at = 0; at < items.length; at += STEP_KEYS) {
    if (at > 0) yield;
    const piece = encode(items.slice(at, at + STEP_KEYS));
    charge(piece.length);
    sizeBytes += piece.length;
    pieces.push(piece);
  }
  return messageOf({ pieces, sizeBytes });
}

/** The unary handlers of the Lease service, by path. */
export function leaseService(member: Member): ReadonlyMap<string, UnaryHandler> {
  const { LeaseGrant, LeaseRevoke, LeaseTimeToLive, LeaseLeases } = LeaseService.methods;
  const { leases } = member;
  return new Map<string, UnaryHandler>([
    [
      LeaseGrant.path,
      async (bytes) => {
        const { ID, TTL } = LeaseGrantRequest.decode(bytes);
        if (!member.space.keeper.hasRoom(LEASE_COST_BYTES)) await member.space.keeper.refuse();
        // What depends on this member's settings is decided before the entry, so that all members
        // apply the same.
        const request = {
          ID: ID === 0n ? member.newLeaseId() : ID,
          TTL: Math.max(TTL, member.minLeaseTtlSeconds),
        };
        const { error, response } = await member.propose(
          "leaseGrant",
          LeaseGrantRequest.encode(request),
        );
        if (error !== undefined) throw error;
        return LeaseGrantResponse.encode({
          ...request,
          header: member.header(response?.header?.revision ?? 0),
        });
      },
    ],
    [
      LeaseRevoke.path,
      async (bytes) => {
        const { error, response } = await member.propose("leaseRevoke", bytes);
        if (error !== undefined) throw error;
        return LeaseRevokeResponse.encode({
          header: member.header(response?.header?.revision ?? 0),
        });
      },
    ],
    [
      LeaseTimeToLive.path,
      async (bytes, context) => {
        const request = LeaseTimeToLiveRequest.decode(bytes);
        const found = await leases.timeToLive(request);
        const header = member.header(found?.header?.revision ?? member.store.mvcc.currentRevision);
        if (found === undefined)
          return LeaseTimeToLiveResponse.encode({ header, ID: request.ID, TTL: -1 });
        const { keys, ...rest } = found;
        const first = LeaseTimeToLiveResponse.encode({ ...rest, header });
        const encode = (part: Uint8Array[]) =>
          LeaseTimeToLiveResponse.encode({ ID: 0n, TTL: 0, keys: part });
        return member.slices.run(callerOf(context), (task) =>
          inParts(first, keys, encode, task.charge),
        );
      },
    ],
    [
      LeaseLeases.path,
      async (bytes, context) => {
        LeaseLeasesRequest.decode(bytes);
        await member.servable();
        return member.slices.run(callerOf(context), function* (task) {
          const first = LeaseLeasesResponse.encode({
            header: member.header(member.store.mvcc.currentRevision),
          });
          const encode = (part: bigint[]) =>
            LeaseLeasesResponse.encode({ leases: part.map((ID) => ({ ID })) });
          return yield* inParts(first, yield* leases.list(), encode, task.charge);
        });
      },
    ],
  ]);
}

/** The streaming handlers of the Lease service, by path. */
export function leaseStreams(member: Member): ReadonlyMap<string, StreamHandler> {
  return new Map<string, StreamHandler>([
    [LeaseService.methods.LeaseKeepAlive.path, (call) => new KeepAlives(member, call)],
  ]);
}

/** A keep-alive and its answer: seconds, or undefined while it is waited for. */
interface KeepAlive {
  readonly id: bigint;
  readonly header: ResponseHeader;
  seconds: number | undefined;
}

/** One stream: answers leave in the order of the requests. A renewal that fails ends it. */
class KeepAlives implements StreamListener {
  readonly #member: Member;
  readonly #call: StreamCall;
  /**
   * In the order of their requests; the first one has no answer yet, or there is no room to send
   * it.
   */
  readonly #waiting: KeepAlive[] = [];
  #hasRoom = true;
  #isHalfClosed = false;
  #isEnded = false;

  constructor(member: Member, call: StreamCall) {
    this.#member = member;
    this.#call = call;
  }

  message(bytes: Uint8Array): void {
    if (this.#isEnded) return;
    const member = this.#member;
    const { ID: id } = LeaseKeepAliveRequest.decode(bytes);
    // Made before the renewal: its revision must not be one at which the lease is gone.
    const keepAlive: KeepAlive = {
      id,
      header: member.header(member.store.mvcc.currentRevision),
      seconds: undefined,
    };
    const renewed = member.leases.renew(id);
    this.#waiting.push(keepAlive);
    if (typeof renewed === "number") {
      keepAlive.seconds = renewed;
      this.#sendAnswered();
      return;
    }
    renewed.then(
      (seconds) => {
        keepAlive.seconds = seconds;
        this.#sendAnswered();
      },
      (error: unknown) => {
        if (this.#isEnded) return;
        this.#isEnded = true;
        this.#call.end(toStatusError(error));
      },
    );
    if (this.#waiting.length >= MAX_WAITING_KEEP_ALIVES) this.#call.pause();
  }

  halfClosed(): void {
    this.#isHalfClosed = true;
    this.#sendAnswered();
  }

  drained(): void {
    this.#hasRoom = true;
    this.#sendAnswered();
  }

  cancelled(): void {
    this.#isEnded = true;
  }

  #sendAnswered(): void {
    if (this.#isEnded) return;
    const waiting = this.#waiting;
    let sent = 0;
    for (
      let first = waiting[0];
      first?.seconds !== undefined && this.#hasRoom;
      first = waiting[sent]
    ) {
      const { header, id, seconds } = first;
      this.#hasRoom = this.#call.send(
        LeaseKeepAliveResponse.encode({ header, ID: id, TTL: seconds }),
      );
      sent++;
    }
    if (sent > 0) waiting.splice(0, sent);
    if (!this.#hasRoom) this.#call.pause();
    else if (waiting.length < MAX_WAITING_KEEP_ALIVES) this.#call.resume();
    if (!this.#isHalfClosed || waiting.length > 0) return;
    this.#isEnded = true;
    this.#call.end();
  }
}
