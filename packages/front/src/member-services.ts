/**
 * The member's services as a front-end sees them: each call goes into the ring, and its results
 * come out of it.
 *
 *     engine -> unary or stream handler, HTTP handler -> record -> ... -> record -> engine
 *
 * It sends what the engine has checked, and nothing else; the client's identity and metadata once
 * for all calls of a connection that have the same.
 */
import {
  BriefMap,
  type Clock,
  type HttpExchange,
  type HttpExchangeHandler,
  type HttpExchangeListener,
} from "@quorate/host";
import { EMPTY, equals, GrpcCode, readU32LE, toUtf8, writeU32LE } from "@quorate/proto";
import {
  type CallContext,
  joinMessage,
  Later,
  type MessageBytes,
  messageSize,
  type ServiceTable,
  StatusError,
  type StreamCall,
  type StreamHandler,
  type StreamListener,
  type UnaryHandler,
  type UnaryResponse,
} from "@quorate/rpc";
import { CallerSlots } from "./caller-slots.ts";
import { Link, type LinkDeps, type LinkOwner, type LinkRings } from "./link.ts";
import {
  decodeTexts,
  encodeTexts,
  given,
  MAX_AGAIN_CALLS,
  MAX_CALLS,
  NO_TIME,
  ReceiveWindow,
  repeatable,
  SendWindow,
  TARGET_BYTES,
  ToFront,
  ToMember,
} from "./protocol.ts";
import { type RecordHead, RingError, type RingRecord } from "./ring.ts";

/** The longest response: more than any store has. */
const MAX_RESPONSE_BYTES = 2 ** 31 - 1;
/** Requests that wait for the member; the engine's own budgets are below. */
const MAX_QUEUED_BYTES = 2 ** 31 - 1;
const TOO_MANY = new StatusError(GrpcCode.ResourceExhausted, "grpc: too many calls are open");

export interface MemberServicesOptions {
  /** The paths of the member's methods, in the order by which records name them. */
  readonly methods: { readonly unary: readonly string[]; readonly stream: readonly string[] };
  /** The metadata fields that services read. */
  readonly fields: readonly string[];
}

export interface MemberServicesDeps extends LinkDeps {
  readonly clock: Clock;
  /** The member does what it may not: nothing goes on. Called once. */
  broken(error: Error): void;
}

/** A call that the member has not ended. */
interface OpenCall {
  /** Takes a record of the call; true if it was the last one. */
  take(record: RingRecord, message: Uint8Array): boolean;
}

export class MemberServices implements LinkOwner {
  readonly services: ServiceTable;
  readonly #link: Link;
  readonly #deps: MemberServicesDeps;
  readonly #callers: CallerSlots;
  readonly #calls = new BriefMap<number, OpenCall>();
  #lastCall = 0;
  /** Calls that have sent their last message again, as the record has them. */
  readonly #again = new Uint8Array(4 * MAX_AGAIN_CALLS);
  #againCount = 0;
  readonly #head: RecordHead = { kind: 0, detail: 0, call: 0, value: 0, timeMs: NO_TIME };

  /** Begins when `woken` is called for the first time. */
  constructor(rings: LinkRings, options: MemberServicesOptions, deps: MemberServicesDeps) {
    this.#deps = deps;
    const limits = { maxMessageBytes: MAX_RESPONSE_BYTES, maxQueuedBytes: MAX_QUEUED_BYTES };
    this.#link = new Link(rings, limits, this, deps);
    this.#callers = new CallerSlots(options.fields);
    const { unary, stream } = options.methods;
    this.services = {
      unary: new Map(unary.map((path, method) => [path, this.#unary(method)])),
      stream: new Map(stream.map((path, method) => [path, this.#stream(method)])),
    };
  }

  /** The member has published something, or taken something. */
  woken(): void {
    this.#link.woken();
  }

  /** Serves an HTTP request by the member's handler. */
  readonly http: HttpExchangeHandler = (exchange) => {
    const call = this.#newCall();
    if (call === undefined) {
      exchange.respond({ status: 503, headers: {}, body: "too many requests are open\n" });
      return {};
    }
    const { head } = exchange;
    const organizations = head.peerOrganizations ?? [];
    const texts = encodeTexts([
      head.method,
      head.path,
      head.query,
      head.peerAddress,
      head.peerCommonName,
      head.peerSubject,
      head.peerCertificateSha256,
      head.peerCertificateError,
      head.isSecure === true ? "1" : undefined,
      ...organizations,
      ...[...head.headers].flat(),
    ]);
    const open = new OpenExchange(call, exchange, this);
    this.#calls.set(call, open);
    this.send(ToMember.Exchange, call, texts, 0, organizations.length);
    return open;
  };

  /** Sends a record of a call. */
  send(kind: number, call: number, message: UnaryResponse = EMPTY, detail = 0, value = 0): void {
    this.#flushAgain();
    this.#sendTimed(kind, call, message, detail, value, NO_TIME);
  }

  batchBegins(): void {}

  received(record: RingRecord, message: Uint8Array): void {
    if (record.kind === ToFront.Common) {
      this.#common(record, message);
      return;
    }
    const call = this.#calls.get(record.call);
    if (call === undefined) throw new RingError("a record of no call");
    if (call.take(record, message)) this.#calls.delete(record.call);
  }

  /** A call has sent its last message again: told for all calls of this turn together. */
  sendAgain(call: number): void {
    if (this.#againCount === MAX_AGAIN_CALLS) this.#flushAgain();
    writeU32LE(this.#again, 4 * this.#againCount++, call);
    this.#link.touch();
  }

  #flushAgain(): void {
    if (this.#againCount === 0) return;
    const calls = this.#again.slice(0, 4 * this.#againCount);
    this.#againCount = 0;
    this.#sendTimed(ToMember.Again, 0, calls, 0, 0, NO_TIME);
  }

  turnEnds(): void {
    this.#flushAgain();
  }

  drained(): void {}

  broken(error: Error): void {
    this.#deps.broken(error);
  }

  /** A message that goes to many streams. */
  #common({ detail, value }: RingRecord, message: Uint8Array): void {
    if (value + detail > message.length) throw new RingError("a common message");
    const before = message.subarray(value, value + detail);
    const after = message.subarray(value + detail);
    for (let at = 0; at < value; ) {
      const start = at + TARGET_BYTES;
      if (start > value) throw new RingError("a target");
      const end = start + (message[start - 1] ?? 0);
      const call = this.#calls.get(readU32LE(message, at));
      if (end > value || !(call instanceof OpenStream)) throw new RingError("a target");
      call.takeMessage([before, message.subarray(start, end), after]);
      at = end;
    }
  }

  #unary(method: number): UnaryHandler {
    return (request, context) => {
      const call = this.#newCall();
      if (call === undefined) throw TOO_MANY;
      this.#sendStart(ToMember.Unary, call, request, method, context);
      context.onCancel(() => {
        if (this.#calls.has(call)) this.send(ToMember.Cancelled, call);
      });
      const open = new OpenUnary();
      this.#calls.set(call, open);
      return open;
    };
  }

  #stream(method: number): StreamHandler {
    return (engineCall) => {
      const call = this.#newCall();
      if (call === undefined) throw TOO_MANY;
      const open = new OpenStream(call, engineCall, this);
      this.#calls.set(call, open);
      this.#sendStart(ToMember.Stream, call, EMPTY, method, engineCall.context);
      return open;
    };
  }

  #sendStart(
    kind: number,
    call: number,
    request: Uint8Array,
    method: number,
    context: CallContext,
  ): void {
    const caller = this.#callers.slotOf(context);
    if (caller.isNew) this.send(ToMember.Identity, 0, encodeTexts(caller.texts), 0, caller.slot);
    const { deadlineMs } = context;
    const leftMs =
      deadlineMs === undefined ? NO_TIME : Math.max(0, deadlineMs - this.#deps.clock.monotonicMs());
    this.#sendTimed(kind, call, request, method, caller.slot, leftMs);
  }

  #sendTimed(
    kind: number,
    call: number,
    message: UnaryResponse,
    detail: number,
    value: number,
    timeMs: number,
  ): void {
    const head = this.#head;
    head.kind = kind;
    head.call = call;
    head.detail = detail;
    head.value = value;
    head.timeMs = timeMs;
    this.#link.send(head, message);
  }

  /** A number that no open call has; undefined if too many are open. */
  #newCall(): number | undefined {
    if (this.#calls.size >= MAX_CALLS) return undefined;
    do this.#lastCall = (this.#lastCall + 1) >>> 0;
    while (this.#calls.has(this.#lastCall));
    return this.#lastCall;
  }
}

class OpenUnary extends Later<UnaryResponse> implements OpenCall {
  take({ kind, detail }: RingRecord, message: Uint8Array): boolean {
    if (kind === ToFront.Response) this.resolved(message);
    else if (kind === ToFront.End) this.rejected(new StatusError(detail, toUtf8(message)));
    else throw new RingError("a record of another kind of call");
    return true;
  }
}

/** What streams and HTTP exchanges have in common: two windows, and messages both ways. */
abstract class OpenBody implements OpenCall {
  protected readonly number: number;
  protected readonly owner: MemberServices;
  /** The client is gone: what the member still sends is dropped. */
  protected isGone = false;
  /** The member has ended the call, and knows it no more. */
  protected isOver = false;
  readonly #sending = new SendWindow();
  readonly #receiving = new ReceiveWindow();
  #isFull = false;
  #isPausedByMember = false;
  #isPaused = false;

  constructor(number: number, owner: MemberServices) {
    this.number = number;
    this.owner = owner;
  }

  abstract take(record: RingRecord, message: Uint8Array): boolean;
  protected abstract pauseClient(): void;
  protected abstract resumeClient(): void;
  /** Sends to the client; false if no more is to be sent before `drained`. */
  protected abstract sendToClient(message: MessageBytes): boolean;

  /** The client has taken what waited. */
  drained(): void {
    this.#report(true);
  }

  /** Takes a message of the member's. */
  takeMessage(message: MessageBytes): void {
    // A service may send beyond the window, within a bound of its own: a watch sends what it has
    // queued when its stream is full.
    this.#receiving.count(messageSize(message));
    if (!this.isGone && this.sendToClient(message)) this.#report(false);
  }

  protected sendMessage(bytes: Uint8Array, isLastAgain = false): void {
    if (this.isOver) return;
    this.#isFull = !this.#sending.sent(bytes.length);
    if (isLastAgain) this.owner.sendAgain(this.number);
    else this.owner.send(ToMember.Message, this.number, bytes);
    this.#hold();
  }

  protected sendHalfClose(): void {
    if (!this.isOver) this.owner.send(ToMember.HalfClosed, this.number);
  }

  protected gone(): void {
    this.isGone = true;
    if (!this.isOver) this.owner.send(ToMember.Cancelled, this.number);
  }

  /** Takes a record that both have; false for another kind. */
  protected takeCommon({ kind, value }: RingRecord, message: Uint8Array): boolean {
    switch (kind) {
      case ToFront.Message:
        this.takeMessage(message);
        return true;
      case ToFront.Taken:
        if (this.#sending.taken(value)) this.#isFull = false;
        break;
      case ToFront.Paused:
        this.#isPausedByMember = true;
        break;
      case ToFront.Resumed:
        this.#isPausedByMember = false;
        break;
      default:
        return false;
    }
    this.#hold();
    return true;
  }

  #report(isAll: boolean): void {
    const taken = this.#receiving.take(isAll);
    if (taken > 0 && !this.isOver) this.owner.send(ToMember.Taken, this.number, EMPTY, 0, taken);
  }

  /** Pauses or resumes the client, as the member and the window say. */
  #hold(): void {
    const isPaused = this.#isFull || this.#isPausedByMember;
    if (isPaused === this.#isPaused || this.isGone) return;
    this.#isPaused = isPaused;
    if (isPaused) this.pauseClient();
    else this.resumeClient();
  }
}

class OpenStream extends OpenBody implements StreamListener {
  readonly #call: StreamCall;
  /** The last message, if it may come again. */
  #last: Uint8Array | undefined;

  constructor(number: number, call: StreamCall, owner: MemberServices) {
    super(number, owner);
    this.#call = call;
  }

  message(bytes: Uint8Array): void {
    const isLast = this.#last !== undefined && equals(this.#last, bytes);
    if (!isLast) this.#last = repeatable(bytes);
    this.sendMessage(bytes, isLast);
  }

  halfClosed(): void {
    this.sendHalfClose();
  }

  cancelled(): void {
    this.gone();
  }

  override take(record: RingRecord, message: Uint8Array): boolean {
    if (this.takeCommon(record, message)) return false;
    if (record.kind !== ToFront.End) throw new RingError("a record of another kind of call");
    // Behind the last record the member knows the call no more.
    this.isOver = true;
    if (!this.isGone) this.#call.end({ code: record.detail, message: toUtf8(message) });
    return true;
  }

  protected override pauseClient(): void {
    this.#call.pause();
  }

  protected override resumeClient(): void {
    this.#call.resume();
  }

  protected override sendToClient(message: MessageBytes): boolean {
    return this.#call.send(message);
  }
}

class OpenExchange extends OpenBody implements HttpExchangeListener {
  readonly #exchange: HttpExchange;

  constructor(number: number, exchange: HttpExchange, owner: MemberServices) {
    super(number, owner);
    this.#exchange = exchange;
  }

  data(bytes: Uint8Array): void {
    this.sendMessage(bytes);
  }

  ended(): void {
    this.sendHalfClose();
  }

  aborted(): void {
    this.gone();
  }

  override take(record: RingRecord, message: Uint8Array): boolean {
    if (this.takeCommon(record, message)) return false;
    const exchange = this.#exchange;
    switch (record.kind) {
      case ToFront.Head:
        exchange.start(record.detail, headersOf(message));
        return false;
      case ToFront.Answer: {
        if (record.value > message.length) throw new RingError("an answer's texts");
        const headers = headersOf(message.subarray(0, record.value));
        const body = message.subarray(record.value);
        this.isOver = true;
        if (!this.isGone) exchange.respond({ status: record.detail, headers, body });
        return true;
      }
      case ToFront.End:
      case ToFront.Cut:
        this.isOver = true;
        if (this.isGone) return true;
        if (record.kind === ToFront.End) exchange.end();
        else exchange.abort();
        return true;
      default:
        throw new RingError("a record of another kind of call");
    }
  }

  protected override pauseClient(): void {
    this.#exchange.pause();
  }

  protected override resumeClient(): void {
    this.#exchange.resume();
  }

  protected override sendToClient(message: MessageBytes): boolean {
    return this.#exchange.send(joinMessage(message));
  }
}

function headersOf(texts: Uint8Array): Record<string, string> {
  const pairs = decodeTexts(texts);
  const headers: Record<string, string> = {};
  for (let i = 0; i + 1 < pairs.length; i += 2) headers[given(pairs[i])] = given(pairs[i + 1]);
  return headers;
}
