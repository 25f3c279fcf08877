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
  StreamCall,
  StreamHandler,
  StreamListener,
  UnaryHandler,
  UnaryResponse,
} from "@quorate/rpc";
import { STEP_KEYS, type Steps } from "@quorate/store";
import { type Caller, callerOf } from "../member/caller.ts";
import type { Member } from "../member/member.ts";
import type { SliceTask } from "../reads/slice-task.ts";
import { completed } from "./completed.ts";
import { messageOf } from "./range-answer.ts";
import { toStatusError } from "./status.ts";

/** Keep-alives of a stream that wait for their answer; beyond, the stream takes no more. */
export const MAX_WAITING_KEEP_ALIVES = 1024;

/** Leases of a stream that are looked at again when users or roles change; not the oldest. */
export const MAX_RECHECKED_LEASES = 1024;

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
   * In the order of their requests; the first one has no response yet, or there is no space to send
   * it.
   */
  readonly #waiting: KeepAlive[] = [];
  #hasSpace = true;
  #isHalfClosed = false;
  #isEnded = false;
  readonly #caller: Caller;
  /** Leases that it has renewed, those renewed last at the end. */
  readonly #renewed = new Set<bigint>();
  /** The last of them: most streams renew one lease, and the set's order costs as much as that. */
  #newest: bigint | undefined;
  #unfollow: (() => void) | undefined;

  constructor(member: Member, call: StreamCall) {
    this.#member = member;
    this.#call = call;
    this.#caller = callerOf(call.context);
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
    let renewed: number | Promise<number>;
    try {
      renewed = member.renewLease(this.#caller, id);
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.#waiting.push(keepAlive);
    if (typeof renewed === "number") {
      this.#permitted(id);
      keepAlive.seconds = renewed;
      this.#sendAnswered();
      return;
    }
    renewed.then(
      (seconds) => {
        this.#permitted(id);
        keepAlive.seconds = seconds;
        this.#sendAnswered();
      },
      (error: unknown) => this.#fail(error),
    );
    if (this.#waiting.length >= MAX_WAITING_KEEP_ALIVES) this.#call.pause();
  }

  /** Notes a lease that is looked at again when users or roles change. */
  #permitted(id: bigint): void {
    if (this.#isEnded || id === this.#newest) return;
    this.#newest = id;
    this.#renewed.delete(id);
    this.#renewed.add(id);
    this.#unfollow ??= this.#member.auth.changes.follow(() => this.#recheck());
    if (this.#renewed.size <= MAX_RECHECKED_LEASES) return;
    for (const oldest of this.#renewed) {
      this.#renewed.delete(oldest);
      break;
    }
  }

  /** Ends the stream if one of its leases may not be renewed any more. */
  #recheck(): void {
    const { authority } = this.#member.auth;
    for (const id of this.#renewed) {
      const access = { kind: "leaseKeepAlive", request: id } as const;
      authority.recheck(this.#caller, access).catch((error: unknown) => this.#fail(error));
    }
  }

  #fail(error: unknown): void {
    if (this.#isEnded) return;
    this.#over();
    this.#call.end(toStatusError(error));
  }

  #over(): void {
    this.#isEnded = true;
    this.#unfollow?.();
    this.#renewed.clear();
  }

  halfClosed(): void {
    this.#isHalfClosed = true;
    this.#sendAnswered();
  }

  drained(): void {
    this.#hasSpace = true;
    this.#sendAnswered();
  }

  cancelled(): void {
    this.#over();
  }

  #sendAnswered(): void {
    if (this.#isEnded) return;
    const waiting = this.#waiting;
    let sent = 0;
    for (
      let first = waiting[0];
      first?.seconds !== undefined && this.#hasSpace;
      first = waiting[sent]
    ) {
      const { header, id, seconds } = first;
      this.#hasSpace = this.#call.send(
        LeaseKeepAliveResponse.encode({ header, ID: id, TTL: seconds }),
      );
      sent++;
    }
    if (sent > 0) waiting.splice(0, sent);
    if (!this.#hasSpace) this.#call.pause();
    else if (waiting.length < MAX_WAITING_KEEP_ALIVES) this.#call.resume();
    if (!this.#isHalfClosed || waiting.length > 0) return;
    this.#over();
    this.#call.end();
  }
}
