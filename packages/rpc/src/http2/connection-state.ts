/**
 * The base of a connection, on which the handlers of frames work: its streams, budgets and sender,
 * and every way in which a stream or the whole connection ends. Methods that return a boolean
 * return false once the connection is ending, so that a handler can return their result.
 */
import type { ByteBudget } from "./byte-budget.ts";
import { ErrorCode } from "./constants.ts";
import type { HeaderBlock } from "./header-block.ts";
import type { Http2Limits } from "./limits.ts";
import { Output, writeGoAway, writeRstStream } from "./output.ts";
import { clientOf, type Peer } from "./peer.ts";
import { Sender, type SenderOwner } from "./sender.ts";
import type { EngineCounters, Http2Shared } from "./shared.ts";
import { type Http2Stream, StreamTable } from "./stream.ts";

/** The owner of the socket, as its connection sees it. */
export interface ConnectionOwner {
  /**
   * There is output where there was none, or the connection began to end. Called again only after
   * takeOutput.
   */
  wake(): void;
  /** The client's preface and first SETTINGS are complete. Called once. */
  settled(): void;
  /**
   * The connection has had its part of this turn: `goOn` is to be called in the next one, and until
   * then `receive` had better not be.
   */
  heldBack(): void;
}

export abstract class ConnectionState implements SenderOwner {
  readonly peer: Peer;
  readonly limits: Http2Limits;
  /** The server's, for all connections. */
  readonly counters: EngineCounters;
  readonly out: Output;
  readonly sender: Sender;
  readonly streams = new StreamTable();
  readonly keepAlive: KeepAlive;
  readonly owner: ConnectionOwner;
  /** Bytes of requests that are being received or processed. */
  readonly held: ByteBudget;
  /** Bytes that open streams take by themselves, mostly their headers. */
  readonly headBudget: ByteBudget;
  /** Bytes of responses that wait to be sent. */
  readonly #pendingBudget: ByteBudget;
  readonly #abuse: AbuseBudgets;
  /** The header block that CONTINUATION frames are to complete. */
  block: HeaderBlock | undefined;
  /**
   * Calls that are still running although their stream was reset. They count as streams, or a reset
   * would evade that bound.
   */
  lingeringCalls = 0;
  /**
   * True once nothing more is read or begun: the owner sends the remaining output and closes the
   * socket.
   */
  ending = false;
  /** Monotonic milliseconds, as of the last `receive` or `sweep`. */
  nowMs: number;
  /** When the first GOAWAY was sent; undefined while the connection takes requests. */
  drainingMs: number | undefined;
  /** The client has received the first GOAWAY: no more requests are taken. */
  drained = false;
  #idleSinceMs: number;
  #awake = false;
  #lost = false;

  constructor(shared: Http2Shared, owner: ConnectionOwner, peer: Peer, nowMs: number) {
    const limits = shared.limits;
    this.limits = limits;
    this.counters = shared.counters;
    this.owner = owner;
    this.peer = peer;
    this.nowMs = nowMs;
    this.#idleSinceMs = nowMs;
    this.out = new Output(shared.buffers);
    const identity = clientOf(peer);
    const cut = () => this.#cutAsLargestHolder();
    this.held = shared.held.join(limits.maxHeldBytes, identity, cut);
    this.headBudget = shared.heads.join(limits.maxHeadBytes, identity, cut);
    this.#pendingBudget = shared.pending.join(limits.maxPendingBytes, identity, cut);
    this.sender = new Sender(this.out, limits.outputTargetBytes, this.#pendingBudget, this);
    this.keepAlive = new KeepAlive(limits, nowMs);
    this.#abuse = new AbuseBudgets(limits, nowMs);
    this.counters.connections++;
    this.counters.openConnections++;
  }

  /** Since when no call has been open or running; undefined while one is. */
  get idleSinceMs(): number | undefined {
    return this.streams.size + this.lingeringCalls === 0 ? this.#idleSinceMs : undefined;
  }

  setNow(nowMs: number): void {
    this.nowMs = nowMs;
    this.sender.nowMs = nowMs;
  }

  /**
   * Notifies the owner of new output, once. To be called after using `sender` or `reset` outside of
   * `receive`.
   */
  touched(): void {
    if (this.#awake || (this.out.sizeBytes === 0 && !this.ending)) return;
    this.#awake = true;
    this.owner.wake();
  }

  /** The bytes to send, in order; the owner's `wake` is called when there are more. */
  takeOutput(): Uint8Array[] {
    this.#awake = false;
    return this.out.take();
  }

  /** Called by the sender: the server's side of the stream has ended on the wire. */
  localEnded(stream: Http2Stream): void {
    if (stream.closed) return;
    this.#abuse.responded();
    if (!stream.remoteEnded) {
      // The response is complete, so the rest of the request is of no use (section 8.1).
      writeRstStream(this.out, stream.id, ErrorCode.NoError);
      this.streams.addCut(stream.id);
    } else this.streams.addEnded(stream.id);
    this.remove(stream);
  }

  /** A frame with content was written, or the client consumed part of a request. */
  progressed(): void {
    this.keepAlive.sent = true;
    this.#abuse.progressed();
  }

  /** Resets a stream unless it has ended. Does not call its consumer. */
  reset(stream: Http2Stream, code: number): void {
    if (stream.closed) return;
    writeRstStream(this.out, stream.id, code);
    this.remove(stream);
    this.streams.addCut(stream.id);
  }

  /** Refuses a stream before it opens, as an idle frame: the client may retry it (section 8.7). */
  refuseStream(streamId: number): boolean {
    writeRstStream(this.out, streamId, ErrorCode.RefusedStream);
    this.streams.addCut(streamId);
    return this.idle(1);
  }

  /** Resets a stream that may not be open: a header block or PRIORITY on it breaks a rule. */
  rejectFrame(streamId: number, code: number): boolean {
    const stream = this.streams.get(streamId);
    if (stream !== undefined) return this.streamError(stream, code);
    this.counters.streamErrors++;
    writeRstStream(this.out, streamId, code);
    this.streams.addCut(streamId);
    return this.chargeReset();
  }

  /** The client broke a rule on an open stream: resets it and aborts its call. */
  streamError(stream: Http2Stream, code: number): boolean {
    this.counters.streamErrors++;
    this.reset(stream, code);
    stream.consumer.aborted();
    return this.chargeReset();
  }

  /** A stream was reset, by the client or because of it. */
  chargeReset(): boolean {
    if (this.ending || this.#abuse.chargeReset(this.nowMs)) return !this.ending;
    this.counters.resetFloods++;
    return this.end(ErrorCode.EnhanceYourCalm, "too many resets");
  }

  /** Charges frames that moved nothing. */
  idle(count: number): boolean {
    if (this.ending || this.#abuse.chargeIdle(count, this.nowMs)) return !this.ending;
    this.counters.frameFloods++;
    return this.end(ErrorCode.EnhanceYourCalm, "too many idle frames");
  }

  /** Ends the connection because the client broke a rule. */
  fail(code: number, reason: string): false {
    if (this.ending) return false;
    this.counters.connectionErrors++;
    return this.end(code, reason);
  }

  /** Ends the connection. @param reason is sent in GOAWAY */
  end(code: number, reason: string): false {
    if (this.ending) return false;
    writeGoAway(this.out, this.streams.lastId, code, reason);
    this.ending = true;
    this.#abortAll();
    this.touched();
    return false;
  }

  /**
   * The client has received the first GOAWAY: sends the second, with the last stream that is served
   * (section 6.8).
   */
  finishDrain(): void {
    if (this.drained) return;
    this.drained = true;
    writeGoAway(this.out, this.streams.lastId, ErrorCode.NoError, "");
    if (this.streams.size === 0) this.ending = true;
  }

  /** The socket is gone. */
  lost(): void {
    if (this.#lost) return;
    this.#lost = true;
    this.held.leave();
    this.headBudget.leave();
    this.#pendingBudget.leave();
    this.ending = true;
    this.counters.openConnections--;
    this.#abortAll();
  }

  /** Takes a stream out of the table and releases what it holds. */
  remove(stream: Http2Stream): void {
    stream.closed = true;
    this.streams.delete(stream.id);
    this.counters.openStreams--;
    this.headBudget.give(stream.headBytes);
    this.sender.drop(stream);
    this.#idleSinceMs = this.nowMs;
    if (this.drained && this.streams.size === 0) this.ending = true;
  }

  #abortAll(): void {
    const streams = [...this.streams.values()];
    this.block = undefined;
    for (const stream of streams) this.remove(stream);
    for (const stream of streams) stream.consumer.aborted();
  }

  /** Ends the connection: it holds more than any other while all together hold too much. */
  #cutAsLargestHolder(): void {
    this.counters.largestHolderCuts++;
    const reason = "the server is out of buffer memory, and this connection holds the most";
    this.end(ErrorCode.EnhanceYourCalm, reason);
  }
}

/** Idle frames that one frame with content makes good. */
const REFILL_PER_PROGRESS = 2;

/**
 * Budgets for what costs a client less than it costs the server: frames that move nothing (empty
 * DATA, SETTINGS, PING, PRIORITY and so on; CVE-2019-9512, -9515 and -9518) and streams that end in
 * a reset (CVE-2023-44487). Each is a token bucket. Work that gets done refills them, so a client
 * that receives responses does not run out.
 */
class AbuseBudgets {
  readonly #idleFrames: TokenBucket;
  readonly #resets: TokenBucket;

  constructor(limits: Http2Limits, nowMs: number) {
    const { maxIdleFramesBurst, maxIdleFramesPerSecond, maxResetsBurst, maxResetsPerSecond } =
      limits;
    this.#idleFrames = new TokenBucket(maxIdleFramesBurst, maxIdleFramesPerSecond, nowMs);
    this.#resets = new TokenBucket(maxResetsBurst, maxResetsPerSecond, nowMs);
  }

  /** Charges `count` idle frames; false when the budget is used up. */
  chargeIdle(count: number, nowMs: number): boolean {
    return this.#idleFrames.take(count, nowMs);
  }

  /** Charges a reset stream; false when the budget is used up. */
  chargeReset(nowMs: number): boolean {
    return this.#resets.take(1, nowMs);
  }

  /** A frame with content was sent. */
  progressed(): void {
    this.#idleFrames.give(REFILL_PER_PROGRESS);
  }

  /** A response was sent to its end. */
  responded(): void {
    this.#resets.give(1);
  }
}

/** A token bucket: a burst, and then a rate per second. It is refilled only when it runs out. */
export class TokenBucket {
  readonly #burst: number;
  readonly #perMs: number;
  #tokens: number;
  #filledMs: number;

  constructor(burst: number, perSecond: number, nowMs: number) {
    this.#burst = burst;
    this.#perMs = perSecond / 1000;
    this.#tokens = burst;
    this.#filledMs = nowMs;
  }

  /** Takes `count` tokens; false if there are fewer. */
  take(count: number, nowMs: number): boolean {
    if (this.#tokens < count) {
      this.#tokens = Math.min(this.#burst, this.#tokens + (nowMs - this.#filledMs) * this.#perMs);
      this.#filledMs = nowMs;
      if (this.#tokens < count) return false;
    }
    this.#tokens -= count;
    return true;
  }

  /** Returns tokens, up to the burst. */
  give(count: number): void {
    this.#tokens = Math.min(this.#burst, this.#tokens + count);
  }
}

/** As in grpc-go: the third ping that comes too early ends the connection. */
const MAX_STRIKES = 2;
/** As in grpc-go: the minimum time between pings of a client without open calls. */
const IDLE_PERIOD_MS = 2 * 60 * 60 * 1000;

/**
 * Pings in both directions: grpc-go's policy against clients that ping too often, and the server's
 * own pings to silent clients.
 */
class KeepAlive {
  readonly #minTimeMs: number;
  readonly #intervalMs: number;
  readonly #timeoutMs: number;
  #strikes = 0;
  #lastPingMs = Number.NEGATIVE_INFINITY;
  #lastReadMs: number;
  #pingedMs: number | undefined = undefined;
  /**
   * Set when a frame with content is sent; it resets the count of early pings, because a client may
   * ping while it receives.
   */
  sent = false;

  constructor(limits: Http2Limits, nowMs: number) {
    this.#minTimeMs = limits.keepAliveMinTimeMs;
    this.#intervalMs = limits.keepAliveTimeoutMs > 0 ? limits.keepAliveIntervalMs : 0;
    this.#timeoutMs = limits.keepAliveTimeoutMs;
    this.#lastReadMs = nowMs;
  }

  /** The client has pinged. False if that is one ping too many. */
  pinged(nowMs: number, openStreams: number): boolean {
    const lastMs = this.#lastPingMs;
    this.#lastPingMs = nowMs;
    if (this.#minTimeMs === 0) return true;
    if (this.sent) {
      this.sent = false;
      this.#strikes = 0;
      return true;
    }
    if (lastMs + (openStreams === 0 ? IDLE_PERIOD_MS : this.#minTimeMs) > nowMs) this.#strikes++;
    return this.#strikes <= MAX_STRIKES;
  }

  /** Bytes have arrived. */
  read(nowMs: number): void {
    this.#lastReadMs = nowMs;
    this.#pingedMs = undefined;
  }

  /** The action that is due: send a ping, or give up on a client that did not acknowledge one. */
  due(nowMs: number): "ping" | "lost" | undefined {
    if (this.#intervalMs === 0) return undefined;
    if (this.#pingedMs !== undefined)
      return nowMs - this.#pingedMs >= this.#timeoutMs ? "lost" : undefined;
    if (nowMs - this.#lastReadMs < this.#intervalMs) return undefined;
    this.#pingedMs = nowMs;
    return "ping";
  }
}
