/**
 * A stream of keep-alives. Thousands of clients renew a lease each every few seconds, mostly one
 * and the same on a stream; such a request needs no decoding, no lookup and no encoding:
 *
 *     bytes of the request before? -- its lease is counted here and not due? -- header, rest
 *              | no                              | no
 *              +---------------------------------+--> decode, permission, renewal, perhaps a wait
 */

import type { CountedLease, KeepAliveStream, Member } from "@quorate/member";
import { type Caller, callerOf } from "@quorate/member";
import { equals, LeaseKeepAliveRequest, LeaseKeepAliveResponse } from "@quorate/proto";
import type { CommonMessage, StreamCall, StreamListener } from "@quorate/rpc";
import type { EncodedHeader } from "../calls/results.ts";
import { toStatusError } from "../calls/results.ts";

/** Keep-alives of a stream that wait for their answer; beyond, the stream takes no more. */
export const MAX_WAITING_KEEP_ALIVES = 1024;

/** Leases of a stream that are looked at again when users or roles change; not the oldest. */
export const MAX_RECHECKED_LEASES = 1024;

/** A request with one field, an id; longer ones are decoded each time. */
const MAX_KEPT_REQUEST_BYTES = 16;

/** The fields of a response besides its header. */
function restOf(ID: bigint, seconds: number): Uint8Array {
  return LeaseKeepAliveResponse.encode({ header: undefined, ID, TTL: seconds });
}

/** A keep-alive and its answer: seconds, or undefined while it is waited for. */
interface KeepAlive {
  readonly id: bigint;
  readonly header: CommonMessage;
  seconds: number | undefined;
}

/** A request that came twice: what the same bytes are answered with. */
interface Repeated {
  readonly request: Uint8Array;
  readonly lease: CountedLease;
  readonly rest: Uint8Array;
}

/** One stream: answers leave in the order of the requests. A renewal that fails ends it. */
export class KeepAlives implements StreamListener, KeepAliveStream {
  readonly #member: Member;
  readonly #header: EncodedHeader;
  readonly #call: StreamCall;
  /**
   * In the order of their requests; the first one has no response yet, or there is no space to send
   * it.
   */
  readonly #waiting: KeepAlive[] = [];
  #hasSpace = true;
  #isPaused = false;
  #isHalfClosed = false;
  #isEnded = false;
  readonly #caller: Caller;
  /** Leases that it has renewed, those renewed last at the end. */
  readonly #renewed = new Set<bigint>();
  /** The last of them: most streams renew one lease, and the set's order costs as much as that. */
  #newest: bigint | undefined;
  #unfollow: (() => void) | undefined;
  #repeated: Repeated | undefined;

  constructor(member: Member, header: EncodedHeader, call: StreamCall) {
    this.#member = member;
    this.#header = header;
    this.#call = call;
    this.#caller = callerOf(call.context);
    member.leases.streams.add(this);
  }

  message(bytes: Uint8Array): void {
    if (this.#isEnded || this.#isAnsweredAgain(bytes)) return;
    const { ID: id } = LeaseKeepAliveRequest.decode(bytes);
    // Of before the renewal: its revision must not be one at which the lease is gone.
    const keepAlive: KeepAlive = { id, header: this.#header.now(), seconds: undefined };
    let renewed: number | Promise<number>;
    try {
      renewed = this.#member.leases.renew(this.#caller, id);
    } catch (error) {
      this.fail(error);
      return;
    }
    this.#waiting.push(keepAlive);
    if (typeof renewed === "number") {
      if (id === this.#newest) this.#note(bytes, id, renewed);
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
      (error: unknown) => this.fail(error),
    );
    if (this.#waiting.length >= MAX_WAITING_KEEP_ALIVES) this.#pause();
  }

  /** Renews and answers at once where the request is the one before; false where it is not done. */
  #isAnsweredAgain(bytes: Uint8Array): boolean {
    const repeated = this.#repeated;
    if (repeated === undefined || !this.#hasSpace || this.#waiting.length > 0) return false;
    const { request, lease, rest } = repeated;
    if (!equals(request, bytes)) return false;
    const header = this.#header.now();
    if (!this.#member.leases.renewAgain(lease)) return false;
    this.#respond(header, rest);
    if (!this.#hasSpace) this.#pause();
    return true;
  }

  /** Notes a request that came twice. */
  #note(bytes: Uint8Array, id: bigint, seconds: number): void {
    if (bytes.length > MAX_KEPT_REQUEST_BYTES) return;
    const lease = this.#member.leases.counted(id);
    if (lease === undefined) return;
    // Copies: they live as long as the stream, and would keep larger buffers.
    this.#repeated = { request: bytes.slice(), lease, rest: restOf(id, seconds).slice() };
  }

  #pause(): void {
    this.#isPaused = true;
    this.#call.pause();
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
      authority.recheck(this.#caller, access).catch((error: unknown) => this.fail(error));
    }
  }

  /** Ends the stream with an error. */
  fail(error: unknown): void {
    if (this.#isEnded) return;
    this.#over();
    this.#call.end(toStatusError(error));
  }

  #over(): void {
    this.#isEnded = true;
    this.#member.leases.streams.delete(this);
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

  #respond(header: CommonMessage, rest: Uint8Array): void {
    const call = this.#call;
    this.#hasSpace = call.sendCommon?.(header, rest) ?? call.send([header.before, rest]);
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
      this.#respond(header, restOf(id, seconds));
      sent++;
    }
    if (sent > 0) waiting.splice(0, sent);
    if (!this.#hasSpace) this.#pause();
    else if (this.#isPaused && waiting.length < MAX_WAITING_KEEP_ALIVES) {
      this.#isPaused = false;
      this.#call.resume();
    }
    if (!this.#isHalfClosed || waiting.length > 0) return;
    this.#over();
    this.#call.end();
  }
}
